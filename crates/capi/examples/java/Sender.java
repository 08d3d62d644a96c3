import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.net.InetAddress;

/**
 * Calls a receiver and sends numbered messages, with Java 22 or later:
 * java --enable-native-access=ALL-UNNAMED Sender.java ADDRESS PORT COUNT
 *
 * SRT_LIBRARY names the library, if it is not libsrt.so.1.5.
 */
class Sender {
    static final Arena ARENA = Arena.global();
    static final SymbolLookup SRT = SymbolLookup.libraryLookup(
            System.getenv().getOrDefault("SRT_LIBRARY", "libsrt.so.1.5"), ARENA);
    static final int LATENCY = 23, STREAM_ID = 46; // SRTO_LATENCY, SRTO_STREAMID

    /** A function that returns an int. */
    static MethodHandle function(String name, MemoryLayout... arguments) {
        var type = FunctionDescriptor.of(ValueLayout.JAVA_INT, arguments);
        return Linker.nativeLinker().downcallHandle(SRT.find(name).orElseThrow(), type);
    }

    static int checked(int result, String what) {
        if (result == -1) throw new IllegalStateException(what + " failed");
        return result;
    }

    /** A struct sockaddr_in: the family in the machine's order, the rest in the network's. */
    static MemorySegment address(String host, int port) throws Exception {
        var address = ARENA.allocate(16, 4);
        address.set(ValueLayout.JAVA_SHORT, 0, (short) 2);
        address.set(ValueLayout.JAVA_BYTE, 2, (byte) (port >> 8));
        address.set(ValueLayout.JAVA_BYTE, 3, (byte) port);
        byte[] bytes = InetAddress.getByName(host).getAddress();
        MemorySegment.copy(bytes, 0, address, ValueLayout.JAVA_BYTE, 4, 4);
        return address;
    }

    public static void main(String[] words) throws Throwable {
        MemoryLayout integer = ValueLayout.JAVA_INT, pointer = ValueLayout.ADDRESS;
        var setOption = function("srt_setsockflag", integer, integer, pointer, integer);
        var connect = function("srt_connect", integer, pointer, integer);
        var send = function("srt_send", integer, pointer, integer);

        int started = (int) function("srt_startup").invokeExact();
        int socket = checked((int) function("srt_create_socket").invokeExact(), "socket");
        var latency = ARENA.allocateFrom(ValueLayout.JAVA_INT, 120); // ms
        checked((int) setOption.invokeExact(socket, LATENCY, latency, 4), "latency");
        var name = ARENA.allocateFrom("example");
        checked((int) setOption.invokeExact(socket, STREAM_ID, name, 7), "stream ID");
        var address = address(words[0], Integer.parseInt(words[1]));
        checked((int) connect.invokeExact(socket, address, 16), "connect");
        var message = ARENA.allocate(1316);
        for (int number = 0; number < Integer.parseInt(words[2]); number++) {
            message.setString(0, Integer.toString(number));
            checked((int) send.invokeExact(socket, message, 1316), "send");
            Thread.sleep(1);
        }
        Thread.sleep(1000); // A receiver that learns of the end drops messages that are not due.
        checked((int) function("srt_close", integer).invokeExact(socket), "close");
        int ended = (int) function("srt_cleanup").invokeExact();
    }
}
