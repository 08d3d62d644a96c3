//! The latest callers that were refused.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use punctual_units::Instant;

/// A caller that was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RefusedCall {
    /// The time of the refusal.
    pub at: Instant,
    /// The caller's address.
    pub peer: SocketAddr,
    /// The stream ID as it came, with secrets masked.
    pub stream_id: String,
    /// One word for the reason, such as `unauthorized`: a label in metrics.
    pub reason: &'static str,
    /// The rejection code that the caller was told.
    pub code: u32,
    /// The reason in a sentence.
    pub text: String,
}

/// The latest refusals, and the number of refusals for each reason.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    latest: VecDeque<RefusedCall>,
    by_reason: BTreeMap<&'static str, u64>,
}

impl Refusals {
    /// Notes a refusal. Of many, the latest are kept.
    pub fn note(&mut self, mut refusal: RefusedCall) {
        *self.by_reason.entry(refusal.reason).or_default() += 1;
        if let Some((end, _)) = refusal.stream_id.char_indices().nth(LONGEST_STREAM_ID) {
            refusal.stream_id.truncate(end);
        }
        if self.latest.len() == MOST {
            self.latest.pop_front();
        }
        self.latest.push_back(refusal);
    }

    /// The latest refusals, the newest first.
    pub fn latest(&self) -> impl ExactSizeIterator<Item = &RefusedCall> {
        self.latest.iter().rev()
    }

    /// The number of refusals for each reason, since the start.
    pub fn by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.by_reason.iter().map(|(&reason, &count)| (reason, count))
    }
}

/// The number of refusals that are kept.
const MOST: usize = 256;

/// The most characters of a stream ID that are kept: as many as SRT carries bytes.
const LONGEST_STREAM_ID: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(stream_id: String, reason: &'static str) -> RefusedCall {
        let peer = ([192, 0, 2, 1], 40_000).into();
        RefusedCall {
            at: Instant::ORIGIN,
            peer,
            stream_id,
            reason,
            code: 1404,
            text: String::new(),
        }
    }

    #[test]
    fn a_hundred_thousand_refusals_are_counted_and_the_latest_are_kept() {
        let mut refusals = Refusals::default();
        for number in 0..100_000 {
            refusals.note(refusal(format!("absent/{number}"), "not_found"));
        }
        refusals.note(refusal("é".repeat(100_000), "bad_request"));
        assert_eq!(refusals.latest().len(), MOST);
        let last = refusals.latest().next().unwrap();
        assert_eq!(last.stream_id, "é".repeat(LONGEST_STREAM_ID));
        let counted: Vec<_> = refusals.by_reason().collect();
        assert_eq!(counted, [("bad_request", 1), ("not_found", 100_000)]);
    }
}
