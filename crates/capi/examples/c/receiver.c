/* Takes one call and counts the messages until the sender ends: receiver PORT
 *
 *     cc receiver.c -o receiver $(pkg-config --cflags --libs srt)
 */
#include <srt/srt.h>
#include <stdio.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, srt_getlasterror_str());
    return 1;
}

int main(int count, char **words)
{
    struct sockaddr_in address = {0};
    char message[1456];
    char name[513] = "";
    int length = sizeof name;
    int received = 0;
    int last = -1;
    if (count != 2)
        return 2;
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(words[1]));

    srt_startup();
    SRTSOCKET listener = srt_create_socket();
    if (srt_bind(listener, (struct sockaddr *)&address, sizeof address) == SRT_ERROR ||
        srt_listen(listener, 1) == SRT_ERROR)
        return fail("listen");
    SRTSOCKET socket = srt_accept(listener, NULL, NULL);
    if (socket == SRT_INVALID_SOCK)
        return fail("accept");
    srt_getsockflag(socket, SRTO_STREAMID, name, &length);
    for (; srt_recv(socket, message, sizeof message) > 0; received++)
        last = atoi(message);
    if (srt_getlasterror(NULL) != SRT_ECONNLOST)
        return fail("receive");
    printf("%s: received %d messages, the last one was number %d\n", name, received, last);
    srt_close(socket);
    srt_close(listener);
    srt_cleanup();
    return 0;
}
