/* A handler of the log that asks the library at each message, while sockets connect, send and
 * close. It ends with 0 if no call blocks and the handler was called. */
#include <arpa/inet.h>
#include <pthread.h>
#include <srt/logging_api.h>
#include <srt/srt.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A call that blocks ends the program by a signal. */
#define SECONDS 30
#define ROUNDS 10

#define MOST_SOCKETS 32

/* Those of this round. The handler runs on several threads. */
static _Atomic SRTSOCKET sockets[MOST_SOCKETS];
static atomic_int count;
static atomic_int lines;

static void handler(void *opaque, int level, const char *file, int line, const char *area,
                    const char *message)
{
    (void)opaque, (void)level, (void)file, (void)line, (void)area, (void)message;
    lines++;
    for (int i = 0; i < count; i++) {
        SRT_TRACEBSTATS statistics;
        int events = 0, size = sizeof events;
        srt_getsockstate(sockets[i]);
        srt_getsockflag(sockets[i], SRTO_EVENT, &events, &size);
        srt_bstats(sockets[i], &statistics, 0);
        srt_getlasterror(NULL);
    }
}

static void known(SRTSOCKET s)
{
    sockets[count] = s;
    count++;
}

static SRTSOCKET opened(const char *passphrase)
{
    SRTSOCKET s = srt_create_socket();
    int yes = 1, ms = 300, latency = 20;
    srt_setsockflag(s, SRTO_PASSPHRASE, passphrase, (int)strlen(passphrase));
    srt_setsockflag(s, SRTO_REUSEADDR, &yes, sizeof yes);
    srt_setsockflag(s, SRTO_CONNTIMEO, &ms, sizeof ms);
    srt_setsockflag(s, SRTO_LATENCY, &latency, sizeof latency);
    known(s);
    return s;
}

static void send_and_receive(SRTSOCKET from, SRTSOCKET to)
{
    char message[1316] = { 0 };
    for (int i = 0; i < 50; i++)
        if (srt_send(from, message, sizeof message) < 0)
            return;
    for (int i = 0; i < 50; i++)
        if (srt_recv(to, message, sizeof message) < 0)
            return;
}

static SRTSOCKET listening(struct sockaddr_in *name)
{
    int size = sizeof *name;
    memset(name, 0, sizeof *name);
    name->sin_family = AF_INET;
    name->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    SRTSOCKET listener = opened("correct horse");
    srt_bind(listener, (struct sockaddr *)name, sizeof *name);
    srt_getsockname(listener, (struct sockaddr *)name, &size);
    srt_listen(listener, 2);
    return listener;
}

/* One listener; a caller that it accepts, and one with another passphrase that it refuses. */
static void calls(void)
{
    struct sockaddr_in name;
    count = 0;
    SRTSOCKET listener = listening(&name);
    SRTSOCKET caller = opened("correct horse");
    SRTSOCKET stranger = opened("battery staple");
    if (srt_connect(caller, (struct sockaddr *)&name, sizeof name) == 0) {
        SRTSOCKET accepted = srt_accept(listener, NULL, NULL);
        known(accepted);
        srt_connect(stranger, (struct sockaddr *)&name, sizeof name);
        send_and_receive(caller, accepted);
        srt_close(accepted);
        srt_recv(caller, (char *)&name, sizeof name);
    }
    srt_close(stranger);
    srt_close(caller);
    srt_close(listener);
}

/* Calls of which one end is closed before, while or after they are answered. */
static void calls_given_up(void)
{
    for (int i = 0; i < 4; i++) {
        struct sockaddr_in name;
        int no = 0;
        count = 0;
        SRTSOCKET listener = listening(&name);
        SRTSOCKET caller = opened("correct horse");
        srt_setsockflag(caller, SRTO_RCVSYN, &no, sizeof no);
        srt_connect(caller, (struct sockaddr *)&name, sizeof name);
        usleep(1000 * i);
        srt_close(i % 2 == 0 ? caller : listener);
        usleep(2000);
        srt_close(caller);
        srt_close(listener);
    }
}

int main(void)
{
    alarm(SECONDS);
    srt_startup();
    srt_setloglevel(LOG_DEBUG);
    srt_setloghandler(NULL, handler);
    for (int i = 0; i < ROUNDS; i++)
        calls(), calls_given_up();
    srt_setloghandler(NULL, NULL);
    srt_setloglevel(LOG_CRIT);
    srt_cleanup();
    printf("%d messages\n", lines);
    return lines > 0 ? 0 : 1;
}
