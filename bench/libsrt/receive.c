/* The receiving side: a listener that accepts all streams and checks what they deliver. */
#include "bench.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counts {
    uint64_t received;
    uint64_t out_of_order; /* messages that were not the next of their stream */
    uint64_t delay_max_ns;
    uint64_t delay_last_ns;
};

struct worker {
    pthread_t thread;
    const struct options *options;
    int poll;         /* epoll mode: the sockets that this thread reads */
    int streams;      /* epoll mode: how many will be added to `poll` */
    SRTSOCKET socket; /* blocking mode */
    uint32_t *next;   /* the next message's number of each stream, shared by all workers */
    struct counts counts;
    struct trace_record *trace;
    size_t trace_length, trace_capacity;
};

static SRTSOCKET listen_on_port(const struct options *options);
static void accept_all(SRTSOCKET listener, const struct options *options, struct worker *workers);
static void *read_by_epoll(void *argument);
static void *read_blocking(void *argument);
static bool read_message(struct worker *worker, SRTSOCKET socket);
static void record(struct worker *worker, const struct stamp *stamp, int64_t due_us);
static void write_trace(const struct worker *workers, int count);

int run_receiver(const struct options *options)
{
    int count = options->threads > 0 ? options->threads : options->streams;
    struct worker *workers = calloc((size_t)count, sizeof *workers);
    uint32_t *next = calloc((size_t)options->streams, sizeof *next);
    for (int i = 0; i < count; i++) {
        workers[i].options = options;
        workers[i].next = next;
        if (options->threads > 0) {
            workers[i].poll = srt_epoll_create();
            workers[i].streams = (options->streams - i + count - 1) / count;
        }
    }
    SRTSOCKET listener = listen_on_port(options);
    printf("ready\n");
    fflush(stdout);
    accept_all(listener, options, workers);

    struct counts sum = {0};
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        const struct counts *counts = &workers[i].counts;
        sum.received += counts->received;
        sum.out_of_order += counts->out_of_order;
        if (counts->delay_max_ns > sum.delay_max_ns)
            sum.delay_max_ns = counts->delay_max_ns;
        if (counts->delay_last_ns > sum.delay_last_ns)
            sum.delay_last_ns = counts->delay_last_ns;
    }
    if (options->trace != NULL)
        write_trace(workers, count);
    printf("{\"received\":%" PRIu64 ",\"out_of_order\":%" PRIu64 ",\"delay_max_us\":%" PRIu64
           ",\"delay_last_us\":%" PRIu64 "}\n",
           sum.received, sum.out_of_order, sum.delay_max_ns / 1000, sum.delay_last_ns / 1000);
    fflush(stdout);
    srt_close(listener);
    free(next);
    free(workers);
    return 0;
}

static SRTSOCKET listen_on_port(const struct options *options)
{
    SRTSOCKET listener = new_socket(options);
    struct sockaddr_in local = loopback(options->port);
    if (srt_bind(listener, (struct sockaddr *)&local, sizeof local) == SRT_ERROR)
        fail("srt_bind");
    if (srt_listen(listener, options->streams < 128 ? 128 : options->streams) == SRT_ERROR)
        fail("srt_listen");
    return listener;
}

/* Accepts the streams, hands them to the workers in turn and starts these. */
static void accept_all(SRTSOCKET listener, const struct options *options, struct worker *workers)
{
    void *(*body)(void *) = options->threads > 0 ? read_by_epoll : read_blocking;
    for (int i = 0; i < options->streams; i++) {
        SRTSOCKET socket = srt_accept(listener, NULL, NULL);
        if (socket == SRT_INVALID_SOCK)
            fail("srt_accept");
        struct worker *worker = &workers[options->threads > 0 ? i % options->threads : i];
        if (options->threads > 0) {
            bool blocking = false;
            srt_setsockflag(socket, SRTO_RCVSYN, &blocking, sizeof blocking);
            int events = SRT_EPOLL_IN | SRT_EPOLL_ERR;
            if (srt_epoll_add_usock(worker->poll, socket, &events) == SRT_ERROR)
                fail("srt_epoll_add_usock");
        } else {
            worker->socket = socket;
        }
        bool starts = options->threads == 0 || i < options->threads;
        if (starts && pthread_create(&worker->thread, NULL, body, worker) != 0)
            fail("pthread_create");
    }
}

static void *read_by_epoll(void *argument)
{
    struct worker *worker = argument;
    enum { ROOM = 256 };
    SRT_EPOLL_EVENT ready[ROOM];
    for (int closed = 0; closed < worker->streams;) {
        int count = srt_epoll_uwait(worker->poll, ready, ROOM, -1);
        /* The count is one more if there was not enough room. */
        for (int i = 0; i < count && i < ROOM; i++) {
            while (read_message(worker, ready[i].fd))
                ;
            if (srt_getsockstate(ready[i].fd) > SRTS_CONNECTED) {
                srt_epoll_remove_usock(worker->poll, ready[i].fd);
                srt_close(ready[i].fd);
                closed++;
            }
        }
    }
    srt_epoll_release(worker->poll);
    return NULL;
}

static void *read_blocking(void *argument)
{
    struct worker *worker = argument;
    while (read_message(worker, worker->socket))
        ;
    srt_close(worker->socket);
    return NULL;
}

/* False if there is no message now (epoll mode) or ever again (blocking mode). */
static bool read_message(struct worker *worker, SRTSOCKET socket)
{
    char payload[MAX_PAYLOAD];
    SRT_MSGCTRL control;
    srt_msgctrl_init(&control);
    int size = srt_recvmsg2(socket, payload, sizeof payload, &control);
    if (size < (int)sizeof(struct stamp))
        return false;
    struct stamp stamp;
    memcpy(&stamp, payload, sizeof stamp);
    if (size != worker->options->payload || stamp.stream >= (uint32_t)worker->options->streams) {
        fprintf(stderr, "libsrt-bench: a message that was never sent: %d bytes\n", size);
        exit(1);
    }
    record(worker, &stamp, control.srctime);
    return true;
}

static void record(struct worker *worker, const struct stamp *stamp, int64_t due_us)
{
    struct counts *counts = &worker->counts;
    uint64_t now = now_ns();
    uint64_t delay = now - stamp->sent_ns;
    counts->received++;
    counts->out_of_order += stamp->number != worker->next[stamp->stream];
    worker->next[stamp->stream] = stamp->number + 1;
    counts->delay_last_ns = delay;
    if (delay > counts->delay_max_ns)
        counts->delay_max_ns = delay;
    if (worker->options->trace == NULL)
        return;
    if (worker->trace_length == worker->trace_capacity) {
        worker->trace_capacity = worker->trace_capacity * 2 + 65536;
        worker->trace = realloc(worker->trace, worker->trace_capacity * sizeof *worker->trace);
    }
    struct trace_record line = {stamp->sent_ns, now, (srt_time_now() - due_us) * 1000};
    worker->trace[worker->trace_length++] = line;
}

static void write_trace(const struct worker *workers, int count)
{
    FILE *file = fopen(workers->options->trace, "wb");
    if (file == NULL)
        fail("fopen");
    for (int i = 0; i < count; i++)
        fwrite(workers[i].trace, sizeof *workers[i].trace, workers[i].trace_length, file);
    fclose(file);
}
