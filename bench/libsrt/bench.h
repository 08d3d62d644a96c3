/* What the sending and the receiving side of libsrt-bench share. */
#ifndef PUNCTUAL_BENCH_H
#define PUNCTUAL_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <srt.h>

enum { MAX_STREAMS = 8192, MAX_THREADS = 64, MAX_PAYLOAD = 1456 };

/* The first bytes of each payload. Both implementations write the same ones. */
struct stamp {
    uint64_t sent_ns; /* CLOCK_MONOTONIC just before the message was handed to the library */
    uint32_t stream;
    uint32_t number; /* of the message within its stream, from 0 */
};

/* One line of a trace: what a delivered message tells about time. */
struct trace_record {
    uint64_t sent_ns;
    uint64_t delivered_ns;
    int64_t late_ns; /* delivered_ns less the time that TSBPD gave the message */
};

struct options {
    int port;
    int streams;
    int payload;     /* bytes a message */
    int latency_ms;
    double rate;     /* bits a second of payload in each stream; 0 for idle connections */
    double seconds;
    int batch_us;    /* least time between two batches of messages; 0 for each at its time */
    const char *trace;
    int key_length;  /* bytes of the key that encrypts; 0 for no encryption */
    /* What only libsrt has. */
    int local_ports; /* UDP ports that the callers share; 0 for one each */
    int threads;     /* receiving threads with epoll; 0 for one blocking thread a stream */
    int64_t max_bandwidth; /* SRTO_MAXBW, bytes a second */
    int flow_window;       /* SRTO_FC, packets */
    int buffer_packets;    /* SRTO_SNDBUF and SRTO_RCVBUF in packets */
    int udp_buffer;        /* SRTO_UDP_SNDBUF and SRTO_UDP_RCVBUF, bytes */
};

int run_sender(const struct options *options);
int run_receiver(const struct options *options);
int run_messages(const struct options *options);

uint64_t now_ns(void);
void sleep_until(uint64_t deadline_ns);
SRTSOCKET new_socket(const struct options *options);
struct sockaddr_in loopback(int port);
/* Ends the process with the failed call's name and libsrt's words for the failure. */
void fail(const char *call);

#endif
