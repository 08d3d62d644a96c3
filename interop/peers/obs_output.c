/* A sender that makes the calls of OBS's SRT output, in its order: OBS itself needs a display. It
 * sends its standard input in packets of 1316 bytes, and ends with it.
 *
 *     obs_output caller|listener PORT [KEY=VALUE]...
 *
 * The keys: latency (in microseconds, as OBS takes it), passphrase, pbkeylen, streamid, and
 * waits=out for a listener that waits as OBS 29 does (out) instead of as later ones do (in).
 * Prints "listening", "stream id: [...], length N", "connected"; once a second "rtt: MS" with the
 * momentary numbers; at the end "summary: ..." with the totals. If it fails it prints
 * "failed: WHY" and its code is 1.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <srt/srt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 1316, POLL_MS = 100, STREAM_ID_MAX = 512 };

struct settings {
    bool listens;
    const char *port;
    bool waits_for_out;
    int64_t latency_us;
    const char *passphrase;
    int key_length;
    const char *stream_id;
};

/* OBS clears its settings before it sets most of them to -1, which means "leave it". These it
 * forgets, so they are set to zero. */
static const SRT_SOCKOPT FORGOTTEN[] = {
    SRTO_ENFORCEDENCRYPTION,
    SRTO_KMREFRESHRATE,
    SRTO_KMPREANNOUNCE,
    SRTO_SNDDROPDELAY,
};

/* Says why the last call failed. */
static int failed(const char *call)
{
    int system_error = 0;
    int code = srt_getlasterror(&system_error);
    printf("failed: %s: %d, %s (system error %d)\n", call, code, srt_getlasterror_str(),
           system_error);
    return -1;
}

/* Says why a socket is not connected. A call that does not block leaves no error behind. */
static int broken(SRTSOCKET s)
{
    int reason = srt_getrejectreason(s);
    int state = srt_getsockstate(s);
    if (reason == SRT_REJ_BADSECRET)
        printf("failed: wrong password\n");
    else
        printf("failed: state %d, reason %d, %s\n", state, reason, srt_rejectreason_str(reason));
    return -1;
}

static int set(SRTSOCKET s, SRT_SOCKOPT option, const void *value, size_t size)
{
    if (srt_setsockopt(s, 0, option, value, (int)size) >= 0)
        return 0;
    printf("option %d: ", option);
    return failed("srt_setsockopt");
}

static int set_int(SRTSOCKET s, SRT_SOCKOPT option, int value)
{
    return set(s, option, &value, sizeof value);
}

static int set_text(SRTSOCKET s, SRT_SOCKOPT option, const char *text)
{
    return text == NULL ? 0 : set(s, option, text, strlen(text));
}

static int set_before_connecting(SRTSOCKET s, const struct settings *is)
{
    int result = set_int(s, SRTO_TRANSTYPE, SRTT_LIVE);
    if (result == 0 && is->key_length >= 0)
        result = set_int(s, SRTO_PBKEYLEN, is->key_length);
    if (result == 0)
        result = set_text(s, SRTO_PASSPHRASE, is->passphrase);
    for (size_t i = 0; result == 0 && i < sizeof FORGOTTEN / sizeof *FORGOTTEN; i++)
        result = set_int(s, FORGOTTEN[i], 0);
    if (result == 0 && is->latency_us >= 0)
        result = set_int(s, SRTO_LATENCY, (int)(is->latency_us / 1000));
    if (result == 0)
        result = set_text(s, SRTO_STREAMID, is->stream_id);
    if (result == 0)
        result = set_int(s, SRTO_PAYLOADSIZE, PACKET);
    if (result == 0)
        result = set_int(s, SRTO_SENDER, 1);
    return result;
}

static int set_after_connecting(SRTSOCKET s)
{
    int64_t input_bandwidth = 0;
    int result = set(s, SRTO_INPUTBW, &input_bandwidth, sizeof input_bandwidth);
    return result == 0 ? set_int(s, SRTO_OHEADBW, 25) : result;
}

static void never_block(SRTSOCKET s)
{
    if (set_int(s, SRTO_SNDSYN, 0) == 0)
        set_int(s, SRTO_RCVSYN, 0);
}

static int subscribe(SRTSOCKET s, bool to_write)
{
    int events = SRT_EPOLL_ERR | (to_write ? SRT_EPOLL_OUT : SRT_EPOLL_IN);
    int set = srt_epoll_create();
    if (set < 0 || srt_epoll_add_usock(set, s, &events) < 0)
        return failed("srt_epoll_add_usock");
    return set;
}

/* Waits in small steps, between which OBS looks whether it is to stop. The arrays have one place
 * each: an error shows as a count in the array that is not asked for. */
static int wait_for(SRTSOCKET s, int set, bool to_write)
{
    for (;;) {
        SRTSOCKET ready[1] = {SRT_INVALID_SOCK};
        SRTSOCKET error[1] = {SRT_INVALID_SOCK};
        int readies = 1, errors = 1;
        int count = to_write ? srt_epoll_wait(set, error, &errors, ready, &readies, POLL_MS, NULL,
                                              NULL, NULL, NULL)
                             : srt_epoll_wait(set, ready, &readies, error, &errors, POLL_MS, NULL,
                                              NULL, NULL, NULL);
        if (count >= 0 && errors == 0 && ready[0] == s)
            return 0;
        if (count >= 0)
            return broken(s);
        if (srt_getlasterror(NULL) != SRT_ETIMEOUT)
            return failed("srt_epoll_wait");
    }
}

/* Takes one caller, and closes the listener. */
static SRTSOCKET take_caller(SRTSOCKET listener, const struct settings *is,
                             const struct addrinfo *at)
{
    char id[STREAM_ID_MAX + 1];
    int length = sizeof id;
    int set = subscribe(listener, is->waits_for_out);
    SRTSOCKET caller;
    if (set < 0)
        return SRT_INVALID_SOCK;
    set_int(listener, SRTO_REUSEADDR, 1);
    if (srt_bind(listener, at->ai_addr, (int)at->ai_addrlen) != 0 || srt_listen(listener, 1) != 0) {
        failed("srt_listen");
        return SRT_INVALID_SOCK;
    }
    printf("listening\n");
    if (wait_for(listener, set, is->waits_for_out) != 0)
        return SRT_INVALID_SOCK;
    caller = srt_accept(listener, NULL, NULL);
    if (caller < 0) {
        failed("srt_accept");
        return SRT_INVALID_SOCK;
    }
    never_block(caller);
    if (srt_getsockopt(caller, 0, SRTO_STREAMID, id, &length) == 0)
        printf("stream id: [%s], length %d\n", id, length);
    srt_epoll_release(set);
    srt_close(listener);
    return caller;
}

static int call(SRTSOCKET s, const struct addrinfo *at)
{
    int set = subscribe(s, true);
    if (set < 0)
        return -1;
    if (srt_connect(s, at->ai_addr, (int)at->ai_addrlen) < 0)
        return failed("srt_connect");
    if (wait_for(s, set, true) != 0)
        return -1;
    srt_epoll_release(set);
    return srt_getsockstate(s) == SRTS_CONNECTED ? 0 : broken(s);
}

/* A connected socket that never blocks. */
static SRTSOCKET open_stream(const struct settings *is)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *at;
    int size = 0, length = sizeof size;
    SRTSOCKET s;
    if (is->listens)
        hints.ai_flags = AI_PASSIVE;
    if (getaddrinfo(is->listens ? NULL : "127.0.0.1", is->port, &hints, &at) != 0)
        return SRT_INVALID_SOCK;
    s = srt_create_socket();
    if (s < 0 || set_before_connecting(s, is) != 0)
        return SRT_INVALID_SOCK;
    never_block(s);
    if (is->listens)
        s = take_caller(s, is, at);
    else if (call(s, at) != 0)
        s = SRT_INVALID_SOCK;
    freeaddrinfo(at);
    if (s == SRT_INVALID_SOCK || set_after_connecting(s) != 0)
        return SRT_INVALID_SOCK;
    if (srt_getsockopt(s, 0, SRTO_PAYLOADSIZE, &size, &length) < 0 || size != PACKET) {
        printf("failed: payload size %d of %d bytes\n", size, length);
        return SRT_INVALID_SOCK;
    }
    return s;
}

/* OBS does this once a minute. */
static void print_momentary(SRTSOCKET s)
{
    SRT_TRACEBSTATS now;
    if (srt_bistats(s, &now, 0, 1) == 0)
        printf("rtt: %.2f bandwidth: %.1f send buffer: %d bytes %d ms\n", now.msRTT,
               now.mbpsBandwidth, now.byteSndBuf, now.msSndBuf);
}

static int print_summary(SRTSOCKET s)
{
    SRT_TRACEBSTATS all;
    memset(&all, 0, sizeof all);
    if (srt_bstats(s, &all, 1) != 0)
        return failed("srt_bstats");
    printf("summary: ms=%lld mbps=%.2f packets=%lld bytes=%llu retransmitted=%d "
           "retransmitted_bytes=%llu lost=%d dropped=%d acks=%d naks=%d\n",
           (long long)all.msTimeStamp, all.mbpsSendRate, (long long)all.pktSentTotal,
           (unsigned long long)all.byteSentTotal, all.pktRetransTotal,
           (unsigned long long)all.byteRetransTotal, all.pktSndLossTotal, all.pktSndDropTotal,
           all.pktRecvACKTotal, all.pktRecvNAKTotal);
    return 0;
}

/* Reads a whole packet from standard input unless it ends before. */
static int read_packet(char *packet)
{
    int size = 0;
    while (size < PACKET) {
        ssize_t more = read(STDIN_FILENO, packet + size, (size_t)(PACKET - size));
        if (more <= 0)
            break;
        size += (int)more;
    }
    return size;
}

static int send_all(SRTSOCKET s)
{
    char packet[PACKET];
    time_t said = time(NULL);
    int set = subscribe(s, true);
    int size;
    if (set < 0)
        return -1;
    while ((size = read_packet(packet)) > 0) {
        if (wait_for(s, set, true) != 0)
            return -1;
        if (srt_send(s, packet, size) < 0)
            return failed("srt_send");
        if (time(NULL) != said) {
            said = time(NULL);
            print_momentary(s);
        }
    }
    print_summary(s);
    srt_epoll_release(set);
    return srt_close(s);
}

static int parse(struct settings *is, int count, char **words)
{
    if (count < 3)
        return -1;
    is->listens = strcmp(words[1], "listener") == 0;
    is->port = words[2];
    is->latency_us = -1;
    is->key_length = -1;
    for (int i = 3; i < count; i++) {
        char *value = strchr(words[i], '=');
        if (value == NULL)
            return -1;
        *value++ = '\0';
        if (strcmp(words[i], "latency") == 0)
            is->latency_us = atoll(value);
        else if (strcmp(words[i], "passphrase") == 0)
            is->passphrase = value;
        else if (strcmp(words[i], "pbkeylen") == 0)
            is->key_length = atoi(value);
        else if (strcmp(words[i], "streamid") == 0)
            is->stream_id = value;
        else if (strcmp(words[i], "waits") == 0)
            is->waits_for_out = strcmp(value, "out") == 0;
        else
            return -1;
    }
    return 0;
}

int main(int count, char **words)
{
    struct settings is = {0};
    SRTSOCKET s;
    int result = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (parse(&is, count, words) != 0) {
        printf("usage: obs_output caller|listener PORT [KEY=VALUE]...\n");
        return 64;
    }
    if (srt_startup() < 0)
        return 1;
    s = open_stream(&is);
    if (s != SRT_INVALID_SOCK) {
        printf("connected\n");
        result = send_all(s) == 0 ? 0 : 1;
    }
    srt_cleanup();
    return result;
}
