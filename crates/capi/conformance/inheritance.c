/* The options that an accepted socket takes over from its listener. */
#include "options.h"

#include <string.h>
#include <sys/socket.h>

/* Values that no default equals. */
static void unusual(SRTSOCKET s)
{
    static const struct { SRT_SOCKOPT option; int number; } numbers[] = {
        { SRTO_MSS, 1400 }, { SRTO_FC, 20000 }, { SRTO_SNDBUF, 1000 * 1372 },
        { SRTO_RCVBUF, 2000 * 1372 }, { SRTO_UDP_SNDBUF, 70000 }, { SRTO_UDP_RCVBUF, 80000 },
        { SRTO_SNDTIMEO, 1234 }, { SRTO_RCVTIMEO, 2345 }, { SRTO_RCVLATENCY, 130 },
        { SRTO_PEERLATENCY, 140 }, { SRTO_OHEADBW, 30 }, { SRTO_PBKEYLEN, 32 },
        { SRTO_IPTTL, 60 }, { SRTO_IPTOS, 184 }, { SRTO_TLPKTDROP, 0 },
        { SRTO_SNDDROPDELAY, 100 }, { SRTO_NAKREPORT, 0 }, { SRTO_CONNTIMEO, 2500 },
        { SRTO_DRIFTTRACER, 0 }, { SRTO_LOSSMAXTTL, 12 }, { SRTO_MINVERSION, 0x010200 },
        { SRTO_PAYLOADSIZE, 1200 }, { SRTO_KMREFRESHRATE, 100000 },
        { SRTO_KMPREANNOUNCE, 1000 }, { SRTO_ENFORCEDENCRYPTION, 0 },
        { SRTO_PEERIDLETIMEO, 4000 }, { SRTO_RETRANSMITALGO, 0 }, { SRTO_SENDER, 1 },
        { SRTO_SNDSYN, 0 },
    };
    static const SRT_SOCKOPT wide[] = { SRTO_MAXBW, SRTO_INPUTBW, SRTO_MININPUTBW };
    static const struct linger linger = { 1, 7 };
    for (int i = 0; i < COUNT(numbers); i++)
        set_int(s, numbers[i].option, numbers[i].number);
    for (int i = 0; i < COUNT(wide); i++)
        srt_setsockflag(s, wide[i], &(int64_t){ 12345678 + i }, sizeof(int64_t));
    srt_setsockflag(s, SRTO_LINGER, &linger, sizeof linger);
    set_string(s, SRTO_STREAMID, "the listener's");
    set_string(s, SRTO_PASSPHRASE, "correct horse");
}

static void read_all(const char *who, SRTSOCKET s)
{
    for (int i = 0; i < COUNT(options); i++)
        get_row(who, s, &options[i]);
}

static void unusual_caller(SRTSOCKET s)
{
    set_string(s, SRTO_STREAMID, "the caller's");
    set_string(s, SRTO_PASSPHRASE, "correct horse");
}

/* Options that the listener gets after it listens. */
static void late_options(void)
{
    SRTSOCKET listener = listening(NULL);
    SRTSOCKET caller = opened(NULL);
    set_int(listener, SRTO_SNDTIMEO, 777);
    set_int(listener, SRTO_LOSSMAXTTL, 33);
    set_bool(listener, SRTO_SNDSYN, 0);
    call(caller, port_of(listener));
    SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
    value("srt_getsockflag", "set while listening: SNDTIMEO LOSSMAXTTL SNDSYN", "%d %d %d",
          get_int(accepted, SRTO_SNDTIMEO), get_int(accepted, SRTO_LOSSMAXTTL),
          get_int(accepted, SRTO_SNDSYN));
    set_int(listener, SRTO_SNDTIMEO, 888);
    value("srt_getsockflag", "set after the call: SNDTIMEO", "%d",
          get_int(accepted, SRTO_SNDTIMEO));
    srt_close(caller);
    srt_close(listener);
}

int main(void)
{
    program_start();
    struct pair pair = just_connected(unusual_caller, unusual);
    read_all("unusual listener", pair.listener);
    read_all("accepted", pair.accepted);
    read_all("caller", pair.caller);
    close_pair(&pair);
    late_options();
    return program_end();
}
