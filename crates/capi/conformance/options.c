#include "options.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define UNUSED(number) { number, "unused", NUMBER }

const struct option options[64] = {
    { 0, "MSS", NUMBER },
    { 1, "SNDSYN", BOOLEAN },
    { 2, "RCVSYN", BOOLEAN },
    { 3, "ISN", NUMBER },
    { 4, "FC", NUMBER },
    { 5, "SNDBUF", NUMBER },
    { 6, "RCVBUF", NUMBER },
    { 7, "LINGER", LINGER },
    { 8, "UDP_SNDBUF", NUMBER },
    { 9, "UDP_RCVBUF", NUMBER },
    UNUSED(10),
    UNUSED(11),
    { 12, "RENDEZVOUS", BOOLEAN },
    { 13, "SNDTIMEO", NUMBER },
    { 14, "RCVTIMEO", NUMBER },
    { 15, "REUSEADDR", BOOLEAN },
    { 16, "MAXBW", WIDE },
    { 17, "STATE", NUMBER },
    { 18, "EVENT", NUMBER },
    { 19, "SNDDATA", NUMBER },
    { 20, "RCVDATA", NUMBER },
    { 21, "SENDER", BOOLEAN },
    { 22, "TSBPDMODE", BOOLEAN },
    { 23, "LATENCY", NUMBER },
    { 24, "INPUTBW", WIDE },
    { 25, "OHEADBW", NUMBER },
    { 26, "PASSPHRASE", TEXT },
    { 27, "PBKEYLEN", NUMBER },
    { 28, "KMSTATE", NUMBER },
    { 29, "IPTTL", NUMBER },
    { 30, "IPTOS", NUMBER },
    { 31, "TLPKTDROP", BOOLEAN },
    { 32, "SNDDROPDELAY", NUMBER },
    { 33, "NAKREPORT", BOOLEAN },
    { 34, "VERSION", NUMBER },
    { 35, "PEERVERSION", NUMBER },
    { 36, "CONNTIMEO", NUMBER },
    { 37, "DRIFTTRACER", BOOLEAN },
    { 38, "MININPUTBW", WIDE },
    UNUSED(39),
    { 40, "SNDKMSTATE", NUMBER },
    { 41, "RCVKMSTATE", NUMBER },
    { 42, "LOSSMAXTTL", NUMBER },
    { 43, "RCVLATENCY", NUMBER },
    { 44, "PEERLATENCY", NUMBER },
    { 45, "MINVERSION", NUMBER },
    { 46, "STREAMID", TEXT },
    { 47, "CONGESTION", TEXT },
    { 48, "MESSAGEAPI", BOOLEAN },
    { 49, "PAYLOADSIZE", NUMBER },
    { 50, "TRANSTYPE", NUMBER },
    { 51, "KMREFRESHRATE", NUMBER },
    { 52, "KMPREANNOUNCE", NUMBER },
    { 53, "ENFORCEDENCRYPTION", BOOLEAN },
    { 54, "IPV6ONLY", NUMBER },
    { 55, "PEERIDLETIMEO", NUMBER },
    { 56, "BINDTODEVICE", TEXT },
    { 57, "GROUPCONNECT", NUMBER },
    { 58, "GROUPMINSTABLETIMEO", NUMBER },
    { 59, "GROUPTYPE", NUMBER },
    { 60, "PACKETFILTER", TEXT },
    { 61, "RETRANSMITALGO", NUMBER },
    { 62, "CRYPTOMODE", NUMBER },
    { 63, "MAXREXMITBW", WIDE },
};

static int room(enum kind kind)
{
    switch (kind) {
    case BOOLEAN: return 1;
    case NUMBER: return sizeof(int);
    case WIDE: return sizeof(int64_t);
    case LINGER: return sizeof(struct linger);
    default: return 600;
    }
}

static const char *number_text(const struct option *option, const char *bytes)
{
    int number;
    memcpy(&number, bytes, sizeof number);
    if (option->number == SRTO_ISN)
        return number > 0 ? "4 bytes: >0" : say("4 bytes: %d", number);
    return say("4 bytes: %d", number);
}

static const char *text_of(const struct option *option, const char *bytes, int size)
{
    int64_t wide;
    struct linger linger;
    switch (size == room(option->kind) || option->kind == TEXT ? (int)option->kind : -1) {
    case BOOLEAN:
        return say("1 byte: %d", bytes[0]);
    case NUMBER:
        return number_text(option, bytes);
    case WIDE:
        memcpy(&wide, bytes, sizeof wide);
        return say("8 bytes: %lld", (long long)wide);
    case LINGER:
        memcpy(&linger, bytes, sizeof linger);
        return say("8 bytes: %d, %d s", linger.l_onoff, linger.l_linger);
    case TEXT:
        return say("%d bytes: \"%.100s\"", size, bytes);
    default:
        return say("%d bytes", size);
    }
}

const char *option_text(SRTSOCKET s, const struct option *option)
{
    char bytes[600];
    int size = room(option->kind);
    memset(bytes, 0, sizeof bytes);
    if (srt_getsockflag(s, (SRT_SOCKOPT)option->number, bytes, &size) == SRT_ERROR)
        return "-1";
    return text_of(option, bytes, size);
}

void get_row(const char *situation, SRTSOCKET s, const struct option *option)
{
    const char *key = say("%d %s, %s", option->number, option->name, situation);
    const char *text = option_text(s, option);
    const char *error = strcmp(text, "-1") == 0 ? last_error() : "-";
    row("srt_getsockflag", key, text, error, "-", "-");
}
