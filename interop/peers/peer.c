/* A peer that shows what the command line tools hide: the stream ID that a listener of libsrt's
 * got, and the code with which a call was rejected.
 *
 *     peer listen PORT [CODE]      takes one call; with CODE the hook rejects it. Prints
 *                                  "listening", "stream id: ..." and "accepted".
 *     peer call PORT STREAMID [PASSPHRASE]
 *                                  calls 127.0.0.1. Prints "connected" or "rejected: CODE (why)".
 *     peer again PORT              listens at the port, is called some times by itself, closes all
 *                                  sockets, and does it again. Prints "answered N of M".
 */
#include <arpa/inet.h>
#include <srt/srt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *what)
{
    printf("%s: %s\n", what, srt_getlasterror_str());
    return 1;
}

static struct sockaddr_in at(const char *port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)atoi(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    return address;
}

static int hook(void *code, SRTSOCKET s, int version, const struct sockaddr *peer, const char *id)
{
    (void)version;
    (void)peer;
    printf("stream id: %s\n", id);
    if (code == NULL)
        return 0;
    srt_setrejectreason(s, *(int *)code);
    return -1;
}

static int do_listen(const char *port, const char *code)
{
    struct sockaddr_in address = at(port);
    int number = code == NULL ? 0 : atoi(code);
    SRTSOCKET listener = srt_create_socket();
    SRTSOCKET accepted;
    if (srt_bind(listener, (struct sockaddr *)&address, sizeof address) == SRT_ERROR)
        return fail("bind");
    srt_listen_callback(listener, hook, code == NULL ? NULL : &number);
    if (srt_listen(listener, 1) == SRT_ERROR)
        return fail("listen");
    printf("listening\n");
    accepted = srt_accept(listener, NULL, NULL);
    if (accepted == SRT_INVALID_SOCK)
        return fail("accept");
    printf("accepted\n");
    /* Until the peer goes away. */
    for (char message[1456]; srt_recvmsg(accepted, message, sizeof message) != SRT_ERROR;)
        ;
    return 0;
}

static int do_call(const char *port, const char *id, const char *passphrase)
{
    struct sockaddr_in address = at(port);
    SRTSOCKET s = srt_create_socket();
    srt_setsockflag(s, SRTO_STREAMID, id, (int)strlen(id));
    if (passphrase != NULL)
        srt_setsockflag(s, SRTO_PASSPHRASE, passphrase, (int)strlen(passphrase));
    if (srt_connect(s, (struct sockaddr *)&address, sizeof address) == SRT_ERROR) {
        int reason = srt_getrejectreason(s);
        printf("rejected: %d (%s)\n", reason, srt_rejectreason_str(reason));
        return 2;
    }
    printf("connected\n");
    srt_close(s);
    return 0;
}

/* Calls a listener of its own, and tells whether it was let in. */
static int answered(SRTSOCKET listener, const struct sockaddr_in *address)
{
    SRTSOCKET s = srt_create_socket();
    SRTSOCKET accepted = SRT_INVALID_SOCK;
    int limit_ms = 1000;
    srt_setsockflag(s, SRTO_CONNTIMEO, &limit_ms, sizeof limit_ms);
    if (srt_connect(s, (const struct sockaddr *)address, sizeof *address) != SRT_ERROR)
        accepted = srt_accept(listener, NULL, NULL);
    srt_close(s);
    srt_close(accepted);
    return accepted != SRT_INVALID_SOCK;
}

static int do_again(const char *port)
{
    enum { ROUNDS = 3, CALLS = 8 };
    struct sockaddr_in address = at(port);
    int count = 0;
    for (int round = 0; round < ROUNDS; round++) {
        SRTSOCKET listener = srt_create_socket();
        if (srt_bind(listener, (struct sockaddr *)&address, sizeof address) == SRT_ERROR)
            return fail("bind");
        if (srt_listen(listener, 1) == SRT_ERROR)
            return fail("listen");
        for (int call = 0; call < CALLS; call++)
            count += answered(listener, &address);
        srt_close(listener);
    }
    printf("answered %d of %d\n", count, ROUNDS * CALLS);
    return 0;
}

int main(int count, char **words)
{
    int result = 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    srt_startup();
    if (count >= 3 && strcmp(words[1], "listen") == 0)
        result = do_listen(words[2], count > 3 ? words[3] : NULL);
    else if (count >= 4 && strcmp(words[1], "call") == 0)
        result = do_call(words[2], words[3], count > 4 ? words[4] : NULL);
    else if (count == 3 && strcmp(words[1], "again") == 0)
        result = do_again(words[2]);
    else
        printf("usage: peer listen PORT [CODE] | call PORT STREAMID [PASSPHRASE] | again PORT\n");
    srt_cleanup();
    return result;
}
