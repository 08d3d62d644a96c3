/* The two hooks: what a listener's and a caller's hook see and do, and reasons of refusal. */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A listen hook does the first part of this and fills in the second. */
struct plan {
    int answer;
    int reason;
    const char *passphrase;
    int calls;
    int version;
    int reason_result;
    int passphrase_result;
    int latency_result;
    int mss_result;
    int state;
    int family;
    int port;
    int peer_error;
    char peer_option[100];
    char stream_id[600];
};

static void look(struct plan *plan, SRTSOCKET s, const struct sockaddr *peer)
{
    struct sockaddr_in name;
    int size = sizeof name;
    char text[600] = { 0 };
    plan->state = srt_getsockstate(s);
    plan->family = peer->sa_family;
    plan->port = ntohs(((const struct sockaddr_in *)peer)->sin_port);
    plan->peer_error = srt_getpeername(s, (struct sockaddr *)&name, &size) == SRT_ERROR
        ? srt_getlasterror(NULL) : 0;
    size = sizeof text;
    srt_getsockflag(s, SRTO_STREAMID, text, &size);
    snprintf(plan->peer_option, sizeof plan->peer_option, "%d \"%.50s\"", size, text);
}

static int listen_hook(void *opaque, SRTSOCKET s, int version, const struct sockaddr *peer,
                       const char *id)
{
    struct plan *plan = opaque;
    plan->calls++;
    plan->version = version;
    snprintf(plan->stream_id, sizeof plan->stream_id, "%s", id == NULL ? "NULL" : id);
    look(plan, s, peer);
    plan->latency_result = set_int(s, SRTO_LATENCY, 333);
    plan->mss_result = set_int(s, SRTO_MSS, 1400);
    if (plan->passphrase != NULL)
        plan->passphrase_result = set_string(s, SRTO_PASSPHRASE, plan->passphrase);
    if (plan->reason != 0)
        plan->reason_result = srt_setrejectreason(s, plan->reason);
    return plan->answer;
}

static SRTSOCKET hooked(struct plan *plan)
{
    SRTSOCKET s = bound(NULL);
    srt_listen_callback(s, listen_hook, plan);
    srt_listen(s, 5);
    return s;
}

static void accepting(void)
{
    struct plan plan = { 0 };
    SRTSOCKET listener = hooked(&plan);
    SRTSOCKET caller = opened(NULL);
    set_string(caller, SRTO_STREAMID, "#!::r=stream,m=publish");
    answer_state("srt_connect", "hook accepts", call(caller, port_of(listener)), caller);
    SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
    value("srt_listen_callback", "calls", "%d", plan.calls);
    value("srt_listen_callback", "handshake version", "%d", plan.version);
    value("srt_listen_callback", "stream ID", "%s", plan.stream_id);
    value("srt_listen_callback", "state in the hook", "%s", state_name(plan.state));
    value("srt_listen_callback", "peer's family", "%s", plan.family == AF_INET ? "IPv4" : "other");
    value("srt_listen_callback", "peer's port", "%s",
          plan.port == port_of(caller) ? "the caller's" : "another");
    value("srt_getpeername", "in the hook", "%s", error_name(plan.peer_error));
    value("srt_getsockflag", "STREAMID in the hook", "%s", plan.peer_option);
    value("srt_setsockflag", "LATENCY in the hook", "%d", plan.latency_result);
    value("srt_setsockflag", "MSS in the hook", "%d", plan.mss_result);
    value("srt_getsockflag", "latencies after LATENCY = 333 in the hook", "%d %d, caller %d %d",
          get_int(accepted, SRTO_RCVLATENCY), get_int(accepted, SRTO_PEERLATENCY),
          get_int(caller, SRTO_RCVLATENCY), get_int(caller, SRTO_PEERLATENCY));
    value("srt_getsockflag", "LATENCY of the listener", "%d", get_int(listener, SRTO_LATENCY));
    char id[600] = { 0 };
    int size = sizeof id;
    srt_getsockflag(accepted, SRTO_STREAMID, id, &size);
    value("srt_getsockflag", "STREAMID of the accepted", "%d \"%s\"", size, id);
    srt_close(caller);
    srt_close(listener);
}

static void without_stream_id(void)
{
    struct plan plan = { 0 };
    SRTSOCKET listener = hooked(&plan);
    SRTSOCKET caller = opened(NULL);
    call(caller, port_of(listener));
    value("srt_listen_callback", "no stream ID", "\"%s\"", plan.stream_id);
    srt_close(caller);
    caller = opened(NULL);
    char id[512];
    memset(id, 'y', sizeof id);
    srt_setsockflag(caller, SRTO_STREAMID, id, sizeof id);
    call(caller, port_of(listener));
    value("srt_listen_callback", "stream ID of 512, length", "%d", (int)strlen(plan.stream_id));
    srt_close(caller);
    srt_close(listener);
}

/* The number of bytes, and the first ones before a zero: libsrt never sets those after one. */
static const char *hex(const char *bytes, int size)
{
    const char *text = say("%d:", size);
    for (int i = 0; i < size && i < 12 && bytes[i] != '\0'; i++)
        text = say("%s %02x", text, (unsigned char)bytes[i]);
    return text;
}

static void stream_id_row(const char *who, const char *name, SRTSOCKET s)
{
    char id[600];
    int size = sizeof id;
    srt_getsockflag(s, SRTO_STREAMID, id, &size);
    value("srt_getsockflag", say("STREAMID %s, %s", name, who), "%s", hex(id, size));
}

static void stream_ids_of_bytes(void)
{
    static char longest[512];
    static const struct { const char *name; const char *bytes; int size; } cases[] = {
        { "in Latin-1", "caf\xe9 1", 6 }, { "of half a character", "ab\xe2\x82", 4 },
        { "of 512 bytes 255", longest, 512 }, { "with a zero", "ab\0cd", 5 },
        { "with zeros at the end", "abc\0\0", 5 },
    };
    memset(longest, 255, sizeof longest);
    for (int i = 0; i < COUNT(cases); i++) {
        struct plan plan = { 0 };
        const char *name = cases[i].name;
        SRTSOCKET listener = hooked(&plan);
        SRTSOCKET caller = opened(NULL);
        srt_setsockflag(caller, SRTO_STREAMID, cases[i].bytes, cases[i].size);
        stream_id_row("opened", name, caller);
        call(caller, port_of(listener));
        SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
        value("srt_listen_callback", say("stream ID %s", name), "%s",
              hex(plan.stream_id, (int)strlen(plan.stream_id)));
        stream_id_row("caller", name, caller);
        stream_id_row("accepted", name, accepted);
        srt_close(caller);
        srt_close(listener);
    }
}

/* The hook's result and its reason, and what the caller gets of them. */
static void rejecting(void)
{
    static const struct { int answer; int reason; } cases[] = {
        { -1, 0 }, { -1, 1000 }, { -1, 1001 }, { -1, 1403 }, { -1, 2000 }, { -1, 2999 },
        { -1, 999 }, { -1, 10 }, { -1, -1 }, { -2, 0 }, { -5, 1403 }, { 0, 1403 }, { 1, 0 },
        { 100, 0 },
    };
    for (int i = 0; i < COUNT(cases); i++) {
        struct plan plan = { .answer = cases[i].answer, .reason = cases[i].reason };
        SRTSOCKET listener = hooked(&plan);
        SRTSOCKET caller = opened(NULL);
        const char *name = say("hook gives %d, reason %d", cases[i].answer, cases[i].reason);
        answer_state("srt_connect", name, call(caller, port_of(listener)), caller);
        value("srt_getrejectreason", name, "%d", srt_getrejectreason(caller));
        if (plan.reason != 0)
            value("srt_setrejectreason", name, "%d", plan.reason_result);
        value("srt_listen_callback", say("%s, calls", name), "%d", plan.calls);
        srt_close(caller);
        srt_close(listener);
    }
}

static void passphrases(void)
{
    static const struct { const char *name; const char *hook; const char *caller; } cases[] = {
        { "right", "correct horse", "correct horse" },
        { "wrong", "battery staple", "correct horse" },
        { "only in the hook", "correct horse", "" },
        { "too short", "short", "" },
    };
    for (int i = 0; i < COUNT(cases); i++) {
        struct plan plan = { .passphrase = cases[i].hook };
        SRTSOCKET listener = hooked(&plan);
        SRTSOCKET caller = opened(NULL);
        set_string(caller, SRTO_PASSPHRASE, cases[i].caller);
        const char *name = say("hook's passphrase is %s", cases[i].name);
        answer_state("srt_connect", name, call(caller, port_of(listener)), caller);
        value("srt_getrejectreason", name, "%d", srt_getrejectreason(caller));
        value("srt_setsockflag", name, "%d", plan.passphrase_result);
        value("srt_getsockflag", name, "%s", km_name(get_int(caller, SRTO_KMSTATE)));
        srt_close(caller);
        srt_close(listener);
    }
}

static void setting_hooks(void)
{
    struct plan plan = { 0 };
    SRTSOCKET s = opened(NULL);
    answer("srt_listen_callback", "opened", srt_listen_callback(s, listen_hook, &plan));
    answer("srt_listen_callback", "no function", srt_listen_callback(s, NULL, NULL));
    answer("srt_listen_callback", "unknown socket", srt_listen_callback(12345, listen_hook, NULL));
    answer("srt_connect_callback", "no function", srt_connect_callback(s, NULL, NULL));
    answer("srt_connect_callback", "unknown socket", srt_connect_callback(12345, NULL, NULL));
    s = listening(NULL);
    answer("srt_listen_callback", "listening", srt_listen_callback(s, listen_hook, &plan));
    answer("srt_setrejectreason", "opened socket, 1000",
           srt_setrejectreason(opened(NULL), 1000));
    answer("srt_setrejectreason", "opened socket, 999", srt_setrejectreason(opened(NULL), 999));
    answer("srt_setrejectreason", "unknown socket", srt_setrejectreason(12345, 1000));
    s = opened(NULL);
    srt_setrejectreason(s, 1234);
    value("srt_getrejectreason", "set by oneself", "%d", srt_getrejectreason(s));
    struct pair pair = connected(NULL, NULL);
    answer("srt_listen_callback", "connected",
           srt_listen_callback(pair.caller, listen_hook, NULL));
    answer("srt_connect_callback", "connected", srt_connect_callback(pair.caller, NULL, NULL));
    close_pair(&pair);
}

/* The caller's hook. */

struct notes {
    volatile int calls;
    int error;
    int token;
    SRTSOCKET s;
    int family;
};

static void connect_hook(void *opaque, SRTSOCKET s, int error, const struct sockaddr *peer,
                         int token)
{
    struct notes *notes = opaque;
    notes->error = error;
    notes->token = token;
    notes->s = s;
    notes->family = peer == NULL ? -1 : peer->sa_family;
    notes->calls++;
}

static void note_row(const char *situation, struct notes *notes, SRTSOCKET s, int expected)
{
    double end = now_ms() + (expected ? 3000 : 200);
    while (notes->calls == 0 && now_ms() < end)
        pause_ms(5);
    pause_ms(20);
    if (notes->calls == 0)
        value("srt_connect_callback", situation, "not called");
    else
        value("srt_connect_callback", situation, "%d call, %s, token %d, %s, family %s",
              notes->calls, error_name(notes->error), notes->token,
              notes->s == s ? "the caller" : "another socket",
              notes->family == AF_INET ? "IPv4" : say("%d", notes->family));
}

static SRTSOCKET noted(struct notes *notes, int blocking)
{
    SRTSOCKET s = opened(NULL);
    if (!blocking)
        unblock(s);
    srt_connect_callback(s, connect_hook, notes);
    return s;
}

static void connect_succeeds(int blocking)
{
    struct notes notes = { 0 };
    SRTSOCKET listener = listening(NULL);
    SRTSOCKET s = noted(&notes, blocking);
    const char *name = blocking ? "success, blocking" : "success, not blocking";
    call(s, port_of(listener));
    wait_state(s, SRTS_CONNECTED, LONG_MS);
    note_row(name, &notes, s, 0);
    SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
    srt_close(accepted);
    wait_state(s, SRTS_BROKEN, LONG_MS);
    note_row(say("%s, then the peer is closed", name), &notes, s, 0);
    srt_close(s);
    srt_close(listener);
}

static void connect_refused(int blocking)
{
    struct plan plan = { .answer = -1 };
    struct notes notes = { 0 };
    SRTSOCKET listener = hooked(&plan);
    SRTSOCKET s = noted(&notes, blocking);
    call(s, port_of(listener));
    note_row(blocking ? "refused, blocking" : "refused, not blocking", &notes, s, !blocking);
    srt_close(s);
    srt_close(listener);
}

static void connect_unanswered(int blocking)
{
    int port;
    int silent = silent_socket(&port);
    struct notes notes = { 0 };
    SRTSOCKET s = noted(&notes, blocking);
    set_int(s, SRTO_CONNTIMEO, 200);
    call(s, port);
    note_row(blocking ? "no answer, blocking" : "no answer, not blocking", &notes, s, 1);
    srt_close(s);
    close(silent);
}

static void caller_hooks(void)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        connect_succeeds(blocking);
        connect_refused(blocking);
        connect_unanswered(blocking);
    }
}

int main(void)
{
    static section *const sections[] = {
        accepting, without_stream_id, stream_ids_of_bytes, rejecting, passphrases, setting_hooks,
        caller_hooks,
    };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
