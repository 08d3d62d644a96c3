/*
 * Drives libsrt in the scenarios of the bench: the counterpart of the bench program's own
 * `send`, `receive` and `messages`, with the same arguments, payloads and output.
 *
 * Standard output: `ready` once listening (receiver), `started` once all streams are connected
 * (sender), then one JSON object with what was counted.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void set_option(SRTSOCKET socket, SRT_SOCKOPT option, const char *name, const void *value,
                       int size);
static int (*role(const char *name))(const struct options *);
static struct options parse(int argc, char **argv);

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "version") == 0) {
        uint32_t version = srt_getversion();
        printf("%u.%u.%u\n", version >> 16, version >> 8 & 0xff, version & 0xff);
        return 0;
    }
    int (*run)(const struct options *) = role(argc < 2 ? "" : argv[1]);
    if (run == NULL) {
        fprintf(stderr, "usage: libsrt-bench send|receive|messages --port N [--NAME VALUE]... | "
                        "version\n");
        return 2;
    }
    struct options options = parse(argc - 1, argv + 1);
    srt_setloglevel(2 /* LOG_CRIT */);
    srt_startup();
    int code = run(&options);
    srt_cleanup();
    return code;
}

static int (*role(const char *name))(const struct options *)
{
    if (strcmp(name, "send") == 0)
        return run_sender;
    if (strcmp(name, "receive") == 0)
        return run_receiver;
    return strcmp(name, "messages") == 0 ? run_messages : NULL;
}

SRTSOCKET new_socket(const struct options *options)
{
    SRTSOCKET socket = srt_create_socket();
    if (socket == SRT_INVALID_SOCK)
        fail("srt_create_socket");
    int buffer = options->buffer_packets * (SRT_LIVE_MAX_PLSIZE + 16);
    int64_t max_bandwidth = options->max_bandwidth;
    set_option(socket, SRTO_LATENCY, "latency", &options->latency_ms, sizeof(int));
    set_option(socket, SRTO_MAXBW, "maxbw", &max_bandwidth, sizeof max_bandwidth);
    if (options->flow_window > 0)
        set_option(socket, SRTO_FC, "fc", &options->flow_window, sizeof(int));
    if (buffer > 0) {
        set_option(socket, SRTO_SNDBUF, "sndbuf", &buffer, sizeof buffer);
        set_option(socket, SRTO_RCVBUF, "rcvbuf", &buffer, sizeof buffer);
    }
    if (options->udp_buffer > 0) {
        set_option(socket, SRTO_UDP_SNDBUF, "udp_sndbuf", &options->udp_buffer, sizeof(int));
        set_option(socket, SRTO_UDP_RCVBUF, "udp_rcvbuf", &options->udp_buffer, sizeof(int));
    }
    if (options->key_length > 0) {
        static const char passphrase[] = "a passphrase for measuring";
        set_option(socket, SRTO_PBKEYLEN, "pbkeylen", &options->key_length, sizeof(int));
        set_option(socket, SRTO_PASSPHRASE, "passphrase", passphrase, sizeof passphrase - 1);
    }
    return socket;
}

struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void sleep_until(uint64_t deadline_ns)
{
    struct timespec time = {(time_t)(deadline_ns / 1000000000u), (long)(deadline_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        ;
}

void fail(const char *call)
{
    fprintf(stderr, "libsrt-bench: %s: %s\n", call, srt_getlasterror_str());
    exit(1);
}

static void set_option(SRTSOCKET socket, SRT_SOCKOPT option, const char *name, const void *value,
                       int size)
{
    if (srt_setsockflag(socket, option, value, size) == SRT_ERROR)
        fail(name);
}

static struct options parse(int argc, char **argv)
{
    static const struct option names[] = {
        {"port", required_argument, NULL, 'p'},
        {"streams", required_argument, NULL, 'n'},
        {"payload", required_argument, NULL, 's'},
        {"latency-ms", required_argument, NULL, 'l'},
        {"rate", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 't'},
        {"batch-us", required_argument, NULL, 'b'},
        {"trace", required_argument, NULL, 'T'},
        {"local-ports", required_argument, NULL, 'P'},
        {"threads", required_argument, NULL, 'j'},
        {"max-bandwidth", required_argument, NULL, 'm'},
        {"flow-window", required_argument, NULL, 'f'},
        {"buffer", required_argument, NULL, 'B'},
        {"udp-buffer", required_argument, NULL, 'u'},
        {"key-length", required_argument, NULL, 'k'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.streams = 1, .payload = SRT_LIVE_DEF_PLSIZE, .latency_ms = 120,
                              .seconds = 3, .batch_us = 1000, .local_ports = 1, .threads = 1,
                              .max_bandwidth = -1};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (name) {
        case 'p': options.port = atoi(optarg); break;
        case 'n': options.streams = atoi(optarg); break;
        case 's': options.payload = atoi(optarg); break;
        case 'l': options.latency_ms = atoi(optarg); break;
        case 'r': options.rate = atof(optarg); break;
        case 't': options.seconds = atof(optarg); break;
        case 'b': options.batch_us = atoi(optarg); break;
        case 'T': options.trace = optarg; break;
        case 'P': options.local_ports = atoi(optarg); break;
        case 'j': options.threads = atoi(optarg); break;
        case 'm': options.max_bandwidth = atoll(optarg); break;
        case 'f': options.flow_window = atoi(optarg); break;
        case 'B': options.buffer_packets = atoi(optarg); break;
        case 'u': options.udp_buffer = atoi(optarg); break;
        case 'k': options.key_length = atoi(optarg); break;
        default: exit(2);
        }
    }
    if (options.port <= 0 || options.streams < 1 || options.streams > MAX_STREAMS ||
        options.threads > MAX_THREADS || options.payload < (int)sizeof(struct stamp) ||
        options.payload > MAX_PAYLOAD) {
        fprintf(stderr, "libsrt-bench: --port is missing, or a number is out of range\n");
        exit(2);
    }
    return options;
}
