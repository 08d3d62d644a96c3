"""A bridge between SRT over QUIC and SRT over UDP.

    quic_bridge.py server LARGEST QUIC_PORT UDP_PORT CERTIFICATE KEY
        ends the QUIC of callers, and passes their SRT packets on to an SRT listener
    quic_bridge.py client LARGEST UDP_PORT QUIC_PORT AUTHORITY NAME
        takes the SRT packets of an SRT caller, and passes them on to a QUIC listener

LARGEST is the size of the largest UDP datagram, bytes. Each DATAGRAM frame carries one SRT packet
(draft-sharabayko-srt-over-quic-00).
"""

import asyncio
import socket
import sys

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived


class Unlimited(QuicCongestionControl):
    """No congestion control: SRT limits its own rate."""

    def __init__(self, *, max_datagram_size):
        super().__init__(max_datagram_size=max_datagram_size)
        self.congestion_window = 1 << 30

    def on_packet_acked(self, *, now, packet):
        pass

    def on_packet_sent(self, *, packet):
        pass

    def on_packets_expired(self, *, packets):
        pass

    def on_packets_lost(self, *, now, packets):
        pass

    def on_persistent_congestion(self, *, now):
        pass

    def on_rtt_measurement(self, *, now, rtt):
        pass


register_congestion_control("unlimited", Unlimited)


def configuration(largest, is_client):
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["srt"],
        congestion_control_algorithm="unlimited",
        max_datagram_frame_size=65_535,
        max_datagram_size=int(largest),
        idle_timeout=10.0,
    )


class Bridge(QuicConnectionProtocol):
    """Passes datagrams between one QUIC connection and one UDP socket."""

    def __init__(self, *arguments, udp, **options):
        super().__init__(*arguments, **options)
        self.udp = udp()
        self.udp.setblocking(False)
        asyncio.get_running_loop().add_reader(self.udp, self.read_udp)

    def read_udp(self):
        while True:
            try:
                packet = self.udp.recv(2_048)
            except ConnectionRefusedError:
                continue
            except BlockingIOError:
                break
            self._quic.send_datagram_frame(packet)
        self.transmit()

    def quic_event_received(self, event):
        if isinstance(event, DatagramFrameReceived):
            try:
                self.udp.send(event.data)
            except (BlockingIOError, ConnectionRefusedError):
                pass
        elif isinstance(event, ConnectionTerminated):
            print("terminated:", event.error_code, event.reason_phrase, flush=True)
            asyncio.get_running_loop().remove_reader(self.udp)
            self.udp.close()


def udp_to(port):
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.connect(("127.0.0.1", port))
    return udp


async def run_server(largest, quic_port, udp_port, certificate, key):
    options = configuration(largest, is_client=False)
    options.load_cert_chain(certificate, key)
    protocol = lambda *a, **o: Bridge(*a, udp=lambda: udp_to(int(udp_port)), **o)
    await serve("127.0.0.1", int(quic_port), configuration=options, create_protocol=protocol)
    await asyncio.Event().wait()


async def run_client(largest, udp_port, quic_port, authority, name):
    options = configuration(largest, is_client=True)
    options.load_verify_locations(authority)
    options.server_name = name
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", int(udp_port)))
    udp.setblocking(False)
    # The first packet shows the caller. SRT repeats it, so that it need not be kept.
    _, caller = await asyncio.get_running_loop().sock_recvfrom(udp, 2_048)
    udp.connect(caller)
    protocol = lambda *a, **o: Bridge(*a, udp=lambda: udp, **o)
    async with connect(
        "127.0.0.1", int(quic_port), configuration=options, create_protocol=protocol
    ) as bridge:
        print("connected", flush=True)
        await bridge.wait_closed()


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    asyncio.run({"server": run_server, "client": run_client}[role](*arguments))
