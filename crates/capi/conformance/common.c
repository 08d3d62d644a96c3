#include "common.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* No program needs half of it. */
#define PROGRAM_SECONDS 25

void program_start(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(PROGRAM_SECONDS);
    srt_startup();
    srt_setloglevel(LOG_CRIT);
}

/* Without srt_cleanup: libsrt's may wait for ever after several sockets on one port. */
int program_end(void)
{
    fflush(stdout);
    _exit(0);
}

const char *say(const char *format, ...)
{
    static _Thread_local char buffers[64][256];
    static _Thread_local unsigned next;
    char *buffer = buffers[next++ % 64];
    va_list words;
    va_start(words, format);
    vsnprintf(buffer, sizeof buffers[0], format, words);
    va_end(words);
    return buffer;
}

/* Rows. */

void row(const char *function, const char *situation, const char *returned, const char *error,
         const char *state, const char *readiness)
{
    printf("%s\t%s\t%s\t%s\t%s\t%s\n", function, situation, returned, error, state, readiness);
}

static const char *error_of(int64_t returned)
{
    return returned == SRT_ERROR ? last_error() : "-";
}

void answer(const char *function, const char *situation, int64_t returned)
{
    row(function, situation, say("%lld", (long long)returned), error_of(returned), "-", "-");
}

void answer_state(const char *function, const char *situation, int64_t returned, SRTSOCKET s)
{
    const char *error = error_of(returned);
    row(function, situation, say("%lld", (long long)returned), error, state_of(s), "-");
}

void answer_ready(const char *function, const char *situation, int64_t returned, SRTSOCKET s,
                  int eid)
{
    const char *error = error_of(returned);
    const char *state = state_of(s);
    row(function, situation, say("%lld", (long long)returned), error, state, readiness(eid));
}

void value(const char *function, const char *situation, const char *format, ...)
{
    char text[512];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    row(function, situation, text, "-", "-", "-");
}

void state(const char *situation, SRTSOCKET s)
{
    row("srt_getsockstate", situation, "-", "-", state_of(s), "-");
}

void ready(const char *situation, int eid)
{
    row("srt_epoll_uwait", situation, "-", "-", "-", readiness(eid));
}

/* Names. */

struct name {
    int number;
    const char *text;
};

static const char *name_in(const struct name *names, int count, int number)
{
    for (int i = 0; i < count; i++)
        if (names[i].number == number)
            return names[i].text;
    return say("%d", number);
}

const char *error_name(int code)
{
#define NAME(error) { SRT_##error, #error }
    static const struct name names[] = {
        NAME(EUNKNOWN), NAME(SUCCESS), NAME(ECONNSETUP), NAME(ENOSERVER), NAME(ECONNREJ),
        NAME(ESOCKFAIL), NAME(ESECFAIL), NAME(ESCLOSED), NAME(ECONNFAIL), NAME(ECONNLOST),
        NAME(ENOCONN), NAME(ERESOURCE), NAME(ETHREAD), NAME(ENOBUF), NAME(ESYSOBJ), NAME(EFILE),
        NAME(EINVRDOFF), NAME(ERDPERM), NAME(EINVWROFF), NAME(EWRPERM), NAME(EINVOP),
        NAME(EBOUNDSOCK), NAME(ECONNSOCK), NAME(EINVPARAM), NAME(EINVSOCK), NAME(EUNBOUNDSOCK),
        NAME(ENOLISTEN), NAME(ERDVNOSERV), NAME(ERDVUNBOUND), NAME(EINVALMSGAPI),
        NAME(EINVALBUFFERAPI), NAME(EDUPLISTEN), NAME(ELARGEMSG), NAME(EINVPOLLID),
        NAME(EPOLLEMPTY), NAME(EBINDCONFLICT), NAME(EASYNCFAIL), NAME(EASYNCSND),
        NAME(EASYNCRCV), NAME(ETIMEOUT), NAME(ECONGEST), NAME(EPEERERR),
    };
#undef NAME
    return name_in(names, COUNT(names), code);
}

const char *last_error(void)
{
    return error_name(srt_getlasterror(NULL));
}

const char *state_name(int number)
{
    static const struct name names[] = {
        { SRTS_INIT, "INIT" },
        { SRTS_OPENED, "OPENED" },
        { SRTS_LISTENING, "LISTENING" },
        { SRTS_CONNECTING, "CONNECTING" },
        { SRTS_CONNECTED, "CONNECTED" },
        { SRTS_BROKEN, "BROKEN" },
        { SRTS_CLOSING, "CLOSING" },
        { SRTS_CLOSED, "CLOSED" },
        { SRTS_NONEXIST, "NONEXIST" },
    };
    return name_in(names, COUNT(names), number);
}

const char *state_of(SRTSOCKET s)
{
    return state_name(srt_getsockstate(s));
}

const char *km_name(int number)
{
    static const struct name names[] = {
        { 0, "UNSECURED" }, { 1, "SECURING" }, { 2, "SECURED" }, { 3, "NOSECRET" },
        { 4, "BADSECRET" },
    };
    return name_in(names, COUNT(names), number);
}

const char *events_name(int events)
{
    static const struct name bits[] = {
        { SRT_EPOLL_IN, "IN" }, { SRT_EPOLL_OUT, "OUT" }, { SRT_EPOLL_ERR, "ERR" },
        { SRT_EPOLL_UPDATE, "UPDATE" },
    };
    const char *text = "";
    for (int i = 0; i < COUNT(bits); i++) {
        if ((events & bits[i].number) != 0)
            text = say("%s%s%s", text, *text == '\0' ? "" : "|", bits[i].text);
        events &= ~bits[i].number;
    }
    if (events != 0)
        text = say("%s|%#x", text, (unsigned)events);
    return *text == '\0' ? "none" : text;
}

const char *readiness(int eid)
{
    SRT_EPOLL_EVENT events[4];
    int count = srt_epoll_uwait(eid, events, 4, 0);
    if (count < 0)
        return last_error();
    if (count == 0)
        return "none";
    return events_name(events[0].events);
}

/* Time. */

double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

void pause_ms(int ms)
{
    struct timespec time = { ms / 1000, (ms % 1000) * 1000000L };
    nanosleep(&time, NULL);
}

const char *took(double start, int least, int most)
{
    double ms = now_ms() - start;
    if (ms >= least && ms <= most)
        return say("in %d..%d ms", least, most);
    return say("in %.0f ms, not %d..%d", ms, least, most);
}

/* Addresses. */

struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int port_of(SRTSOCKET s)
{
    struct sockaddr_in address = loopback(0);
    int size = sizeof address;
    srt_getsockname(s, (struct sockaddr *)&address, &size);
    return ntohs(address.sin_port);
}

int same_address(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
    return a->sin_family == b->sin_family && a->sin_port == b->sin_port
        && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

int silent_socket(int *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, (struct sockaddr *)&address, size) != 0)
        exit(3);
    getsockname(fd, (struct sockaddr *)&address, &size);
    *port = ntohs(address.sin_port);
    return fd;
}

/* Options. */

int set_int(SRTSOCKET s, SRT_SOCKOPT option, int number)
{
    return srt_setsockflag(s, option, &number, sizeof number);
}

int get_int(SRTSOCKET s, SRT_SOCKOPT option)
{
    /* A bool fills one byte only. */
    int number = 0;
    int size = sizeof number;
    return srt_getsockflag(s, option, &number, &size) == SRT_ERROR ? -99 : number;
}

int set_bool(SRTSOCKET s, SRT_SOCKOPT option, int on)
{
    return set_int(s, option, on);
}

int set_string(SRTSOCKET s, SRT_SOCKOPT option, const char *text)
{
    return srt_setsockflag(s, option, text, (int)strlen(text));
}

void unblock(SRTSOCKET s)
{
    set_bool(s, SRTO_SNDSYN, 0);
    set_bool(s, SRTO_RCVSYN, 0);
}

/* Waits. */

int wait_state(SRTSOCKET s, SRT_SOCKSTATUS wanted, int ms)
{
    double end = now_ms() + ms;
    while (srt_getsockstate(s) != wanted) {
        if (now_ms() > end)
            return 0;
        pause_ms(2);
    }
    return 1;
}

int wait_events(int eid, int wanted, int ms)
{
    double end = now_ms() + ms;
    for (;;) {
        SRT_EPOLL_EVENT event = { 0, 0 };
        if (srt_epoll_uwait(eid, &event, 1, 0) == 1 && (event.events & wanted) == wanted)
            return 1;
        if (now_ms() > end)
            return 0;
        pause_ms(2);
    }
}

int fill(SRTSOCKET s, const char *bytes, int size)
{
    int quiet = 0;
    for (int sent = 0; quiet < 5 && sent < 10000;) {
        if (srt_sendmsg(s, bytes, size, -1, 1) > 0) {
            quiet = 0;
            sent++;
            continue;
        }
        quiet++;
        pause_ms(40);
    }
    return quiet == 5;
}

int watch(SRTSOCKET s, int events)
{
    int eid = srt_epoll_create();
    srt_epoll_add_usock(eid, s, events == 0 ? NULL : &events);
    return eid;
}

/* Sockets. */

SRTSOCKET opened(prepare *set)
{
    SRTSOCKET s = srt_create_socket();
    if (set != NULL)
        set(s);
    return s;
}

static void must(int result, const char *what)
{
    if (result != SRT_ERROR)
        return;
    printf("%s\tas a preparation\t-1\t%s\t-\t-\n", what, last_error());
    exit(3);
}

SRTSOCKET bound(prepare *set)
{
    struct sockaddr_in address = loopback(0);
    SRTSOCKET s = opened(set);
    must(srt_bind(s, (struct sockaddr *)&address, sizeof address), "srt_bind");
    return s;
}

SRTSOCKET listening(prepare *set)
{
    SRTSOCKET s = bound(set);
    must(srt_listen(s, 8), "srt_listen");
    return s;
}

int call(SRTSOCKET s, int port)
{
    struct sockaddr_in address = loopback(port);
    return srt_connect(s, (struct sockaddr *)&address, sizeof address);
}

/* The connection itself is made with blocking functions, whatever the ends were prepared to. */
struct pair just_connected(prepare *caller, prepare *listener)
{
    struct pair pair = { listening(listener), opened(caller), SRT_INVALID_SOCK };
    int caller_blocks = get_int(pair.caller, SRTO_RCVSYN);
    int listener_blocks = get_int(pair.listener, SRTO_RCVSYN);
    set_bool(pair.caller, SRTO_RCVSYN, 1);
    must(call(pair.caller, port_of(pair.listener)), "srt_connect");
    set_bool(pair.caller, SRTO_RCVSYN, caller_blocks);
    set_bool(pair.listener, SRTO_RCVSYN, 1);
    pair.accepted = srt_accept(pair.listener, NULL, NULL);
    must(pair.accepted, "srt_accept");
    set_bool(pair.listener, SRTO_RCVSYN, listener_blocks);
    set_bool(pair.accepted, SRTO_RCVSYN, listener_blocks);
    pause_ms(SETTLE_MS);
    return pair;
}

struct pair connected(prepare *caller, prepare *listener)
{
    struct pair pair = just_connected(caller, listener);
    set_int(pair.caller, SRTO_RCVTIMEO, LONG_MS);
    set_int(pair.caller, SRTO_SNDTIMEO, LONG_MS);
    set_int(pair.accepted, SRTO_RCVTIMEO, LONG_MS);
    set_int(pair.accepted, SRTO_SNDTIMEO, LONG_MS);
    return pair;
}

/* Closing does not wait for data that nobody reads any more. */
void close_pair(struct pair *pair)
{
    static const struct linger none = { 0, 0 };
    srt_setsockflag(pair->caller, SRTO_LINGER, &none, sizeof none);
    srt_setsockflag(pair->accepted, SRTO_LINGER, &none, sizeof none);
    srt_close(pair->caller);
    srt_close(pair->accepted);
    srt_close(pair->listener);
}

void as_stream(SRTSOCKET s)
{
    set_int(s, SRTO_TRANSTYPE, SRTT_FILE);
}

void as_file_messages(SRTSOCKET s)
{
    set_int(s, SRTO_TRANSTYPE, SRTT_FILE);
    set_bool(s, SRTO_MESSAGEAPI, 1);
}

/* Threads. */

static void *run(void *task)
{
    (*(section *const *)task)();
    return NULL;
}

void at_once(section *const sections[], int count)
{
    pthread_t threads[16];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, run, (void *)&sections[i]);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}
