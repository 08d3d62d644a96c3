/* The sending side: callers that send paced messages in turn. */
#include "bench.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sender {
    const struct options *options;
    SRTSOCKET *sockets;
    uint64_t sent;
};

static void connect_all(struct sender *sender);
static SRTSOCKET start_call(const struct options *options, int index);
static void send_paced(struct sender *sender);
static void drain(const struct sender *sender);
static void report(const struct sender *sender, double seconds);

int run_sender(const struct options *options)
{
    struct sender sender = {.options = options};
    sender.sockets = calloc((size_t)options->streams, sizeof *sender.sockets);
    connect_all(&sender);
    printf("started\n");
    fflush(stdout);

    uint64_t start = now_ns();
    if (options->rate > 0)
        send_paced(&sender);
    else
        sleep_until(start + (uint64_t)(options->seconds * 1e9));
    double seconds = (double)(now_ns() - start) / 1e9;

    drain(&sender);
    report(&sender, seconds);
    for (int i = 0; i < options->streams; i++)
        srt_close(sender.sockets[i]);
    free(sender.sockets);
    return 0;
}

/* Calls without waiting, then waits for all: hundreds of calls take the time of a few. */
static void connect_all(struct sender *sender)
{
    const struct options *options = sender->options;
    int poll = srt_epoll_create();
    int events = SRT_EPOLL_OUT | SRT_EPOLL_ERR;
    int waiting = 0, next = 0;
    enum { at_once = 64 };
    while (next < options->streams || waiting > 0) {
        while (next < options->streams && waiting < at_once) {
            sender->sockets[next] = start_call(options, next);
            if (srt_epoll_add_usock(poll, sender->sockets[next], &events) == SRT_ERROR)
                fail("srt_epoll_add_usock");
            next++;
            waiting++;
        }
        SRT_EPOLL_EVENT ready[at_once];
        int count = srt_epoll_uwait(poll, ready, at_once, 10000);
        if (count <= 0)
            fail("srt_connect, waiting");
        for (int i = 0; i < count; i++) {
            if (srt_getsockstate(ready[i].fd) != SRTS_CONNECTED)
                fail("srt_connect");
            srt_epoll_remove_usock(poll, ready[i].fd);
            bool blocking = true;
            srt_setsockflag(ready[i].fd, SRTO_SNDSYN, &blocking, sizeof blocking);
            waiting--;
        }
    }
    srt_epoll_release(poll);
}

static SRTSOCKET start_call(const struct options *options, int index)
{
    SRTSOCKET socket = new_socket(options);
    bool blocking = false;
    srt_setsockflag(socket, SRTO_RCVSYN, &blocking, sizeof blocking);
    srt_setsockflag(socket, SRTO_SNDSYN, &blocking, sizeof blocking);
    if (options->local_ports > 0) {
        struct sockaddr_in local = loopback(options->port + 1 + index % options->local_ports);
        if (srt_bind(socket, (struct sockaddr *)&local, sizeof local) == SRT_ERROR)
            fail("srt_bind");
    }
    struct sockaddr_in remote = loopback(options->port);
    if (srt_connect(socket, (struct sockaddr *)&remote, sizeof remote) == SRT_ERROR)
        fail("srt_connect");
    return socket;
}

/* Message k of all goes to stream k mod N at its time, or with the batch that follows. */
static void send_paced(struct sender *sender)
{
    const struct options *options = sender->options;
    double interval_ns = options->payload * 8e9 / (options->rate * options->streams);
    uint64_t batch_ns = (uint64_t)options->batch_us * 1000;
    uint64_t total = (uint64_t)(options->seconds * 1e9 / interval_ns);
    uint64_t start = now_ns();
    uint64_t end = start + (uint64_t)(options->seconds * 1e9);
    uint64_t wake = start;
    char payload[MAX_PAYLOAD];
    memset(payload, 0x47, sizeof payload);
    while (sender->sent < total && now_ns() < end) {
        uint64_t due = (uint64_t)((double)(now_ns() - start) / interval_ns) + 1;
        if (due > total)
            due = total;
        while (sender->sent < due) {
            uint32_t stream = (uint32_t)(sender->sent % (uint64_t)options->streams);
            uint32_t number = (uint32_t)(sender->sent / (uint64_t)options->streams);
            struct stamp stamp = {now_ns(), stream, number};
            memcpy(payload, &stamp, sizeof stamp);
            if (srt_sendmsg2(sender->sockets[stream], payload, options->payload, NULL) == SRT_ERROR)
                fail("srt_sendmsg2");
            sender->sent++;
        }
        uint64_t next = start + (uint64_t)((double)sender->sent * interval_ns);
        wake = next > wake + batch_ns ? next : wake + batch_ns;
        sleep_until(wake);
    }
}

/* Until all is acknowledged, for 2 s at most, and then until it is delivered. */
static void drain(const struct sender *sender)
{
    uint64_t now = now_ns();
    uint64_t deadline = now + 2000000000u;
    for (int i = 0; i < sender->options->streams; i++) {
        size_t blocks = 1, bytes;
        while (srt_getsndbuffer(sender->sockets[i], &blocks, &bytes) != SRT_ERROR && blocks > 0 &&
               (now = now_ns()) < deadline)
            sleep_until(now + 10000000u);
    }
    sleep_until(now + (uint64_t)sender->options->latency_ms * 3000000u);
}

static void report(const struct sender *sender, double seconds)
{
    uint64_t dropped = 0, retransmitted = 0;
    for (int i = 0; i < sender->options->streams; i++) {
        SRT_TRACEBSTATS statistics;
        if (srt_bstats(sender->sockets[i], &statistics, 0) == SRT_ERROR)
            fail("srt_bstats");
        dropped += (uint64_t)statistics.pktSndDropTotal;
        retransmitted += (uint64_t)statistics.pktRetransTotal;
    }
    printf("{\"sent\":%" PRIu64 ",\"seconds\":%.6f,\"dropped\":%" PRIu64
           ",\"retransmitted\":%" PRIu64 "}\n",
           sender->sent, seconds, dropped, retransmitted);
    fflush(stdout);
}
