/* The cost of the calls that send and receive one message: both ends in one process. */
#include "bench.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGES = 64, MAX_ROUNDS = 10000 };

static void connect_pair(const struct options *options, SRTSOCKET *caller, SRTSOCKET *accepted);
static double send_round(SRTSOCKET caller, const struct options *options);
static double receive_round(SRTSOCKET accepted);
static uint64_t thread_ns(void);
static double median(double *figures, int count);

/* Each round sends some messages, waits until all of them are due, and receives them. */
int run_messages(const struct options *options)
{
    static double sending[MAX_ROUNDS], receiving[MAX_ROUNDS];
    SRTSOCKET caller, accepted;
    connect_pair(options, &caller, &accepted);
    int rounds = options->streams < MAX_ROUNDS ? options->streams : MAX_ROUNDS;
    for (int i = 0; i < rounds; i++) {
        sending[i] = send_round(caller, options);
        sleep_until(now_ns() + (uint64_t)options->latency_ms * 2000000u);
        receiving[i] = receive_round(accepted);
    }
    printf("{\"send_ns\":%.1f,\"receive_ns\":%.1f}\n", median(sending, rounds),
           median(receiving, rounds));
    fflush(stdout);
    srt_close(caller);
    srt_close(accepted);
    return 0;
}

static void connect_pair(const struct options *options, SRTSOCKET *caller, SRTSOCKET *accepted)
{
    SRTSOCKET listener = new_socket(options);
    struct sockaddr_in address = loopback(options->port);
    if (srt_bind(listener, (struct sockaddr *)&address, sizeof address) == SRT_ERROR)
        fail("srt_bind");
    if (srt_listen(listener, 1) == SRT_ERROR)
        fail("srt_listen");
    *caller = new_socket(options);
    if (srt_connect(*caller, (struct sockaddr *)&address, sizeof address) == SRT_ERROR)
        fail("srt_connect");
    *accepted = srt_accept(listener, NULL, NULL);
    if (*accepted == SRT_INVALID_SOCK)
        fail("srt_accept");
}

static double send_round(SRTSOCKET caller, const struct options *options)
{
    char payload[MAX_PAYLOAD];
    memset(payload, 0x47, sizeof payload);
    uint64_t start = thread_ns();
    for (int i = 0; i < MESSAGES; i++) {
        if (srt_sendmsg2(caller, payload, options->payload, NULL) == SRT_ERROR)
            fail("srt_sendmsg2");
    }
    return (double)(thread_ns() - start) / MESSAGES;
}

static double receive_round(SRTSOCKET accepted)
{
    char payload[MAX_PAYLOAD];
    uint64_t start = thread_ns();
    for (int i = 0; i < MESSAGES; i++) {
        SRT_MSGCTRL control;
        srt_msgctrl_init(&control);
        if (srt_recvmsg2(accepted, payload, sizeof payload, &control) == SRT_ERROR)
            fail("srt_recvmsg2");
    }
    return (double)(thread_ns() - start) / MESSAGES;
}

/* The time of this thread alone: the library's threads and other programs do not count. */
static uint64_t thread_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *figures, int count)
{
    qsort(figures, (size_t)count, sizeof *figures, compare);
    return figures[count / 2];
}
