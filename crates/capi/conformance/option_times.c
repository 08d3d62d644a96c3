/* The states in which each option may be set. */
#include "options.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A legal value of each option. */
static int set_legal(SRTSOCKET s, const struct option *option)
{
    static const struct { int option; int number; } numbers[] = {
        { SRTO_MSS, 1400 }, { SRTO_FC, 20000 }, { SRTO_SNDBUF, 1472000 },
        { SRTO_RCVBUF, 1472000 }, { SRTO_UDP_SNDBUF, 65536 }, { SRTO_UDP_RCVBUF, 65536 },
        { SRTO_OHEADBW, 30 }, { SRTO_PBKEYLEN, 16 }, { SRTO_IPTTL, 60 }, { SRTO_IPTOS, 0 },
        { SRTO_MINVERSION, 0x010000 }, { SRTO_PAYLOADSIZE, 1000 }, { SRTO_IPV6ONLY, 0 },
        { SRTO_GROUPMINSTABLETIMEO, 60 }, { SRTO_TRANSTYPE, SRTT_LIVE },
    };
    static const struct linger linger = { 0, 0 };
    static const int64_t wide = 1000000;
    SRT_SOCKOPT number = (SRT_SOCKOPT)option->number;
    const char *text = option->number == SRTO_CONGESTION ? "live"
        : option->number == SRTO_PACKETFILTER ? "fec,cols:10"
        : option->number == SRTO_BINDTODEVICE ? "lo" : "ten letters";
    switch (option->kind) {
    case LINGER: return srt_setsockflag(s, number, &linger, sizeof linger);
    case WIDE: return srt_setsockflag(s, number, &wide, sizeof wide);
    case TEXT: return set_string(s, number, text);
    /* The connection that follows is to be made in the usual way. */
    case BOOLEAN: return set_bool(s, number, option->number != SRTO_RENDEZVOUS);
    default: break;
    }
    for (int i = 0; i < COUNT(numbers); i++)
        if (numbers[i].option == option->number)
            return set_int(s, number, numbers[i].number);
    return set_int(s, number, 1);
}

static void set_one(const char *situation, SRTSOCKET s, const struct option *option)
{
    answer("srt_setsockflag", say("%d %s, %s", option->number, option->name, situation),
           set_legal(s, option));
}

static void set_all(const char *situation, SRTSOCKET s)
{
    for (int i = 0; i < COUNT(options); i++)
        set_one(situation, s, &options[i]);
}

/* One option's value is not to be in another's way. */
static void on_new_sockets(void)
{
    for (int i = 0; i < COUNT(options); i++) {
        SRTSOCKET s = opened(NULL);
        set_one("opened", s, &options[i]);
        srt_close(s);
    }
}

static void connecting(void)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET s = opened(unblock);
    call(s, port);
    set_all("connecting", s);
    srt_close(s);
    close(silent);
}

static void in_connections(void)
{
    struct pair pair = just_connected(NULL, NULL);
    set_all("connected", pair.caller);
    set_all("accepted", pair.accepted);
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    set_all("broken", pair.accepted);
    answer("srt_setsockflag", "closed", set_int(pair.caller, SRTO_LATENCY, 1));
}

/* A socket whose blocking call failed is as good as new. */
static void after_failure(void)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET s = opened(NULL);
    set_int(s, SRTO_CONNTIMEO, 100);
    call(s, port);
    set_all("opened again", s);
    close(silent);
}

int main(void)
{
    program_start();
    on_new_sockets();
    set_all("bound", bound(NULL));
    set_all("listening", listening(NULL));
    connecting();
    in_connections();
    after_failure();
    return program_end();
}
