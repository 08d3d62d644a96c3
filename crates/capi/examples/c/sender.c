/* Calls a receiver and sends numbered messages: sender ADDRESS PORT COUNT
 *
 *     cc sender.c -o sender $(pkg-config --cflags --libs srt)
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
    char message[1316] = {0};
    int32_t latency = 120; /* ms */
    if (count != 4)
        return 2;
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)atoi(words[2]));
    inet_pton(AF_INET, words[1], &address.sin_addr);

    srt_startup();
    SRTSOCKET socket = srt_create_socket();
    srt_setsockflag(socket, SRTO_LATENCY, &latency, sizeof latency);
    srt_setsockflag(socket, SRTO_STREAMID, "example", 7);
    if (srt_connect(socket, (struct sockaddr *)&address, sizeof address) == SRT_ERROR)
        return fail("connect");
    for (int number = 0; number < atoi(words[3]); number++) {
        snprintf(message, sizeof message, "%d", number);
        if (srt_send(socket, message, sizeof message) == SRT_ERROR)
            return fail("send");
        usleep(1000);
    }
    sleep(1); /* A receiver that learns of the end drops messages that are not due yet. */
    srt_close(socket);
    srt_cleanup();
    return 0;
}
