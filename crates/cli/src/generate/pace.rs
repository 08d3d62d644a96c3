//! The times of messages: an absolute schedule, so that delays do not add up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use punctual::{Bitrate, Instant};
use punctual_units::read_text;

use crate::args::GenerateArgs;
use crate::exit::Failure;

/// The time of each message since the start, and the number of messages.
#[derive(Clone, Debug)]
pub(crate) struct MessageTimes {
    times: Times,
    /// The number of messages; `None` for no limit.
    limit: Option<u64>,
    /// The time from which on no message is sent; `None` for no limit.
    duration: Option<Duration>,
}

#[derive(Clone, Debug)]
enum Times {
    /// At once.
    Now,
    /// Messages of `size` bytes at a rate.
    Rate { rate: Bitrate, size: u64 },
    /// The times from a file, repeated.
    Playback(Arc<[Duration]>),
}

/// The times of one stream.
#[derive(Debug)]
pub(crate) struct Schedule<'a> {
    pace: &'a MessageTimes,
    /// The origin of the times, which moves when the stream falls too far behind.
    origin: Instant,
    start: Instant,
    taken: u64,
    /// The latest instant given.
    now: Instant,
    behind: Duration,
}

impl MessageTimes {
    /// The pace that the options ask for, at this rate if they have no times.
    pub(crate) fn new(args: &GenerateArgs, rate: Bitrate) -> Result<Self, Failure> {
        let times = match (&args.playback_csv, rate) {
            (Some(path), _) => Times::Playback(read_times(path)?),
            (None, Bitrate::ZERO) => Times::Now,
            (None, rate) => Times::Rate { rate, size: args.msgsize as u64 },
        };
        Ok(Self { times, limit: args.limit(), duration: args.duration() })
    }

    /// The schedule of a stream that starts at `now`.
    pub(crate) fn start(&self, now: Instant) -> Schedule<'_> {
        Schedule { pace: self, origin: now, start: now, taken: 0, now, behind: Duration::ZERO }
    }

    /// The time of message `number` since the start; `None` if there is none.
    fn time(&self, number: u64) -> Option<Duration> {
        if self.limit.is_some_and(|limit| number >= limit) {
            return None;
        }
        let time = match &self.times {
            Times::Now => Duration::ZERO,
            Times::Rate { rate, size } => rate.time_for(number.saturating_mul(*size)),
            Times::Playback(times) => {
                let (turn, place) = (number / times.len() as u64, number % times.len() as u64);
                let turn = u32::try_from(turn).unwrap_or(u32::MAX);
                let last = times[times.len() - 1];
                let place = usize::try_from(place).expect("it is less than a length");
                last.saturating_mul(turn) + times[place]
            }
        };
        Some(time).filter(|time| self.duration.is_none_or(|duration| *time < duration))
    }
}

impl Schedule<'_> {
    /// The time at which the next message is due; `None` after the last one.
    pub(crate) fn next(&self) -> Option<Instant> {
        let time = self.pace.time(self.taken)?;
        let due = match self.pace.times {
            Times::Now => self.now,
            Times::Rate { .. } | Times::Playback(_) => self.origin + time,
        };
        let is_over = |duration| due >= self.start + duration;
        (!self.pace.duration.is_some_and(is_over)).then_some(due)
    }

    /// Whether messages have times; otherwise they are sent as fast as possible.
    pub(crate) fn is_paced(&self) -> bool {
        !matches!(self.pace.times, Times::Now)
    }

    /// Takes the next message if it is due at `now`.
    ///
    /// A stream that could not be sent for longer than [`CATCH_UP`] goes on from there, and does
    /// not catch up in one burst.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        self.now = now;
        let Some(due) = self.next().filter(|due| *due <= now) else { return false };
        let late = now.saturating_since(due);
        if late > CATCH_UP && self.is_paced() {
            self.origin += late;
            self.behind += late;
        }
        self.taken += 1;
        true
    }

    /// The time of the stream that was left out because it could not be sent in time; `None` if
    /// nothing was.
    pub(crate) fn fell_behind(&self) -> Option<punctual_units::DisplayDuration> {
        (!self.behind.is_zero()).then_some(punctual_units::DisplayDuration(self.behind))
    }
}

/// Reads times in seconds, one in each line, in ascending order.
fn read_times(path: &Path) -> Result<Arc<[Duration]>, Failure> {
    let text = read_text(path).map_err(|error| Failure::file(path, &error))?;
    let mut times: Vec<Duration> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: &str| {
            let place = format!("{}, line {}", path.display(), number + 1);
            Failure::usage(format!("{place}: `{}` {what}", line.trim()))
        };
        let seconds: f64 = line
            .split(',')
            .next()
            .and_then(|field| field.trim().parse().ok())
            .ok_or_else(|| wrong("is not a number of seconds"))?;
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|_| wrong("is not a time since the start"))?;
        if times.last().is_some_and(|last| time < *last) {
            return Err(wrong("is earlier than the line before"));
        }
        times.push(time);
    }
    if times.last().is_none_or(Duration::is_zero) {
        let message = format!("{} holds no times after the start", path.display());
        return Err(Failure::usage(message));
    }
    Ok(times.into())
}

/// The longest delay behind the schedule that a stream still makes up for.
const CATCH_UP: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn pace(times: Times) -> MessageTimes {
        MessageTimes { times, limit: None, duration: None }
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// 1 ms a message.
    fn a_millisecond() -> Times {
        Times::Rate { rate: Bitrate::from_bits_per_sec(8_000_000), size: 1_000 }
    }

    #[test]
    fn a_rate_is_exact_however_long_it_lasts() {
        let pace = pace(Times::Rate { rate: Bitrate::from_mbps(5), size: 1_316 });
        assert_eq!(pace.time(1), Some(Duration::from_nanos(2_105_600)));
        assert_eq!(pace.time(475_000), Some(Duration::from_nanos(2_105_600 * 475_000)));
    }

    #[test]
    fn number_and_duration_limit_the_stream() {
        let ten = MessageTimes { limit: Some(10), ..pace(a_millisecond()) };
        assert_eq!((ten.time(9).is_some(), ten.time(10)), (true, None));
        let second =
            MessageTimes { duration: Some(Duration::from_secs(1)), ..pace(a_millisecond()) };
        assert_eq!((second.time(999).is_some(), second.time(1_000)), (true, None));
        let now = MessageTimes { duration: Some(Duration::from_secs(1)), ..pace(Times::Now) };
        let mut schedule = now.start(ms(0));
        assert!(schedule.take(ms(999)));
        assert!(!schedule.take(ms(1_000)));
        assert_eq!(schedule.next(), None);
    }

    #[test]
    fn a_small_delay_is_caught_up_and_a_long_one_left_out() {
        let pace = pace(a_millisecond());
        let mut schedule = pace.start(ms(100));
        assert!(schedule.take(ms(100)));
        assert!(!schedule.take(ms(100)));
        let caught_up = (0..).take_while(|_| schedule.take(ms(150))).count();
        assert_eq!(caught_up, 50);
        assert!(schedule.fell_behind().is_none());
        assert!(schedule.take(ms(451)));
        assert_eq!(schedule.next(), Some(ms(452)));
        assert_eq!(schedule.fell_behind().unwrap().to_string(), "300 ms");
    }

    #[test]
    fn a_playback_begins_again_at_its_end() {
        let times = [0, 3, 10].map(Duration::from_millis);
        let pace = pace(Times::Playback(times.into()));
        let at: Vec<u128> = (0..6).map(|n| pace.time(n).unwrap().as_millis()).collect();
        assert_eq!(at, [0, 3, 10, 10, 13, 20]);
    }

    #[test]
    fn a_playback_file_is_checked_line_by_line() {
        let folder = std::env::temp_dir().join(format!("punctual-pace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let read = |text: &str| {
            let path = folder.join("times.csv");
            fs::write(&path, text).unwrap();
            read_times(&path).map_err(|failure| failure.to_string())
        };
        assert_eq!(read("0.0\n0.003\n\n0.01\n").unwrap().len(), 3);
        assert_eq!(read("\u{FEFF}0.0\r\n0.003\r\n").unwrap().len(), 2);
        assert!(read("0\nsoon\n").unwrap_err().contains("line 2: `soon` is not a number"));
        assert!(read("1\n0.5\n").unwrap_err().contains("earlier than the line before"));
        assert!(read("-1\n").unwrap_err().contains("is not a time"));
        assert!(read("\n").unwrap_err().contains("no times"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
