//! A limit for log messages that strangers can cause.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use punctual_units::Instant;

/// Limits the messages of one kind in a log: single messages are logged one by one, and of many
/// only the number is logged, once a second. So a peer that can cause a message, such as a caller
/// that is refused, cannot flood the log.
///
/// A burst of messages may follow each other at once; each second, a tenth of a burst is regained.
///
/// ```
/// use punctual::Gathered;
///
/// let refused = Gathered::new(10, |more| println!("… and {more} more callers were refused"));
/// for caller in 0..1_000 {
///     refused.say(|| println!("caller {caller} was refused"));
/// }
/// ```
///
/// Clones share one limit. Within a tokio runtime the number of suppressed messages is logged when
/// a second has passed, otherwise with the next message; in any case when the last clone is
/// dropped.
#[derive(Clone, Debug)]
pub struct Gathered {
    inner: Arc<GatheredState>,
}

struct GatheredState {
    limit: Mutex<MessageLimit>,
    more: Box<dyn Fn(u64) + Send + Sync>,
}

impl Gathered {
    /// A limit of `burst` messages at once, at least one. `more` is called with the number of
    /// messages that were suppressed within the last second.
    pub fn new(burst: u32, more: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let limit = Mutex::new(MessageLimit::new(burst));
        Self { inner: Arc::new(GatheredState { limit, more: Box::new(more) }) }
    }

    /// Logs one message by calling `say`, or only counts it.
    pub fn say(&self, say: impl FnOnce()) {
        let now = punctual_io::now();
        let (suppressed, verdict) = {
            let mut limit = self.inner.lock();
            (limit.take_suppressed(now), limit.count(now))
        };
        // Called without the lock, since writing a log may block.
        self.inner.report(suppressed);
        match verdict {
            CallerVerdict::Say => say(),
            CallerVerdict::Count => {}
            CallerVerdict::CountUntil(end) => self.inner.report_at(end),
        }
    }
}

impl GatheredState {
    fn report(&self, suppressed: Option<u64>) {
        if let Some(suppressed) = suppressed {
            (self.more)(suppressed);
        }
    }

    /// Reports the number of suppressed messages at `end`.
    fn report_at(self: &Arc<Self>, end: Instant) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let inner: Weak<Self> = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(end.saturating_since(punctual_io::now())).await;
            if let Some(inner) = inner.upgrade() {
                let suppressed = inner.lock().take_suppressed(end);
                inner.report(suppressed);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, MessageLimit> {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GatheredState {
    fn drop(&mut self) {
        let suppressed = self.lock().suppressed.take().map(|(_, count)| count);
        self.report(suppressed);
    }
}

impl fmt::Debug for GatheredState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// The limit of the messages of one kind, without a clock of its own: a token bucket.
#[derive(Debug)]
struct MessageLimit {
    burst: u32,
    /// The messages that may still be logged at once, in thousandths.
    credit: u64,
    /// The time up to which `credit` is computed.
    credited: Option<Instant>,
    /// The time until which messages are only counted, and their number.
    suppressed: Option<(Instant, u64)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CallerVerdict {
    Say,
    Count,
    /// The first message that is only counted; their number is to be reported at this time.
    CountUntil(Instant),
}

impl MessageLimit {
    fn new(burst: u32) -> Self {
        let burst = burst.max(1);
        Self { burst, credit: u64::from(burst) * 1_000, credited: None, suppressed: None }
    }

    /// Counts a message.
    fn count(&mut self, now: Instant) -> CallerVerdict {
        self.earn(now);
        if let Some((_, count)) = &mut self.suppressed {
            *count += 1;
            return CallerVerdict::Count;
        }
        match self.credit.checked_sub(1_000) {
            Some(left) => {
                self.credit = left;
                CallerVerdict::Say
            }
            None => {
                let end = now + PERIOD;
                self.suppressed = Some((end, 1));
                CallerVerdict::CountUntil(end)
            }
        }
    }

    /// The number of messages suppressed within a second that has ended.
    fn take_suppressed(&mut self, now: Instant) -> Option<u64> {
        let (_, count) = self.suppressed.take_if(|(end, _)| *end <= now)?;
        Some(count)
    }

    /// Adds a tenth of the burst per second to the credit.
    fn earn(&mut self, now: Instant) {
        let since = self.credited.map_or(Duration::ZERO, |last| now.saturating_since(last));
        let earned = since.as_millis() * u128::from(self.burst) / 10;
        let limit = u64::from(self.burst) * 1_000;
        if earned > 0 || self.credited.is_none() {
            self.credited = Some(now);
            let earned = u64::try_from(earned).unwrap_or(limit);
            self.credit = self.credit.saturating_add(earned).min(limit);
        }
    }
}

/// The interval at which the number of suppressed messages is reported.
const PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(5_000 + millis)
    }

    #[test]
    fn few_messages_are_all_logged() {
        let mut limit = MessageLimit::new(10);
        for second in 0..100 {
            assert_eq!(limit.count(at(second * 1_000)), CallerVerdict::Say, "second {second}");
            assert_eq!(limit.take_suppressed(at(second * 1_000)), None);
        }
    }

    #[test]
    fn the_number_of_many_messages_is_reported_once_a_second() {
        let mut limit = MessageLimit::new(10);
        let (mut logged, mut reported, mut lines) = (0, 0, 0);
        // 20,000 a second for 15 s.
        for message in 0..300_000_u64 {
            let now = at(message / 20);
            if let Some(count) = limit.take_suppressed(now) {
                reported += count;
                lines += 1;
            }
            logged += u64::from(limit.count(now) == CallerVerdict::Say);
        }
        reported += limit.take_suppressed(at(20_000)).expect("the last ones");
        assert_eq!(logged + reported, 300_000);
        assert!(logged <= 10 + 15, "{logged} were logged");
        assert!((13..=15).contains(&lines), "{lines} lines");
    }

    #[test]
    fn after_a_pause_a_whole_burst_is_logged_again() {
        let mut limit = MessageLimit::new(10);
        let logged = |limit: &mut MessageLimit, now| {
            (0..1_000).filter(|_| limit.count(now) == CallerVerdict::Say).count()
        };
        assert_eq!(logged(&mut limit, at(0)), 10);
        assert_eq!(limit.take_suppressed(at(999)), None);
        assert_eq!(limit.take_suppressed(at(1_000)), Some(990));
        assert_eq!(logged(&mut limit, at(1_000)), 1);
        assert_eq!(limit.take_suppressed(at(2_000)), Some(999));
        assert_eq!(logged(&mut limit, at(60_000)), 10);
    }

    #[test]
    fn messages_in_short_intervals_still_earn_credit() {
        let mut limit = MessageLimit::new(1);
        assert_eq!(limit.count(at(0)), CallerVerdict::Say);
        // Each interval earns less than a thousandth of a message.
        let mut logged = 0;
        for millis in 1..=30_000 {
            limit.take_suppressed(at(millis));
            logged += u32::from(limit.count(at(millis)) == CallerVerdict::Say);
        }
        assert_eq!(logged, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_is_reported_when_the_second_has_passed() {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let report = Arc::clone(&reports);
        let gathered = Gathered::new(2, move |more| report.lock().unwrap().push(more));
        let mut logged = 0;
        (0..5).for_each(|_| gathered.say(|| logged += 1));
        assert_eq!(logged, 2);
        tokio::time::sleep(PERIOD * 2).await;
        assert_eq!(*reports.lock().unwrap(), [3]);
    }

    #[test]
    fn without_a_runtime_the_number_is_reported_at_the_end() {
        let reported = Arc::new(Mutex::new(0));
        let report = Arc::clone(&reported);
        let gathered = Gathered::new(1, move |more| *report.lock().unwrap() += more);
        (0..5).for_each(|_| gathered.say(|| ()));
        drop(gathered);
        assert_eq!(*reported.lock().unwrap(), 4);
    }
}
