/* The events of listeners, connections, data and ends, and the calls that wake a waiting thread. */
#include "common.h"

#include <pthread.h>
#include <stdlib.h>

#define ET ((int)SRT_EPOLL_ET)

static char bytes[100000];

static void short_latency(SRTSOCKET s)
{
    set_int(s, SRTO_LATENCY, 20);
}

/* Waits for at least these events, then says all that there are. */
static void ready_when(const char *situation, int eid, int wanted)
{
    double end = now_ms() + 2000;
    SRT_EPOLL_EVENT event = { 0, 0 };
    while (srt_epoll_uwait(eid, &event, 1, 20) != 1 || (event.events & wanted) != wanted)
        if (now_ms() > end)
            break;
    row("srt_epoll_uwait", situation, "-", "-", "-", events_name(event.events));
}

/* The report after a while in which nothing new should come. */
static void ready_later(const char *situation, int eid)
{
    SRT_EPOLL_EVENT event = { 0, 0 };
    int count = srt_epoll_uwait(eid, &event, 1, 60);
    row("srt_epoll_uwait", situation, say("%d", count), count < 0 ? last_error() : "-", "-",
        events_name(event.events));
}

static void listener(void)
{
    SRTSOCKET s = listening(NULL);
    SRTSOCKET first = opened(NULL);
    SRTSOCKET second = opened(NULL);
    int all = watch(s, 0);
    int in = watch(s, SRT_EPOLL_IN);
    int out = watch(s, SRT_EPOLL_OUT);
    int edge = watch(s, SRT_EPOLL_IN | ET);
    set_bool(s, SRTO_RCVSYN, 0);
    ready("listener, no call", all);
    answer("srt_accept", "no call, not blocking", srt_accept(s, NULL, NULL));
    call(first, port_of(s));
    ready_when("listener, a call", all, SRT_EPOLL_IN | SRT_EPOLL_OUT);
    ready("listener, a call, again", all);
    ready_when("listener, a call, IN only", in, SRT_EPOLL_IN);
    ready_later("listener, a call, OUT only", out);
    ready_later("listener, a call, edge", edge);
    ready_later("listener, a call, edge, again", edge);
    ready_later("listener, a call before it was added", watch(s, SRT_EPOLL_IN));
    ready_later("listener, a call before it was added, all", watch(s, 0));
    call(second, port_of(s));
    ready_later("listener, a second call, edge", edge);
    value("srt_accept", "first", "%s", srt_accept(s, NULL, NULL) > 0 ? "a socket" : last_error());
    ready("listener, two calls, one accepted", all);
    value("srt_accept", "second", "%s", srt_accept(s, NULL, NULL) > 0 ? "a socket" : last_error());
    ready("listener, all accepted", all);
    ready("listener, all accepted, IN only", in);
    ready("listener, all accepted, OUT only", out);
    answer("srt_accept", "all accepted, not blocking", srt_accept(s, NULL, NULL));
    srt_close(first);
    srt_close(second);
    srt_close(s);
    ready("listener, closed", in);
}

static void new_connection(void)
{
    SRTSOCKET s = listening(NULL);
    SRTSOCKET caller = opened(unblock);
    int all = watch(caller, 0);
    int in = watch(caller, SRT_EPOLL_IN);
    int edge = watch(caller, SRT_EPOLL_OUT | ET);
    SRTSOCKET accepted;
    ready("caller, opened", all);
    answer("srt_connect", "not blocking", call(caller, port_of(s)));
    ready_when("caller, connected", all, SRT_EPOLL_OUT);
    ready_later("caller, connected, IN only", in);
    ready_later("caller, connected, OUT edge", edge);
    ready_later("caller, connected, OUT edge, again", edge);
    ready("caller, connected before it was added", watch(caller, 0));
    accepted = srt_accept(s, NULL, NULL);
    ready("accepted, new", watch(accepted, 0));
    ready("accepted, new, edge", watch(accepted, SRT_EPOLL_OUT | ET));
    srt_close(caller);
    srt_close(s);
}

static void data(void)
{
    struct pair pair = connected(short_latency, short_latency);
    int all = watch(pair.accepted, 0);
    int in = watch(pair.accepted, SRT_EPOLL_IN);
    int edge = watch(pair.accepted, SRT_EPOLL_IN | ET);
    ready("connected, nothing sent", all);
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    pause_ms(150);
    ready_when("two messages", all, SRT_EPOLL_IN);
    ready_when("two messages, IN only", in, SRT_EPOLL_IN);
    ready_later("two messages, edge", edge);
    ready_later("two messages, edge, again", edge);
    srt_recvmsg(pair.accepted, bytes, 1456);
    ready("one of two messages taken, IN only", in);
    ready("one of two messages taken, added now", watch(pair.accepted, SRT_EPOLL_IN));
    srt_recvmsg(pair.accepted, bytes, 1456);
    ready("both messages taken, IN only", in);
    ready("both messages taken", all);
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    ready_when("a further message, edge", edge, SRT_EPOLL_IN);
    ready_later("a further message, edge, again", edge);
    close_pair(&pair);
}

static void not_due(void)
{
    struct pair pair = connected(NULL, NULL);
    int in = watch(pair.accepted, SRT_EPOLL_IN);
    double start = now_ms();
    srt_sendmsg(pair.caller, bytes, 10, -1, 1);
    ready("a message that is not due", in);
    ready_when("a message that has become due", in, SRT_EPOLL_IN);
    value("srt_epoll_uwait", "from sending to IN with latency 120", "%s", took(start, 80, 500));
    close_pair(&pair);
}

static void narrow(SRTSOCKET s)
{
    as_file_messages(s);
    set_int(s, SRTO_FC, 32);
    set_int(s, SRTO_SNDBUF, 40 * 1472);
    set_int(s, SRTO_RCVBUF, 32 * 1472);
}

static void full_buffer(void)
{
    struct pair pair = connected(narrow, narrow);
    int out = watch(pair.caller, SRT_EPOLL_OUT);
    int in = watch(pair.accepted, SRT_EPOLL_IN);
    ready("room to send", out);
    set_bool(pair.caller, SRTO_SNDSYN, 0);
    fill(pair.caller, bytes, 1456);
    ready("no room to send", out);
    ready("no room to send, added now", watch(pair.caller, SRT_EPOLL_OUT));
    ready("much to receive", in);
    for (int i = 0; i < 10; i++)
        srt_recvmsg(pair.accepted, bytes, 1456);
    ready_when("room again", out, SRT_EPOLL_OUT);
    close_pair(&pair);
}

static void peer_closed(void)
{
    struct pair pair = connected(short_latency, short_latency);
    int all = watch(pair.accepted, 0);
    int in = watch(pair.accepted, SRT_EPOLL_IN);
    int out = watch(pair.accepted, SRT_EPOLL_OUT);
    int err = watch(pair.accepted, SRT_EPOLL_ERR);
    int edge = watch(pair.accepted, SRT_EPOLL_ERR | ET);
    SRTSOCKET arrays[2];
    int rn = 1;
    int wn = 1;
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    pause_ms(SETTLE_MS);
    ready_when("peer closed", all, SRT_EPOLL_ERR);
    ready_when("peer closed, IN only", in, SRT_EPOLL_IN);
    ready_when("peer closed, OUT only", out, SRT_EPOLL_OUT);
    ready_when("peer closed, ERR only", err, SRT_EPOLL_ERR);
    ready_when("peer closed, ERR edge", edge, SRT_EPOLL_ERR);
    ready("peer closed, ERR edge, again", edge);
    int result = srt_epoll_wait(err, arrays, &rn, arrays + 1, &wn, 0, NULL, NULL, NULL, NULL);
    value("srt_epoll_wait", "peer closed, ERR only", "%d; read %d; write %d", result, rn, wn);
    answer("srt_epoll_add_usock", "peer closed",
           srt_epoll_add_usock(srt_epoll_create(), pair.accepted, NULL));
    answer("srt_recvmsg", "peer closed", srt_recvmsg(pair.accepted, bytes, 1456));
    ready("peer closed, after recv", all);
    ready("peer closed, after recv, IN only", in);
    srt_close(pair.accepted);
    srt_close(pair.listener);
}

static void own_close(void)
{
    struct pair pair = connected(short_latency, short_latency);
    int all = watch(pair.caller, 0);
    int two = watch(pair.caller, 0);
    srt_epoll_add_usock(two, pair.accepted, NULL);
    srt_close(pair.caller);
    ready_later("the only socket is closed", all);
    srt_close(pair.accepted);
    srt_close(pair.listener);
}

static int refuse(void *opaque, SRTSOCKET s, int version, const struct sockaddr *peer,
                  const char *id)
{
    (void)opaque;
    (void)s;
    (void)version;
    (void)peer;
    (void)id;
    return -1;
}

static void refused(void)
{
    SRTSOCKET s = bound(NULL);
    SRTSOCKET caller = opened(unblock);
    int all = watch(caller, 0);
    int out = watch(caller, SRT_EPOLL_OUT);
    int err = watch(caller, SRT_EPOLL_ERR);
    int listener_in = watch(s, SRT_EPOLL_IN);
    srt_listen_callback(s, refuse, NULL);
    srt_listen(s, 5);
    call(caller, port_of(s));
    ready_when("refused", all, SRT_EPOLL_ERR);
    ready_when("refused, OUT only", out, SRT_EPOLL_OUT);
    ready_when("refused, ERR only", err, SRT_EPOLL_ERR);
    ready("refused, the listener", listener_in);
    ready_later("refused, added now", watch(caller, 0));
    state("refused", caller);
    srt_close(caller);
    srt_close(s);
}

/* A thread that waits, and how its wait ended. */

struct waiter {
    int eid;
    int with_uwait;
    int result;
    int error;
    double end;
};

static void *wait_long(void *opaque)
{
    struct waiter *waiter = opaque;
    SRT_EPOLL_EVENT event;
    SRTSOCKET sockets[2];
    int count = 2;
    waiter->result = waiter->with_uwait
        ? srt_epoll_uwait(waiter->eid, &event, 1, LONG_MS)
        : srt_epoll_wait(waiter->eid, sockets, &count, NULL, NULL, LONG_MS, NULL, NULL, NULL,
                         NULL);
    waiter->error = waiter->result == SRT_ERROR ? srt_getlasterror(NULL) : 0;
    waiter->end = now_ms();
    return NULL;
}

typedef void act(int eid, struct pair *pair);

static void wakes(const char *situation, act *act, int with_uwait)
{
    struct pair pair = connected(short_latency, short_latency);
    struct waiter waiter = { watch(pair.accepted, SRT_EPOLL_IN), with_uwait, 0, 0, 0 };
    pthread_t thread;
    double start;
    pthread_create(&thread, NULL, wait_long, &waiter);
    pause_ms(60);
    start = now_ms();
    act(waiter.eid, &pair);
    pthread_join(thread, NULL);
    row(with_uwait ? "srt_epoll_uwait" : "srt_epoll_wait", say("blocked, then %s", situation),
        say("%d, %s", waiter.result, waiter.end - start < 500 ? "at once" : "late"),
        waiter.result == SRT_ERROR ? error_name(waiter.error) : "-", "-", "-");
    close_pair(&pair);
}

static void do_remove(int eid, struct pair *pair)
{
    srt_epoll_remove_usock(eid, pair->accepted);
}

static void do_clear(int eid, struct pair *pair)
{
    (void)pair;
    srt_epoll_clear_usocks(eid);
}

static void do_close(int eid, struct pair *pair)
{
    (void)eid;
    srt_close(pair->accepted);
}

static void do_close_peer(int eid, struct pair *pair)
{
    (void)eid;
    srt_close(pair->caller);
}

static void do_send(int eid, struct pair *pair)
{
    (void)eid;
    srt_sendmsg(pair->caller, bytes, 10, -1, 1);
}

static void do_add(int eid, struct pair *pair)
{
    srt_epoll_add_usock(eid, pair->caller, &(int){ SRT_EPOLL_IN | SRT_EPOLL_OUT });
}

static void waking(void)
{
    static const struct { const char *situation; act *act; } acts[] = {
        { "the socket is removed", do_remove },
        { "the sockets are cleared", do_clear },
        { "the socket is closed", do_close },
        { "the peer is closed", do_close_peer },
        { "a message comes", do_send },
    };
    for (int i = 0; i < COUNT(acts); i++) {
        wakes(acts[i].situation, acts[i].act, 0);
        wakes(acts[i].situation, acts[i].act, 1);
    }
    wakes("a writable socket is added", do_add, 1);
}

int main(void)
{
    static section *const sections[] = {
        listener, new_connection, data, not_due, full_buffer, peer_closed, own_close, refused,
        waking,
    };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
