//! Lateness: of a block, of the requests for it, and of a readchunk (equations 9 and 10).

use std::time::Duration;

use punctual_units::Instant;

/// The lateness of a block, in seconds: FinalRexTime − SenderTime − OneWayDelay. `received` is when
/// the block came at last, `sent` when its original was sent, on the same clock.
///
/// It is negative if the path was quicker than `one_way`.
pub fn lateness(received: Instant, sent: Instant, one_way: Duration) -> f64 {
    between(sent, received) - one_way.as_secs_f64()
}

/// Equation 9: RexCount × RTT ≤ Lateness, where `requests` counts the requests for the block up to
/// the one that was answered, and `lateness` is in seconds.
///
/// It is an inequality because a loss is noticed only when a later block comes, and because a
/// request is repeated a little later than a round trip after the last one. Requests that were sent
/// while the answer was on its way do not count: with them the inequality fails.
pub fn requests_fit(requests: u32, rtt: Duration, lateness: f64) -> bool {
    f64::from(requests) * rtt.as_secs_f64() <= lateness
}

/// Equation 10 as printed, in seconds: ChunksLastRexTime − ChunksFirstTime − BufferTime × ChNum.
///
/// `first` has to be the first arrival of the stream, of readchunk 0, in place of the readchunk's
/// own as the text says: `buffer` × `index` counts from the begin of the stream. A readchunk in
/// time then scores about the duration of one if they are numbered from 0, and about zero if they
/// are numbered from 1; and only if `buffer` is the time of video in a readchunk.
pub fn chunk_lateness_as_printed(
    last: Instant,
    first: Instant,
    buffer: Duration,
    index: u32,
) -> f64 {
    between(first, last) - buffer.as_secs_f64() * f64::from(index)
}

/// The lateness of a readchunk without the slips of equation 10, in seconds: the latest arrival of
/// any of its blocks, less the time when its last block would arrive if no block was lost. `first`
/// is the arrival of the stream's first block, `index` counts readchunks from 0, and `block` is the
/// time between two blocks.
///
/// It is zero for a readchunk without losses, and the readchunk is a glitch if it is more than the
/// buffer. Early blocks have time until the last one is there: this is
/// [`WantedTime::ByChunk`](super::super::WantedTime::ByChunk).
pub fn chunk_lateness(
    last: Instant,
    first: Instant,
    readchunk: Duration,
    block: Duration,
    index: u32,
) -> f64 {
    let ideal = readchunk.as_secs_f64() * (f64::from(index) + 1.0) - block.as_secs_f64();
    between(first, last) - ideal
}

/// The time from one instant to another in seconds, negative if the other is earlier.
fn between(from: Instant, to: Instant) -> f64 {
    to.saturating_since(from).as_secs_f64() - from.saturating_since(to).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_block_is_as_late_as_its_rounds_and_more() {
        let one_way = MS(100);
        assert!(close(lateness(at(1_100), at(1_000), one_way), 0.0));
        let late = lateness(at(1_502), at(1_000), one_way);
        assert!(close(late, 0.402), "{late}");
        assert!(requests_fit(2, MS(200), late) && !requests_fit(3, MS(200), late));
        assert!(lateness(at(1_099), at(1_000), one_way) < 0.0);
    }

    #[test]
    fn the_printed_lateness_of_a_chunk_is_off_by_a_chunk() {
        let (chunk, block) = (MS(1_000), MS(2));
        let first = at(100);
        // The last block of readchunk 7 comes when it should.
        let last = first + chunk * 8 - block;
        let printed = |index| chunk_lateness_as_printed(last, first, chunk, index);
        assert!(close(printed(7), 0.998) && close(printed(8), -0.002));
        assert!(close(chunk_lateness(last, first, chunk, block, 7), 0.0));
        let late = chunk_lateness(last + MS(403), first, chunk, block, 7);
        assert!(close(late, 0.403), "{late}");
    }

    #[test]
    fn with_its_own_first_block_the_printed_one_means_nothing() {
        let (chunk, first) = (MS(1_000), at(100));
        let own_first = first + chunk * 7;
        let printed = chunk_lateness_as_printed(own_first + MS(998), own_first, chunk, 7);
        assert!(printed < -6.0, "{printed}");
    }
}
