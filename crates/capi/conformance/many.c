/* A hundred connections to one listener. */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define MANY 100

static SRTSOCKET callers[MANY];
static SRTSOCKET accepted[MANY];

static int count_state(const SRTSOCKET *sockets, SRT_SOCKSTATUS wanted)
{
    int count = 0;
    for (int i = 0; i < MANY; i++)
        count += srt_getsockstate(sockets[i]) == wanted;
    return count;
}

static int wait_all(const SRTSOCKET *sockets, SRT_SOCKSTATUS wanted)
{
    double end = now_ms() + LONG_MS;
    while (count_state(sockets, wanted) < MANY && now_ms() < end)
        pause_ms(10);
    return count_state(sockets, wanted);
}

static void short_latency(SRTSOCKET s)
{
    set_int(s, SRTO_LATENCY, 20);
}

static SRTSOCKET open_listener(void)
{
    struct sockaddr_in address = loopback(0);
    SRTSOCKET s = opened(short_latency);
    srt_bind(s, (struct sockaddr *)&address, sizeof address);
    srt_listen(s, MANY);
    return s;
}

static void connect_all(SRTSOCKET listener)
{
    int port = port_of(listener);
    int started = 0;
    int taken = 0;
    for (int i = 0; i < MANY; i++) {
        callers[i] = opened(short_latency);
        unblock(callers[i]);
        started += call(callers[i], port) == 0;
    }
    value("srt_connect", "not blocking, 100 times", "%d", started);
    for (int i = 0; i < MANY; i++) {
        accepted[i] = srt_accept(listener, NULL, NULL);
        taken += accepted[i] > 0;
    }
    value("srt_accept", "100 times", "%d", taken);
    value("srt_getsockstate", "callers CONNECTED", "%d", wait_all(callers, SRTS_CONNECTED));
    value("srt_getsockstate", "accepted CONNECTED", "%d", count_state(accepted, SRTS_CONNECTED));
}

/* All send, and one epoll tells of all. */
static void talk(void)
{
    int eid = srt_epoll_create();
    int out = srt_epoll_create();
    int received = 0;
    int sent = 0;
    SRT_EPOLL_EVENT events[MANY];
    double end = now_ms() + LONG_MS;
    for (int i = 0; i < MANY; i++) {
        srt_epoll_add_usock(eid, accepted[i], &(int){ SRT_EPOLL_IN | SRT_EPOLL_ERR });
        srt_epoll_add_usock(out, callers[i], &(int){ SRT_EPOLL_OUT });
    }
    value("srt_epoll_uwait", "100 writable callers", "%d",
          srt_epoll_uwait(out, events, MANY, 1000));
    pause_ms(SETTLE_MS);
    for (int i = 0; i < MANY; i++)
        sent += srt_sendmsg(callers[i], "hello", 5, -1, 1) == 5;
    value("srt_sendmsg", "100 callers", "%d", sent);
    while (received < MANY && now_ms() < end) {
        int count = srt_epoll_uwait(eid, events, MANY, 100);
        for (int i = 0; i < count; i++)
            received += srt_recvmsg(events[i].fd, (char[1456]){ 0 }, 1456) == 5;
    }
    value("srt_recvmsg", "from 100 callers", "%d", received);
}

static int compare(const void *a, const void *b)
{
    return *(const SRTSOCKET *)a < *(const SRTSOCKET *)b ? -1
        : *(const SRTSOCKET *)a > *(const SRTSOCKET *)b;
}

static void distinct_ids(void)
{
    SRTSOCKET all[2 * MANY];
    int doubles = 0;
    int large = 0;
    memcpy(all, callers, sizeof callers);
    memcpy(all + MANY, accepted, sizeof accepted);
    qsort(all, 2 * MANY, sizeof all[0], compare);
    for (int i = 0; i < 2 * MANY; i++) {
        doubles += i > 0 && all[i] == all[i - 1];
        large += all[i] <= 0 || all[i] >= SRTGROUP_MASK;
    }
    value("srt_create_socket", "ids that occur twice", "%d", doubles);
    value("srt_create_socket", "ids outside of 1..2^30", "%d", large);
}

int main(void)
{
    program_start();
    SRTSOCKET listener = open_listener();
    connect_all(listener);
    distinct_ids();
    talk();
    int closed = 0;
    for (int i = 0; i < MANY; i++)
        closed += srt_close(callers[i]) == 0;
    value("srt_close", "100 callers", "%d", closed);
    value("srt_getsockstate", "accepted BROKEN", "%d", wait_all(accepted, SRTS_BROKEN));
    return program_end();
}
