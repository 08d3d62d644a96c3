//! Messages that strangers can cause, kept few.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use punctual_units::Instant;

/// Says messages of one kind, as long as they are few; of masses it says how many they are, once a
/// second. So whoever can cause a message, such as a caller that is refused, cannot flood a log.
///
/// There is a burst of messages that may follow each other at once, and a tenth of it comes back
/// each second.
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
/// Clones count together. Within a tokio runtime the number is said as soon as a second is over,
/// else with the next message, or when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Gathered {
    inner: Arc<Inner>,
}

struct Inner {
    repeats: Mutex<Repeats>,
    more: Box<dyn Fn(u64) + Send + Sync>,
}

impl Gathered {
    /// Lets `burst` messages follow each other at once, at least one. `more` says how many were
    /// left out within the last second.
    pub fn new(burst: u32, more: impl Fn(u64) + Send + Sync + 'static) -> Self {
        let repeats = Mutex::new(Repeats::new(burst));
        Self { inner: Arc::new(Inner { repeats, more: Box::new(more) }) }
    }

    /// Says one message by `say`, or counts it.
    pub fn say(&self, say: impl FnOnce()) {
        let now = punctual_io::now();
        let (left_out, verdict) = {
            let mut repeats = self.inner.lock();
            (repeats.take(now), repeats.note(now))
        };
        // Without the lock: whoever writes a log may have to wait for it.
        self.inner.tell(left_out);
        match verdict {
            Verdict::Say => say(),
            Verdict::Count => {}
            Verdict::CountUntil(end) => self.inner.watch(end),
        }
    }
}

impl Inner {
    fn tell(&self, left_out: Option<u64>) {
        if let Some(left_out) = left_out {
            (self.more)(left_out);
        }
    }

    /// Says at `end` how many were left out.
    fn watch(self: &Arc<Self>, end: Instant) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let inner: Weak<Self> = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(end.saturating_since(punctual_io::now())).await;
            if let Some(inner) = inner.upgrade() {
                let left_out = inner.lock().take(end);
                inner.tell(left_out);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Repeats> {
        self.repeats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let left_out = self.lock().left_out.take().map(|(_, count)| count);
        self.tell(left_out);
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered").field("repeats", &self.repeats).finish_non_exhaustive()
    }
}

/// The rule, without a clock.
#[derive(Debug)]
struct Repeats {
    burst: u32,
    /// How many more may be said at once, in thousandths of a message.
    credit: u64,
    /// Up to when the credit is reckoned.
    reckoned: Option<Instant>,
    /// Until when messages are only counted, and how many were.
    left_out: Option<(Instant, u64)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Say,
    Count,
    /// The first one that is only counted: at this time it is said how many were.
    CountUntil(Instant),
}

impl Repeats {
    fn new(burst: u32) -> Self {
        let burst = burst.max(1);
        Self { burst, credit: u64::from(burst) * 1_000, reckoned: None, left_out: None }
    }

    fn note(&mut self, now: Instant) -> Verdict {
        self.earn(now);
        if let Some((_, count)) = &mut self.left_out {
            *count += 1;
            return Verdict::Count;
        }
        match self.credit.checked_sub(1_000) {
            Some(left) => {
                self.credit = left;
                Verdict::Say
            }
            None => {
                let end = now + PERIOD;
                self.left_out = Some((end, 1));
                Verdict::CountUntil(end)
            }
        }
    }

    /// How many were left out, if the second is over in which they were.
    fn take(&mut self, now: Instant) -> Option<u64> {
        let (_, count) = self.left_out.take_if(|(end, _)| *end <= now)?;
        Some(count)
    }

    /// A tenth of the burst comes back each second.
    fn earn(&mut self, now: Instant) {
        let since = self.reckoned.map_or(Duration::ZERO, |last| now.saturating_since(last));
        let earned = since.as_millis() * u128::from(self.burst) / 10;
        let limit = u64::from(self.burst) * 1_000;
        if earned > 0 || self.reckoned.is_none() {
            self.reckoned = Some(now);
            let earned = u64::try_from(earned).unwrap_or(limit);
            self.credit = self.credit.saturating_add(earned).min(limit);
        }
    }
}

/// How often it is said how many messages were left out.
const PERIOD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(5_000 + millis)
    }

    #[test]
    fn few_messages_are_all_said() {
        let mut repeats = Repeats::new(10);
        for second in 0..100 {
            assert_eq!(repeats.note(at(second * 1_000)), Verdict::Say, "second {second}");
            assert_eq!(repeats.take(at(second * 1_000)), None);
        }
    }

    #[test]
    fn of_masses_one_line_a_second_says_how_many_they_were() {
        let mut repeats = Repeats::new(10);
        let (mut said, mut told, mut lines) = (0, 0, 0);
        // 20,000 a second for 15 s.
        for message in 0..300_000_u64 {
            let now = at(message / 20);
            if let Some(count) = repeats.take(now) {
                told += count;
                lines += 1;
            }
            said += u64::from(repeats.note(now) == Verdict::Say);
        }
        told += repeats.take(at(20_000)).expect("the last ones");
        assert_eq!(said + told, 300_000);
        assert!(said <= 10 + 15, "{said} were said");
        assert!((13..=15).contains(&lines), "{lines} lines");
    }

    #[test]
    fn after_a_pause_a_burst_is_said_again() {
        let mut repeats = Repeats::new(10);
        let said = |repeats: &mut Repeats, now| {
            (0..1_000).filter(|_| repeats.note(now) == Verdict::Say).count()
        };
        assert_eq!(said(&mut repeats, at(0)), 10);
        assert_eq!(repeats.take(at(999)), None);
        assert_eq!(repeats.take(at(1_000)), Some(990));
        assert_eq!(said(&mut repeats, at(1_000)), 1);
        assert_eq!(repeats.take(at(2_000)), Some(999));
        assert_eq!(said(&mut repeats, at(60_000)), 10);
    }

    #[test]
    fn a_trickle_of_notes_still_earns_credit() {
        let mut repeats = Repeats::new(1);
        assert_eq!(repeats.note(at(0)), Verdict::Say);
        // Notes come so often that each earns less than a thousandth of a message.
        let mut said = 0;
        for millis in 1..=30_000 {
            repeats.take(at(millis));
            said += u32::from(repeats.note(at(millis)) == Verdict::Say);
        }
        assert_eq!(said, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_is_said_when_the_second_is_over() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let gathered = Gathered::new(2, move |more| tell.lock().unwrap().push(more));
        let mut said = 0;
        (0..5).for_each(|_| gathered.say(|| said += 1));
        assert_eq!(said, 2);
        tokio::time::sleep(PERIOD * 2).await;
        assert_eq!(*told.lock().unwrap(), [3]);
    }

    #[test]
    fn without_a_runtime_the_number_is_said_at_the_end() {
        let told = Arc::new(Mutex::new(0));
        let tell = Arc::clone(&told);
        let gathered = Gathered::new(1, move |more| *tell.lock().unwrap() += more);
        (0..5).for_each(|_| gathered.say(|| ()));
        drop(gathered);
        assert_eq!(*told.lock().unwrap(), 4);
    }
}
