/* Messages: sizes, buffers, timeouts, the control block, sockets that cannot. */
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char bytes[200000];

/* Packets are due soon, but not at once. */
#define LATENCY_MS 200

static void soon(SRTSOCKET s)
{
    set_int(s, SRTO_LATENCY, LATENCY_MS);
}

/* A message is due when it arrives. */
static void at_arrival(SRTSOCKET s)
{
    set_bool(s, SRTO_TSBPDMODE, 0);
}

static int receive(SRTSOCKET s, int room)
{
    static _Thread_local char buffer[200000];
    return srt_recvmsg(s, buffer, room);
}

/* Waits until the first message is there, without taking it. */
static void wait_readable(SRTSOCKET s)
{
    int eid = watch(s, SRT_EPOLL_IN);
    wait_events(eid, SRT_EPOLL_IN, LONG_MS);
    srt_epoll_release(eid);
}

static void live_sizes(void)
{
    static const int sizes[] = { -1, 0, 1, 1315, 1316, 1317, 1456, 1457, 100000 };
    struct pair pair = connected(soon, soon);
    for (int i = 0; i < COUNT(sizes); i++) {
        answer("srt_sendmsg", say("live, %d bytes", sizes[i]),
               srt_sendmsg(pair.caller, bytes, sizes[i], -1, 1));
        answer("srt_send", say("live, %d bytes", sizes[i]),
               srt_send(pair.accepted, bytes, sizes[i]));
    }
    /* 1, 1315 and 1316 bytes arrive at both ends. */
    for (int i = 0; i < 3; i++) {
        wait_readable(pair.accepted);
        wait_readable(pair.caller);
        answer("srt_recvmsg", say("live, message %d", i), receive(pair.accepted, 1456));
        answer("srt_recv", say("live, message %d", i), srt_recv(pair.caller, bytes, 1316));
    }
    close_pair(&pair);
}

static void live_buffers(void)
{
    static const int rooms[] = { -1, 0, 1, 1315 };
    struct pair pair = connected(soon, soon);
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    wait_readable(pair.accepted);
    for (int i = 0; i < COUNT(rooms); i++)
        answer("srt_recvmsg", say("live, 10 bytes wait, room for %d", rooms[i]),
               receive(pair.accepted, rooms[i]));
    answer("srt_recvmsg", "live, 10 bytes wait, room for 1316", receive(pair.accepted, 1316));
    close_pair(&pair);
}

static void large_payload(SRTSOCKET s)
{
    soon(s);
    set_int(s, SRTO_PAYLOADSIZE, 1456);
}

static void small_payload(SRTSOCKET s)
{
    soon(s);
    set_int(s, SRTO_PAYLOADSIZE, 500);
}

static void live_payloads(void)
{
    struct pair pair = connected(large_payload, small_payload);
    answer("srt_sendmsg", "1456 bytes, PAYLOADSIZE 1456",
           srt_sendmsg(pair.caller, bytes, 1456, -1, 1));
    answer("srt_sendmsg", "501 bytes, PAYLOADSIZE 500",
           srt_sendmsg(pair.accepted, bytes, 501, -1, 1));
    answer("srt_sendmsg", "500 bytes, PAYLOADSIZE 500",
           srt_sendmsg(pair.accepted, bytes, 500, -1, 1));
    wait_readable(pair.accepted);
    wait_readable(pair.caller);
    answer("srt_recvmsg", "room for 499, PAYLOADSIZE 500", receive(pair.accepted, 499));
    answer("srt_recvmsg", "a message of 1456 into 500", receive(pair.accepted, 500));
    answer("srt_recvmsg", "room for 500, PAYLOADSIZE 1456", receive(pair.caller, 500));
    answer("srt_recvmsg", "room for 1456, PAYLOADSIZE 1456", receive(pair.caller, 1456));
    close_pair(&pair);
}

static void receive_empty(void)
{
    struct pair pair = connected(soon, soon);
    double start;
    set_bool(pair.accepted, SRTO_RCVSYN, 0);
    answer("srt_recvmsg", "live, nothing, not blocking", receive(pair.accepted, 1456));
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    answer("srt_recvmsg", "live, sent but not due, not blocking", receive(pair.accepted, 1456));
    wait_readable(pair.accepted);
    answer("srt_recvmsg", "live, due, not blocking", receive(pair.accepted, 1456));
    set_bool(pair.accepted, SRTO_RCVSYN, 1);
    set_int(pair.accepted, SRTO_RCVTIMEO, 100);
    start = now_ms();
    answer("srt_recvmsg", "live, nothing, RCVTIMEO 100", receive(pair.accepted, 1456));
    value("srt_recvmsg", "duration with RCVTIMEO 100", "%s", took(start, 90, 400));
    set_int(pair.accepted, SRTO_RCVTIMEO, 0);
    start = now_ms();
    answer("srt_recvmsg", "live, nothing, RCVTIMEO 0", receive(pair.accepted, 1456));
    value("srt_recvmsg", "duration with RCVTIMEO 0", "%s", took(start, 0, 300));
    set_int(pair.accepted, SRTO_RCVTIMEO, LONG_MS);
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    answer("srt_recvmsg", "live, blocking until due", receive(pair.accepted, 1456));
    close_pair(&pair);
}

static void with_states(const char *situation, SRTSOCKET s)
{
    SRT_MSGCTRL control = srt_msgctrl_default;
    answer_state("srt_send", situation, srt_send(s, bytes, 10), s);
    answer_state("srt_sendmsg", situation, srt_sendmsg(s, bytes, 10, -1, 1), s);
    answer_state("srt_sendmsg2", situation, srt_sendmsg2(s, bytes, 10, &control), s);
    answer_state("srt_recv", situation, srt_recv(s, bytes, 1456), s);
    answer_state("srt_recvmsg", situation, receive(s, 1456), s);
    answer_state("srt_recvmsg2", situation, srt_recvmsg2(s, bytes, 1456, &control), s);
}

static void unable_sockets(void)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET connecting = opened(unblock);
    struct pair pair = connected(soon, soon);
    with_states("opened", opened(NULL));
    with_states("bound", bound(NULL));
    with_states("listening", listening(NULL));
    call(connecting, port);
    with_states("connecting", connecting);
    with_states("unknown socket", 12345);
    with_states("socket -1", SRT_INVALID_SOCK);
    srt_close(pair.caller);
    with_states("closed", pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    with_states("broken", pair.accepted);
    close_pair(&pair);
    srt_close(connecting);
    close(silent);
}

/* The data that came before the peer's end. */
static void after_the_end(void)
{
    struct pair pair = connected(soon, soon);
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    srt_sendmsg(pair.caller, bytes, 11, -1, 1);
    pause_ms(LATENCY_MS + 100);
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    answer("srt_recvmsg", "live, peer closed, two due, first", receive(pair.accepted, 1456));
    answer("srt_recvmsg", "live, peer closed, two due, second", receive(pair.accepted, 1456));
    answer("srt_recvmsg", "live, peer closed, two due, end", receive(pair.accepted, 1456));
    answer("srt_sendmsg", "live, peer closed", srt_sendmsg(pair.accepted, bytes, 10, -1, 1));
    answer("srt_sendmsg", "live, peer closed, 0 bytes",
           srt_sendmsg(pair.accepted, bytes, 0, -1, 1));
    answer("srt_recvmsg", "live, peer closed, room for 0", receive(pair.accepted, 0));
    answer("srt_recvmsg", "live, peer closed, room for 10", receive(pair.accepted, 10));
    close_pair(&pair);
}

/* Message API for files. */

static void message_sizes(void)
{
    static const int sizes[] = { -1, 0, 1, 1456, 1457, 10000, 100000 };
    struct pair pair = connected(as_file_messages, as_file_messages);
    for (int i = 0; i < COUNT(sizes); i++) {
        answer("srt_sendmsg", say("message API, %d bytes", sizes[i]),
               srt_sendmsg(pair.caller, bytes, sizes[i], -1, 1));
        if (sizes[i] > 0)
            answer("srt_recvmsg", say("message API, %d bytes", sizes[i]),
                   receive(pair.accepted, sizeof bytes));
    }
    srt_sendmsg(pair.caller, "0123456789", 10, -1, 1);
    srt_sendmsg(pair.caller, "abcdef", 6, -1, 1);
    answer("srt_recvmsg", "message API, 10 bytes into 4", receive(pair.accepted, 4));
    answer("srt_recvmsg", "message API, the message after the cut one",
           receive(pair.accepted, 100));
    srt_sendmsg(pair.caller, bytes, 5000, -1, 1);
    answer("srt_recvmsg", "message API, 5000 bytes into 2000", receive(pair.accepted, 2000));
    set_bool(pair.accepted, SRTO_RCVSYN, 0);
    answer("srt_recvmsg", "message API, nothing, not blocking", receive(pair.accepted, 100));
    answer("srt_recvmsg", "message API, room for 0", receive(pair.accepted, 0));
    answer("srt_sendfile", "message API",
           srt_sendfile(pair.caller, "/etc/hostname", &(int64_t){ 0 }, 1, 364000));
    close_pair(&pair);
}

static void message_end(void)
{
    struct pair pair = connected(as_file_messages, as_file_messages);
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    wait_readable(pair.accepted);
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    answer("srt_recvmsg", "message API, peer closed, one there", receive(pair.accepted, 100));
    answer("srt_recvmsg", "message API, peer closed, end", receive(pair.accepted, 100));
    close_pair(&pair);
}

static void narrow_messages(SRTSOCKET s)
{
    as_file_messages(s);
    set_int(s, SRTO_FC, 32);
    set_int(s, SRTO_SNDBUF, 40 * 1472);
    set_int(s, SRTO_RCVBUF, 32 * 1472);
}

/* The receiver takes nothing, so both buffers fill up. */
static void full_buffer(void)
{
    struct pair pair = connected(narrow_messages, narrow_messages);
    double start;
    set_bool(pair.caller, SRTO_SNDSYN, 0);
    answer("srt_sendmsg", "a message larger than the send buffer",
           srt_sendmsg(pair.caller, bytes, 41 * 1456, -1, 1));
    answer("srt_sendmsg", "a message as large as the send buffer",
           srt_sendmsg(pair.caller, bytes, 40 * 1456, -1, 1));
    value("srt_sendmsg", "until full, not blocking", "%s",
          fill(pair.caller, bytes, 1456) ? last_error() : "never");
    set_bool(pair.caller, SRTO_SNDSYN, 1);
    set_int(pair.caller, SRTO_SNDTIMEO, 100);
    start = now_ms();
    answer("srt_sendmsg", "full, SNDTIMEO 100", srt_sendmsg(pair.caller, bytes, 1456, -1, 1));
    value("srt_sendmsg", "duration with SNDTIMEO 100", "%s", took(start, 90, 400));
    close_pair(&pair);
}

/* The control block. */

static SRT_MSGCTRL garbage(void)
{
    SRT_MSGCTRL control;
    memset(&control, 0x5a, sizeof control);
    control.srctime = 0;
    control.msgno = -1;
    control.msgttl = -1;
    control.grpdata = NULL;
    return control;
}

/* A busy machine shifts the receiver's clock by the delay of a handshake's packet. */
static const char *later(int64_t us)
{
    if (llabs(us) < LATENCY_MS * 1000 / 2)
        return "near 0";
    return llabs(us - LATENCY_MS * 1000) < LATENCY_MS * 1000 / 2 ? "near the latency"
        : "elsewhere";
}

static const char *plain_fields(const SRT_MSGCTRL *control)
{
    return say("flags %s inorder %s boundary %s ttl %s",
               control->flags == 0x5a5a5a5a ? "kept" : "written",
               control->inorder == 0x5a5a5a5a ? "kept" : "written",
               control->boundary == 0x5a5a5a5a ? "kept" : "written",
               control->msgttl == -1 ? "kept" : "written");
}

static void live_control(void)
{
    struct pair pair = connected(soon, soon);
    int isn = get_int(pair.caller, SRTO_ISN);
    SRT_MSGCTRL sent = garbage();
    SRT_MSGCTRL got = garbage();
    int64_t before = srt_time_now();
    answer("srt_sendmsg2", "live, srctime 0", srt_sendmsg2(pair.caller, bytes, 10, &sent));
    value("srt_sendmsg2", "live, msgno", "%d", sent.msgno);
    value("srt_sendmsg2", "live, pktseq - ISN", "%d", sent.pktseq - isn);
    value("srt_sendmsg2", "live, srctime of the first", "%s",
          sent.srctime >= before && sent.srctime <= srt_time_now() ? "now" : "not now");
    value("srt_sendmsg2", "live, other fields", "%s", plain_fields(&sent));
    wait_readable(pair.accepted);
    answer("srt_recvmsg2", "live", srt_recvmsg2(pair.accepted, bytes, 1456, &got));
    value("srt_recvmsg2", "live, msgno", "%d", got.msgno);
    value("srt_recvmsg2", "live, pktseq - ISN", "%d", got.pktseq - isn);
    value("srt_recvmsg2", "live, other fields", "%s", plain_fields(&got));
    value("srt_recvmsg2", "live, srctime - sender's srctime", "%s",
          later(got.srctime - sent.srctime));
    sent = garbage();
    answer("srt_sendmsg2", "live, second", srt_sendmsg2(pair.caller, bytes, 10, &sent));
    value("srt_sendmsg2", "live, second msgno", "%d", sent.msgno);
    value("srt_sendmsg2", "live, second pktseq - ISN", "%d", sent.pktseq - isn);
    answer("srt_sendmsg2", "live, no control block", srt_sendmsg2(pair.caller, bytes, 10, NULL));
    wait_readable(pair.accepted);
    answer("srt_recvmsg2", "live, no control block",
           srt_recvmsg2(pair.accepted, bytes, 1456, NULL));
    close_pair(&pair);
}

static void source_times(void)
{
    struct pair pair = connected(soon, soon);
    SRT_MSGCTRL control = srt_msgctrl_default;
    SRT_MSGCTRL got = srt_msgctrl_default;
    int64_t given;
    control.srctime = srt_connection_time(pair.caller) - 1000000;
    answer("srt_sendmsg2", "srctime before the connection",
           srt_sendmsg2(pair.caller, bytes, 10, &control));
    control = srt_msgctrl_default;
    control.srctime = -5;
    answer("srt_sendmsg2", "srctime -5", srt_sendmsg2(pair.caller, bytes, 10, &control));
    control = srt_msgctrl_default;
    pause_ms(500);
    given = control.srctime = srt_time_now() - 500000;
    answer("srt_sendmsg2", "srctime of the past", srt_sendmsg2(pair.caller, bytes, 10, &control));
    value("srt_sendmsg2", "srctime of the past, afterwards", "%s",
          control.srctime == given ? "kept" : "changed");
    wait_readable(pair.accepted);
    srt_recvmsg2(pair.accepted, bytes, 1456, &got);
    value("srt_recvmsg2", "srctime of the past, received - given", "%s",
          later(got.srctime - given));
    close_pair(&pair);
}

static void message_numbers(void)
{
    static const int numbers[] = { 7, 8, 3, 0, -1, -2, 100000000 };
    struct pair pair = connected(as_file_messages, as_file_messages);
    for (int i = 0; i < COUNT(numbers); i++) {
        SRT_MSGCTRL sent = srt_msgctrl_default;
        sent.msgno = numbers[i];
        sent.inorder = 1;
        answer("srt_sendmsg2", say("msgno %d", numbers[i]),
               srt_sendmsg2(pair.caller, bytes, 10, &sent));
        value("srt_sendmsg2", say("msgno %d, afterwards", numbers[i]), "%d", sent.msgno);
    }
    close_pair(&pair);
}

static void message_control(void)
{
    struct pair pair = connected(as_file_messages, as_file_messages);
    int isn = get_int(pair.caller, SRTO_ISN);
    SRT_MSGCTRL sent = garbage();
    SRT_MSGCTRL got = garbage();
    answer("srt_sendmsg2", "three packets", srt_sendmsg2(pair.caller, bytes, 3 * 1456, &sent));
    value("srt_sendmsg2", "three packets, pktseq - ISN", "%d", sent.pktseq - isn);
    answer("srt_recvmsg2", "three packets",
           srt_recvmsg2(pair.accepted, bytes, sizeof bytes, &got));
    value("srt_recvmsg2", "three packets, pktseq - ISN", "%d", got.pktseq - isn);
    value("srt_recvmsg2", "three packets, msgno", "%d", got.msgno);
    value("srt_recvmsg2", "three packets, other fields", "%s", plain_fields(&got));
    srt_sendmsg2(pair.caller, bytes, 1, &sent);
    value("srt_sendmsg2", "a used control block, msgno", "%d", sent.msgno);
    sent = srt_msgctrl_default;
    int64_t given = sent.srctime = srt_connection_time(pair.caller) + 1;
    srt_sendmsg2(pair.caller, bytes, 1, &sent);
    value("srt_sendmsg2", "a message of a file, srctime of the past, afterwards", "%s",
          sent.srctime == given ? "kept" : "changed");
    close_pair(&pair);
}

/* Live mode without delivery at the time of play. */
static void without_tsbpd(void)
{
    struct pair pair = connected(at_arrival, at_arrival);
    SRT_MSGCTRL control = srt_msgctrl_default;
    control.srctime = 1;
    answer("srt_sendmsg2", "no TSBPD, srctime 1", srt_sendmsg2(pair.caller, bytes, 10, &control));
    control.srctime = 0;
    answer("srt_sendmsg2", "no TSBPD", srt_sendmsg2(pair.caller, bytes, 10, &control));
    int64_t given = control.srctime = srt_connection_time(pair.caller) + 1;
    control.msgno = -1;
    srt_sendmsg2(pair.caller, bytes, 10, &control);
    value("srt_sendmsg2", "no TSBPD, srctime of the past, afterwards", "%s",
          control.srctime == given ? "kept" : "changed");
    answer("srt_recvmsg2", "no TSBPD", srt_recvmsg2(pair.accepted, bytes, 1456, &control));
    answer("srt_sendmsg", "no TSBPD, 1317 bytes", srt_sendmsg(pair.caller, bytes, 1317, -1, 1));
    close_pair(&pair);
}

int main(void)
{
    static section *const sections[] = {
        live_sizes, live_buffers, live_payloads, receive_empty, unable_sockets, after_the_end,
        message_sizes, message_end, full_buffer, live_control, source_times, message_numbers,
        message_control, without_tsbpd,
    };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
