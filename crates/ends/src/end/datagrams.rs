//! Messages as the datagrams of a UDP socket.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use punctual::{Outgoing, SendOptions, Timer, now};
use punctual_io::{Datagram, Gather, ReceiveBuffers, Received, SendBatch, UdpSocket};

use crate::end::interfaces::{InterfaceWatch, Interfaces};
use crate::end::plain_packets::PlainPackets;
use crate::end::rtp_datagram::is_rtp;
use crate::failure::Failure;

/// Reads messages from a UDP socket.
pub(crate) struct DatagramReader {
    socket: Arc<UdpSocket>,
    last_sender: LastSender,
    buffers: ReceiveBuffers,
    gather: Gather,
    timer: Timer,
    /// Takes timestamps and parity off a transport stream.
    packets: Option<PlainPackets>,
    /// Tells when the interface that the socket is bound to was removed.
    interfaces: Option<InterfaceWatch>,
    /// The URI to warn of if the first datagram is RTP.
    warns_of_rtp: Option<String>,
}

/// Writes messages to a UDP socket.
pub(crate) struct DatagramWriter {
    socket: Arc<UdpSocket>,
    to: To,
    buffer: SendBatch,
}

/// The sender of the last datagram that came, for answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSender(Arc<Mutex<Option<SocketAddr>>>);

/// The destination of messages that are written.
enum To {
    /// The peer of a connected socket.
    Peer,
    LastSender(LastSender),
}

impl DatagramReader {
    /// Reads once a `period` while datagrams keep coming; zero reads whenever one comes.
    pub(crate) fn new(socket: Arc<UdpSocket>, period: Duration) -> io::Result<Self> {
        Ok(Self {
            socket,
            last_sender: LastSender::default(),
            buffers: ReceiveBuffers::default(),
            gather: Gather::new(period),
            timer: Timer::new()?,
            packets: None,
            interfaces: None,
            warns_of_rtp: None,
        })
    }

    /// The same, with a transport stream read as `packets` gives it.
    pub(crate) fn of_packets(self, packets: Option<PlainPackets>) -> Self {
        Self { packets, ..self }
    }

    /// The same, which fails when one of `interfaces` is removed.
    pub(crate) fn watching(self, interfaces: Option<Interfaces>) -> Self {
        Self { interfaces: interfaces.map(Interfaces::watch), ..self }
    }

    /// The same, for the URI of this name, which warns once if the datagrams are RTP.
    pub(crate) fn warning_of_rtp(self, name: String) -> Self {
        Self { warns_of_rtp: Some(name), ..self }
    }

    /// The sender of the last datagram, for a writer that answers it.
    pub(crate) fn last_sender(&self) -> LastSender {
        self.last_sender.clone()
    }

    /// Reads at least one message. Cancel safe.
    pub(crate) async fn read(&mut self, batch: &mut Vec<Bytes>) -> Result<(), Failure> {
        self.read_each(|datagram| batch.push(datagram.payload)).await
    }

    /// Reads at least one message, each with the time of its arrival. Cancel safe.
    pub(crate) async fn read_timed(&mut self, batch: &mut Vec<Outgoing>) -> Result<(), Failure> {
        self.read_each(|Datagram { payload, arrived, .. }| {
            let options = SendOptions { origin: Some(arrived), ..SendOptions::default() };
            batch.push(Outgoing { payload, options });
        })
        .await
    }

    async fn read_each(&mut self, mut take: impl FnMut(Datagram)) -> Result<(), Failure> {
        loop {
            let Self { gather, socket, timer, .. } = self;
            match &mut self.interfaces {
                None => gather.wait(socket, timer).await,
                Some(interfaces) => tokio::select! {
                    biased;
                    () = gather.wait(socket, timer) => {}
                    removed = interfaces.removed() => return Err(removed),
                },
            }
            let mut taken = false;
            let received = self
                .receive(|datagram| {
                    taken = true;
                    take(datagram);
                })
                .await;
            if received.drained {
                self.gather.emptied(&self.socket, now(), received.datagrams);
            }
            if taken {
                return Ok(());
            }
        }
    }

    /// Discards the datagrams that have come so far.
    pub(crate) async fn skip(&mut self) {
        while self.receive(drop).await.datagrams > 0 {}
    }

    /// Takes the datagrams that are there, without waiting.
    async fn receive(&mut self, mut take: impl FnMut(Datagram)) -> Received {
        let Self { socket, last_sender, buffers, packets, warns_of_rtp, .. } = self;
        let mut sender = None;
        let received = poll_fn(|cx| {
            let take = |Datagram { from, to, arrived, payload }: Datagram| {
                sender = Some(from);
                warn_of_rtp(warns_of_rtp.take(), &payload);
                let payload = match packets {
                    Some(packets) => packets.take(payload),
                    None => Some(payload),
                };
                if let Some(payload) = payload {
                    take(Datagram { from, to, arrived, payload });
                }
            };
            Poll::Ready(buffers.receive(cx, socket, take, report))
        })
        .await;
        last_sender.set(sender);
        received
    }
}

impl DatagramWriter {
    /// Writes to the peer that `socket` is connected to.
    pub(crate) fn to_peer(socket: Arc<UdpSocket>) -> Self {
        Self { socket, to: To::Peer, buffer: SendBatch::default() }
    }

    /// Answers the last sender. Before there is one, messages are discarded.
    pub(crate) fn to_last_sender(socket: Arc<UdpSocket>, sender: LastSender) -> Self {
        Self { socket, to: To::LastSender(sender), buffer: SendBatch::default() }
    }

    /// Writes all of `batch`.
    pub(crate) async fn write(&mut self, batch: &mut VecDeque<Bytes>) -> io::Result<()> {
        let remote = match &self.to {
            To::Peer => None,
            To::LastSender(sender) => match sender.get() {
                Some(sender) => Some(sender),
                None => {
                    batch.clear();
                    return Ok(());
                }
            },
        };
        let mut failure = None;
        let refused = |error: io::Error| {
            // No program listens at the UDP port: for a sender that is no reason to stop.
            if error.kind() != io::ErrorKind::ConnectionRefused {
                failure.get_or_insert(error);
            }
        };
        self.buffer.send(&self.socket, remote, batch.make_contiguous(), refused).await?;
        batch.clear();
        failure.map_or(Ok(()), Err)
    }
}

impl LastSender {
    fn get(&self) -> Option<SocketAddr> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, sender: Option<SocketAddr>) {
        if sender.is_some() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sender;
        }
    }
}

/// Warns that the first datagram at the end of this name is RTP, if it is.
fn warn_of_rtp(name: Option<String>, datagram: &[u8]) {
    if let Some(name) = name.filter(|_| is_rtp(datagram)) {
        let remedy = name.replacen("udp://", "rtp://", 1);
        tracing::warn!(
            "{name}: the datagrams are MPEG-TS in RTP, and their headers become part of the \
             stream: `{remedy}` takes them off"
        );
    }
}

/// The system reports an error of a datagram that was sent before; the socket goes on.
fn report(error: &io::Error) {
    if error.kind() != io::ErrorKind::ConnectionRefused {
        tracing::warn!("receiving UDP: {error}");
    }
}
