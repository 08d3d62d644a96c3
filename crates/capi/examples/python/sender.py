"""Calls a receiver and sends numbered messages: sender.py ADDRESS PORT COUNT

SRT_LIBRARY names the library, if it is not libsrt.so.1.5.
"""

import ctypes
import os
import socket
import struct
import sys
import time

srt = ctypes.CDLL(os.environ.get("SRT_LIBRARY", "libsrt.so.1.5"))
srt.srt_getlasterror_str.restype = ctypes.c_char_p

LATENCY, STREAM_ID = 23, 46  # SRTO_LATENCY, SRTO_STREAMID


def checked(result, what):
    if result == -1:
        sys.exit(f"{what}: {srt.srt_getlasterror_str().decode()}")
    return result


def socket_address(host, port):
    """A struct sockaddr_in."""
    return struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton(host))


def main(host, port, count):
    srt.srt_startup()
    address = socket_address(host, int(port))
    latency = ctypes.c_int32(120)  # ms
    call = checked(srt.srt_create_socket(), "socket")
    checked(srt.srt_setsockflag(call, LATENCY, ctypes.byref(latency), 4), "latency")
    checked(srt.srt_setsockflag(call, STREAM_ID, b"example", 7), "stream ID")
    checked(srt.srt_connect(call, address, len(address)), "connect")
    for number in range(int(count)):
        message = str(number).encode().ljust(1316, b"\0")
        checked(srt.srt_send(call, message, len(message)), "send")
        time.sleep(0.001)
    time.sleep(1)  # A receiver that learns of the end drops messages that are not due yet.
    srt.srt_close(call)
    srt.srt_cleanup()


main(*sys.argv[1:])
