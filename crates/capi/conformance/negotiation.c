/* The values on which two ends agree, and the ones on which they do not. */
#include "common.h"

#include <string.h>

/* One option, on both ends, and what both then read. */

struct side {
    SRT_SOCKOPT option;
    int number;
};

static SRTSOCKET side_socket(const struct side *sides, int count)
{
    SRTSOCKET s = opened(NULL);
    for (int i = 0; i < count; i++)
        set_int(s, sides[i].option, sides[i].number);
    return s;
}

/* Binds and listens, calls, accepts if the call succeeded. */
static int connect_ends(SRTSOCKET listener, SRTSOCKET caller, SRTSOCKET *accepted)
{
    struct sockaddr_in address = loopback(0);
    srt_bind(listener, (struct sockaddr *)&address, sizeof address);
    srt_listen(listener, 5);
    int result = call(caller, port_of(listener));
    *accepted = result == SRT_ERROR ? SRT_INVALID_SOCK : srt_accept(listener, NULL, NULL);
    return result;
}

static void close_ends(SRTSOCKET listener, SRTSOCKET caller, SRTSOCKET accepted)
{
    pause_ms(SETTLE_MS);
    srt_close(caller);
    srt_close(accepted);
    srt_close(listener);
}

static void latencies(void)
{
    static const struct { int listener[2]; int caller[2]; } cases[] = {
        { { 120, 0 }, { 120, 0 } }, { { 200, 0 }, { 120, 0 } }, { { 120, 0 }, { 200, 0 } },
        { { 0, 0 }, { 0, 0 } }, { { 100, 300 }, { 200, 50 } }, { { 50, 0 }, { 20, 400 } },
        { { 20, 400 }, { 50, 0 } }, { { 65535, 0 }, { 0, 0 } }, { { 65536, 0 }, { 0, 0 } },
    };
    for (int i = 0; i < COUNT(cases); i++) {
        const int *l = cases[i].listener;
        const int *c = cases[i].caller;
        struct side at_listener[] = { { SRTO_RCVLATENCY, l[0] }, { SRTO_PEERLATENCY, l[1] } };
        struct side at_caller[] = { { SRTO_RCVLATENCY, c[0] }, { SRTO_PEERLATENCY, c[1] } };
        SRTSOCKET listener = side_socket(at_listener, 2);
        SRTSOCKET caller = side_socket(at_caller, 2);
        SRTSOCKET accepted;
        int result = connect_ends(listener, caller, &accepted);
        value("srt_getsockflag", say("latencies, listener %d %d, caller %d %d", l[0], l[1], c[0],
                                     c[1]),
              "%d; accepted %d %d, caller %d %d, listener %d %d", result,
              get_int(accepted, SRTO_RCVLATENCY), get_int(accepted, SRTO_PEERLATENCY),
              get_int(caller, SRTO_RCVLATENCY), get_int(caller, SRTO_PEERLATENCY),
              get_int(listener, SRTO_RCVLATENCY), get_int(listener, SRTO_PEERLATENCY));
        close_ends(listener, caller, accepted);
    }
}

/* One number on each side, and what the ends read of it. */
static void numbers(void)
{
    static const struct { const char *name; SRT_SOCKOPT option; int listener; int caller; }
    cases[] = {
        { "MSS", SRTO_MSS, 1500, 1400 },
        { "MSS", SRTO_MSS, 1400, 1500 },
        { "MSS", SRTO_MSS, 1500, 9000 },
        { "FC", SRTO_FC, 25600, 1000 },
        { "FC", SRTO_FC, 1000, 25600 },
        { "PAYLOADSIZE", SRTO_PAYLOADSIZE, 1316, 1456 },
        { "PAYLOADSIZE", SRTO_PAYLOADSIZE, 1000, 500 },
        { "TSBPDMODE", SRTO_TSBPDMODE, 1, 0 },
        { "TSBPDMODE", SRTO_TSBPDMODE, 0, 1 },
        { "TLPKTDROP", SRTO_TLPKTDROP, 1, 0 },
        { "TLPKTDROP", SRTO_TLPKTDROP, 0, 1 },
        { "NAKREPORT", SRTO_NAKREPORT, 1, 0 },
        { "NAKREPORT", SRTO_NAKREPORT, 0, 1 },
        { "MESSAGEAPI", SRTO_MESSAGEAPI, 1, 0 },
        { "MESSAGEAPI", SRTO_MESSAGEAPI, 0, 1 },
        { "TRANSTYPE", SRTO_TRANSTYPE, SRTT_LIVE, SRTT_FILE },
        { "TRANSTYPE", SRTO_TRANSTYPE, SRTT_FILE, SRTT_LIVE },
        { "TRANSTYPE", SRTO_TRANSTYPE, SRTT_FILE, SRTT_FILE },
        { "MINVERSION", SRTO_MINVERSION, 0x010000, 0x010300 },
        { "MINVERSION", SRTO_MINVERSION, 0x020000, 0x010000 },
        { "MINVERSION", SRTO_MINVERSION, 0x010000, 0x020000 },
        { "RETRANSMITALGO", SRTO_RETRANSMITALGO, 1, 0 },
        { "PEERIDLETIMEO", SRTO_PEERIDLETIMEO, 5000, 2000 },
        { "SENDER", SRTO_SENDER, 1, 1 },
    };
    for (int i = 0; i < COUNT(cases); i++) {
        struct side at_listener = { cases[i].option, cases[i].listener };
        struct side at_caller = { cases[i].option, cases[i].caller };
        SRTSOCKET listener = side_socket(&at_listener, 1);
        SRTSOCKET caller = side_socket(&at_caller, 1);
        SRTSOCKET accepted;
        const char *name = say("%s, listener %d, caller %d", cases[i].name, cases[i].listener,
                               cases[i].caller);
        int result = connect_ends(listener, caller, &accepted);
        answer_state("srt_connect", name, result, caller);
        if (result == SRT_ERROR)
            value("srt_getrejectreason", name, "%d", srt_getrejectreason(caller));
        else
            value("srt_getsockflag", name, "accepted %d, caller %d",
                  get_int(accepted, cases[i].option), get_int(caller, cases[i].option));
        close_ends(listener, caller, accepted);
    }
}

static const char *text_option(SRTSOCKET s, SRT_SOCKOPT option)
{
    char text[600] = { 0 };
    int size = sizeof text;
    if (srt_getsockflag(s, option, text, &size) == SRT_ERROR)
        return last_error();
    return say("%d \"%.100s\"", size, text);
}

static void texts(void)
{
    static const struct { const char *name; SRT_SOCKOPT option; const char *listener;
                          const char *caller; } cases[] = {
        { "STREAMID", SRTO_STREAMID, "of the listener", "of the caller" },
        { "STREAMID", SRTO_STREAMID, "of the listener", "" },
        { "CONGESTION", SRTO_CONGESTION, "live", "file" },
        { "CONGESTION", SRTO_CONGESTION, "file", "file" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "", "fec,cols:10" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec,cols:10", "" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec", "fec,cols:10,rows:5" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec,cols:10,rows:5", "fec" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec,cols:10", "fec,cols:10" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec,cols:10", "fec,cols:20" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec,cols:10", "fec,cols:10,rows:5" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec,cols:10,arq:never", "fec,cols:10" },
        { "PACKETFILTER", SRTO_PACKETFILTER, "fec", "fec" },
    };
    for (int i = 0; i < COUNT(cases); i++) {
        SRTSOCKET listener = opened(NULL);
        SRTSOCKET caller = opened(NULL);
        SRTSOCKET accepted;
        const char *name = say("%s, listener \"%s\", caller \"%s\"", cases[i].name,
                               cases[i].listener, cases[i].caller);
        if (*cases[i].listener != '\0')
            set_string(listener, cases[i].option, cases[i].listener);
        if (*cases[i].caller != '\0')
            set_string(caller, cases[i].option, cases[i].caller);
        int result = connect_ends(listener, caller, &accepted);
        answer_state("srt_connect", name, result, caller);
        if (result == SRT_ERROR)
            value("srt_getrejectreason", name, "%d", srt_getrejectreason(caller));
        else
            value("srt_getsockflag", name, "accepted %s, caller %s, payload %d %d",
                  text_option(accepted, cases[i].option), text_option(caller, cases[i].option),
                  get_int(accepted, SRTO_PAYLOADSIZE), get_int(caller, SRTO_PAYLOADSIZE));
        close_ends(listener, caller, accepted);
    }
}

/* Each end knows the version of the other. */
static void versions(void)
{
    struct pair pair = connected(NULL, NULL);
    value("srt_getsockflag", "PEERVERSION and VERSION", "%s",
          get_int(pair.caller, SRTO_PEERVERSION) == get_int(pair.accepted, SRTO_VERSION)
          && get_int(pair.accepted, SRTO_PEERVERSION) == get_int(pair.caller, SRTO_VERSION)
          ? "equal" : "unequal");
    value("srt_getsockflag", "VERSION and srt_getversion", "%s",
          get_int(pair.caller, SRTO_VERSION) == (int)srt_getversion() ? "equal" : "unequal");
    value("srt_getsockflag", "ISN of both ends", "%s",
          get_int(pair.caller, SRTO_ISN) == get_int(pair.accepted, SRTO_ISN) ? "equal"
          : "unequal");
    close_pair(&pair);
}

int main(void)
{
    static section *const sections[] = { latencies, numbers, texts, versions };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
