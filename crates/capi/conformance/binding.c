/* Binding: which addresses two sockets may share, what is refused, foreign UDP sockets. */
#include "common.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

static int fill_address(union address *address, const char *ip, int port)
{
    memset(address, 0, sizeof *address);
    if (strchr(ip, ':') == NULL) {
        address->four.sin_family = AF_INET;
        address->four.sin_port = htons((uint16_t)port);
        inet_pton(AF_INET, ip, &address->four.sin_addr);
        return sizeof address->four;
    }
    address->six.sin6_family = AF_INET6;
    address->six.sin6_port = htons((uint16_t)port);
    inet_pton(AF_INET6, ip, &address->six.sin6_addr);
    return sizeof address->six;
}

static int bind_to(SRTSOCKET s, const char *ip, int port)
{
    union address address;
    int size = fill_address(&address, ip, port);
    return srt_bind(s, &address.any, size);
}

static int port_of_any(SRTSOCKET s)
{
    union address address;
    int size = sizeof address;
    srt_getsockname(s, &address.any, &size);
    return ntohs(address.four.sin_port);
}

/* The last error, and the system's if there is one. */
static const char *full_error(int result)
{
    int system_error = 0;
    if (result != SRT_ERROR)
        return "-";
    int code = srt_getlasterror(&system_error);
    if (code == SRT_ESOCKFAIL)
        return say("%s %s", error_name(code), system_error == EADDRINUSE ? "EADDRINUSE"
                   : system_error == EADDRNOTAVAIL ? "EADDRNOTAVAIL" : say("%d", system_error));
    return error_name(code);
}

static void bind_row(const char *situation, int result, SRTSOCKET s)
{
    const char *error = full_error(result);
    row("srt_bind", situation, say("%d", result), error, state_of(s), "-");
}

static void refusals(void)
{
    union address address;
    int size = fill_address(&address, "127.0.0.1", 0);
    SRTSOCKET s = opened(NULL);
    bind_row("unknown socket", srt_bind(12345, &address.any, size), -1);
    bind_row("socket -1", srt_bind(-1, &address.any, size), -1);
    bind_row("length 15", srt_bind(s, &address.any, 15), s);
    bind_row("length 0", srt_bind(s, &address.any, 0), s);
    s = opened(NULL);
    bind_row("IPv4, length 28", srt_bind(s, &address.any, 28), s);
    s = opened(NULL);
    address.any.sa_family = 99;
    bind_row("family 99", srt_bind(s, &address.any, size), s);
    size = fill_address(&address, "::1", 0);
    bind_row("IPv6, length 16", srt_bind(s, &address.any, 16), s);
    bind_row("an address of no interface", bind_to(s, "192.0.2.1", 0), s);
    bind_row("after that, loopback", bind_to(s, "127.0.0.1", 0), s);
    bind_row("bound already", bind_to(s, "127.0.0.1", 0), s);
    s = listening(NULL);
    bind_row("listening", bind_to(s, "127.0.0.1", 0), s);
    struct pair pair = connected(NULL, NULL);
    bind_row("connected", bind_to(pair.caller, "127.0.0.1", 0), pair.caller);
    bind_row("accepted", bind_to(pair.accepted, "127.0.0.1", 0), pair.accepted);
    close_pair(&pair);
}

static void wildcards(void)
{
    for (int only = -1; only < 3; only++) {
        SRTSOCKET s = opened(NULL);
        set_int(s, SRTO_IPV6ONLY, only);
        bind_row(say(":: with IPV6ONLY %d", only), bind_to(s, "::", 0), s);
        s = opened(NULL);
        set_int(s, SRTO_IPV6ONLY, only);
        bind_row(say("::1 with IPV6ONLY %d", only), bind_to(s, "::1", 0), s);
        s = opened(NULL);
        set_int(s, SRTO_IPV6ONLY, only);
        bind_row(say("0.0.0.0 with IPV6ONLY %d", only), bind_to(s, "0.0.0.0", 0), s);
    }
}

/* A second socket on the port of a first. */
struct ends {
    const char *first;
    const char *second;
    /* Of the second. */
    int reuse;
    int ttl;
    int only;
};

/* Whether the system refused an address, whoever has it. */
static int is_taken(int result)
{
    int system_error = 0;
    return result == SRT_ERROR && srt_getlasterror(&system_error) == SRT_ESOCKFAIL
        && system_error == EADDRINUSE;
}

/* Another program may have the port in the second's family by chance, so this tries three ports. */
static void conflict(const struct ends *ends)
{
    for (int tries = 1; tries <= 3; tries++) {
        SRTSOCKET first = opened(NULL);
        SRTSOCKET second = opened(NULL);
        set_int(first, SRTO_IPV6ONLY, strchr(ends->first, ':') ? ends->only : -1);
        set_bool(second, SRTO_REUSEADDR, ends->reuse);
        set_int(second, SRTO_IPTTL, ends->ttl);
        set_int(second, SRTO_IPV6ONLY, strchr(ends->second, ':') ? ends->only : -1);
        bind_to(first, ends->first, 0);
        int result = bind_to(second, ends->second, port_of_any(first));
        int done = tries == 3 || !is_taken(result);
        if (done)
            bind_row(say("%s after %s, REUSEADDR %d, IPTTL %d, IPV6ONLY %d", ends->second,
                         ends->first, ends->reuse, ends->ttl, ends->only), result, second);
        srt_close(second);
        srt_close(first);
        if (done)
            break;
    }
}

static void conflicts(void)
{
    static const struct ends cases[] = {
        { "127.0.0.1", "127.0.0.1", 1, -1, -1 }, { "127.0.0.1", "127.0.0.1", 0, -1, -1 },
        { "127.0.0.1", "127.0.0.1", 1, 60, -1 }, { "127.0.0.1", "127.0.0.2", 1, -1, -1 },
        { "127.0.0.1", "127.0.0.2", 0, -1, -1 }, { "127.0.0.1", "0.0.0.0", 1, -1, -1 },
        { "0.0.0.0", "127.0.0.1", 1, -1, -1 },   { "0.0.0.0", "0.0.0.0", 1, -1, -1 },
        { "0.0.0.0", "0.0.0.0", 0, -1, -1 },     { "0.0.0.0", "127.0.0.1", 0, -1, -1 },
        { "127.0.0.1", "::1", 1, -1, 1 },        { "::1", "::1", 1, -1, 1 },
        { "::1", "::1", 1, 60, 1 },              { "::", "::1", 1, -1, 1 },
        { "::", "::", 1, -1, 1 },                { "::", "0.0.0.0", 1, -1, 1 },
        { "0.0.0.0", "::", 1, -1, 1 },           { "::", "127.0.0.1", 1, -1, 1 },
        { "127.0.0.1", "::", 1, -1, 1 },         { "::", "0.0.0.0", 1, -1, 0 },
        { "0.0.0.0", "::", 1, -1, 0 },           { "::", "127.0.0.1", 1, -1, 0 },
        { "127.0.0.1", "::", 1, -1, 0 },         { "::", "::1", 1, -1, 0 },
    };
    for (int i = 0; i < COUNT(cases); i++)
        conflict(&cases[i]);
}

static void listeners(void)
{
    SRTSOCKET first = listening(NULL);
    SRTSOCKET second = opened(NULL);
    int port = port_of(first);
    bind_row("a listener's port", bind_to(second, "127.0.0.1", port), second);
    answer_state("srt_listen", "a listener's port", srt_listen(second, 1), second);
    set_int(second, SRTO_CONNTIMEO, 300);
    answer_state("srt_connect", "from a listener's port", call(second, port_of(bound(NULL))),
                 second);
    SRTSOCKET caller = opened(NULL);
    bind_row("a listener's port, to call from", bind_to(caller, "127.0.0.1", port), caller);
    SRTSOCKET other = listening(NULL);
    answer_state("srt_connect", "bound to a listener's port", call(caller, port_of(other)),
                 caller);
    value("srt_getsockname", "bound to a listener's port", "%s",
          port_of(caller) == port ? "the listener's port" : "another port");
    srt_close(first);
    SRTSOCKET third = opened(NULL);
    bind_row("the port of a closed listener, others are on it", bind_to(third, "127.0.0.1", port),
             third);
}

static void reuse_after_close(void)
{
    SRTSOCKET s = listening(NULL);
    int port = port_of(s);
    srt_close(s);
    s = opened(NULL);
    bind_row("the port of a closed listener", bind_to(s, "127.0.0.1", port), s);
    answer_state("srt_listen", "the port of a closed listener", srt_listen(s, 1), s);
    SRTSOCKET caller = opened(NULL);
    answer_state("srt_connect", "the port of a closed listener", call(caller, port), caller);
    srt_close(caller);
    struct pair pair = connected(NULL, NULL);
    port = port_of(pair.listener);
    srt_close(pair.listener);
    s = opened(NULL);
    bind_row("the port of a closed listener whose connection lives",
             bind_to(s, "127.0.0.1", port), s);
    answer_state("srt_listen", "the port of a closed listener whose connection lives",
                 srt_listen(s, 1), s);
    close_pair(&pair);
    s = bound(NULL);
    port = port_of(s);
    srt_close(s);
    s = opened(NULL);
    bind_row("the port of a closed bound socket", bind_to(s, "127.0.0.1", port), s);
    s = opened(NULL);
    bind_row("several ports later, port 0", bind_to(s, "127.0.0.1", 0), s);
}

/* Sockets of the system's. */
static void foreign(void)
{
    int port;
    int fd = silent_socket(&port);
    SRTSOCKET s = opened(NULL);
    bind_row("the port of a UDP socket", bind_to(s, "127.0.0.1", port), s);
    int result = srt_bind_acquire(s, fd);
    row("srt_bind_acquire", "a bound UDP socket", say("%d", result), full_error(result),
        state_of(s), "-");
    value("srt_getsockname", "of a bound UDP socket", "%s",
          port_of(s) == port ? "its port" : "another port");
    result = srt_bind_acquire(s, silent_socket(&port));
    row("srt_bind_acquire", "bound already", say("%d", result), full_error(result), state_of(s),
        "-");
    answer_state("srt_listen", "acquired", srt_listen(s, 1), s);
    SRTSOCKET caller = opened(NULL);
    answer_state("srt_connect", "to an acquired socket", call(caller, port_of(s)), caller);
    srt_close(caller);
    s = opened(NULL);
    result = srt_bind_acquire(s, 9999);
    row("srt_bind_acquire", "a bad file", say("%d", result),
        result == SRT_ERROR ? error_name(srt_getlasterror(NULL)) : "-", state_of(s), "-");
    answer("srt_bind_acquire", "unknown socket", srt_bind_acquire(12345, fd));
}

int main(void)
{
    static section *const sections[] = {
        refusals, wildcards, listeners, reuse_after_close, foreign,
    };
    program_start();
    /* Conflicts need ports that nobody else takes in between. */
    conflicts();
    at_once(sections, COUNT(sections));
    return program_end();
}
