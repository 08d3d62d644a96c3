/* Connecting: who may call whom and when, how a call fails, and what is left of the socket. */
#include "common.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* Calls with wrong arguments or in a wrong state. */
static void refusals(void)
{
    SRTSOCKET listener = listening(NULL);
    int port = port_of(listener);
    struct sockaddr_in address = loopback(port);
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port),
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    const struct sockaddr *to = (struct sockaddr *)&address;
    SRTSOCKET s = opened(NULL);
    answer_state("srt_connect", "unknown socket", srt_connect(12345, to, sizeof address), -1);
    answer_state("srt_connect", "length 15", srt_connect(s, to, 15), s);
    answer_state("srt_connect", "length 0", srt_connect(s, to, 0), s);
    s = opened(NULL);
    address.sin_family = AF_UNIX;
    answer_state("srt_connect", "family AF_UNIX", srt_connect(s, to, sizeof address), s);
    address.sin_family = AF_INET;
    answer_state("srt_connect", "a listener calls", srt_connect(listener, to, sizeof address),
                 listener);
    s = bound(NULL);
    answer_state("srt_connect", "bound to IPv4, calls IPv6",
                 srt_connect(s, (struct sockaddr *)&six, sizeof six), s);
    s = opened(NULL);
    set_bool(s, SRTO_RENDEZVOUS, 1);
    answer_state("srt_connect", "rendezvous, not bound", srt_connect(s, to, sizeof address), s);
    s = opened(NULL);
    srt_close(s);
    answer_state("srt_connect", "closed socket", srt_connect(s, to, sizeof address), s);
    s = opened(NULL);
    answer_state("srt_connect", "a listener's port", call(s, port), s);
    answer_state("srt_connect", "connected already", call(s, port), s);
    srt_close(listener);
}

static void listen_refusals(void)
{
    SRTSOCKET s = opened(NULL);
    answer_state("srt_listen", "unknown socket", srt_listen(12345, 1), -1);
    answer_state("srt_listen", "not bound", srt_listen(s, 1), s);
    answer_state("srt_listen", "not bound, backlog 0", srt_listen(s, 0), s);
    s = bound(NULL);
    answer_state("srt_listen", "backlog 0", srt_listen(s, 0), s);
    answer_state("srt_listen", "backlog -1", srt_listen(s, -1), s);
    answer_state("srt_listen", "backlog 1", srt_listen(s, 1), s);
    answer_state("srt_listen", "again, backlog 5", srt_listen(s, 5), s);
    answer_state("srt_listen", "again, backlog 0", srt_listen(s, 0), s);
    srt_close(s);
    answer_state("srt_listen", "closed", srt_listen(s, 1), s);
    s = opened(NULL);
    set_bool(s, SRTO_RENDEZVOUS, 1);
    struct sockaddr_in any = loopback(0);
    srt_bind(s, (struct sockaddr *)&any, sizeof any);
    answer_state("srt_listen", "rendezvous", srt_listen(s, 1), s);
    struct pair pair = connected(NULL, NULL);
    answer_state("srt_listen", "connected", srt_listen(pair.caller, 1), pair.caller);
    answer_state("srt_listen", "accepted", srt_listen(pair.accepted, 1), pair.accepted);
    close_pair(&pair);
}

static void accept_refusals(void)
{
    struct sockaddr_in address;
    int size = sizeof address;
    struct sockaddr *from = (struct sockaddr *)&address;
    SRTSOCKET s = opened(NULL);
    SRTSOCKET caller = opened(NULL);
    answer_state("srt_accept", "unknown socket", srt_accept(12345, NULL, NULL), -1);
    answer_state("srt_accept", "opened", srt_accept(s, NULL, NULL), s);
    s = bound(NULL);
    answer_state("srt_accept", "bound", srt_accept(s, NULL, NULL), s);
    s = listening(NULL);
    set_bool(s, SRTO_RCVSYN, 0);
    answer_state("srt_accept", "nobody calls, not blocking", srt_accept(s, NULL, NULL), s);
    answer_state("srt_accept", "an address without a length", srt_accept(s, from, NULL), s);
    int in = watch(s, SRT_EPOLL_IN);
    call(caller, port_of(s));
    wait_events(in, SRT_EPOLL_IN, LONG_MS);
    size = 4;
    answer_state("srt_accept", "room for 4 bytes of the address", srt_accept(s, from, &size), s);
    value("srt_accept", "after too little room for the address", "%s",
          srt_accept(s, NULL, NULL) > 0 ? "a socket" : last_error());
    srt_close(caller);
    caller = opened(NULL);
    call(caller, port_of(s));
    wait_events(in, SRT_EPOLL_IN, LONG_MS);
    size = sizeof address;
    SRTSOCKET accepted = srt_accept(s, from, &size);
    struct sockaddr_in local = loopback(port_of(caller));
    value("srt_accept", "with the address", "%s, length %d, %s",
          accepted > 0 ? "a socket" : last_error(), size,
          same_address(&address, &local) ? "the caller's address" : "another address");
    answer_state("srt_accept", "a connected socket", srt_accept(caller, NULL, NULL), caller);
    srt_close(caller);
    srt_close(s);
    answer_state("srt_accept", "closed", srt_accept(s, NULL, NULL), s);
}

static void reject_row(const char *situation, SRTSOCKET s)
{
    value("srt_getrejectreason", situation, "%d", srt_getrejectreason(s));
}

/* Nobody answers: a blocking call. */
static void no_answer_blocking(int timeout, int least, int most)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET s = opened(NULL);
    int eid = watch(s, 0);
    const char *name = say("no answer, blocking, CONNTIMEO %d", timeout);
    set_int(s, SRTO_CONNTIMEO, timeout);
    double start = now_ms();
    int result = call(s, port);
    const char *duration = took(start, least, most);
    answer_ready("srt_connect", name, result, s, eid);
    value("srt_connect", say("%s, duration", name), "%s", duration);
    reject_row(name, s);
    if (timeout == 100) {
        SRTSOCKET listener = listening(NULL);
        answer_ready("srt_connect", "after a failed blocking call, another port",
                     call(s, port_of(listener)), s, eid);
        srt_close(listener);
    }
    close(silent);
}

static void no_answer_100(void)
{
    no_answer_blocking(100, 100, 1600);
}

static void no_answer_1500(void)
{
    no_answer_blocking(1500, 1400, 2800);
}

/* Nobody answers: the socket tells by epoll. */
static void no_answer_not_blocking(void)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET s = opened(unblock);
    int eid = watch(s, 0);
    set_int(s, SRTO_CONNTIMEO, 300);
    double start = now_ms();
    answer_ready("srt_connect", "no answer, not blocking", call(s, port), s, eid);
    answer_state("srt_connect", "while connecting", call(s, port), s);
    answer_state("srt_accept", "while connecting", srt_accept(s, NULL, NULL), s);
    answer_state("srt_listen", "while connecting", srt_listen(s, 1), s);
    wait_events(eid, SRT_EPOLL_ERR, LONG_MS);
    value("srt_epoll_uwait", "CONNTIMEO 300, duration", "%s", took(start, 250, 800));
    answer_ready("-", "no answer, not blocking, in the end", 0, s, eid);
    reject_row("no answer, not blocking", s);
    answer_state("srt_connect", "after a failed call that did not block", call(s, port), s);
    answer_state("srt_send", "after a failed call that did not block", srt_send(s, "x", 1), s);
    answer_state("srt_recv", "after a failed call that did not block",
                 srt_recv(s, (char[1456]){ 0 }, 1456), s);
    answer_state("srt_close", "after a failed call that did not block", srt_close(s), s);
    close(silent);
}

/* A port that nobody has is like one that does not answer. */
static void nobody_there(void)
{
    int port;
    SRTSOCKET s = opened(NULL);
    close(silent_socket(&port));
    set_int(s, SRTO_CONNTIMEO, 100);
    answer_state("srt_connect", "a port that nobody has", call(s, port), s);
    reject_row("a port that nobody has", s);
    /* A bound SRT socket that neither listens nor calls. */
    SRTSOCKET idle = bound(NULL);
    answer_state("srt_connect", "a bound socket that does not listen", call(s, port_of(idle)), s);
    reject_row("a bound socket that does not listen", s);
}

static int refuse(void *opaque, SRTSOCKET s, int version, const struct sockaddr *peer,
                  const char *id)
{
    (void)version;
    (void)peer;
    (void)id;
    srt_setrejectreason(s, *(int *)opaque);
    return -1;
}

static void refused(void)
{
    int reason = SRT_REJC_PREDEFINED + 403;
    SRTSOCKET listener = bound(NULL);
    SRTSOCKET s = opened(NULL);
    int eid = watch(s, 0);
    srt_listen_callback(listener, refuse, &reason);
    srt_listen(listener, 5);
    double start = now_ms();
    int result = call(s, port_of(listener));
    const char *duration = took(start, 0, 500);
    answer_ready("srt_connect", "refused, blocking", result, s, eid);
    value("srt_connect", "refused, blocking, duration", "%s", duration);
    reject_row("refused, blocking", s);
    answer_ready("srt_connect", "refused again", call(s, port_of(listener)), s, eid);
    s = opened(unblock);
    eid = watch(s, 0);
    answer_state("srt_connect", "refused, not blocking", call(s, port_of(listener)), -1);
    wait_state(s, SRTS_BROKEN, LONG_MS);
    wait_events(eid, SRT_EPOLL_ERR, LONG_MS);
    answer_ready("-", "refused, not blocking, in the end", 0, s, eid);
    reject_row("refused, not blocking", s);
    answer_state("srt_connect", "after a refusal, not blocking", call(s, port_of(listener)), s);
    srt_close(listener);
}

static void backlog(void)
{
    SRTSOCKET listener = bound(NULL);
    SRTSOCKET callers[3];
    srt_listen(listener, 2);
    for (int i = 0; i < 3; i++) {
        callers[i] = opened(NULL);
        answer_state("srt_connect", say("backlog 2, call %d", i + 1),
                     call(callers[i], port_of(listener)), callers[i]);
        reject_row(say("backlog 2, call %d", i + 1), callers[i]);
    }
    value("srt_accept", "backlog 2, first", "%s",
          srt_accept(listener, NULL, NULL) > 0 ? "a socket" : last_error());
    answer_state("srt_connect", "backlog 2, one accepted", call(callers[2], port_of(listener)),
                 callers[2]);
    srt_listen(listener, 1);
    SRTSOCKET fourth = opened(NULL);
    answer_state("srt_connect", "backlog lowered to 1", call(fourth, port_of(listener)), fourth);
    srt_close(listener);
}

/* The listener is closed before it accepted. */
static void listener_closed(void)
{
    SRTSOCKET listener = listening(NULL);
    SRTSOCKET s = opened(NULL);
    answer_state("srt_connect", "a listener that never accepts", call(s, port_of(listener)), s);
    pause_ms(SETTLE_MS);
    answer_state("srt_close", "the listener", srt_close(listener), listener);
    pause_ms(2500);
    value("srt_getsockstate", "caller whose call nobody accepted, 2.5 s later", "%s",
          srt_getsockstate(s) == SRTS_CONNECTED ? "CONNECTED" : "not connected");
    struct pair pair = connected(NULL, NULL);
    srt_close(pair.listener);
    srt_sendmsg(pair.caller, "message", 7, -1, 1);
    answer_state("srt_recvmsg", "accepted, listener closed",
                 srt_recvmsg(pair.accepted, (char[1456]){ 0 }, 1456), pair.accepted);
    close_pair(&pair);
}

/* Both call each other. */

struct meeting {
    SRTSOCKET s;
    int port;
    int result;
};

static void *meet(void *opaque)
{
    struct meeting *meeting = opaque;
    meeting->result = call(meeting->s, meeting->port);
    return NULL;
}

static SRTSOCKET for_meeting(void)
{
    SRTSOCKET s = opened(NULL);
    struct sockaddr_in address = loopback(0);
    set_bool(s, SRTO_RENDEZVOUS, 1);
    srt_bind(s, (struct sockaddr *)&address, sizeof address);
    return s;
}

static void rendezvous(void)
{
    struct meeting a = { for_meeting(), 0, 0 };
    struct meeting b = { for_meeting(), 0, 0 };
    pthread_t thread;
    a.port = port_of(b.s);
    b.port = port_of(a.s);
    pthread_create(&thread, NULL, meet, &a);
    meet(&b);
    pthread_join(thread, NULL);
    answer_state("srt_connect", "rendezvous, one", a.result, a.s);
    answer_state("srt_connect", "rendezvous, other", b.result, b.s);
    pause_ms(SETTLE_MS);
    srt_sendmsg(a.s, "message", 7, -1, 1);
    set_int(b.s, SRTO_RCVTIMEO, LONG_MS);
    answer("srt_recvmsg", "rendezvous", srt_recvmsg(b.s, (char[1456]){ 0 }, 1456));
    srt_close(a.s);
    value("srt_getsockstate", "rendezvous, the other closed", "%s",
          wait_state(b.s, SRTS_BROKEN, LONG_MS) ? "BROKEN" : state_of(b.s));
    srt_close(b.s);
}

static void shorthand(void)
{
    SRTSOCKET listener = listening(NULL);
    struct sockaddr_in to = loopback(port_of(listener));
    struct sockaddr_in from = loopback(0);
    SRTSOCKET s = opened(NULL);
    answer_state("srt_connect_bind", "loopback",
                 srt_connect_bind(s, (struct sockaddr *)&from, (struct sockaddr *)&to, sizeof to),
                 s);
    answer_state("srt_connect_bind", "again",
                 srt_connect_bind(s, (struct sockaddr *)&from, (struct sockaddr *)&to, sizeof to),
                 s);
    struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
    s = opened(NULL);
    answer_state("srt_connect_bind", "from IPv6 to IPv4",
                 srt_connect_bind(s, (struct sockaddr *)&six, (struct sockaddr *)&to, sizeof to),
                 s);
    s = opened(NULL);
    answer_state("srt_connect_debug", "ISN 12345",
                 srt_connect_debug(s, (struct sockaddr *)&to, sizeof to, 12345), s);
    value("srt_getsockflag", "ISN forced to 12345", "%s",
          get_int(s, SRTO_ISN) == 12345 ? "12345" : "another");
    s = opened(NULL);
    set_int(s, SRTO_CONNTIMEO, 50);
    unblock(s);
    answer_state("srt_rendezvous", "not blocking",
                 srt_rendezvous(s, (struct sockaddr *)&from, sizeof from, (struct sockaddr *)&to,
                                sizeof to), -1);
    s = opened(NULL);
    answer_state("srt_rendezvous", "different families",
                 srt_rendezvous(s, (struct sockaddr *)&six, sizeof six, (struct sockaddr *)&to,
                                sizeof to), s);
    srt_close(listener);
}

static void *call_later(void *opaque)
{
    struct meeting *meeting = opaque;
    pause_ms(60);
    return meet(meeting);
}

static void accept_bond(void)
{
    SRTSOCKET listeners[2] = { listening(NULL), listening(NULL) };
    SRTSOCKET others[2] = { opened(NULL), 12345 };
    struct meeting caller = { opened(NULL), port_of(listeners[1]), 0 };
    SRTSOCKET early = opened(NULL);
    pthread_t thread;
    double start = now_ms();
    answer("srt_accept_bond", "nobody calls, 100 ms", srt_accept_bond(listeners, 2, 100));
    value("srt_accept_bond", "duration with 100 ms", "%s", took(start, 90, 400));
    pthread_create(&thread, NULL, call_later, &caller);
    value("srt_accept_bond", "a call of the second meanwhile", "%s",
          srt_accept_bond(listeners, 2, LONG_MS) > 0 ? "a socket" : last_error());
    pthread_join(thread, NULL);
    call(early, port_of(listeners[0]));
    pause_ms(SETTLE_MS);
    value("srt_accept_bond", "a call of the first before", "%s",
          srt_accept_bond(listeners, 2, 100) > 0 ? "a socket" : last_error());
    answer("srt_accept_bond", "no listener", srt_accept_bond(listeners, 0, 100));
    answer("srt_accept_bond", "-1 listeners", srt_accept_bond(listeners, -1, 100));
    answer("srt_accept_bond", "sockets that do not listen", srt_accept_bond(others, 1, 100));
    answer("srt_accept_bond", "unknown sockets", srt_accept_bond(others + 1, 1, 100));
}

static void times_and_reasons(void)
{
    SRTSOCKET s = opened(NULL);
    struct pair pair = connected(NULL, NULL);
    value("srt_connection_time", "opened", "%lld", (long long)srt_connection_time(s));
    value("srt_connection_time", "bound", "%s",
          srt_connection_time(bound(NULL)) > 0 ? ">0" : "not >0");
    value("srt_connection_time", "connected", "%s",
          srt_time_now() - srt_connection_time(pair.caller) < 3000000 ? "near now" : "far");
    value("srt_connection_time", "accepted", "%s",
          srt_time_now() - srt_connection_time(pair.accepted) < 3000000 ? "near now" : "far");
    answer("srt_connection_time", "unknown socket", srt_connection_time(12345));
    reject_row("opened", s);
    reject_row("connected", pair.caller);
    reject_row("unknown socket", 12345);
    close_pair(&pair);
}

int main(void)
{
    static section *const sections[] = {
        refusals, listen_refusals, accept_refusals, no_answer_100, no_answer_1500,
        no_answer_not_blocking, nobody_there, refused, backlog, listener_closed, rendezvous,
        shorthand, accept_bond, times_and_reasons,
    };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
