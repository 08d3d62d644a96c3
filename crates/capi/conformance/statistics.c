/* Statistics: the counters after known traffic, clearing, the states in which they can be read. */
#include "common.h"

#include <math.h>
#include <string.h>

#define MESSAGES 20

enum counts { EXACT, POSITIVE };

/* Integers are shown as they are, or only whether they are positive. */
struct field {
    const char *name;
    size_t offset;
    size_t size;
    enum counts shown;
};

#define FIELD(name, shown) \
    { #name, offsetof(SRT_TRACEBSTATS, name), sizeof(((SRT_TRACEBSTATS *)0)->name), shown }

static const struct field fields[] = {
    FIELD(msTimeStamp, POSITIVE),
    FIELD(pktSentTotal, EXACT), FIELD(pktRecvTotal, EXACT), FIELD(pktSndLossTotal, EXACT),
    FIELD(pktRcvLossTotal, EXACT), FIELD(pktRetransTotal, EXACT),
    FIELD(pktSentACKTotal, POSITIVE), FIELD(pktRecvACKTotal, POSITIVE),
    FIELD(pktSentNAKTotal, EXACT), FIELD(pktRecvNAKTotal, EXACT),
    FIELD(usSndDurationTotal, POSITIVE), FIELD(pktSndDropTotal, EXACT),
    FIELD(pktRcvDropTotal, EXACT), FIELD(pktRcvUndecryptTotal, EXACT),
    FIELD(byteSentTotal, EXACT), FIELD(byteRecvTotal, EXACT), FIELD(byteRcvLossTotal, EXACT),
    FIELD(byteRetransTotal, EXACT), FIELD(byteSndDropTotal, EXACT),
    FIELD(byteRcvDropTotal, EXACT), FIELD(byteRcvUndecryptTotal, EXACT),
    FIELD(pktSent, EXACT), FIELD(pktRecv, EXACT), FIELD(pktSndLoss, EXACT),
    FIELD(pktRcvLoss, EXACT), FIELD(pktRetrans, EXACT), FIELD(pktRcvRetrans, EXACT),
    FIELD(pktSentACK, POSITIVE), FIELD(pktRecvACK, POSITIVE), FIELD(pktSentNAK, EXACT),
    FIELD(pktRecvNAK, EXACT), FIELD(usSndDuration, POSITIVE),
    FIELD(pktReorderDistance, EXACT), FIELD(pktRcvBelated, EXACT), FIELD(pktSndDrop, EXACT),
    FIELD(pktRcvDrop, EXACT), FIELD(pktRcvUndecrypt, EXACT), FIELD(byteSent, EXACT),
    FIELD(byteRecv, EXACT), FIELD(byteRcvLoss, EXACT), FIELD(byteRetrans, EXACT),
    FIELD(byteSndDrop, EXACT), FIELD(byteRcvDrop, EXACT), FIELD(byteRcvUndecrypt, EXACT),
    FIELD(pktFlowWindow, EXACT), FIELD(pktCongestionWindow, EXACT),
    FIELD(pktFlightSize, EXACT), FIELD(byteAvailSndBuf, EXACT), FIELD(byteAvailRcvBuf, EXACT),
    FIELD(byteMSS, EXACT), FIELD(pktSndBuf, EXACT), FIELD(byteSndBuf, EXACT),
    FIELD(msSndBuf, EXACT), FIELD(msSndTsbPdDelay, EXACT), FIELD(pktRcvBuf, EXACT),
    FIELD(byteRcvBuf, EXACT), FIELD(msRcvBuf, EXACT), FIELD(msRcvTsbPdDelay, EXACT),
    FIELD(pktSndFilterExtraTotal, EXACT), FIELD(pktRcvFilterExtraTotal, EXACT),
    FIELD(pktRcvFilterSupplyTotal, EXACT), FIELD(pktRcvFilterLossTotal, EXACT),
    FIELD(pktSndFilterExtra, EXACT), FIELD(pktRcvFilterExtra, EXACT),
    FIELD(pktRcvFilterSupply, EXACT), FIELD(pktRcvFilterLoss, EXACT),
    FIELD(pktReorderTolerance, EXACT), FIELD(pktSentUniqueTotal, EXACT),
    FIELD(pktRecvUniqueTotal, EXACT), FIELD(byteSentUniqueTotal, EXACT),
    FIELD(byteRecvUniqueTotal, EXACT), FIELD(pktSentUnique, EXACT),
    FIELD(pktRecvUnique, EXACT), FIELD(byteSentUnique, EXACT), FIELD(byteRecvUnique, EXACT),
};

struct real {
    const char *name;
    size_t offset;
};

#define REAL(name) { #name, offsetof(SRT_TRACEBSTATS, name) }

static const struct real reals[] = {
    REAL(mbpsSendRate), REAL(mbpsRecvRate), REAL(pktRcvAvgBelatedTime), REAL(usPktSndPeriod),
    REAL(msRTT), REAL(mbpsMaxBW),
};

static void show_integers(const char *situation, const SRT_TRACEBSTATS *stats)
{
    for (int i = 0; i < COUNT(fields); i++) {
        int64_t number = 0;
        int small = 0;
        const char *at = (const char *)stats + fields[i].offset;
        if (fields[i].size == sizeof small) {
            memcpy(&small, at, sizeof small);
            number = small;
        } else {
            memcpy(&number, at, sizeof number);
        }
        const char *text = fields[i].shown == EXACT ? say("%lld", (long long)number)
            : number > 0 ? ">0" : number == 0 ? "0" : "<0";
        value("srt_bistats", say("%s, %s", fields[i].name, situation), "%s", text);
    }
}

static void show_reals(const char *situation, const SRT_TRACEBSTATS *stats)
{
    for (int i = 0; i < COUNT(reals); i++) {
        double number;
        memcpy(&number, (const char *)stats + reals[i].offset, sizeof number);
        value("srt_bistats", say("%s, %s", reals[i].name, situation), "%s",
              isnan(number) ? "NaN" : number > 0 ? ">0" : number < 0 ? "<0" : "0");
    }
}

static void show(const char *situation, SRTSOCKET s, int clear)
{
    SRT_TRACEBSTATS stats;
    memset(&stats, 0x5a, sizeof stats);
    answer("srt_bistats", situation, srt_bistats(s, &stats, clear, 1));
    show_integers(situation, &stats);
    show_reals(situation, &stats);
}

static void short_latency(SRTSOCKET s)
{
    set_int(s, SRTO_LATENCY, 50);
}

static void exchange(struct pair *pair)
{
    for (int i = 0; i < MESSAGES; i++)
        srt_sendmsg(pair->caller, "x", 1, -1, 1);
    for (int i = 0; i < MESSAGES; i++)
        srt_recvmsg(pair->accepted, (char[1456]){ 0 }, 1456);
    /* The last acknowledgement comes. */
    pause_ms(200);
}

static void live(void)
{
    struct pair pair = connected(short_latency, short_latency);
    show("before, caller", pair.caller, 0);
    /* Later it is an estimate, if there is one yet. */
    SRT_TRACEBSTATS stats;
    srt_bistats(pair.caller, &stats, 0, 1);
    value("srt_bistats", "mbpsBandwidth, before, caller", "%s",
          stats.mbpsBandwidth > 0 ? ">0" : "0");
    exchange(&pair);
    show("20 messages of 1 byte, sender", pair.caller, 0);
    show("20 messages of 1 byte, receiver", pair.accepted, 1);
    pause_ms(20);
    show("cleared, receiver", pair.accepted, 0);
    exchange(&pair);
    show("20 messages of 1 byte more, receiver", pair.accepted, 0);
    close_pair(&pair);
}

/* Messages that wait in the buffers. */
static void waiting(void)
{
    struct pair pair = connected(NULL, NULL);
    SRT_TRACEBSTATS stats;
    set_int(pair.accepted, SRTO_RCVSYN, 0);
    for (int i = 0; i < 5; i++)
        srt_sendmsg(pair.caller, (char[100]){ 0 }, 100, -1, 1);
    pause_ms(60);
    srt_bistats(pair.accepted, &stats, 0, 1);
    value("srt_bistats", "5 messages of 100 wait, receiver", "%d packets, %d bytes",
          stats.pktRcvBuf, stats.byteRcvBuf);
    value("srt_bistats", "5 messages of 100 wait, free", "%d", stats.byteAvailRcvBuf);
    srt_bistats(pair.caller, &stats, 0, 1);
    value("srt_bistats", "5 messages of 100 were sent, sender", "%d packets, %d bytes, %d ms",
          stats.pktSndBuf, stats.byteSndBuf, stats.msSndBuf);
    close_pair(&pair);
}

static void narrow(SRTSOCKET s)
{
    as_stream(s);
    set_int(s, SRTO_FC, 32);
    set_int(s, SRTO_SNDBUF, 40 * 1472);
    set_int(s, SRTO_RCVBUF, 32 * 1472);
}

/* Whether the mean of the send buffer is what it holds now, or how it differs. */
static const char *mean_beside_present(SRTSOCKET s)
{
    SRT_TRACEBSTATS mean;
    SRT_TRACEBSTATS present;
    srt_bstats(s, &mean, 0);
    srt_bistats(s, &present, 0, 1);
    return mean.pktSndBuf == present.pktSndBuf && mean.byteSndBuf == present.byteSndBuf
        ? "the same" : mean.pktSndBuf > present.pktSndBuf ? "more" : "less";
}

/* Whether the mean and the present room of the send buffer differ as its packets do. */
static const char *room_beside_mean(SRTSOCKET s)
{
    SRT_TRACEBSTATS mean;
    SRT_TRACEBSTATS present;
    srt_bstats(s, &mean, 0);
    srt_bistats(s, &present, 0, 1);
    int less = present.byteAvailSndBuf - mean.byteAvailSndBuf;
    return less == (mean.pktSndBuf - present.pktSndBuf) * present.byteMSS ? "as the packets"
        : say("by %d", less);
}

/* The buffers of a stream that nobody reads, and that is then read. */
static void means(void)
{
    static char bytes[100000];
    struct pair pair = connected(narrow, narrow);
    SRT_TRACEBSTATS stats;
    set_bool(pair.caller, SRTO_SNDSYN, 0);
    fill(pair.caller, bytes, 1456);
    pause_ms(1200);
    value("srt_bstats", "full for 1.2 s, mean and present buffer", "%s",
          mean_beside_present(pair.caller));
    srt_bistats(pair.caller, &stats, 0, 1);
    value("srt_bistats", "full, sender", "%d packets, %d bytes, free %s", stats.pktSndBuf,
          stats.byteSndBuf, stats.byteAvailSndBuf > 1500 ? "some" : "none");
    set_bool(pair.accepted, SRTO_RCVSYN, 0);
    for (double end = now_ms() + LONG_MS; now_ms() < end && stats.pktSndBuf > 0;) {
        if (srt_recv(pair.accepted, bytes, sizeof bytes) <= 0)
            pause_ms(2);
        srt_bistats(pair.caller, &stats, 0, 1);
    }
    value("srt_bstats", "just empty, mean and present buffer", "%s",
          mean_beside_present(pair.caller));
    value("srt_bstats", "just empty, mean and present room", "%s", room_beside_mean(pair.caller));
    pause_ms(1200);
    value("srt_bstats", "empty for 1.2 s, mean and present buffer", "%s",
          mean_beside_present(pair.caller));
    close_pair(&pair);
}

static void failures(void)
{
    SRT_TRACEBSTATS stats;
    struct pair pair = connected(short_latency, short_latency);
    answer("srt_bstats", "unknown socket", srt_bstats(12345, &stats, 0));
    answer("srt_bstats", "opened", srt_bstats(opened(NULL), &stats, 0));
    answer("srt_bstats", "bound", srt_bstats(bound(NULL), &stats, 0));
    answer("srt_bstats", "listening", srt_bstats(pair.listener, &stats, 0));
    answer("srt_bstats", "connected", srt_bstats(pair.caller, &stats, 0));
    answer("srt_bistats", "connected, clear and instantaneous",
           srt_bistats(pair.caller, &stats, 1, 1));
    srt_close(pair.caller);
    wait_state(pair.accepted, SRTS_BROKEN, LONG_MS);
    answer("srt_bstats", "broken", srt_bstats(pair.accepted, &stats, 0));
    answer("srt_bstats", "closed", srt_bstats(pair.caller, &stats, 0));
    close_pair(&pair);
}

/* Rates that the options set. */
static void bandwidth(void)
{
    struct pair pair = connected(short_latency, short_latency);
    SRT_TRACEBSTATS stats;
    srt_bstats(pair.caller, &stats, 0);
    value("srt_bstats", "mbpsMaxBW, MAXBW -1", "%.3f", stats.mbpsMaxBW);
    srt_setsockflag(pair.caller, SRTO_MAXBW, &(int64_t){ 1000000 }, sizeof(int64_t));
    srt_bstats(pair.caller, &stats, 0);
    value("srt_bstats", "mbpsMaxBW, MAXBW 1000000", "%.3f", stats.mbpsMaxBW);
    srt_setsockflag(pair.caller, SRTO_MAXBW, &(int64_t){ 0 }, sizeof(int64_t));
    srt_setsockflag(pair.caller, SRTO_INPUTBW, &(int64_t){ 1000000 }, sizeof(int64_t));
    set_int(pair.caller, SRTO_OHEADBW, 50);
    srt_bstats(pair.caller, &stats, 0);
    value("srt_bstats", "mbpsMaxBW, INPUTBW 1000000, OHEADBW 50", "%.3f", stats.mbpsMaxBW);
    close_pair(&pair);
}

static void stream(void)
{
    struct pair pair = connected(as_stream, as_stream);
    SRT_TRACEBSTATS stats;
    static char bytes[14560];
    int got = 0;
    srt_send(pair.caller, bytes, sizeof bytes);
    while (got < (int)sizeof bytes) {
        int part = srt_recv(pair.accepted, bytes, sizeof bytes);
        if (part <= 0)
            break;
        got += part;
    }
    pause_ms(200);
    srt_bistats(pair.caller, &stats, 0, 1);
    value("srt_bistats", "stream of 14560 bytes, sender", "%lld packets, %llu bytes",
          (long long)stats.pktSentUniqueTotal, (unsigned long long)stats.byteSentUniqueTotal);
    value("srt_bistats", "stream of 14560 bytes, msSndTsbPdDelay msRcvTsbPdDelay", "%d %d",
          stats.msSndTsbPdDelay, stats.msRcvTsbPdDelay);
    srt_bistats(pair.accepted, &stats, 0, 1);
    value("srt_bistats", "stream of 14560 bytes, receiver", "%lld packets, %llu bytes",
          (long long)stats.pktRecvUniqueTotal, (unsigned long long)stats.byteRecvUniqueTotal);
    close_pair(&pair);
}

int main(void)
{
    static section *const sections[] = {
        live, waiting, means, failures, bandwidth, stream,
    };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
