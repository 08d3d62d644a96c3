/* The values and lengths that each option takes on a fresh socket, and its value afterwards. */
#include "options.h"

#include <limits.h>
#include <string.h>
#include <sys/socket.h>

#define LIMITS INT_MIN, -2, -1, 0, 1, 2, INT_MAX

struct numbers {
    int option;
    int count;
    int values[16];
};

#define VALUES(...) COUNT(((int[]){ __VA_ARGS__ })), { __VA_ARGS__ }

static const struct numbers numbers[] = {
    { SRTO_MSS, VALUES(-1, 0, 1, 28, 32, 75, 76, 77, 1500, 1501, 9000, 65535, 65536) },
    { SRTO_FC, VALUES(LIMITS, 31, 32, 33, 25600) },
    { SRTO_SNDBUF, VALUES(LIMITS, 1471, 1472, 1473, 14720) },
    { SRTO_RCVBUF, VALUES(-1, 0, 1, 1472, 31 * 1472, 32 * 1472, 33 * 1472 + 5, 50000000) },
    { SRTO_UDP_SNDBUF, VALUES(-1, 0, 1, 1499, 1500, 65536) },
    { SRTO_UDP_RCVBUF, VALUES(-1, 0, 1, 1499, 1500, 65536) },
    { SRTO_SNDTIMEO, VALUES(LIMITS) },
    { SRTO_RCVTIMEO, VALUES(LIMITS) },
    { SRTO_LATENCY, VALUES(LIMITS, 65535, 65536) },
    { SRTO_RCVLATENCY, VALUES(LIMITS, 65535, 65536) },
    { SRTO_PEERLATENCY, VALUES(LIMITS, 65535, 65536) },
    { SRTO_OHEADBW, VALUES(-1, 0, 4, 5, 6, 100, 101, 1000) },
    { SRTO_PBKEYLEN, VALUES(-1, 0, 1, 8, 15, 16, 17, 24, 32, 33, 64) },
    { SRTO_IPTTL, VALUES(-2, -1, 0, 1, 64, 255, 256) },
    { SRTO_IPTOS, VALUES(-2, -1, 0, 1, 184, 255, 256) },
    { SRTO_SNDDROPDELAY, VALUES(LIMITS) },
    { SRTO_CONNTIMEO, VALUES(LIMITS) },
    { SRTO_LOSSMAXTTL, VALUES(LIMITS) },
    { SRTO_MINVERSION, VALUES(LIMITS, 0x010300, 0x010501) },
    { SRTO_PAYLOADSIZE, VALUES(-1, 0, 1, 1316, 1455, 1456, 1457, 1500) },
    { SRTO_KMREFRESHRATE, VALUES(LIMITS, 10) },
    { SRTO_KMPREANNOUNCE, VALUES(-1, 0, 1, 2047, 2048, 4096) },
    { SRTO_IPV6ONLY, VALUES(LIMITS) },
    { SRTO_PEERIDLETIMEO, VALUES(LIMITS) },
    { SRTO_GROUPCONNECT, VALUES(-1, 0, 1, 2) },
    { SRTO_GROUPMINSTABLETIMEO, VALUES(-1, 0, 59, 60, 1000) },
    { SRTO_RETRANSMITALGO, VALUES(-1, 0, 1, 2) },
    { SRTO_TRANSTYPE, VALUES(-1, 0, 1, 2, 3) },
    { 62, VALUES(-1, 0, 1, 2, 3) },
    { SRTO_ISN, VALUES(1) },
    { SRTO_STATE, VALUES(2) },
    { SRTO_EVENT, VALUES(1) },
    { SRTO_SNDDATA, VALUES(0) },
    { SRTO_RCVDATA, VALUES(0) },
    { SRTO_KMSTATE, VALUES(0) },
    { SRTO_SNDKMSTATE, VALUES(0) },
    { SRTO_RCVKMSTATE, VALUES(0) },
    { SRTO_VERSION, VALUES(0x010500) },
    { SRTO_PEERVERSION, VALUES(0x010500) },
    { SRTO_GROUPTYPE, VALUES(1) },
    { 10, VALUES(0) },
    { 11, VALUES(0) },
    { 39, VALUES(0) },
    { 64, VALUES(0) },
    { -1, VALUES(0) },
};

/* A number as one writes it. */
static const char *written(int64_t number)
{
    switch (number) {
    case INT_MIN: return "the least int";
    case INT_MAX: return "the greatest int";
    case INT64_MIN: return "the least int64";
    case INT64_MAX: return "the greatest int64";
    default: return say("%lld", (long long)number);
    }
}

static const char *name_of(int option)
{
    if (option < 0 || option >= COUNT(options) || strcmp(options[option].name, "unused") == 0)
        return say("number %d", option);
    return options[option].name;
}

/* Sets and reads back. */
static void try_on(SRTSOCKET s, int option, const char *situation, const void *bytes, int size)
{
    int result = srt_setsockflag(s, (SRT_SOCKOPT)option, bytes, size);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    const char *now = "no such option";
    if (option >= 0 && option < COUNT(options))
        now = option_text(s, &options[option]);
    row("srt_setsockflag", say("%s = %s", name_of(option), situation),
        say("%d, then %s", result, now), error, "-", "-");
}

static void try_new(int option, const char *situation, const void *bytes, int size)
{
    SRTSOCKET s = opened(NULL);
    try_on(s, option, situation, bytes, size);
    srt_close(s);
}

static void try_numbers(void)
{
    for (int i = 0; i < COUNT(numbers); i++)
        for (int j = 0; j < numbers[i].count; j++) {
            int number = numbers[i].values[j];
            try_new(numbers[i].option, written(number), &number, sizeof number);
        }
}

static void try_wide(void)
{
    static const int wide[] = { SRTO_MAXBW, SRTO_INPUTBW, SRTO_MININPUTBW, 63 };
    static const int64_t values[] = { INT64_MIN, -2, -1, 0, 1, 1000000, INT64_MAX };
    for (int i = 0; i < COUNT(wide); i++)
        for (int j = 0; j < COUNT(values); j++)
            try_new(wide[i], written(values[j]), &values[j], sizeof values[j]);
}

static void try_bools(void)
{
    static const int values[] = { -1, 0, 1, 2, 256, 65536 };
    for (int i = 0; i < COUNT(options); i++) {
        if (options[i].kind != BOOLEAN)
            continue;
        for (int j = 0; j < COUNT(values); j++)
            try_new(i, written(values[j]), &values[j], sizeof values[j]);
    }
}

static void try_linger(void)
{
    static const struct linger values[] = { { 0, 0 }, { 0, 5 }, { 1, 0 }, { 1, 5 }, { 2, 5 },
                                            { 1, -1 }, { -1, 3 } };
    for (int i = 0; i < COUNT(values); i++)
        try_new(SRTO_LINGER, say("{%d, %d}", values[i].l_onoff, values[i].l_linger), &values[i],
                sizeof values[i]);
}

/* Strings of every interesting length. */
static void try_text_lengths(void)
{
    static const struct numbers lengths[] = {
        { SRTO_PASSPHRASE, VALUES(0, 1, 9, 10, 79, 80, 81) },
        { SRTO_STREAMID, VALUES(0, 1, 3, 4, 511, 512, 513) },
        { SRTO_CONGESTION, VALUES(0, 1, 16, 17) },
        /* An empty one ends libsrt 1.5.1. */
        { SRTO_PACKETFILTER, VALUES(1, 512, 513) },
        { SRTO_BINDTODEVICE, VALUES(0, 1, 15, 16, 17) },
    };
    char bytes[600];
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < COUNT(lengths); i++)
        for (int j = 0; j < lengths[i].count; j++) {
            int length = lengths[i].values[j];
            try_new(lengths[i].option, say("%d times x", length), bytes, length);
        }
}

static void try_texts(void)
{
    static const struct { int option; const char *text; } texts[] = {
        { SRTO_CONGESTION, "live" },
        { SRTO_CONGESTION, "file" },
        { SRTO_CONGESTION, "LIVE" },
        { SRTO_CONGESTION, "vegas" },
        { SRTO_PACKETFILTER, "fec" },
        { SRTO_PACKETFILTER, "fec,cols:10" },
        { SRTO_PACKETFILTER, "fec,cols:10,rows:5" },
        { SRTO_PACKETFILTER, "fec,cols:10,rows:5,arq:never,layout:staircase" },
        { SRTO_PACKETFILTER, "fec,cols:10,rows:-5" },
        { SRTO_PACKETFILTER, "fec,cols:0" },
        { SRTO_PACKETFILTER, "fec,cols:1" },
        { SRTO_PACKETFILTER, "fec,cols:x" },
        { SRTO_PACKETFILTER, "fec,rows:5" },
        { SRTO_PACKETFILTER, "fec,cols:10,arq:sometimes" },
        { SRTO_PACKETFILTER, "fec,cols:10,layout:round" },
        { SRTO_PACKETFILTER, "fec,cols:10,colour:red" },
        { SRTO_PACKETFILTER, "fec,cols" },
        { SRTO_PACKETFILTER, "none" },
        { SRTO_PACKETFILTER, "adapter" },
        { SRTO_STREAMID, "#!::r=camera,m=publish" },
        { SRTO_BINDTODEVICE, "lo" },
    };
    for (int i = 0; i < COUNT(texts); i++)
        try_new(texts[i].option, texts[i].text, texts[i].text, (int)strlen(texts[i].text));
    try_new(SRTO_STREAMID, "a, NUL, b", "a\0b", 3);
    try_new(SRTO_STREAMID, "abc, NUL, NUL", "abc\0", 5);
    try_new(SRTO_PASSPHRASE, "ten with a NUL", "abcd\0efghi", 10);
}

/* The length that the caller states. */
static void try_sizes(void)
{
    static const int sizes[] = { -1, 0, 1, 2, 3, 4, 5, 8, 16 };
    char bytes[16] = { 1 };
    for (int i = 0; i < COUNT(sizes); i++) {
        const char *size = say("1 of %d bytes", sizes[i]);
        try_new(SRTO_TSBPDMODE, size, bytes, sizes[i]);
        try_new(SRTO_RENDEZVOUS, size, bytes, sizes[i]);
        try_new(SRTO_LATENCY, size, bytes, sizes[i]);
        try_new(SRTO_MAXBW, size, bytes, sizes[i]);
        try_new(SRTO_LINGER, size, bytes, sizes[i]);
        try_new(SRTO_TRANSTYPE, size, bytes, sizes[i]);
    }
}

/* Options whose values depend on each other. */
static void try_relations(void)
{
    SRTSOCKET s = opened(NULL);
    set_int(s, SRTO_LATENCY, 77);
    value("srt_getsockflag", "after LATENCY = 77", "%d %d", get_int(s, SRTO_RCVLATENCY),
          get_int(s, SRTO_PEERLATENCY));
    set_int(s, SRTO_RCVLATENCY, 55);
    value("srt_getsockflag", "LATENCY after RCVLATENCY = 55", "%d", get_int(s, SRTO_LATENCY));
    set_int(s, SRTO_FC, 100);
    value("srt_getsockflag", "RCVBUF after FC = 100", "%d", get_int(s, SRTO_RCVBUF));
    set_int(s, SRTO_RCVBUF, 200 * 1472);
    value("srt_getsockflag", "RCVBUF of 200 packets after FC = 100", "%d",
          get_int(s, SRTO_RCVBUF));
    set_int(s, SRTO_MSS, 1000);
    value("srt_getsockflag", "buffers after MSS = 1000", "%d %d %d", get_int(s, SRTO_RCVBUF),
          get_int(s, SRTO_SNDBUF), get_int(s, SRTO_PAYLOADSIZE));
    answer("srt_setsockflag", "PAYLOADSIZE = 1400 after MSS = 1000",
           set_int(s, SRTO_PAYLOADSIZE, 1400));
    s = opened(NULL);
    answer("srt_setsockflag", "KMREFRESHRATE = 1000", set_int(s, SRTO_KMREFRESHRATE, 1000));
    value("srt_getsockflag", "KMPREANNOUNCE after KMREFRESHRATE = 1000", "%d",
          get_int(s, SRTO_KMPREANNOUNCE));
    answer("srt_setsockflag", "KMPREANNOUNCE = 499 of 1000", set_int(s, SRTO_KMPREANNOUNCE, 499));
    answer("srt_setsockflag", "KMPREANNOUNCE = 500 of 1000", set_int(s, SRTO_KMPREANNOUNCE, 500));
    answer("srt_setsockflag", "KMREFRESHRATE = 100 after KMPREANNOUNCE = 499",
           set_int(s, SRTO_KMREFRESHRATE, 100));
    value("srt_getsockflag", "KMPREANNOUNCE after KMREFRESHRATE = 100", "%d",
          get_int(s, SRTO_KMPREANNOUNCE));
    s = opened(NULL);
    answer("srt_setsockflag", "PACKETFILTER with PAYLOADSIZE = 1456",
           (set_int(s, SRTO_PAYLOADSIZE, 1456), set_string(s, SRTO_PACKETFILTER, "fec,cols:10")));
    s = opened(NULL);
    answer("srt_setsockflag", "PAYLOADSIZE = 1456 with PACKETFILTER",
           (set_string(s, SRTO_PACKETFILTER, "fec,cols:10"), set_int(s, SRTO_PAYLOADSIZE, 1456)));
    s = opened(as_stream);
    answer("srt_setsockflag", "PAYLOADSIZE = 1457 for files", set_int(s, SRTO_PAYLOADSIZE, 1457));
    answer("srt_setsockflag", "SENDER = 1 with level 5",
           srt_setsockopt(s, 5, SRTO_SENDER, &(int){ 1 }, sizeof(int)));
    answer("srt_setsockflag", "unknown socket", set_int(12345, SRTO_MSS, 1500));
    answer("srt_setsockflag", "socket -1", set_int(-1, SRTO_MSS, 1500));
    answer("srt_setsockflag", "socket 0", set_int(0, SRTO_MSS, 1500));
}

int main(void)
{
    program_start();
    try_numbers();
    try_wide();
    try_bools();
    try_linger();
    try_text_lengths();
    try_texts();
    try_sizes();
    try_relations();
    return program_end();
}
