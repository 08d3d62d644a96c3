import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * Takes one call and counts the messages until the sender ends, with Java 22 or later:
 * java --enable-native-access=ALL-UNNAMED Receiver.java PORT
 *
 * SRT_LIBRARY names the library, if it is not libsrt.so.1.5.
 */
class Receiver {
    static final Arena ARENA = Arena.global();
    static final SymbolLookup SRT = SymbolLookup.libraryLookup(
            System.getenv().getOrDefault("SRT_LIBRARY", "libsrt.so.1.5"), ARENA);
    static final int STREAM_ID = 46, CONNECTION_LOST = 2001; // SRTO_STREAMID, SRT_ECONNLOST

    /** A function that returns an int. */
    static MethodHandle function(String name, MemoryLayout... arguments) {
        var type = FunctionDescriptor.of(ValueLayout.JAVA_INT, arguments);
        return Linker.nativeLinker().downcallHandle(SRT.find(name).orElseThrow(), type);
    }

    static int checked(int result, String what) {
        if (result == -1) throw new IllegalStateException(what + " failed");
        return result;
    }

    public static void main(String[] words) throws Throwable {
        MemoryLayout integer = ValueLayout.JAVA_INT, pointer = ValueLayout.ADDRESS;
        var bind = function("srt_bind", integer, pointer, integer);
        var listen = function("srt_listen", integer, integer);
        var accept = function("srt_accept", integer, pointer, pointer);
        var getOption = function("srt_getsockflag", integer, integer, pointer, pointer);
        var receive = function("srt_recv", integer, pointer, integer);
        var lastError = function("srt_getlasterror", pointer);

        // A struct sockaddr_in: the family in the machine's order, the port in the network's.
        int port = Integer.parseInt(words[0]);
        var address = ARENA.allocate(16, 4);
        address.set(ValueLayout.JAVA_SHORT, 0, (short) 2);
        address.set(ValueLayout.JAVA_BYTE, 2, (byte) (port >> 8));
        address.set(ValueLayout.JAVA_BYTE, 3, (byte) port);

        int started = (int) function("srt_startup").invokeExact();
        int listener = checked((int) function("srt_create_socket").invokeExact(), "socket");
        checked((int) bind.invokeExact(listener, address, 16), "bind");
        checked((int) listen.invokeExact(listener, 1), "listen");
        MemorySegment none = MemorySegment.NULL;
        int socket = checked((int) accept.invokeExact(listener, none, none), "accept");
        var name = ARENA.allocate(513);
        var length = ARENA.allocateFrom(ValueLayout.JAVA_INT, 513);
        checked((int) getOption.invokeExact(socket, STREAM_ID, name, length), "stream ID");
        var message = ARENA.allocate(1456);
        int received = 0, last = -1;
        for (; (int) receive.invokeExact(socket, message, 1456) > 0; received++)
            last = Integer.parseInt(message.getString(0));
        if ((int) lastError.invokeExact(none) != CONNECTION_LOST) checked(-1, "receive");
        System.out.printf("%s: received %d messages, the last one was number %d%n",
                name.getString(0), received, last);
        int ended = (int) function("srt_cleanup").invokeExact();
    }
}
