/* Closing: what it returns, what becomes of the id, whom it wakes, what happens to the data. */
#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char bytes[100000];

/* Twice libsrt's collector has passed. */
#define COLLECTED_MS 3500

static void close_row(const char *situation, SRTSOCKET s)
{
    double start = now_ms();
    int result = srt_close(s);
    const char *duration = took(start, 0, 400);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    row("srt_close", situation, say("%d, %s", result, duration), error, state_of(s), "-");
}

/* The states afterwards: at once, and when libsrt has collected the socket. */
static void simple_states(void)
{
    int port;
    int silent = silent_socket(&port);
    struct pair pair = connected(NULL, NULL);
    struct pair other = connected(NULL, NULL);
    SRTSOCKET connecting = opened(unblock);
    struct { const char *name; SRTSOCKET s; } sockets[] = {
        { "opened", opened(NULL) },
        { "bound", bound(NULL) },
        { "connecting", connecting },
        { "connected caller", pair.caller },
        { "accepted", other.accepted },
    };
    call(connecting, port);
    for (int i = 0; i < COUNT(sockets); i++)
        close_row(sockets[i].name, sockets[i].s);
    for (int i = 0; i < COUNT(sockets); i++)
        close_row(say("%s, again", sockets[i].name), sockets[i].s);
    close_row("unknown", 12345);
    close_row("-1", -1);
    close_row("0", 0);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    close_row("broken", pair.accepted);
    pause_ms(COLLECTED_MS);
    for (int i = 0; i < COUNT(sockets); i++)
        state(say("%s, closed %d ms ago", sockets[i].name, COLLECTED_MS), sockets[i].s);
    close_row("collected", sockets[0].s);
    answer("srt_setrejectreason", "collected", srt_setrejectreason(sockets[0].s, 1000));
    close_pair(&other);
    close(silent);
}

/* A closed listener stays longer. */
static void closed_listeners(void)
{
    struct pair pair = connected(NULL, NULL);
    SRTSOCKET s = listening(NULL);
    close_row("listening", s);
    close_row("listening, again", s);
    close_row("listener with a connection", pair.listener);
    pause_ms(2500);
    state("listening, closed 2500 ms ago", s);
    state("listener with a connection, closed 2500 ms ago", pair.listener);
    value("srt_getsockstate", "listening, closed, in the end", "%s",
          wait_state(s, SRTS_NONEXIST, 8000) ? "NONEXIST" : state_of(s));
    close_pair(&pair);
}

/* A broken socket that nobody closes. */
static void left_alone(void)
{
    struct pair pair = connected(NULL, NULL);
    int eid = watch(pair.accepted, 0);
    srt_close(pair.caller);
    value("srt_getsockstate", "peer closed", "%s",
          wait_state(pair.accepted, SRTS_BROKEN, LONG_MS) ? "BROKEN" : state_of(pair.accepted));
    answer_state("srt_recvmsg", "peer closed", srt_recvmsg(pair.accepted, bytes, 1456),
                 pair.accepted);
    pause_ms(COLLECTED_MS);
    answer_ready("-", say("peer closed %d ms ago", COLLECTED_MS), 0, pair.accepted, eid);
    answer("srt_recvmsg", "peer closed long ago", srt_recvmsg(pair.accepted, bytes, 1456));
    close_row("peer closed long ago", pair.accepted);
    srt_close(pair.listener);
}

/* Functions on a closed id. */
static void use_after_close(void)
{
    struct sockaddr_in address = loopback(0);
    struct sockaddr *to = (struct sockaddr *)&address;
    int size = sizeof address;
    SRT_TRACEBSTATS stats;
    size_t blocks;
    struct pair pair = connected(NULL, NULL);
    SRTSOCKET s = pair.caller;
    srt_close(s);
    answer("srt_bind", "closed", srt_bind(s, to, sizeof address));
    answer("srt_listen", "closed", srt_listen(s, 1));
    answer("srt_getsockname", "closed", srt_getsockname(s, to, &size));
    answer("srt_getpeername", "closed", srt_getpeername(s, to, &size));
    answer("srt_bstats", "closed", srt_bstats(s, &stats, 0));
    answer("srt_getsndbuffer", "closed", srt_getsndbuffer(s, &blocks, NULL));
    answer("srt_connection_time", "closed", srt_connection_time(s));
    answer("srt_getrejectreason", "closed", srt_getrejectreason(s));
    answer("srt_setrejectreason", "closed", srt_setrejectreason(s, 1000));
    answer("srt_listen_callback", "closed", srt_listen_callback(s, NULL, NULL));
    answer("srt_connect_callback", "closed", srt_connect_callback(s, NULL, NULL));
    answer("srt_sendfile", "closed", srt_sendfile(s, "/etc/hostname", &(int64_t){ 0 }, 1, 1000));
    close_pair(&pair);
}

/* A thread in a blocking function, and how that ended. */

struct blocked {
    const char *function;
    SRTSOCKET s;
    int port;
    int result;
    int error;
    double end;
};

static void *block(void *opaque)
{
    struct blocked *blocked = opaque;
    switch (blocked->function[4]) {
    case 'a': blocked->result = srt_accept(blocked->s, NULL, NULL); break;
    case 'c': blocked->result = call(blocked->s, blocked->port); break;
    case 'r': blocked->result = srt_recvmsg(blocked->s, (char[1456]){ 0 }, 1456); break;
    default: blocked->result = srt_sendmsg(blocked->s, bytes, 1456, -1, 1); break;
    }
    blocked->error = blocked->result == SRT_ERROR ? srt_getlasterror(NULL) : 0;
    blocked->end = now_ms();
    return NULL;
}

static void wakes(const char *function, const char *situation, SRTSOCKET s, int port,
                  SRTSOCKET closed)
{
    struct blocked blocked = { function, s, port, 0, 0, 0 };
    pthread_t thread;
    pthread_create(&thread, NULL, block, &blocked);
    pause_ms(100);
    double start = now_ms();
    srt_close(closed);
    pthread_join(thread, NULL);
    row(function, say("blocked, then %s", situation),
        say("%d, %s", blocked.result, blocked.end - start < 700 ? "at once" : "late"),
        blocked.result == SRT_ERROR ? error_name(blocked.error) : "-", "-", "-");
}

static void closed_accept(void)
{
    SRTSOCKET listener = listening(NULL);
    wakes("srt_accept", "closed", listener, 0, listener);
}

static void closed_connect(void)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET s = opened(NULL);
    wakes("srt_connect", "closed", s, port, s);
    close(silent);
}

static void closed_receive(void)
{
    struct pair pair = just_connected(NULL, NULL);
    wakes("srt_recvmsg", "closed", pair.accepted, 0, pair.accepted);
    close_pair(&pair);
    pair = just_connected(NULL, NULL);
    wakes("srt_recvmsg", "the peer is closed", pair.accepted, 0, pair.caller);
    close_pair(&pair);
    pair = just_connected(as_file_messages, as_file_messages);
    wakes("srt_recvmsg", "closed, files", pair.accepted, 0, pair.accepted);
    close_pair(&pair);
    pair = just_connected(as_file_messages, as_file_messages);
    wakes("srt_recvmsg", "the peer is closed, files", pair.accepted, 0, pair.caller);
    close_pair(&pair);
}

static void narrow(SRTSOCKET s)
{
    static const struct linger none = { 0, 0 };
    as_file_messages(s);
    srt_setsockflag(s, SRTO_LINGER, &none, sizeof none);
    set_int(s, SRTO_FC, 32);
    set_int(s, SRTO_SNDBUF, 40 * 1472);
    set_int(s, SRTO_RCVBUF, 32 * 1472);
}

static struct pair full_pair(void)
{
    struct pair pair = just_connected(narrow, narrow);
    set_bool(pair.caller, SRTO_SNDSYN, 0);
    fill(pair.caller, bytes, 1456);
    set_bool(pair.caller, SRTO_SNDSYN, 1);
    return pair;
}

static void closed_send(void)
{
    struct pair pair = full_pair();
    wakes("srt_sendmsg", "closed", pair.caller, 0, pair.caller);
    close_pair(&pair);
    pair = full_pair();
    wakes("srt_sendmsg", "the peer is closed", pair.caller, 0, pair.accepted);
    close_pair(&pair);
}

/* Data that was sent just before. */

struct taker {
    SRTSOCKET s;
    int count;
};

/* Receives until the end, or until nothing comes for long. A wait that a break ends may cost
 * libsrt the last message. */
static void *take(void *opaque)
{
    struct taker *taker = opaque;
    char *room = malloc(100000);
    while (srt_recvmsg(taker->s, room, 100000) > 0)
        taker->count++;
    free(room);
    return NULL;
}

static void linger_case(const char *situation, int on, int seconds, int blocking)
{
    struct pair pair = connected(as_file_messages, as_file_messages);
    struct linger linger = { on, seconds };
    struct taker taker = { pair.accepted, 0 };
    pthread_t thread;
    int sent = 0;
    set_int(pair.accepted, SRTO_RCVTIMEO, 1000);
    srt_setsockflag(pair.caller, SRTO_LINGER, &linger, sizeof linger);
    pthread_create(&thread, NULL, take, &taker);
    for (int i = 0; i < 40; i++)
        sent += srt_sendmsg(pair.caller, bytes, 50000, -1, 1) == 50000;
    set_bool(pair.caller, SRTO_SNDSYN, blocking);
    int result = srt_close(pair.caller);
    const char *now = state_of(pair.caller);
    pthread_join(thread, NULL);
    row("srt_close", say("%d messages sent, %s", sent, situation),
        say("%d, %s", result, taker.count >= sent - 1 ? "received" : "some lost"), "-", now, "-");
    close_pair(&pair);
}

static void lingering(void)
{
    linger_case("LINGER 10 s, blocking", 1, 10, 1);
    linger_case("LINGER 10 s, not blocking", 1, 10, 0);
    linger_case("LINGER off", 0, 0, 1);
}

/* The peer takes nothing: closing waits as long as LINGER says. */
static void linger_in_vain(void)
{
    struct pair pair = full_pair();
    struct linger linger = { 1, 1 };
    srt_setsockflag(pair.caller, SRTO_LINGER, &linger, sizeof linger);
    double start = now_ms();
    int result = srt_close(pair.caller);
    value("srt_close", "LINGER 1 s, the peer takes nothing", "%d, %s", result,
          took(start, 900, 1700));
    close_pair(&pair);
    pair = full_pair();
    srt_setsockflag(pair.caller, SRTO_LINGER, &linger, sizeof linger);
    set_bool(pair.caller, SRTO_SNDSYN, 0);
    start = now_ms();
    result = srt_close(pair.caller);
    value("srt_close", "LINGER 1 s, not blocking, the peer takes nothing", "%d, %s", result,
          took(start, 0, 400));
    close_pair(&pair);
}

/* The whole library. */
static void restart(void)
{
    struct pair pair = connected(NULL, NULL);
    SRTSOCKET s = opened(NULL);
    answer("srt_startup", "a second time", srt_startup());
    answer_state("srt_cleanup", "first of two", srt_cleanup(), pair.caller);
    double start = now_ms();
    answer_state("srt_cleanup", "second of two", srt_cleanup(), pair.caller);
    value("srt_cleanup", "duration", "%s", took(start, 0, 1500));
    state("opened, then cleanup", s);
    value("srt_getsockstate", "listener, then cleanup", "%s", state_of(pair.listener));
    answer("srt_cleanup", "a third time", srt_cleanup());
    answer("srt_startup", "after cleanup", srt_startup());
    s = opened(NULL);
    value("srt_create_socket", "after a restart", "%s", s > 0 ? ">0" : last_error());
    pair = connected(NULL, NULL);
    state("connected after a restart", pair.caller);
    close_pair(&pair);
}

int main(void)
{
    static section *const sections[] = {
        simple_states, closed_listeners, left_alone, use_after_close, closed_accept, closed_connect,
        closed_receive, closed_send, lingering, linger_in_vain,
    };
    program_start();
    at_once(sections, COUNT(sections));
    restart();
    return program_end();
}
