/* A peer that uses libsrt's functions for files, which its command line tools do not: whole files,
 * and messages of any size.
 *
 *     files receive PORT PATH              takes one call and writes the stream of bytes to PATH by
 *                                          srt_recvfile. Prints "received" or "failed: CODE (why)"
 *                                          and waits until the peer goes away.
 *     files send PORT PATH                 calls 127.0.0.1 and sends the file by srt_sendfile.
 *                                          Prints "sent" or "failed: CODE (why)".
 *     files echo listen|call PORT [PASSPHRASE]
 *                                          gives each message back with all its bits turned over,
 *                                          until the peer goes away. Prints "echoed COUNT".
 */
#include <arpa/inet.h>
#include <srt/srt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LARGEST = 16 << 20 };

static int fail(const char *what)
{
    int code = srt_getlasterror(NULL);
    printf("%s: %d (%s)\n", what, code, srt_getlasterror_str());
    return 1;
}

/* A socket for files that is connected, having called or been called. */
static SRTSOCKET connected(int calls, const char *port, int messages, const char *passphrase)
{
    struct sockaddr_in address;
    SRT_TRANSTYPE type = SRTT_FILE;
    SRTSOCKET s = srt_create_socket();
    SRTSOCKET accepted;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((unsigned short)atoi(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    srt_setsockflag(s, SRTO_TRANSTYPE, &type, sizeof type);
    srt_setsockflag(s, SRTO_MESSAGEAPI, &messages, sizeof messages);
    if (passphrase != NULL)
        srt_setsockflag(s, SRTO_PASSPHRASE, passphrase, (int)strlen(passphrase));
    if (calls) {
        if (srt_connect(s, (struct sockaddr *)&address, sizeof address) == SRT_ERROR)
            return SRT_INVALID_SOCK;
        return s;
    }
    if (srt_bind(s, (struct sockaddr *)&address, sizeof address) == SRT_ERROR ||
        srt_listen(s, 1) == SRT_ERROR)
        return SRT_INVALID_SOCK;
    accepted = srt_accept(s, NULL, NULL);
    srt_close(s);
    return accepted;
}

static int do_receive(const char *port, const char *path)
{
    SRTSOCKET s = connected(0, port, 0, NULL);
    int64_t offset = 0;
    int result = 0;
    if (s == SRT_INVALID_SOCK)
        return fail("no connection");
    if (srt_recvfile(s, path, &offset, INT64_MAX / 2, SRT_DEFAULT_RECVFILE_BLOCK) == SRT_ERROR)
        result = fail("failed");
    else
        printf("received\n");
    /* The peer closes, not this end: it shall see nothing but what srt_recvfile says. */
    for (char bytes[1456]; result != 0 && srt_recv(s, bytes, sizeof bytes) > 0;)
        ;
    srt_close(s);
    return result;
}

static int do_send(const char *port, const char *path)
{
    SRTSOCKET s = connected(1, port, 0, NULL);
    struct stat file;
    int64_t offset = 0;
    int result = 0;
    if (s == SRT_INVALID_SOCK || stat(path, &file) != 0)
        return fail("no connection or no file");
    if (srt_sendfile(s, path, &offset, file.st_size, SRT_DEFAULT_SENDFILE_BLOCK) == SRT_ERROR)
        result = fail("failed");
    else
        printf("sent\n");
    srt_close(s);
    return result;
}

static int do_echo(const char *role, const char *port, const char *passphrase)
{
    SRTSOCKET s = connected(strcmp(role, "call") == 0, port, 1, passphrase);
    char *message = malloc(LARGEST);
    int count = 0;
    int size;
    if (s == SRT_INVALID_SOCK || message == NULL)
        return fail("no connection");
    while ((size = srt_recvmsg(s, message, LARGEST)) > 0) {
        for (int i = 0; i < size; i++)
            message[i] = (char)~message[i];
        if (srt_sendmsg(s, message, size, -1, 1) == SRT_ERROR)
            return fail("not given back");
        count++;
    }
    printf("echoed %d\n", count);
    free(message);
    srt_close(s);
    return 0;
}

int main(int count, char **words)
{
    int result = 64;
    setvbuf(stdout, NULL, _IOLBF, 0);
    srt_startup();
    if (count == 4 && strcmp(words[1], "receive") == 0)
        result = do_receive(words[2], words[3]);
    else if (count == 4 && strcmp(words[1], "send") == 0)
        result = do_send(words[2], words[3]);
    else if (count >= 4 && strcmp(words[1], "echo") == 0)
        result = do_echo(words[2], words[3], count > 4 ? words[4] : NULL);
    else
        printf("usage: files receive|send PORT PATH | files echo listen|call PORT [PASSPHRASE]\n");
    srt_cleanup();
    return result;
}
