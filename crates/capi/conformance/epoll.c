/* The functions of epoll: subscriptions, ids, arrays and counts, system sockets, flags. */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define BAD_EID 12345

/* A pair whose both ends can send, and whose accepted end can also receive. */
static struct pair readable_pair(void)
{
    struct pair pair = connected(NULL, NULL);
    int eid;
    set_int(pair.accepted, SRTO_RCVSYN, 0);
    srt_sendmsg(pair.caller, "message", 7, -1, 1);
    eid = watch(pair.accepted, SRT_EPOLL_IN);
    wait_events(eid, SRT_EPOLL_IN, LONG_MS);
    srt_epoll_release(eid);
    return pair;
}

/* The sockets in the slots of an array. "_" is a slot that was not written. */
static const char *slots(const SRTSOCKET *sockets, int count, const struct pair *pair)
{
    const char *text = "";
    for (int i = 0; i < count; i++) {
        const char *one = sockets[i] == -7 ? "_" : sockets[i] == pair->caller ? "caller"
            : sockets[i] == pair->accepted ? "accepted"
            : sockets[i] == pair->listener ? "listener" : "?";
        text = say("%s %s", text, one);
    }
    return text;
}

/* One wait with arrays of these sizes; a size of -1 passes no array. */
static void wait_row(const char *situation, int eid, const struct pair *pair, int reads,
                     int writes, int ms)
{
    SRTSOCKET r[2] = { -7, -7 };
    SRTSOCKET w[2] = { -7, -7 };
    int rn = reads;
    int wn = writes;
    int result = srt_epoll_wait(eid, reads < 0 ? NULL : r, reads < 0 ? NULL : &rn,
                                writes < 0 ? NULL : w, writes < 0 ? NULL : &wn, ms, NULL, NULL,
                                NULL, NULL);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    row("srt_epoll_wait", situation,
        say("%d; read %d:%s; write %d:%s", result, rn, slots(r, 2, pair), wn, slots(w, 2, pair)),
        error, "-", "-");
}

static void waits(void)
{
    struct pair pair = readable_pair();
    int both = watch(pair.accepted, 0);
    int in = watch(pair.accepted, SRT_EPOLL_IN);
    int err = watch(pair.accepted, SRT_EPOLL_ERR);
    wait_row("IN and OUT, arrays of 2", both, &pair, 2, 2, 0);
    wait_row("IN and OUT, arrays of 1", both, &pair, 1, 1, 0);
    wait_row("IN and OUT, arrays of 0", both, &pair, 0, 0, 0);
    wait_row("IN and OUT, no array to write", both, &pair, 2, -1, 0);
    wait_row("IN and OUT, no array to read", both, &pair, -1, 2, 0);
    wait_row("IN and OUT, no array, 0 ms", both, &pair, -1, -1, 0);
    wait_row("IN and OUT, no array, -1 ms", both, &pair, -1, -1, -1);
    wait_row("IN only, arrays of 2", in, &pair, 2, 2, 0);
    wait_row("ERR only, 0 ms", err, &pair, 2, 2, 0);
    wait_row("ERR only, 20 ms", err, &pair, 2, 2, 20);
    wait_row("ERR only, no array, 20 ms", err, &pair, -1, -1, 20);
    srt_epoll_add_usock(both, pair.caller, NULL);
    srt_epoll_remove_usock(both, pair.accepted);
    wait_row("another socket instead", both, &pair, 2, 2, 0);
    close_pair(&pair);
}

static void two_sockets(void)
{
    struct pair pair = readable_pair();
    int eid = watch(pair.accepted, 0);
    SRTSOCKET writable[2];
    int count = 1;
    srt_epoll_add_usock(eid, pair.caller, NULL);
    answer("srt_epoll_wait", "two writable into one slot",
           srt_epoll_wait(eid, NULL, NULL, writable, &count, 0, NULL, NULL, NULL, NULL));
    value("srt_epoll_wait", "two writable into one slot, count", "%d", count);
    count = 2;
    answer("srt_epoll_wait", "two writable into two slots",
           srt_epoll_wait(eid, NULL, NULL, writable, &count, 0, NULL, NULL, NULL, NULL));
    value("srt_epoll_wait", "two writable into two slots, count", "%d", count);
    close_pair(&pair);
}

static void uwait_row(const char *situation, int eid, int room, int ms)
{
    SRT_EPOLL_EVENT events[3] = { { -7, 0 }, { -7, 0 }, { -7, 0 } };
    int result = srt_epoll_uwait(eid, room < 0 ? NULL : events, room < 0 ? 0 : room, ms);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    int written = 0;
    while (written < 3 && events[written].fd != -7)
        written++;
    row("srt_epoll_uwait", situation, say("%d; %d written", result, written), error, "-",
        written == 0 ? "none" : events_name(events[0].events));
}

static void uwaits(void)
{
    struct pair pair = readable_pair();
    int one = watch(pair.accepted, 0);
    int two = watch(pair.accepted, 0);
    int err = watch(pair.accepted, SRT_EPOLL_ERR);
    srt_epoll_add_usock(two, pair.caller, NULL);
    uwait_row("one ready, room for 3", one, 3, 0);
    uwait_row("one ready, room for 1", one, 1, 0);
    uwait_row("one ready, room for 0", one, 0, 0);
    uwait_row("one ready, no array", one, -1, 0);
    uwait_row("one ready, room for -1", one, -1, 20);
    uwait_row("two ready, room for 3", two, 3, 0);
    uwait_row("two ready, room for 1", two, 1, 0);
    uwait_row("none ready, 0 ms", err, 3, 0);
    uwait_row("none ready, 20 ms", err, 3, 20);
    close_pair(&pair);
}

static void make_readable(const struct pair *pair)
{
    int eid = watch(pair->accepted, SRT_EPOLL_IN);
    srt_sendmsg(pair->caller, "message", 7, -1, 1);
    wait_events(eid, SRT_EPOLL_IN, LONG_MS);
    srt_epoll_release(eid);
}

/* One wait for three sockets: which of them it names, in its order. */
static void order_row(const char *situation, int eid, const struct pair pairs[3], int room)
{
    SRT_EPOLL_EVENT events[3];
    int result = srt_epoll_uwait(eid, events, room, 0);
    const char *text = say("%d:", result);
    for (int i = 0; i < result && i < room; i++)
        for (int j = 0; j < 3; j++)
            if (events[i].fd == pairs[j].accepted)
                text = say("%s %d", text, j + 1);
    value("srt_epoll_uwait", situation, "%s", text);
}

/* They are added in the order 1, 2, 3, and become ready in the order 2, 3, 1. */
static void order_of_three(void)
{
    struct pair pairs[3];
    char message[1456];
    int eid = srt_epoll_create();
    for (int i = 0; i < 3; i++) {
        pairs[i] = connected(NULL, NULL);
        srt_epoll_add_usock(eid, pairs[i].accepted, &(int){ SRT_EPOLL_IN });
    }
    make_readable(&pairs[1]);
    make_readable(&pairs[2]);
    make_readable(&pairs[0]);
    order_row("three ready, room for 3", eid, pairs, 3);
    order_row("three ready, room for 1", eid, pairs, 1);
    order_row("three ready, room for 1, again", eid, pairs, 1);
    srt_recv(pairs[1].accepted, message, sizeof message);
    make_readable(&pairs[1]);
    order_row("three ready, room for 1, the second was read", eid, pairs, 1);
    order_row("three ready, room for 2, the second was read", eid, pairs, 2);
    order_row("three ready, room for 3, the second was read", eid, pairs, 3);
    for (int i = 0; i < 3; i++)
        close_pair(&pairs[i]);
}

/* The subscriptions that are taken, and the ones that they replace. */
static void subscriptions(void)
{
    static const int masks[] = {
        0, SRT_EPOLL_IN, SRT_EPOLL_OUT, SRT_EPOLL_ERR, SRT_EPOLL_IN | SRT_EPOLL_OUT, 2,
        0x10, 0x20, 0x100, (int)SRT_EPOLL_ET, (int)(SRT_EPOLL_ET | SRT_EPOLL_IN), -1,
    };
    struct pair pair = readable_pair();
    for (int i = 0; i < COUNT(masks); i++) {
        int eid = srt_epoll_create();
        answer_ready("srt_epoll_add_usock", say("mask %#x", (unsigned)masks[i]),
                     srt_epoll_add_usock(eid, pair.accepted, &masks[i]), pair.accepted, eid);
        srt_epoll_release(eid);
    }
    int eid = watch(pair.accepted, SRT_EPOLL_IN);
    answer_ready("srt_epoll_add_usock", "OUT after IN",
                 srt_epoll_add_usock(eid, pair.accepted, &(int){ SRT_EPOLL_OUT }), pair.accepted,
                 eid);
    answer_ready("srt_epoll_update_usock", "IN after OUT",
                 srt_epoll_update_usock(eid, pair.accepted, &(int){ SRT_EPOLL_IN }),
                 pair.accepted, eid);
    answer_ready("srt_epoll_update_usock", "no mask",
                 srt_epoll_update_usock(eid, pair.accepted, NULL), pair.accepted, eid);
    answer_ready("srt_epoll_update_usock", "mask 0",
                 srt_epoll_update_usock(eid, pair.accepted, &(int){ 0 }), pair.accepted, eid);
    answer_ready("srt_epoll_update_usock", "a socket that is not in",
                 srt_epoll_update_usock(eid, pair.accepted, NULL), pair.accepted, eid);
    answer_ready("srt_epoll_remove_usock", "a socket that is in",
                 srt_epoll_remove_usock(eid, pair.accepted), pair.accepted, eid);
    answer("srt_epoll_remove_usock", "twice", srt_epoll_remove_usock(eid, pair.accepted));
    srt_epoll_add_usock(eid, pair.accepted, NULL);
    answer_ready("srt_epoll_clear_usocks", "one in", srt_epoll_clear_usocks(eid), pair.accepted,
                 eid);
    close_pair(&pair);
}

static void gone_sockets(void)
{
    int eid = srt_epoll_create();
    SRTSOCKET closed = opened(NULL);
    srt_close(closed);
    answer("srt_epoll_add_usock", "unknown socket", srt_epoll_add_usock(eid, 12345, NULL));
    answer("srt_epoll_update_usock", "unknown socket", srt_epoll_update_usock(eid, 12345, NULL));
    answer("srt_epoll_remove_usock", "unknown socket", srt_epoll_remove_usock(eid, 12345));
    answer("srt_epoll_add_usock", "socket -1", srt_epoll_add_usock(eid, -1, NULL));
    answer("srt_epoll_add_usock", "closed socket", srt_epoll_add_usock(eid, closed, NULL));
    answer("srt_epoll_remove_usock", "closed socket", srt_epoll_remove_usock(eid, closed));
    answer_ready("srt_epoll_add_usock", "opened socket",
                 srt_epoll_add_usock(eid, opened(NULL), NULL), -1, eid);
}

static void bad_ids(void)
{
    static const int ids[] = { BAD_EID, -1, 0 };
    for (int i = 0; i < COUNT(ids); i++) {
        const char *id = say("id %d", ids[i]);
        int eid = ids[i];
        SRT_EPOLL_EVENT event;
        answer("srt_epoll_add_usock", id, srt_epoll_add_usock(eid, opened(NULL), NULL));
        answer("srt_epoll_update_usock", id, srt_epoll_update_usock(eid, opened(NULL), NULL));
        answer("srt_epoll_remove_usock", id, srt_epoll_remove_usock(eid, opened(NULL)));
        answer("srt_epoll_add_ssock", id, srt_epoll_add_ssock(eid, 1, NULL));
        answer("srt_epoll_update_ssock", id, srt_epoll_update_ssock(eid, 1, NULL));
        answer("srt_epoll_remove_ssock", id, srt_epoll_remove_ssock(eid, 1));
        answer("srt_epoll_clear_usocks", id, srt_epoll_clear_usocks(eid));
        answer("srt_epoll_uwait", id, srt_epoll_uwait(eid, &event, 1, 0));
        answer("srt_epoll_set", id, srt_epoll_set(eid, 0));
        answer("srt_epoll_set", say("id %d, read", ids[i]), srt_epoll_set(eid, -1));
        answer("srt_epoll_release", id, srt_epoll_release(eid));
        wait_row(id, eid, &(struct pair){ 0, 0, 0 }, 2, 2, 0);
    }
    int eid = srt_epoll_create();
    value("srt_epoll_create", "first", "%s", eid > 0 ? ">0" : "not >0");
    value("srt_epoll_create", "next - first", "%d", srt_epoll_create() - eid);
    answer("srt_epoll_release", "an id", srt_epoll_release(eid));
    answer("srt_epoll_release", "twice", srt_epoll_release(eid));
    value("srt_epoll_create", "after a release, again the same", "%s",
          srt_epoll_create() == eid ? "yes" : "no");
}

static void empty(void)
{
    const struct pair none = { 0, 0, 0 };
    int eid = srt_epoll_create();
    SRTSOCKET s = opened(NULL);
    double start = now_ms();
    wait_row("nothing in it, 0 ms", eid, &none, 2, 2, 0);
    wait_row("nothing in it, 1000 ms", eid, &none, 2, 2, 1000);
    wait_row("nothing in it, -1 ms", eid, &none, 2, 2, -1);
    wait_row("nothing in it, no array", eid, &none, -1, -1, 0);
    uwait_row("nothing in it, 0 ms", eid, 3, 0);
    uwait_row("nothing in it, 1000 ms", eid, 3, 1000);
    uwait_row("nothing in it, -1 ms", eid, 3, -1);
    uwait_row("nothing in it, no array", eid, -1, 0);
    value("srt_epoll_wait", "all waits with nothing in it", "%s", took(start, 0, 500));
    srt_epoll_add_usock(eid, s, NULL);
    uwait_row("an opened socket", eid, 3, 0);
    wait_row("an opened socket", eid, &none, 2, 2, 0);
    srt_epoll_remove_usock(eid, s);
    uwait_row("emptied again", eid, 3, 0);
    wait_row("emptied again", eid, &none, 2, 2, 0);
}

static void flags(void)
{
    const struct pair none = { 0, 0, 0 };
    int eid = srt_epoll_create();
    SRT_EPOLL_EVENT event;
    answer("srt_epoll_set", "read, new", srt_epoll_set(eid, -1));
    answer("srt_epoll_set", "ENABLE_EMPTY", srt_epoll_set(eid, SRT_EPOLL_ENABLE_EMPTY));
    wait_row("empty is allowed, 20 ms", eid, &none, 2, 2, 20);
    uwait_row("empty is allowed, 20 ms", eid, 3, 20);
    answer("srt_epoll_set", "OUTPUTCHECK", srt_epoll_set(eid, SRT_EPOLL_ENABLE_OUTPUTCHECK));
    answer("srt_epoll_set", "read, both", srt_epoll_set(eid, -1));
    answer("srt_epoll_uwait", "output is checked, no array", srt_epoll_uwait(eid, NULL, 0, 20));
    answer("srt_epoll_uwait", "output is checked, array of 1",
           srt_epoll_uwait(eid, &event, 1, 20));
    wait_row("output is checked, no array", eid, &none, -1, -1, 20);
    answer("srt_epoll_set", "unknown flag", srt_epoll_set(eid, 0x100));
    answer("srt_epoll_set", "read, with an unknown flag", srt_epoll_set(eid, -1));
    answer("srt_epoll_set", "0", srt_epoll_set(eid, 0));
    answer("srt_epoll_set", "read, cleared", srt_epoll_set(eid, -1));
    wait_row("cleared flags, empty", eid, &none, 2, 2, 0);
}

/* System sockets. */

static void system_wait(const char *situation, int eid, int ms)
{
    SYSSOCKET r[2] = { -7, -7 };
    SYSSOCKET w[2] = { -7, -7 };
    int rn = 2;
    int wn = 2;
    int result = srt_epoll_wait(eid, NULL, NULL, NULL, NULL, ms, r, &rn, w, &wn);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    row("srt_epoll_wait", situation, say("%d; read %d; write %d", result, rn, wn), error, "-",
        "-");
}

static void system_sockets(void)
{
    int ends[2];
    int eid = srt_epoll_create();
    double start;
    if (pipe(ends) != 0)
        return;
    answer("srt_epoll_add_ssock", "a pipe to read",
           srt_epoll_add_ssock(eid, ends[0], &(int){ SRT_EPOLL_IN }));
    answer("srt_epoll_add_ssock", "twice",
           srt_epoll_add_ssock(eid, ends[0], &(int){ SRT_EPOLL_IN }));
    system_wait("an empty pipe, 0 ms", eid, 0);
    start = now_ms();
    system_wait("an empty pipe, 50 ms", eid, 50);
    value("srt_epoll_wait", "duration with 50 ms", "%s", took(start, 40, 400));
    if (write(ends[1], "x", 1) != 1)
        return;
    system_wait("a readable pipe", eid, 1000);
    system_wait("a readable pipe, again", eid, 0);
    answer("srt_epoll_add_ssock", "a pipe to write",
           srt_epoll_add_ssock(eid, ends[1], &(int){ SRT_EPOLL_OUT }));
    system_wait("a readable and a writable pipe", eid, 1000);
    uwait_row("system sockets in it", eid, 3, 0);
    answer("srt_epoll_update_ssock", "to ERR",
           srt_epoll_update_ssock(eid, ends[1], &(int){ SRT_EPOLL_ERR }));
    system_wait("a readable pipe and one for ERR", eid, 0);
    answer("srt_epoll_remove_ssock", "a pipe", srt_epoll_remove_ssock(eid, ends[0]));
    answer("srt_epoll_remove_ssock", "twice", srt_epoll_remove_ssock(eid, ends[0]));
    answer("srt_epoll_remove_ssock", "the last", srt_epoll_remove_ssock(eid, ends[1]));
    system_wait("nothing in it any more", eid, 0);
    int result = srt_epoll_add_ssock(eid, 9999, NULL);
    int system_error = 0;
    int code = srt_getlasterror(&system_error);
    row("srt_epoll_add_ssock", "a bad file",
        say("%d; errno %s", result, system_error == EBADF ? "EBADF" : say("%d", system_error)),
        error_name(code), "-", "-");
    close(ends[0]);
    close(ends[1]);
}

/* Both kinds in one: each is reported to its own arrays. */
static void both_kinds(void)
{
    struct pair pair = readable_pair();
    int ends[2];
    int eid = watch(pair.accepted, 0);
    SRTSOCKET r[2];
    SRTSOCKET w[2];
    SYSSOCKET lr[2];
    int rn = 2;
    int wn = 2;
    int lrn = 2;
    if (pipe(ends) != 0 || write(ends[1], "x", 1) != 1)
        return;
    srt_epoll_add_ssock(eid, ends[0], &(int){ SRT_EPOLL_IN });
    int result = srt_epoll_wait(eid, r, &rn, w, &wn, 1000, lr, &lrn, NULL, NULL);
    value("srt_epoll_wait", "a socket and a pipe", "%d; read %d; write %d; system %d", result, rn,
          wn, lrn);
    uwait_row("a socket and a pipe", eid, 3, 0);
    close_pair(&pair);
}

int main(void)
{
    program_start();
    bad_ids();
    static section *const sections[] = {
        waits, two_sockets, uwaits, order_of_three, subscriptions, gone_sockets, empty, flags,
        system_sockets, both_kinds,
    };
    at_once(sections, COUNT(sections));
    return program_end();
}
