//! The paths that every packet takes through the protocol machine, without sockets: two endpoints
//! in virtual time, so that a count of instructions means only them.
//!
//! Callgrind counts inside the functions named `…_path`, which are therefore never inlined.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{Config, ConnectionId, Endpoint, EndpointConfig, Event, SendOptions};
use punctual_units::Instant;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The events of a run, by whose numbers instructions are divided.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Counts {
    /// Messages delivered.
    pub(crate) messages: u64,
    /// ACKs that told the sender something new.
    pub(crate) acks: u64,
    /// Packets that were lost once.
    pub(crate) losses: u64,
}

/// Sends `messages` messages, loses each `lose_each`-th packet once (none if 0), and prints the
/// counts.
pub(crate) fn run(messages: u64, lose_each: u64) -> Result<()> {
    let mut pair = Pair::connect(lose_each)?;
    for tick in 1_u64.. {
        pair.now += TICK;
        let due = messages.min(tick * MESSAGES_A_TICK);
        pair.send_path(due)?;
        pair.lose();
        pair.receive_path()?;
        pair.feedback_path();
        if pair.counts.messages == messages {
            break;
        }
        if tick > messages {
            let delivered = pair.counts.messages;
            return Err(format!("{delivered} of {messages} messages were delivered").into());
        }
    }
    let connection = pair.sender.connections().get(pair.call).ok_or("the call is gone")?;
    let statistics = connection.statistics(pair.now);
    pair.counts.acks = statistics.acks_received;
    println!("{}", serde_json::to_string(&pair.counts)?);
    Ok(())
}

struct Pair {
    now: Instant,
    sender: Endpoint,
    receiver: Endpoint,
    call: ConnectionId,
    accepted: ConnectionId,
    sent: u64,
    /// Datagrams that the network has taken from the sender so far.
    carried: u64,
    lose_each: u64,
    /// Datagrams on their way to the receiver.
    flying: Vec<Bytes>,
    payload: Bytes,
    counts: Counts,
}

impl Pair {
    fn connect(lose_each: u64) -> Result<Self> {
        let mut now = Instant::from_millis(1);
        let mut sender = Endpoint::new(EndpointConfig::new([1; 32]), now);
        let mut receiver = Endpoint::new(EndpointConfig::new([2; 32]), now);
        receiver.listen(Some(Config::default()));
        let call = sender.connect(now, there(), Config::default())?;
        let mut accepted = None;
        let is_connected = |caller: &Endpoint| {
            caller.connections().get(call).is_some_and(|connection| connection.info().connected)
        };
        while accepted.is_none() || !is_connected(&sender) {
            now += TICK;
            sender.handle_timeout(now);
            exchange(now, here(), &mut sender, &mut receiver);
            while let Some(event) = receiver.poll_event() {
                if let Event::Incoming(incoming) = event {
                    accepted = Some(receiver.accept(now, incoming.id, None)?);
                }
            }
            exchange(now, there(), &mut receiver, &mut sender);
        }
        Ok(Self {
            now,
            sender,
            receiver,
            call,
            accepted: accepted.ok_or("nobody called")?,
            sent: 0,
            carried: 0,
            lose_each,
            flying: Vec::new(),
            payload: Bytes::from_static(&[0x47; 1_316]),
            counts: Counts::default(),
        })
    }

    /// The sending application hands over messages, the sender makes datagrams of them.
    #[inline(never)]
    fn send_path(&mut self, due: u64) -> Result<()> {
        for _ in self.sent..due {
            let connection = self.sender.connection(self.now, self.call);
            let mut connection = connection.ok_or("the call is gone")?;
            connection.send(self.payload.clone(), SendOptions::default())?;
        }
        self.sent = due;
        let Self { now, sender, flying, .. } = self;
        transmit_all(*now, sender, SEGMENTS * 1_500, |datagram| flying.push(datagram));
        Ok(())
    }

    /// The network takes its toll.
    fn lose(&mut self) {
        let Self { flying, carried, lose_each, counts, .. } = self;
        flying.retain(|_| {
            *carried += 1;
            let lost = carried.checked_rem(*lose_each) == Some(0);
            counts.losses += u64::from(lost);
            !lost
        });
    }

    /// The receiver takes the datagrams in and delivers what is due to the application.
    #[inline(never)]
    fn receive_path(&mut self) -> Result<()> {
        for datagram in self.flying.drain(..) {
            self.receiver.handle_datagram(self.now, here(), datagram);
        }
        if self.receiver.poll_timeout().is_due(self.now) {
            self.receiver.handle_timeout(self.now);
        }
        while self.receiver.poll_event().is_some() {}
        let connection = self.receiver.connection(self.now, self.accepted);
        let mut connection = connection.ok_or("the connection is gone")?;
        while connection.recv()?.is_some() {
            self.counts.messages += 1;
        }
        Ok(())
    }

    /// The receiver's reports go back, and the sender's answers to them forth: ACK and ACKACK, NAK
    /// and retransmissions.
    #[inline(never)]
    fn feedback_path(&mut self) {
        let Self { now, sender, receiver, .. } = self;
        exchange(*now, there(), receiver, sender);
        if sender.poll_timeout().is_due(*now) {
            sender.handle_timeout(*now);
        }
        while sender.poll_event().is_some() {}
        exchange(*now, here(), sender, receiver);
    }
}

/// Takes over all that one endpoint, at `from`, has to send to the other.
fn exchange(now: Instant, from: SocketAddr, source: &mut Endpoint, sink: &mut Endpoint) {
    transmit_all(now, source, 0, |datagram| sink.handle_datagram(now, from, datagram));
}

/// Takes all that an endpoint has to send, in buffers of `room` bytes at first; the batches are cut
/// up, not copied, as after a coalescing receive call.
fn transmit_all(now: Instant, source: &mut Endpoint, room: usize, mut take: impl FnMut(Bytes)) {
    loop {
        let mut buffer = Vec::with_capacity(room);
        let Some(transmit) = source.poll_transmit(now, SEGMENTS, &mut buffer) else {
            return;
        };
        let mut batch = Bytes::from(buffer);
        while !batch.is_empty() {
            take(batch.split_to(batch.len().min(transmit.segment_size)));
        }
    }
}

fn here() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5_000))
}

fn there() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], 5_000))
}

/// A driver's round.
const TICK: Duration = Duration::from_millis(1);
/// About 100 Mb/s.
const MESSAGES_A_TICK: u64 = 10;
/// Datagrams of one segmenting send call.
const SEGMENTS: usize = 44;
