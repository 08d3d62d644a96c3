/* Passphrases of both ends and whether each end insists: 20 cases, blocking and not. */
#include "common.h"

#include <string.h>

struct secrets {
    const char *name;
    const char *caller;
    const char *listener;
};

static const struct secrets secrets[] = {
    { "same", "correct horse", "correct horse" },
    { "different", "correct horse", "battery staple" },
    { "caller only", "correct horse", "" },
    { "listener only", "", "correct horse" },
    { "none", "", "" },
};

struct insisting {
    const char *name;
    int caller;
    int listener;
};

static const struct insisting insisting[] = {
    { "both insist", 1, 1 },
    { "caller insists", 1, 0 },
    { "listener insists", 0, 1 },
    { "nobody insists", 0, 0 },
};

static void secure(SRTSOCKET s, const char *secret, int insists)
{
    if (*secret != '\0')
        set_string(s, SRTO_PASSPHRASE, secret);
    set_bool(s, SRTO_ENFORCEDENCRYPTION, insists);
}

static void km_row(const char *who, const char *name, SRTSOCKET s)
{
    row("srt_getsockflag", say("%s, %s", name, who),
        say("KMSTATE %s SNDKMSTATE %s RCVKMSTATE %s", km_name(get_int(s, SRTO_KMSTATE)),
            km_name(get_int(s, SRTO_SNDKMSTATE)), km_name(get_int(s, SRTO_RCVKMSTATE))),
        "-", state_of(s), "-");
}

/* The call is over: its end, as the socket and an epoll tell it. */
static int end_of_call(const char *name, SRTSOCKET caller, int eid, int result, int blocking)
{
    const char *error = last_error();
    if (!blocking) {
        double end = now_ms() + LONG_MS;
        while (srt_getsockstate(caller) == SRTS_CONNECTING && now_ms() < end)
            pause_ms(2);
        wait_events(eid, SRT_EPOLL_OUT, LONG_MS);
    }
    int connected = srt_getsockstate(caller) == SRTS_CONNECTED;
    row("srt_connect", name, say("%d", result), result == SRT_ERROR ? error : "-",
        state_of(caller), blocking ? "-" : readiness(eid));
    if (!connected)
        value("srt_getrejectreason", name, "%d", srt_getrejectreason(caller));
    return connected;
}

static void both_ends(const char *name, SRTSOCKET caller, SRTSOCKET listener)
{
    SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
    if (accepted == SRT_INVALID_SOCK) {
        answer("srt_accept", name, accepted);
        return;
    }
    pause_ms(SETTLE_MS);
    km_row("caller", name, caller);
    km_row("accepted", name, accepted);
    /* A message gets through, encrypted or not. */
    srt_sendmsg(caller, "message", 7, -1, 1);
    srt_sendmsg(accepted, "message", 7, -1, 1);
    set_int(caller, SRTO_RCVTIMEO, 200);
    set_int(accepted, SRTO_RCVTIMEO, 200);
    answer("srt_recvmsg", say("%s, accepted", name),
           srt_recvmsg(accepted, (char[1456]){ 0 }, 1456));
    answer("srt_recvmsg", say("%s, caller", name), srt_recvmsg(caller, (char[1456]){ 0 }, 1456));
    srt_close(accepted);
}

static void one_case(const struct secrets *secret, const struct insisting *insist, int blocking)
{
    char name[100];
    SRTSOCKET listener = opened(NULL);
    SRTSOCKET caller = opened(NULL);
    struct sockaddr_in address = loopback(0);
    strcpy(name, say("secret %s, %s, %s", secret->name, insist->name,
                     blocking ? "blocking" : "not blocking"));
    set_int(listener, SRTO_LATENCY, 20);
    set_int(caller, SRTO_LATENCY, 20);
    secure(listener, secret->listener, insist->listener);
    secure(caller, secret->caller, insist->caller);
    srt_bind(listener, (struct sockaddr *)&address, sizeof address);
    srt_listen(listener, 5);
    if (!blocking)
        unblock(caller);
    int eid = watch(caller, 0);
    int result = call(caller, port_of(listener));
    if (end_of_call(name, caller, eid, result, blocking)) {
        set_bool(caller, SRTO_RCVSYN, 1);
        both_ends(name, caller, listener);
    }
    srt_epoll_release(eid);
    srt_close(caller);
    srt_close(listener);
}

static void cases(const struct secrets *secret)
{
    for (int i = 0; i < COUNT(insisting); i++) {
        one_case(secret, &insisting[i], 1);
        one_case(secret, &insisting[i], 0);
    }
}

static void same(void) { cases(&secrets[0]); }
static void different(void) { cases(&secrets[1]); }
static void caller_only(void) { cases(&secrets[2]); }
static void listener_only(void) { cases(&secrets[3]); }
static void none(void) { cases(&secrets[4]); }

/* The key length that both ends then have. */
static void key_lengths(void)
{
    static const int lengths[] = { 0, 16, 24, 32 };
    for (int i = 0; i < COUNT(lengths); i++)
        for (int j = 0; j < COUNT(lengths); j++) {
            SRTSOCKET listener = opened(NULL);
            SRTSOCKET caller = opened(NULL);
            struct sockaddr_in address = loopback(0);
            secure(listener, "correct horse", 1);
            secure(caller, "correct horse", 1);
            set_int(listener, SRTO_PBKEYLEN, lengths[i]);
            set_int(caller, SRTO_PBKEYLEN, lengths[j]);
            srt_bind(listener, (struct sockaddr *)&address, sizeof address);
            srt_listen(listener, 5);
            int result = call(caller, port_of(listener));
            SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
            value("srt_getsockflag", say("PBKEYLEN, listener %d, caller %d", lengths[i],
                                         lengths[j]),
                  "%d; caller %d, accepted %d", result, get_int(caller, SRTO_PBKEYLEN),
                  get_int(accepted, SRTO_PBKEYLEN));
            srt_close(caller);
            srt_close(accepted);
            srt_close(listener);
        }
}

int main(void)
{
    static section *const sections[] = {
        same, different, caller_only, listener_only, none, key_lengths,
    };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
