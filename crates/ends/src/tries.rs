//! Another try after an end was lost or could not be opened.

use std::collections::VecDeque;
use std::time::Duration;

use punctual::Repeated;
use punctual_units::{DisplayDuration, grouped};
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;

/// The tries to open one end, or to carry one transfer: the time of each, and the failure that ends
/// them.
///
/// Two tries begin at least a second apart, and each is late by chance: many callers that lose
/// their server at the same time do not call it at the same time.
#[derive(Debug)]
pub struct Tries {
    /// Whether there are other tries after a failure.
    wanted: bool,
    /// The connections at the same time: this number of tries may follow each other at once.
    at_once: usize,
    /// The beginnings of the latest tries, up to `at_once`.
    begun: VecDeque<Instant>,
    /// The time until which the failure of the latest try forbids another.
    not_before: Option<Instant>,
    /// The number of all tries.
    count: usize,
    /// Whether one of them has succeeded.
    has_succeeded: bool,
    /// The number of tries in a row that were refused for a reason that lasts.
    lasting: u32,
    /// The number of tries in a row that have ended because files cannot be written.
    unwritable: u32,
    /// The failure of the latest try that failed.
    latest: Option<Failure>,
    /// The failures in the log, of which equal ones are gathered.
    told: Repeated,
}

impl Tries {
    /// No other try after a failure, unless it is `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self {
            wanted,
            at_once: 1,
            begun: VecDeque::new(),
            not_before: None,
            count: 0,
            has_succeeded: false,
            lasting: 0,
            unwritable: 0,
            latest: None,
            told: Repeated::default(),
        }
    }

    /// The same, where other tries are wanted after a failure.
    pub fn repeated(self, wanted: bool) -> Self {
        Self { wanted, ..self }
    }

    /// The same, for this number of connections at the same time.
    pub fn for_connections(self, at_once: usize) -> Self {
        Self { at_once, ..self }
    }

    /// The number of tries that have begun.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Waits for the time of the next try, and begins it. An end that `calls` has a pause after its
    /// connections as well; one that waits for callers only after failures.
    ///
    /// Cancel safe.
    pub async fn begin(&mut self, calls: bool) {
        if let Some(due) = self.due(calls, Instant::now()) {
            sleep_until(due).await;
        }
        if self.begun.len() >= self.at_once {
            self.begun.pop_front();
        }
        self.begun.push_back(Instant::now());
        self.count += 1;
        if self.wanted {
            tracing::debug!("try {} begins", self.count);
        }
    }

    /// The time of the next try; `None` for now.
    fn due(&self, calls: bool, now: Instant) -> Option<Instant> {
        if !self.wanted {
            return None;
        }
        let all_in_use = calls && self.begun.len() >= self.at_once;
        let after_connection = self.begun.front().filter(|_| all_in_use).map(|oldest| {
            let paced = *oldest + PAUSE + chance(PAUSE / 2);
            paced.max(now + chance(FIRST_SPREAD))
        });
        after_connection.max(self.not_before)
    }

    /// Decides after a failed try: `Ok`, with a warning in the log, if there is to be another one,
    /// or else the failure.
    ///
    /// # Errors
    ///
    /// No other try is wanted, or none can help.
    pub fn failed(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.wanted || failure.is_usage() {
            return Err(failure);
        }
        self.unwritable = if failure.is_unwritable() { self.unwritable + 1 } else { 0 };
        if self.unwritable >= UNWRITABLE {
            return Err(failure.with_advice(&format!(
                "given up after {UNWRITABLE} tries: make room and run it again"
            )));
        }
        self.lasting = if failure.is_lasting() { self.lasting + 1 } else { 0 };
        let pause = PAUSE.saturating_mul(1 << self.lasting.min(5)).min(LONGEST_PAUSE);
        let begun = self.begun.back().copied().unwrap_or_else(Instant::now);
        self.not_before = Some(begun + pause + chance(pause / 2));
        let text = match self.lasting {
            0 => format!("{failure}; trying again"),
            _ => format!("{failure}; trying again in {:#}", DisplayDuration(pause)),
        };
        self.told.say(&text, |more| match more {
            0 => tracing::warn!("{text}"),
            more => {
                tracing::warn!("{text} ({} times more since the last message)", grouped(more));
            }
        });
        self.latest = Some(failure);
        Ok(())
    }

    /// Notes that the end is open.
    pub fn succeeded(&mut self) {
        self.has_succeeded = true;
        (self.lasting, self.unwritable, self.latest) = (0, 0, None);
        self.not_before = None;
        self.told.over();
    }

    /// The failure of tries none of which has succeeded: that of the latest one, or `otherwise` if
    /// that has not failed.
    pub fn never_succeeded(&mut self, otherwise: impl FnOnce() -> Failure) -> Option<Failure> {
        (!self.has_succeeded).then(|| self.latest.take().unwrap_or_else(otherwise))
    }
}

/// A random time from zero to `most`.
fn chance(most: Duration) -> Duration {
    // Without randomness there is no spread.
    let random = getrandom::u32().unwrap_or_default();
    most.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// The least time from the beginning of one try to that of the next; by chance up to half as long
/// again.
const PAUSE: Duration = Duration::from_secs(1);

/// The time within which, by chance, the first try after the loss of a connection begins.
const FIRST_SPREAD: Duration = Duration::from_millis(250);

/// The longest pause after refusals that only other settings change; each is twice as long as the
/// one before.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The number of tries in a row after which a transfer fails for good, if each of them ended
/// because the files cannot be written.
const UNWRITABLE: u32 = 3;

#[cfg(test)]
mod tests {
    use punctual::{CloseReason, RejectReason};

    use super::*;

    fn refused(reason: RejectReason) -> Failure {
        Failure::from(CloseReason::Rejected(reason))
    }

    /// The time that the next try waits.
    async fn wait(tries: &mut Tries, calls: bool) -> Duration {
        let start = Instant::now();
        tries.begin(calls).await;
        start.elapsed()
    }

    #[test]
    fn a_failure_without_reconnect_or_of_usage_is_final() {
        assert!(Tries::new(false).failed(Failure::runtime("it broke")).is_err());
        assert!(Tries::new(true).failed(Failure::usage("it is wrong")).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn tries_that_fail_at_once_are_a_second_to_a_second_and_a_half_apart() {
        for calls in [true, false] {
            let mut tries = Tries::new(true);
            assert_eq!(wait(&mut tries, calls).await, Duration::ZERO);
            let mut waits = Vec::new();
            for _ in 0..100 {
                tries.failed(Failure::runtime("the port is in use")).expect("another try");
                waits.push(wait(&mut tries, calls).await);
            }
            let range = PAUSE..=PAUSE * 3 / 2 + Duration::from_millis(1);
            assert!(waits.iter().all(|wait| range.contains(wait)), "{waits:?}");
            waits.dedup();
            assert!(waits.len() > 90, "the times have no chance in them");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn callers_that_lose_their_server_together_do_not_call_together() {
        let mut waits = Vec::new();
        for _ in 0..40 {
            let mut tries = Tries::new(true);
            tries.begin(true).await;
            tries.succeeded();
            tokio::time::sleep(Duration::from_secs(60)).await;
            waits.push(wait(&mut tries, true).await);
        }
        assert!(waits.iter().all(|wait| *wait <= FIRST_SPREAD + Duration::from_millis(1)));
        let early = waits.iter().filter(|wait| **wait < FIRST_SPREAD / 2).count();
        assert!((1..40).contains(&early), "{waits:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_end_at_once_are_paced_and_the_first_ones_are_not() {
        let mut tries = Tries::new(true).for_connections(3);
        for _ in 0..3 {
            assert_eq!(wait(&mut tries, true).await, Duration::ZERO);
            tries.succeeded();
        }
        assert!(wait(&mut tries, true).await >= PAUSE);
        let mut listener = Tries::new(true);
        for _ in 0..10 {
            assert_eq!(wait(&mut listener, false).await, Duration::ZERO);
            listener.succeeded();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_that_cannot_change_is_tried_rarely() {
        let mut tries = Tries::new(true);
        tries.begin(true).await;
        let mut waits = Vec::new();
        for _ in 0..8 {
            tries.failed(refused(RejectReason::BAD_SECRET)).expect("another try");
            waits.push(wait(&mut tries, true).await);
        }
        assert!(waits[0] >= 2 * PAUSE && waits[0] <= 4 * PAUSE, "{waits:?}");
        assert!(waits[7] >= LONGEST_PAUSE && waits[7] <= LONGEST_PAUSE * 2, "{waits:?}");
        // A listener that is full may have room at any time.
        tries.failed(refused(RejectReason::BACKLOG)).expect("another try");
        assert!(wait(&mut tries, true).await < 2 * PAUSE);
    }

    #[test]
    fn a_full_disk_is_tried_three_times() {
        let full = || Failure::runtime("disk full").unwritable();
        let mut tries = Tries::new(true);
        // A connection that ends otherwise has had room to write.
        for failure in [full(), full(), Failure::runtime("it broke"), full(), full()] {
            assert!(tries.failed(failure).is_ok());
        }
        let end = tries.failed(full()).expect_err("the third in a row").to_string();
        assert!(end.starts_with("disk full (given up after 3 tries"), "{end}");
    }
}
