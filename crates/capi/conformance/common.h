/* The part that the programs share: rows, names, sockets on the loopback, bounded waits. */
#ifndef PUNCTUAL_CONFORMANCE_COMMON_H
#define PUNCTUAL_CONFORMANCE_COMMON_H

#include <arpa/inet.h>
#include <stdint.h>
#include <srt/srt.h>
#include <stddef.h>

/* Every state and event that a test waits for comes much sooner, even on a busy machine. */
#define LONG_MS 5000
/* A caller of libsrt's may lose a packet that follows the handshake at once. */
#define SETTLE_MS 50

/* Starts the library, and ends the program when it hangs. */
void program_start(void);
/* Ends the program. Main returns what it seems to return. */
int program_end(void);

/* Rows: function, situation, returned value, error, state, readiness; tabs between them. The first
 * two are the row's key. A column without a meaning is "-". */
void row(const char *function, const char *situation, const char *returned, const char *error,
         const char *state, const char *readiness);
/* A row of a returned number, and the last error if it is -1. */
void answer(const char *function, const char *situation, int64_t returned);
/* The same, and the state of the socket. */
void answer_state(const char *function, const char *situation, int64_t returned, SRTSOCKET s);
/* The same, and what the epoll reports. */
void answer_ready(const char *function, const char *situation, int64_t returned, SRTSOCKET s,
                  int eid);
/* A row whose returned value is a text. */
void value(const char *function, const char *situation, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A row that is only the state of a socket. */
void state(const char *situation, SRTSOCKET s);
/* A row that is only what the epoll reports. */
void ready(const char *situation, int eid);

/* A formatted text in one of this thread's few buffers: short-lived. */
const char *say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Names without their prefix. */
const char *error_name(int code);
const char *last_error(void);
const char *state_name(int number);
const char *state_of(SRTSOCKET s);
const char *km_name(int number);
const char *events_name(int events);
/* The events that the epoll reports now, without waiting. */
const char *readiness(int eid);

/* Time. `took` says that a duration lies within bounds, or else how long it was. */
double now_ms(void);
void pause_ms(int ms);
const char *took(double start, int least, int most);

/* Addresses. */
struct sockaddr_in loopback(int port);
int port_of(SRTSOCKET s);
int same_address(const struct sockaddr_in *a, const struct sockaddr_in *b);
/* A UDP socket that nobody reads: a call to it gets no answer. */
int silent_socket(int *port);

/* Options of an int's size, which are most. */
int set_int(SRTSOCKET s, SRT_SOCKOPT option, int number);
int get_int(SRTSOCKET s, SRT_SOCKOPT option);
int set_bool(SRTSOCKET s, SRT_SOCKOPT option, int on);
int set_string(SRTSOCKET s, SRT_SOCKOPT option, const char *text);
/* Both directions neither block. */
void unblock(SRTSOCKET s);

/* Waits, bounded: whether the event came. */
int wait_state(SRTSOCKET s, SRT_SOCKSTATUS wanted, int ms);
int wait_events(int eid, int wanted, int ms);

/* Sends without blocking until the buffers of both ends stay full: whether they do. */
int fill(SRTSOCKET s, const char *bytes, int size);

/* An epoll that watches this socket for these events (0: all). */
int watch(SRTSOCKET s, int events);

/* Sockets. A `prepare` sets a socket's options before it is bound. */
typedef void prepare(SRTSOCKET s);
SRTSOCKET opened(prepare *set);
SRTSOCKET bound(prepare *set);
SRTSOCKET listening(prepare *set);
int call(SRTSOCKET s, int port);

struct pair {
    SRTSOCKET listener;
    SRTSOCKET caller;
    SRTSOCKET accepted;
};

/* A connection over the loopback. Each end is prepared before. Ends the program if it fails. */
struct pair just_connected(prepare *caller, prepare *listener);
/* The same, whose blocking functions end after LONG_MS. */
struct pair connected(prepare *caller, prepare *listener);
void close_pair(struct pair *pair);
/* Sockets for files and streams of bytes. */
void as_stream(SRTSOCKET s);
void as_file_messages(SRTSOCKET s);

/* Runs these at once, each in a thread, and waits for all. */
typedef void section(void);
void at_once(section *const sections[], int count);

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

#endif
