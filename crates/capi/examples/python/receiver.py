"""Takes one call and counts the messages until the sender ends: receiver.py PORT

SRT_LIBRARY names the library, if it is not libsrt.so.1.5.
"""

import ctypes
import os
import socket
import struct
import sys

srt = ctypes.CDLL(os.environ.get("SRT_LIBRARY", "libsrt.so.1.5"))
srt.srt_getlasterror_str.restype = ctypes.c_char_p

STREAM_ID, CONNECTION_LOST = 46, 2001  # SRTO_STREAMID, SRT_ECONNLOST


def checked(result, what):
    if result == -1:
        sys.exit(f"{what}: {srt.srt_getlasterror_str().decode()}")
    return result


def main(port):
    srt.srt_startup()
    # A struct sockaddr_in with the address 0.0.0.0.
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H12x", int(port))
    listener = checked(srt.srt_create_socket(), "socket")
    checked(srt.srt_bind(listener, address, len(address)), "bind")
    checked(srt.srt_listen(listener, 1), "listen")
    connection = checked(srt.srt_accept(listener, None, None), "accept")
    name, length = ctypes.create_string_buffer(513), ctypes.c_int(513)
    checked(srt.srt_getsockflag(connection, STREAM_ID, name, ctypes.byref(length)), "stream ID")
    message = ctypes.create_string_buffer(1456)
    received, last = 0, -1
    while srt.srt_recv(connection, message, len(message)) > 0:
        received, last = received + 1, int(message.value)
    if srt.srt_getlasterror(None) != CONNECTION_LOST:
        checked(-1, "receive")
    print(f"{name.value.decode()}: received {received} messages, the last one was number {last}")
    srt.srt_close(connection)
    srt.srt_close(listener)
    srt.srt_cleanup()


main(*sys.argv[1:])
