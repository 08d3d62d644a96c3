"""A QUIC peer that sends every message back as it came: a datagram as a datagram, a message on a
stream of its own on one of its own, and the bytes of a lone stream on a lone stream.

    quic_echo.py server PORT CARRY CERTIFICATE KEY
    quic_echo.py client PORT CARRY AUTHORITY NAME
        with CARRY `datagrams`, `streams` or `stream`; a client moves to another port after 100
        messages, or after 100 pieces of a stream
"""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    DatagramFrameReceived,
    ProtocolNegotiated,
    StreamDataReceived,
)

MOVE_AFTER = 100


def configuration(is_client, carry):
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["punctual-" + carry],
        max_datagram_frame_size=65_535,
        max_datagram_size=1_400,
        idle_timeout=10.0,
    )


class Echo(QuicConnectionProtocol):
    def __init__(self, *arguments, carry, **options):
        super().__init__(*arguments, **options)
        self.carry = carry
        self.answers = {}
        self.pieces = 0
        self.enough = asyncio.Event()

    def quic_event_received(self, event):
        if isinstance(event, ProtocolNegotiated):
            print("speaks", event.alpn_protocol, flush=True)
        elif isinstance(event, DatagramFrameReceived):
            self._quic.send_datagram_frame(event.data)
            self.count()
        elif isinstance(event, StreamDataReceived):
            answer = self.answers.get(event.stream_id)
            if answer is None:
                answer = self._quic.get_next_available_stream_id(is_unidirectional=True)
                self.answers[event.stream_id] = answer
                # The number is taken by the first use.
                self._quic.send_stream_data(answer, b"", False)
            self._quic.send_stream_data(answer, event.data, event.end_stream)
            self.count()
        elif isinstance(event, ConnectionTerminated):
            print("terminated:", event.error_code, event.reason_phrase, flush=True)

    def count(self):
        self.pieces += 1
        if self.pieces == MOVE_AFTER:
            self.enough.set()


async def run_server(port, carry, certificate, key):
    options = configuration(False, carry)
    options.load_cert_chain(certificate, key)
    protocol = lambda *a, **o: Echo(*a, carry=carry, **o)
    await serve("127.0.0.1", int(port), configuration=options, create_protocol=protocol)
    await asyncio.Event().wait()


async def run_client(port, carry, authority, name):
    options = configuration(True, carry)
    options.load_verify_locations(authority)
    options.server_name = name
    protocol = lambda *a, **o: Echo(*a, carry=carry, **o)
    try:
        async with connect(
            "127.0.0.1", int(port), configuration=options, create_protocol=protocol
        ) as echo:
            closed = asyncio.ensure_future(echo.wait_closed())
            enough = asyncio.ensure_future(echo.enough.wait())
            await asyncio.wait([closed, enough], return_when=asyncio.FIRST_COMPLETED)
            if echo.enough.is_set() and not closed.done():
                # From another port, as behind a NAT that has forgotten the old one.
                loop = asyncio.get_running_loop()
                await loop.create_datagram_endpoint(lambda: echo, local_addr=("::", 0))
                print("moved", flush=True)
            await closed
    except ConnectionError as error:
        print("not connected:", error, flush=True)


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    asyncio.run({"server": run_server, "client": run_client}[role](*arguments))
