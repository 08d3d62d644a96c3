//! The end of a stream: whether the peer was still there to acknowledge it, or there at all.

use std::time::Duration;

use punctual_units::grouped;
use tokio::time::Instant;

use crate::end::reader::Input;
use crate::end::{MessageTraffic, Reader, SrtEnd, Writer};
use crate::failure::Failure;

/// Ends the stream of `writer` in good order, which belongs to the connection or group `end` if it
/// is SRT's: buffered messages are still sent.
///
/// # Errors
///
/// Packets were on their way, and no acknowledgement came while this end waited for it: the peer is
/// probably gone. Or by its `traffic`, none of the messages could be sent.
pub async fn end_stream(
    writer: &mut Writer,
    end: Option<&SrtEnd>,
    traffic: &MessageTraffic,
) -> Result<(), Failure> {
    let before = end.map(|end| (end, AckProgress::of(end), Instant::now()));
    writer.close().await;
    if let Some((end, before, start)) = before {
        before.check(&AckProgress::of(end), start.elapsed())?;
    }
    match (traffic.messages(), traffic.unsent()) {
        (0, (unsent @ 1.., _)) => {
            Err(Failure::runtime(format!("none of the {} messages could be sent", grouped(unsent))))
        }
        _ => Ok(()),
    }
}

/// Checks at the end of a stream that is received whether anybody sent it: over UDP, only the first
/// datagram tells.
///
/// # Errors
///
/// `reader` receives datagrams, and no message arrived.
pub fn check_arrival(reader: &Reader, traffic: &MessageTraffic) -> Result<(), Failure> {
    match reader.0 {
        Input::Udp(_) if traffic.messages() == 0 => Err(Failure::nothing_arrived()),
        _ => Ok(()),
    }
}

/// The acknowledgements of a stream at some time.
#[derive(Clone, Copy, Debug)]
struct AckProgress {
    /// Packets sent and not acknowledged.
    in_flight: u64,
    /// Acknowledgements that came.
    acks: u64,
    /// The longest time that the answer of a peer may take.
    longest_answer: Duration,
}

impl AckProgress {
    fn of(end: &SrtEnd) -> Self {
        let mut sum = Self { in_flight: 0, acks: 0, longest_answer: Duration::ZERO };
        for statistics in end.each_statistics() {
            sum.in_flight = sum.in_flight.max(statistics.flight_size.into());
            sum.acks += statistics.acks_received;
            let answer = statistics.rtt + 4 * statistics.rtt_variance + GRACE;
            sum.longest_answer = sum.longest_answer.max(answer);
        }
        sum
    }

    /// Compares this progress at the end of the stream with that after its `closing`.
    fn check(&self, after: &Self, closing: Duration) -> Result<(), Failure> {
        if self.in_flight == 0 || after.acks > self.acks || closing < self.longest_answer {
            return Ok(());
        }
        Err(Failure::runtime(format!(
            "the peer no longer answered at the end of the stream: the last {} packets or more are \
             not acknowledged",
            grouped(self.in_flight)
        )))
    }
}

/// The time for which a peer may be busy, beyond the round trip.
const GRACE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_gone_is_told_from_one_that_answers() {
        let second = Duration::from_secs(1);
        let before = AckProgress { in_flight: 50, acks: 900, longest_answer: second / 4 };
        let silent = before.check(&before, second).expect_err("nothing was acknowledged");
        assert!(silent.to_string().contains("the last 50 packets"), "{silent}");
        let answered = AckProgress { acks: 901, ..before };
        assert!(before.check(&answered, second).is_ok());
        // Without a linger, nobody waits for the answer.
        assert!(before.check(&before, Duration::ZERO).is_ok());
        let done = AckProgress { in_flight: 0, ..before };
        assert!(done.check(&done, second).is_ok());
    }
}
