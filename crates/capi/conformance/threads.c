/* Many threads on few sockets. */
#include "common.h"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define MESSAGES 200

static void short_latency(SRTSOCKET s)
{
    set_int(s, SRTO_LATENCY, 50);
}

struct worker {
    SRTSOCKET s;
    SRTSOCKET other;
    int count;
};

static void *send_many(void *opaque)
{
    struct worker *worker = opaque;
    for (int i = 0; i < MESSAGES; i++)
        worker->count += srt_sendmsg(worker->s, "message", 7, -1, 1) == 7;
    return NULL;
}

static void *receive_many(void *opaque)
{
    struct worker *worker = opaque;
    while (srt_recvmsg(worker->s, (char[1456]){ 0 }, 1456) == 7)
        worker->count++;
    return NULL;
}

static int run_all(void *(*work)(void *), struct worker *workers, pthread_t *threads)
{
    int count = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        count += workers[i].count;
    }
    return count;
}

/* Several send and several receive, on the two ends of one connection, both ways. */
static void one_connection(void)
{
    struct pair pair = connected(as_file_messages, as_file_messages);
    struct worker senders[THREADS];
    struct worker receivers[THREADS];
    pthread_t threads[THREADS];
    int got = 0;
    set_int(pair.caller, SRTO_RCVTIMEO, 700);
    set_int(pair.accepted, SRTO_RCVTIMEO, 700);
    for (int i = 0; i < THREADS; i++) {
        senders[i] = (struct worker){ i % 2 ? pair.caller : pair.accepted, 0, 0 };
        receivers[i] = (struct worker){ i % 2 ? pair.accepted : pair.caller, 0, 0 };
        pthread_create(&threads[i], NULL, receive_many, &receivers[i]);
    }
    pthread_t more[THREADS];
    value("srt_sendmsg", "4 threads, 200 each", "%d", run_all(send_many, senders, more));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        got += receivers[i].count;
    }
    value("srt_recvmsg", "4 threads", "%d", got);
    close_pair(&pair);
}

static void *open_and_close(void *opaque)
{
    struct worker *worker = opaque;
    for (int i = 0; i < 50; i++) {
        SRTSOCKET s = opened(short_latency);
        int eid = watch(s, 0);
        worker->count += srt_getsockstate(s) == SRTS_INIT && srt_close(s) == 0
            && srt_epoll_release(eid) == 0;
    }
    return NULL;
}

static void churn(void)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    memset(workers, 0, sizeof workers);
    value("srt_create_socket", "4 threads, 50 each, closed again", "%d",
          run_all(open_and_close, workers, threads));
}

static void *connect_one(void *opaque)
{
    struct worker *worker = opaque;
    worker->s = opened(short_latency);
    worker->count = call(worker->s, port_of(worker->other)) == 0;
    return NULL;
}

static void *accept_one(void *opaque)
{
    struct worker *worker = opaque;
    worker->s = srt_accept(worker->other, NULL, NULL);
    worker->count = worker->s > 0;
    return NULL;
}

/* Each thread of several gets another connection. */
static void accepting(void)
{
    struct worker callers[THREADS];
    struct worker takers[THREADS];
    pthread_t threads[THREADS];
    pthread_t more[THREADS];
    SRTSOCKET listener = listening(short_latency);
    int taken = 0;
    int distinct = 1;
    for (int i = 0; i < THREADS; i++) {
        callers[i] = takers[i] = (struct worker){ 0, listener, 0 };
        pthread_create(&threads[i], NULL, accept_one, &takers[i]);
    }
    value("srt_connect", "4 threads, blocking", "%d", run_all(connect_one, callers, more));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        taken += takers[i].count;
        for (int j = 0; j < i; j++)
            distinct = distinct && takers[i].s != takers[j].s;
    }
    value("srt_accept", "4 threads", "%d, %s", taken, distinct ? "distinct" : "not distinct");
    srt_close(listener);
}

/* Options are read and states asked while another thread blocks. */
static void *block_receiving(void *opaque)
{
    struct worker *worker = opaque;
    worker->count = srt_recvmsg(worker->s, (char[1456]){ 0 }, 1456);
    return NULL;
}

static void while_blocked(void)
{
    struct pair pair = connected(short_latency, short_latency);
    struct worker worker = { pair.accepted, 0, 0 };
    pthread_t thread;
    SRT_TRACEBSTATS stats;
    pthread_create(&thread, NULL, block_receiving, &worker);
    pause_ms(80);
    double start = now_ms();
    state("another thread receives", pair.accepted);
    value("srt_getsockflag", "another thread receives", "%d",
          get_int(pair.accepted, SRTO_RCVLATENCY));
    answer("srt_setsockflag", "another thread receives, LOSSMAXTTL",
           set_int(pair.accepted, SRTO_LOSSMAXTTL, 5));
    answer("srt_setsockflag", "another thread receives, SNDTIMEO",
           set_int(pair.accepted, SRTO_SNDTIMEO, 100));
    answer("srt_bstats", "another thread receives", srt_bstats(pair.accepted, &stats, 0));
    answer("srt_sendmsg", "another thread receives",
           srt_sendmsg(pair.accepted, "message", 7, -1, 1));
    value("-", "all that while another thread receives", "%s", took(start, 0, 500));
    srt_sendmsg(pair.caller, "message", 7, -1, 1);
    pthread_join(thread, NULL);
    value("srt_recvmsg", "the other thread", "%d", worker.count);
    close_pair(&pair);
}

/* Two threads close one socket, and eight wait for one epoll. */
static void *close_one(void *opaque)
{
    struct worker *worker = opaque;
    worker->count = srt_close(worker->s) == 0;
    return NULL;
}

static void *wait_one(void *opaque)
{
    struct worker *worker = opaque;
    SRT_EPOLL_EVENT event;
    worker->count = srt_epoll_uwait(worker->other, &event, 1, LONG_MS) == 1;
    return NULL;
}

static void together(void)
{
    struct pair pair = connected(short_latency, short_latency);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    int eid = watch(pair.accepted, SRT_EPOLL_IN);
    srt_sendmsg(pair.caller, "message", 7, -1, 1);
    for (int i = 0; i < THREADS; i++)
        workers[i] = (struct worker){ 0, eid, 0 };
    value("srt_epoll_uwait", "4 threads, one message", "%d",
          run_all(wait_one, workers, threads));
    for (int i = 0; i < THREADS; i++)
        workers[i] = (struct worker){ pair.caller, 0, 0 };
    value("srt_close", "4 threads, one socket", "%d", run_all(close_one, workers, threads));
    close_pair(&pair);
}

int main(void)
{
    static section *const sections[] = {
        one_connection, churn, accepting, while_blocked, together,
    };
    program_start();
    at_once(sections, COUNT(sections));
    return program_end();
}
