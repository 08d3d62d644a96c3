/* The value that each option has in each state, and the room that reading it needs. */
#include "options.h"

#include <string.h>
#include <unistd.h>

static void read_all(const char *situation, SRTSOCKET s)
{
    for (int i = 0; i < COUNT(options); i++)
        get_row(situation, s, &options[i]);
}

static void read_few(const char *situation, SRTSOCKET s)
{
    static const int numbers[] = { SRTO_MSS, SRTO_STATE, SRTO_EVENT, SRTO_SNDDATA, 11 };
    for (int i = 0; i < COUNT(numbers); i++)
        get_row(situation, s, &options[numbers[i]]);
}

static void fresh(void)
{
    SRTSOCKET live = opened(NULL);
    SRTSOCKET file = opened(as_stream);
    SRTSOCKET back = opened(as_stream);
    SRTSOCKET in_bound = bound(NULL);
    SRTSOCKET listener = listening(NULL);
    set_int(back, SRTO_TRANSTYPE, SRTT_LIVE);
    read_all("fresh", live);
    read_all("fresh, for files", file);
    read_all("for files, then live", back);
    read_all("bound", in_bound);
    read_all("listening", listener);
}

static void in_connections(void)
{
    struct pair live = just_connected(NULL, NULL);
    struct pair file = just_connected(as_stream, as_stream);
    read_all("connected caller", live.caller);
    read_all("accepted", live.accepted);
    read_all("connected caller of files", file.caller);
    srt_close(live.caller);
    wait_state(live.accepted, SRTS_BROKEN, LONG_MS);
    read_all("broken", live.accepted);
    srt_close(file.caller);
    read_few("closed", file.caller);
    read_few("unknown", 12345);
    read_few("-1", SRT_INVALID_SOCK);
}

static void connecting(void)
{
    int port;
    int silent = silent_socket(&port);
    SRTSOCKET s = opened(unblock);
    call(s, port);
    read_all("connecting", s);
    srt_close(s);
    close(silent);
}

/* The number of bytes that a read writes, and the length that it states. */
static void read_with(SRTSOCKET s, SRT_SOCKOPT option, const char *name, int room)
{
    char bytes[64];
    int size = room;
    int written = 0;
    memset(bytes, 0x5a, sizeof bytes);
    int result = srt_getsockflag(s, option, bytes, &size);
    const char *error = result == SRT_ERROR ? last_error() : "-";
    for (int i = 0; i < COUNT(bytes); i++)
        if (bytes[i] != 0x5a)
            written = i + 1;
    row("srt_getsockflag", say("%s into %d bytes", name, room),
        say("%d, length %d, wrote %d", result, size, written), error, "-", "-");
}

static void lengths(void)
{
    static const int rooms[] = { 0, 1, 2, 3, 4, 5, 7, 8, 16 };
    SRTSOCKET s = opened(NULL);
    set_string(s, SRTO_STREAMID, "abcd");
    for (int i = 0; i < COUNT(rooms); i++) {
        read_with(s, SRTO_RCVSYN, "RCVSYN", rooms[i]);
        read_with(s, SRTO_MSS, "MSS", rooms[i]);
        read_with(s, SRTO_MAXBW, "MAXBW", rooms[i]);
        read_with(s, SRTO_LINGER, "LINGER", rooms[i]);
        read_with(s, SRTO_STREAMID, "STREAMID of 4", rooms[i]);
        read_with(s, SRTO_CONGESTION, "CONGESTION", rooms[i]);
        read_with(s, SRTO_BINDTODEVICE, "BINDTODEVICE", rooms[i]);
        read_with(s, SRTO_PACKETFILTER, "PACKETFILTER", rooms[i]);
    }
}

static void other_numbers(void)
{
    static const int numbers[] = { -1, 64, 99, 1000 };
    SRTSOCKET s = opened(NULL);
    for (int i = 0; i < COUNT(numbers); i++) {
        int number = 0;
        int size = sizeof number;
        answer("srt_getsockflag", say("number %d", numbers[i]),
               srt_getsockflag(s, (SRT_SOCKOPT)numbers[i], &number, &size));
    }
    for (int level = 0; level < 3; level++) {
        int number = 0;
        int size = sizeof number;
        int result = srt_getsockopt(s, level, SRTO_MSS, &number, &size);
        value("srt_getsockopt", say("level %d", level), "%d: %d", result, number);
    }
}

int main(void)
{
    program_start();
    fresh();
    in_connections();
    connecting();
    lengths();
    other_numbers();
    return program_end();
}
