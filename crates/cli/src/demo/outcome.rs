//! The measures of a stream after its way through the link.

use std::collections::HashMap;

use bytes::Bytes;
use punctual::Instant;
use punctual_metrics::{InterarrivalJitter, Quantiles};
use punctual_mpegts::{Checker, StreamReport};

use crate::demo::clip::Clip;
use crate::demo::streams::Received;

/// The measures of a stream after its way through the link.
pub(super) struct Outcome {
    pub(super) sent: usize,
    /// Messages that arrived, duplicates not counted.
    pub(super) received: usize,
    /// Messages that arrived after one that was sent later.
    pub(super) reordered: usize,
    /// The delay of each message that differs from all others, µs.
    pub(super) delay_us: Quantiles,
    /// The jitter of RFC 3550, µs.
    pub(super) jitter_us: u64,
    /// The faults that a decoder would find.
    pub(super) stream: StreamReport,
}

impl Outcome {
    /// Compares the messages that arrived with the messages that were sent.
    pub(super) fn of(clip: &Clip, sent: &[Instant], received: &[Received]) -> Self {
        let mut checker = Checker::default();
        received.iter().for_each(|message| checker.push(&message.payload));
        checker.finish();
        let mut outcome = Self {
            sent: sent.len(),
            received: 0,
            reordered: 0,
            delay_us: Quantiles::default(),
            jitter_us: 0,
            stream: checker.report(),
        };
        let mut messages = Messages::new(clip);
        let mut jitter = InterarrivalJitter::default();
        let mut latest = 0;
        for message in received {
            outcome.received += usize::from(messages.take(&message.payload));
            let Some(number) = messages.number(&message.payload) else { continue };
            let Some(sent_at) = sent.get(number) else { continue };
            outcome.reordered += usize::from(number < latest);
            latest = latest.max(number);
            let delay = (message.at - *sent_at).as_micros();
            outcome.delay_us.record(u64::try_from(delay).unwrap_or(u64::MAX));
            let micros = |at: Instant| i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
            jitter.submit(micros(*sent_at), micros(message.at));
        }
        outcome.jitter_us = jitter.jitter_us();
        outcome
    }

    /// Messages that never arrived.
    pub(super) fn lost(&self) -> usize {
        self.sent - self.received
    }
}

/// The messages of the clip by their content.
struct Messages<'a> {
    /// For each content: the number of the first message with it, the number of messages with it,
    /// and how many of them were taken.
    by_content: HashMap<&'a Bytes, (usize, usize, usize)>,
}

impl<'a> Messages<'a> {
    fn new(clip: &'a Clip) -> Self {
        let mut by_content: HashMap<&Bytes, (usize, usize, usize)> = HashMap::new();
        for (number, (_, message)) in clip.messages.iter().enumerate() {
            by_content.entry(message).or_insert((number, 0, 0)).1 += 1;
        }
        Self { by_content }
    }

    /// Whether a message with this content was sent more often than it has been taken.
    fn take(&mut self, payload: &Bytes) -> bool {
        let Some((_, sent, taken)) = self.by_content.get_mut(payload) else { return false };
        *taken += 1;
        *taken <= *sent
    }

    /// The number of the message with this content, if no other has it: null packets are all alike.
    fn number(&self, payload: &Bytes) -> Option<usize> {
        let (number, sent, taken) = self.by_content.get(payload)?;
        (*sent == 1 && *taken == 1).then_some(*number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn loss_order_and_delay_are_told_message_by_message() {
        let ms = Duration::from_millis;
        let messages = (0..4_u8).map(|n| (ms(n.into()), Bytes::from(vec![n; 188]))).collect();
        let clip = Clip { messages };
        let sent: Vec<Instant> = (0..4).map(Instant::from_millis).collect();
        let arrival = |number: usize, at| Received {
            payload: clip.messages[number].1.clone(),
            at: Instant::from_millis(at),
        };
        let received = [arrival(0, 10), arrival(2, 12), arrival(1, 31), arrival(1, 32)];
        let outcome = Outcome::of(&clip, &sent, &received);
        assert_eq!((outcome.sent, outcome.received, outcome.lost()), (4, 3, 1));
        assert_eq!(outcome.reordered, 1);
        assert_eq!(outcome.delay_us.min(), Some(10_000));
        assert_eq!(outcome.delay_us.max(), Some(30_000));
        assert_eq!(outcome.jitter_us, 1_250);
    }
}
