/* The addresses of both ends, IPv4, IPv6 and mapped. */
#include "common.h"

#include <string.h>
#include <unistd.h>

union address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_storage room;
};

/* Family and address; the port only as known or not. */
static const char *text_of(const union address *address, int size, int port)
{
    char ip[INET6_ADDRSTRLEN] = "";
    int family = address->any.sa_family;
    int got = ntohs(address->four.sin_port);
    if (family == AF_INET)
        inet_ntop(family, &address->four.sin_addr, ip, sizeof ip);
    else if (family == AF_INET6)
        inet_ntop(family, &address->six.sin6_addr, ip, sizeof ip);
    else
        return say("family %d, length %d", family, size);
    return say("%s, length %d, port %s", ip, size,
               port >= 0 && got == port ? "as expected" : got == 0 ? "0"
               : port >= 0 ? "unexpected" : ">0");
}

typedef int name_function(SRTSOCKET s, struct sockaddr *name, int *size);

static int name_row(name_function *function, const char *situation, SRTSOCKET s, int port)
{
    union address address;
    int size = sizeof address;
    memset(&address, 0, sizeof address);
    int result = function(s, &address.any, &size);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    row(function == srt_getsockname ? "srt_getsockname" : "srt_getpeername", situation,
        say("%d: %s", result, text_of(&address, size, port)), error, "-", "-");
    return ntohs(address.four.sin_port);
}

static void short_row(name_function *function, const char *situation, SRTSOCKET s, int room)
{
    union address address;
    int size = room;
    int result = function(s, &address.any, &size);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    row(function == srt_getsockname ? "srt_getsockname" : "srt_getpeername",
        say("%s, room for %d", situation, room), say("%d, length %d", result, size), error, "-",
        "-");
}

static void without_connection(void)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET s = opened(NULL);
    SRTSOCKET connecting = opened(unblock);
    name_row(srt_getsockname, "opened", s, -1);
    name_row(srt_getpeername, "opened", s, -1);
    s = bound(NULL);
    name_row(srt_getsockname, "bound", s, -1);
    name_row(srt_getpeername, "bound", s, -1);
    s = listening(NULL);
    name_row(srt_getsockname, "listening", s, -1);
    name_row(srt_getpeername, "listening", s, -1);
    call(connecting, port);
    name_row(srt_getpeername, "connecting", connecting, port);
    name_row(srt_getsockname, "unknown socket", 12345, -1);
    name_row(srt_getpeername, "unknown socket", 12345, -1);
    srt_close(connecting);
    close(silent);
}

static void connection(void)
{
    static const int rooms[] = { 0, 4, 15, 16, 28 };
    struct pair pair = connected(NULL, NULL);
    int port = name_row(srt_getsockname, "caller", pair.caller, -1);
    name_row(srt_getpeername, "accepted", pair.accepted, port);
    name_row(srt_getsockname, "accepted", pair.accepted, port_of(pair.listener));
    name_row(srt_getpeername, "caller", pair.caller, port_of(pair.listener));
    for (int i = 0; i < COUNT(rooms); i++) {
        short_row(srt_getsockname, "caller", pair.caller, rooms[i]);
        short_row(srt_getpeername, "caller", pair.caller, rooms[i]);
    }
    answer("srt_getsockname", "no address", srt_getsockname(pair.caller, NULL, &port));
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    name_row(srt_getsockname, "broken", pair.accepted, port_of(pair.listener));
    name_row(srt_getpeername, "broken", pair.accepted, -1);
    close_pair(&pair);
}

/* A listener at one address and a caller of another. */
static void families(const char *situation, const char *ip, int only, const char *to)
{
    union address address;
    union address accepted_from;
    int size = sizeof accepted_from;
    SRTSOCKET listener = opened(NULL);
    SRTSOCKET caller = opened(NULL);
    set_int(caller, SRTO_CONNTIMEO, 1000);
    memset(&address, 0, sizeof address);
    memset(&accepted_from, 0, sizeof accepted_from);
    if (strchr(ip, ':') == NULL) {
        address.four.sin_family = AF_INET;
        inet_pton(AF_INET, ip, &address.four.sin_addr);
    } else {
        address.six.sin6_family = AF_INET6;
        inet_pton(AF_INET6, ip, &address.six.sin6_addr);
        set_int(listener, SRTO_IPV6ONLY, only);
    }
    int result = srt_bind(listener, &address.any,
                          address.any.sa_family == AF_INET ? sizeof address.four
                                                           : sizeof address.six);
    answer("srt_bind", situation, result);
    int port = name_row(srt_getsockname, say("listener, %s", situation), listener, -1);
    srt_listen(listener, 1);
    memset(&address, 0, sizeof address);
    if (strchr(to, ':') == NULL) {
        address.four = loopback(port);
        inet_pton(AF_INET, to, &address.four.sin_addr);
        result = srt_connect(caller, &address.any, sizeof address.four);
    } else {
        address.six.sin6_family = AF_INET6;
        address.six.sin6_port = htons((uint16_t)port);
        inet_pton(AF_INET6, to, &address.six.sin6_addr);
        result = srt_connect(caller, &address.any, sizeof address.six);
    }
    answer_state("srt_connect", situation, result, caller);
    if (result == SRT_ERROR)
        return;
    SRTSOCKET accepted = srt_accept(listener, &accepted_from.any, &size);
    int caller_port = name_row(srt_getsockname, say("caller, %s", situation), caller, -1);
    value("srt_accept", situation, "%s", text_of(&accepted_from, size, caller_port));
    name_row(srt_getpeername, say("caller, %s", situation), caller, port);
    name_row(srt_getsockname, say("accepted, %s", situation), accepted, port);
    name_row(srt_getpeername, say("accepted, %s", situation), accepted, caller_port);
    srt_close(accepted);
    srt_close(caller);
    srt_close(listener);
}

static void family_pairs(void)
{
    families("127.0.0.1 calls 127.0.0.1", "127.0.0.1", -1, "127.0.0.1");
    families("127.0.0.1 calls 0.0.0.0", "0.0.0.0", -1, "127.0.0.1");
    families("127.0.0.2 is called at 0.0.0.0", "0.0.0.0", -1, "127.0.0.2");
    families("::1 calls ::1", "::1", 1, "::1");
    families("::1 calls :: with IPV6ONLY 1", "::", 1, "::1");
    families("::1 calls :: with IPV6ONLY 0", "::", 0, "::1");
    families("127.0.0.1 calls :: with IPV6ONLY 0", "::", 0, "127.0.0.1");
    families("mapped 127.0.0.1 calls 0.0.0.0", "0.0.0.0", -1, "::ffff:127.0.0.1");
}

int main(void)
{
    static section *const sections[] = { without_connection, connection, family_pairs };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
