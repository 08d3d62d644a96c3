/* Streams of bytes: parts, the end, buffers, files. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIG 500000

static char *pattern(int size)
{
    char *bytes = malloc((size_t)size);
    for (int i = 0; i < size; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    return bytes;
}

static void narrow(SRTSOCKET s)
{
    as_stream(s);
    set_int(s, SRTO_FC, 32);
    set_int(s, SRTO_SNDBUF, 40 * 1472);
    set_int(s, SRTO_RCVBUF, 32 * 1472);
}

/* Receives until there are this many bytes, or nothing comes. */
static int receive_all(SRTSOCKET s, char *bytes, int size)
{
    int got = 0;
    while (got < size) {
        int part = srt_recv(s, bytes + got, size - got);
        if (part <= 0)
            break;
        got += part;
    }
    return got;
}

static void sizes(void)
{
    static const int sizes[] = { -1, 0, 1, 1456, 1457, BIG };
    struct pair pair = connected(as_stream, as_stream);
    char *bytes = pattern(BIG);
    char *got = malloc(BIG);
    for (int i = 0; i < COUNT(sizes); i++) {
        answer("srt_send", say("stream, %d bytes", sizes[i]),
               srt_send(pair.caller, bytes, sizes[i]));
        if (sizes[i] <= 0)
            continue;
        int count = receive_all(pair.accepted, got, sizes[i]);
        value("srt_recv", say("stream, all of %d bytes", sizes[i]), "%d, %s", count,
              memcmp(bytes, got, (size_t)sizes[i]) == 0 ? "the same bytes" : "other bytes");
    }
    answer("srt_recv", "stream, room for 0", srt_recv(pair.accepted, got, 0));
    answer("srt_recv", "stream, room for -1", srt_recv(pair.accepted, got, -1));
    answer("srt_sendmsg", "stream, ttl 5, in order",
           srt_sendmsg(pair.caller, bytes, 3000, 5, 1));
    value("srt_recvmsg", "stream, all of 3000 bytes", "%d",
          receive_all(pair.accepted, got, 3000));
    close_pair(&pair);
}

/* One call that sends: the numbers that its control block has afterwards. */
static void sent_row(SRTSOCKET s, const char *name, int size, SRT_MSGCTRL *control)
{
    int64_t before = srt_time_now();
    char *bytes = pattern(size);
    answer("srt_sendmsg2", say("stream, %s", name), srt_sendmsg2(s, bytes, size, control));
    value("srt_sendmsg2", say("stream, %s, pktseq - ISN", name), "%d",
          control->pktseq - get_int(s, SRTO_ISN));
    value("srt_sendmsg2", say("stream, %s, msgno", name), "%d", control->msgno);
    value("srt_sendmsg2", say("stream, %s, srctime", name), "%s",
          control->srctime >= before && control->srctime <= srt_time_now() ? "now" : "not now");
    free(bytes);
}

static void numbers(void)
{
    struct pair pair = connected(as_stream, as_stream);
    char *got = malloc(BIG);
    SRT_MSGCTRL control = srt_msgctrl_default;
    sent_row(pair.caller, "first", 10, &control);
    control = srt_msgctrl_default;
    sent_row(pair.caller, "of three packets", 3000, &control);
    sent_row(pair.caller, "a used control block", 5, &control);
    control = srt_msgctrl_default;
    control.msgno = 77;
    sent_row(pair.caller, "msgno 77", 5, &control);
    control = srt_msgctrl_default;
    control.srctime = srt_connection_time(pair.caller) + 1;
    sent_row(pair.caller, "srctime of the past", 5, &control);
    control = srt_msgctrl_default;
    control.srctime = 1;
    answer("srt_sendmsg2", "stream, srctime 1", srt_sendmsg2(pair.caller, got, 5, &control));
    static const int bad[] = { 0, -2, 100000000 };
    for (int i = 0; i < COUNT(bad); i++) {
        control = srt_msgctrl_default;
        control.msgno = bad[i];
        answer("srt_sendmsg2", say("stream, msgno %d", bad[i]),
               srt_sendmsg2(pair.caller, got, 5, &control));
    }
    control.pktseq = control.msgno = -7;
    control.srctime = -7;
    value("srt_recvmsg2", "stream, some bytes", "%s",
          srt_recvmsg2(pair.accepted, got, 10, &control) > 0 ? "some" : last_error());
    value("srt_recvmsg2", "stream, the control block", "%d %d %d", control.pktseq, control.msgno,
          (int)control.srctime);
    close_pair(&pair);
}

static void parts(void)
{
    struct pair pair = connected(as_stream, as_stream);
    char got[100] = { 0 };
    srt_send(pair.caller, "0123456789", 10);
    int eid = watch(pair.accepted, SRT_EPOLL_IN);
    wait_events(eid, SRT_EPOLL_IN, LONG_MS);
    int first = srt_recv(pair.accepted, got, 4);
    value("srt_recv", "stream, 4 of 10 bytes", "%d \"%.4s\"", first, got);
    ready("stream, 6 bytes left", eid);
    int second = srt_recv(pair.accepted, got, 100);
    value("srt_recv", "stream, the rest of 10 bytes", "%d \"%.6s\"", second, got);
    ready("stream, nothing left", eid);
    set_bool(pair.accepted, SRTO_RCVSYN, 0);
    answer("srt_recv", "stream, nothing, not blocking", srt_recv(pair.accepted, got, 100));
    set_bool(pair.accepted, SRTO_RCVSYN, 1);
    set_int(pair.accepted, SRTO_RCVTIMEO, 80);
    answer("srt_recv", "stream, nothing, RCVTIMEO 80", srt_recv(pair.accepted, got, 100));
    /* Two sends are one piece for the receiver. */
    srt_send(pair.caller, "abc", 3);
    srt_send(pair.caller, "def", 3);
    for (double end = now_ms() + LONG_MS; now_ms() < end;) {
        if (get_int(pair.accepted, SRTO_RCVDATA) >= 2)
            break;
        pause_ms(5);
    }
    set_int(pair.accepted, SRTO_RCVTIMEO, 1000);
    int both = srt_recv(pair.accepted, got, 100);
    value("srt_recv", "stream, two sends", "%d \"%.6s\"", both, got);
    close_pair(&pair);
}

static void ends(void)
{
    struct pair pair = connected(as_stream, as_stream);
    char got[100];
    int eid = watch(pair.accepted, 0);
    srt_send(pair.caller, "0123456789", 10);
    wait_events(eid, SRT_EPOLL_IN, LONG_MS);
    pause_ms(SETTLE_MS);
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    answer_ready("srt_recv", "stream, peer closed, part of the rest",
                 srt_recv(pair.accepted, got, 4), pair.accepted, eid);
    answer_ready("srt_recv", "stream, peer closed, the rest", srt_recv(pair.accepted, got, 100),
                 pair.accepted, eid);
    answer_ready("srt_recv", "stream, peer closed, the end", srt_recv(pair.accepted, got, 100),
                 pair.accepted, eid);
    answer("srt_recv", "stream, peer closed, the end again", srt_recv(pair.accepted, got, 100));
    answer("srt_recvmsg", "stream, peer closed, the end", srt_recvmsg(pair.accepted, got, 100));
    answer("srt_send", "stream, peer closed", srt_send(pair.accepted, got, 100));
    answer("srt_recv", "stream, peer closed, room for 0", srt_recv(pair.accepted, got, 0));
    pause_ms(3500);
    answer_state("srt_recv", "stream, peer closed, 3.5 s later",
                 srt_recv(pair.accepted, got, 100), pair.accepted);
    close_pair(&pair);
}

/* The peer takes nothing. */
static void full(void)
{
    struct pair pair = connected(narrow, narrow);
    char *bytes = pattern(BIG);
    size_t blocks = 9;
    size_t size = 9;
    int part;
    part = srt_getsndbuffer(pair.caller, &blocks, &size);
    value("srt_getsndbuffer", "nothing sent", "%d; %zu blocks, %zu bytes", part, blocks, size);
    set_bool(pair.caller, SRTO_SNDSYN, 0);
    part = srt_send(pair.caller, bytes, BIG);
    value("srt_send", "stream, more than the buffer holds, not blocking", "%s",
          part > 0 && part < BIG ? "a part" : say("%d", part));
    fill(pair.caller, bytes, 1456);
    answer("srt_send", "stream, full, not blocking", srt_send(pair.caller, bytes, 1456));
    part = srt_getsndbuffer(pair.caller, &blocks, &size);
    value("srt_getsndbuffer", "full", "%s; %zu blocks, %zu bytes", part > 0 ? ">0 ms" : "0 ms",
          blocks, size);
    blocks = 9;
    srt_getsndbuffer(pair.caller, &blocks, NULL);
    value("srt_getsndbuffer", "no pointer to bytes", "%zu blocks", blocks);
    srt_getsndbuffer(pair.caller, NULL, &size);
    value("srt_getsndbuffer", "no pointer to blocks", "%zu bytes", size);
    value("srt_getsockflag", "SNDDATA, full", "%d", get_int(pair.caller, SRTO_SNDDATA));
    value("srt_getsockflag", "RCVDATA, full", "%s",
          get_int(pair.accepted, SRTO_RCVDATA) > 0 ? ">0" : "0");
    value("srt_getsockflag", "EVENT, full", "%d %d", get_int(pair.caller, SRTO_EVENT),
          get_int(pair.accepted, SRTO_EVENT));
    set_bool(pair.caller, SRTO_SNDSYN, 1);
    set_int(pair.caller, SRTO_SNDTIMEO, 100);
    answer("srt_send", "stream, full, SNDTIMEO 100", srt_send(pair.caller, bytes, 1456));
    srt_clearlasterror();
    answer("srt_getsndbuffer", "unknown socket", srt_getsndbuffer(12345, &blocks, &size));
    answer("srt_getsndbuffer", "opened socket", srt_getsndbuffer(opened(NULL), &blocks, &size));
    close_pair(&pair);
}

/* Files. */

static void write_file(const char *path, const char *bytes, int size)
{
    FILE *file = fopen(path, "wb");
    fwrite(bytes, 1, (size_t)size, file);
    fclose(file);
}

static int file_is(const char *path, const char *bytes, int size)
{
    char *got = malloc((size_t)size + 1);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    int count = (int)fread(got, 1, (size_t)size + 1, file);
    fclose(file);
    int same = count == size && memcmp(got, bytes, (size_t)size) == 0;
    free(got);
    return same;
}

static void file_row(const char *function, const char *situation, int64_t result, int64_t offset)
{
    const char *error = result == SRT_ERROR ? last_error() : "-";
    row(function, situation, say("%lld, offset %lld", (long long)result, (long long)offset),
        error, "-", "-");
}

static void files(void)
{
    struct pair pair = connected(as_stream, as_stream);
    char *bytes = pattern(BIG);
    int64_t offset = 0;
    int64_t result;
    write_file("sent", bytes, BIG);
    result = srt_sendfile(pair.caller, "sent", &offset, BIG, 364000);
    file_row("srt_sendfile", "all", result, offset);
    offset = 0;
    result = srt_recvfile(pair.accepted, "got", &offset, BIG, 7280000);
    file_row("srt_recvfile", "all", result, offset);
    value("srt_recvfile", "all, contents", "%s",
          file_is("got", bytes, BIG) ? "the same" : "others");
    offset = 1000;
    result = srt_sendfile(pair.caller, "sent", &offset, 200000, 364000);
    file_row("srt_sendfile", "200000 from 1000", result, offset);
    offset = 0;
    result = srt_recvfile(pair.accepted, "got", &offset, 200000, 7280000);
    file_row("srt_recvfile", "200000 over an older file", result, offset);
    value("srt_recvfile", "200000 over an older file, contents", "%s",
          file_is("got", bytes + 1000, 200000) ? "the same" : "others");
    offset = 0;
    result = srt_sendfile(pair.caller, "sent", &offset, -1, 364000);
    file_row("srt_sendfile", "size -1", result, offset);
    offset = 0;
    result = srt_recvfile(pair.accepted, "got", &offset, BIG, 7280000);
    file_row("srt_recvfile", "size of all after size -1", result, offset);
    offset = 0;
    result = srt_sendfile(pair.caller, "sent", &offset, 0, 364000);
    file_row("srt_sendfile", "size 0", result, offset);
    offset = 0;
    result = srt_recvfile(pair.accepted, "got", &offset, 0, 7280000);
    file_row("srt_recvfile", "size 0", result, offset);
    close_pair(&pair);
}

static void file_errors(void)
{
    struct pair pair = connected(as_stream, as_stream);
    struct pair live = connected(NULL, NULL);
    char *bytes = pattern(1000);
    int64_t offset = 0;
    write_file("small", bytes, 1000);
    file_row("srt_sendfile", "no such file",
             srt_sendfile(pair.caller, "nowhere/none", &offset, 10, 364000), offset);
    srt_send(pair.caller, bytes, 1000);
    file_row("srt_recvfile", "no such folder",
             srt_recvfile(pair.accepted, "nowhere/none", &offset, 10, 364000), offset);
    file_row("srt_sendfile", "live", srt_sendfile(live.caller, "small", &offset, 10, 364000),
             offset);
    file_row("srt_recvfile", "live", srt_recvfile(live.accepted, "other", &offset, 10, 364000),
             offset);
    file_row("srt_sendfile", "unknown socket",
             srt_sendfile(12345, "small", &offset, 10, 364000), offset);
    file_row("srt_recvfile", "unknown socket",
             srt_recvfile(12345, "other", &offset, 10, 364000), offset);
    SRTSOCKET s = opened(as_stream);
    file_row("srt_sendfile", "not connected", srt_sendfile(s, "small", &offset, 10, 364000),
             offset);
    file_row("srt_recvfile", "not connected", srt_recvfile(s, "other", &offset, 10, 364000),
             offset);
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    file_row("srt_sendfile", "peer closed",
             srt_sendfile(pair.accepted, "small", &offset, 10, 364000), offset);
    close_pair(&pair);
    close_pair(&live);
}

int main(void)
{
    static section *const sections[] = { sizes, numbers, parts, ends, full, files, file_errors };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
