//! The sending application of a stream: when it sends, and how it waits for room.

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::SendError;
use punctual_units::Instant;

use super::StreamConfig;
use super::payload::PayloadContent;
use crate::host::Lateness;
use crate::memory::Memory;
use crate::schedule::MessagePace;
use crate::seeds::SplitMix64;

/// Sends numbered messages at the times of a pace. A live application loses messages that the
/// buffer refuses; that of a file waits for room.
#[derive(Debug)]
pub(crate) struct Sending {
    phase: Phase,
    is_file: bool,
    payload: usize,
    duration: Duration,
    begun: Option<Instant>,
    pace: MessagePace,
    /// When the next message is due.
    due: Option<Instant>,
    content: PayloadContent,
    /// The last message of a file, while there is no room for it.
    waiting: Bytes,
    sent: u64,
    refused: u64,
    lateness: Lateness,
    chance: SplitMix64,
}

/// The sending application's activity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// It has not begun.
    Waiting,
    /// It cannot send yet.
    Connecting,
    /// It sends.
    Sending,
    /// It waits for room.
    Blocked,
    /// It has sent all, or cannot any more.
    Done,
}

impl Sending {
    /// An application that is as late as its host.
    pub(super) fn new(
        config: &StreamConfig,
        content: PayloadContent,
        lateness: Lateness,
        chance: SplitMix64,
    ) -> Self {
        Self {
            phase: Phase::Waiting,
            is_file: config.transport.is_file(),
            payload: config.payload,
            duration: config.duration,
            begun: None,
            pace: MessagePace::new(config.rate.clone(), config.payload),
            due: None,
            content,
            waiting: Bytes::new(),
            sent: 0,
            refused: 0,
            lateness,
            chance,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// The call has been made.
    pub(crate) fn connect(&mut self) {
        self.phase = Phase::Connecting;
    }

    /// From `now` on it can send. Returns when it wakes up for its first message.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Instant> {
        self.begun = Some(now);
        self.phase = Phase::Sending;
        self.advance();
        self.wake()
    }

    /// When it could send for the first time.
    pub(crate) fn begun(&self) -> Option<Instant> {
        self.begun
    }

    /// Number of messages that were handed over.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of messages that were refused, and are lost.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// The message that it sends at `now`, if one is due; or the rest of one.
    pub(crate) fn next_message(&mut self, now: Instant, memory: &mut Memory) -> Option<Bytes> {
        if !self.waiting.is_empty() {
            return (self.phase == Phase::Sending).then(|| std::mem::take(&mut self.waiting));
        }
        self.due.filter(|&due| due <= now)?;
        Some(self.content.write(memory, self.sent, now, self.payload))
    }

    /// The message was handed over, with this result; `rest` is the part that was not taken.
    pub(crate) fn submitted(&mut self, result: &Result<(), SendError>, rest: Bytes) {
        match result {
            Ok(()) => self.sent += 1,
            Err(SendError::Full) if self.is_file => {
                self.waiting = rest;
                self.phase = Phase::Blocked;
                return;
            }
            Err(SendError::Closed(_)) => return self.stop(),
            Err(_) => self.refused += 1,
        }
        self.advance();
    }

    /// There is room again. Returns whether it has waited for it.
    pub(crate) fn unblock(&mut self) -> bool {
        let waits = self.phase == Phase::Blocked;
        if waits {
            self.phase = Phase::Sending;
        }
        waits
    }

    /// How long it has been waiting to hand over a due message.
    pub(crate) fn behind(&self, now: Instant) -> Duration {
        let due = self.due.filter(|_| self.phase == Phase::Blocked);
        due.map_or(Duration::ZERO, |due| now.saturating_since(due))
    }

    /// When it wakes up to send its next message.
    pub(crate) fn wake(&mut self) -> Option<Instant> {
        let due = self.due.filter(|_| self.phase == Phase::Sending)?;
        let late = self.lateness;
        Some(if late.is_none() { due } else { due + late.draw(&mut self.chance) })
    }

    /// It sends no more.
    pub(crate) fn stop(&mut self) {
        self.phase = Phase::Done;
        self.due = None;
        self.waiting = Bytes::new();
    }

    fn advance(&mut self) {
        let next = self.pace.next().filter(|&time| time < self.duration);
        self.due = self.begun.zip(next).map(|(begun, time)| begun + time);
        if self.due.is_none() {
            self.phase = Phase::Done;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::RateSchedule;
    use crate::stream::Transport;
    use crate::world::World;
    use crate::{End, HostConfig};
    use punctual_proto::{Config, Transmission};
    use punctual_units::Bitrate;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const START: Instant = Instant::from_millis(1_000);

    /// Ten messages, one each 10 ms.
    fn sending(transmission: Transmission) -> Sending {
        let mut world = World::new(1);
        let host = world.add_host(HostConfig::default());
        let config = Config::default().with_transmission(transmission);
        let stream = StreamConfig {
            transport: Transport::Srt {
                sender: config.clone(),
                receiver: config,
                caller: End::Sender,
            },
            rate: RateSchedule::constant(Bitrate::from_bits_per_sec(800_000)),
            payload: 1_000,
            start: Duration::ZERO,
            duration: MS(100),
            from: host,
            to: host,
            series: None,
        };
        Sending::new(&stream, PayloadContent { key: 1 }, Lateness::default(), SplitMix64::new(1))
    }

    #[test]
    fn messages_are_sent_at_their_times_until_the_end() {
        let (mut sending, mut memory) = (sending(Transmission::Live), Memory::default());
        let mut wake = sending.begin(START);
        let mut times = Vec::new();
        while let Some(now) = wake {
            let message = sending.next_message(now, &mut memory).expect("it is due");
            assert_eq!(message.len(), 1_000);
            sending.submitted(&Ok(()), Bytes::new());
            times.push(now - START);
            wake = sending.wake();
        }
        assert_eq!(times, (0..10).map(|n| MS(10 * n)).collect::<Vec<_>>());
        assert_eq!((sending.sent(), sending.phase()), (10, Phase::Done));
    }

    #[test]
    fn a_live_application_loses_messages_that_are_refused() {
        let mut sending = sending(Transmission::Live);
        sending.begin(START);
        sending.submitted(&Err(SendError::Full), Bytes::new());
        assert_eq!((sending.sent(), sending.refused()), (0, 1));
        assert_eq!(sending.wake(), Some(START + MS(10)));
    }

    #[test]
    fn the_application_of_a_file_waits_for_room() {
        let (mut sending, mut memory) = (sending(Transmission::Messages), Memory::default());
        sending.begin(START);
        let message = sending.next_message(START, &mut memory).expect("it is due");
        sending.submitted(&Err(SendError::Full), message.clone());
        assert_eq!((sending.phase(), sending.wake()), (Phase::Blocked, None));
        assert_eq!(sending.behind(START + MS(30)), MS(30));
        assert!(sending.unblock() && !sending.unblock());
        assert_eq!(sending.next_message(START + MS(30), &mut memory), Some(message));
        sending.stop();
        assert_eq!(sending.next_message(START + MS(99), &mut memory), None);
    }
}
