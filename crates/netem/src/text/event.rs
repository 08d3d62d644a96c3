//! Events of a timeline, one a line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use punctual_units::{parse_bitrate_in_bits, parse_duration};

use crate::change::Change;
use crate::loss::Loss;
use crate::text::key::{KEYS, unknown};
use crate::text::show::{Rate, Time, share};
use crate::text::{LinkTextError, nearest};
use crate::timeline::{Action, Event, Ramp, Timeline};

impl FromStr for Event {
    type Err = LinkTextError;

    /// Reads one event: `20s: delay=300ms over 2s`. See [`Timeline`] for all forms.
    fn from_str(text: &str) -> Result<Self, LinkTextError> {
        let (when, what) = text.split_once(':').ok_or_else(|| {
            LinkTextError::new(format!(
                "`{}`: write when, a colon and what happens: 20s: delay=300ms",
                text.trim()
            ))
        })?;
        let event = when_it_is(when)?;
        Ok(Self { action: action(what)?, ..event })
    }
}

impl FromStr for Timeline {
    type Err = LinkTextError;

    fn from_str(text: &str) -> Result<Self, LinkTextError> {
        let several = text.trim_end().contains('\n');
        let mut timeline = Self::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let add = |timeline: &mut Self| {
                let (when, actions) = line.split_once(':').unwrap_or((line, ""));
                for part in actions.split(';') {
                    if timeline.events().len() == MOST_EVENTS {
                        return Err(LinkTextError::new("at most 100,000 events are possible"));
                    }
                    let event = if line.contains(':') {
                        format!("{when}:{part}").parse()
                    } else {
                        line.parse()
                    };
                    timeline.push(event?);
                }
                Ok(())
            };
            if !line.is_empty() {
                let located =
                    |error: LinkTextError| if several { error.at_line(number) } else { error };
                add(&mut timeline).map_err(located)?;
            }
        }
        Ok(timeline)
    }
}

impl fmt::Display for Event {
    /// Prints what reads as the same event.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Time(self.at).fmt(f)?;
        if let Some(every) = self.every {
            write!(f, " every {}", Time(every))?;
        }
        if let Some(until) = self.until {
            write!(f, " until {}", Time(until))?;
        }
        write!(f, ": {}", self.action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(change) => change.fmt(f),
            Self::Ramp { to: Ramp::Rate(rate), over } => {
                write!(f, "rate={} over {}", Rate(*rate), Time(*over))
            }
            Self::Ramp { to: Ramp::Delay(delay), over } => {
                write!(f, "delay={} over {}", Time(*delay), Time(*over))
            }
            Self::Ramp { to: Ramp::Loss(loss), over } => {
                write!(f, "loss={} over {}", share(*loss), Time(*over))
            }
            Self::Outage(duration) => write!(f, "outage {}", Time(*duration)),
            Self::Stall { duration, drain: None } => write!(f, "stall {}", Time(*duration)),
            Self::Stall { duration, drain: Some(rate) } => {
                write!(f, "stall {} drain {}", Time(*duration), Rate(*rate))
            }
        }
    }
}

impl fmt::Display for Timeline {
    /// Prints one event a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events().iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}

/// `20s`, `20s every 30s until 5min` or `every 30s`, as an event of which only that is of use.
fn when_it_is(text: &str) -> Result<Event, LinkTextError> {
    let mut words = text.split_whitespace().peekable();
    let mut event = Event::once(Duration::ZERO, Action::Outage(Duration::ZERO));
    let mut begins = None;
    let is_time = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit() || ".-".contains(c));
    if let Some(first) = words.next_if(is_time) {
        begins = Some(parse_duration(first)?);
    }
    while let Some(word) = words.next() {
        let mut time = || match words.next() {
            Some(time) => Ok(parse_duration(time)?),
            None => Err(LinkTextError::new(format!("after `{word}` comes a time: {word} 30s"))),
        };
        match word {
            "every" => {
                let period = time()?;
                if period < Duration::from_millis(1) {
                    let problem = format!("`every {}`: at least 1ms is possible", Time(period));
                    return Err(LinkTextError::new(problem));
                }
                event.every = Some(period);
            }
            "until" => event.until = Some(time()?),
            _ => {
                let meant = match nearest(word, ["every", "until"]) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "before the colon, write a time, `every` TIME, `until` TIME".to_owned(),
                };
                return Err(LinkTextError::new(format!("`{word}`: {meant}")));
            }
        }
    }
    match begins.or(event.every) {
        Some(at) => Ok(Event { at, ..event }),
        None => Err(LinkTextError::new("when? write a time before the colon: 20s: delay=300ms")),
    }
}

/// The text after the colon.
fn action(text: &str) -> Result<Action, LinkTextError> {
    if let Some((key, value)) = text.split_once('=') {
        return set_or_ramp(key.trim(), value.trim());
    }
    let words: Vec<_> = text.split_whitespace().collect();
    match words[..] {
        ["outage", time] => Ok(Action::Outage(parse_duration(time)?)),
        ["stall", time] => Ok(Action::Stall { duration: parse_duration(time)?, drain: None }),
        ["stall", time, "drain", drain] => Ok(Action::Stall {
            duration: parse_duration(time)?,
            drain: Some(parse_bitrate_in_bits(drain)?),
        }),
        ["outage", ..] => Err(LinkTextError::new("write how long: outage 1s")),
        ["stall", ..] => {
            Err(LinkTextError::new("write how long, and how it drains: stall 1s drain 12Mbps"))
        }
        [word, ..] => {
            let known = ["outage", "stall"].into_iter().chain(KEYS.iter().map(|key| key.name));
            Err(LinkTextError::new(match nearest(word, known) {
                Some(meant @ ("outage" | "stall")) => {
                    format!("`{word}`: did you mean `{meant}`?")
                }
                Some(meant) => format!("`{word}`: did you mean `{meant}=...`?"),
                None => format!("`{word}`: write KEY=VALUE, outage TIME or stall TIME"),
            }))
        }
        [] => Err(LinkTextError::new("what happens? write KEY=VALUE, outage TIME or stall TIME")),
    }
}

fn set_or_ramp(key: &str, value: &str) -> Result<Action, LinkTextError> {
    if KEYS.iter().all(|known| known.name != key) {
        return Err(unknown(key, KEYS.iter().map(|key| key.name)));
    }
    let (value, over) = match value.split_once(char::is_whitespace) {
        None => (value, None),
        Some((value, rest)) => {
            let words: Vec<_> = rest.split_whitespace().collect();
            let ["over", time] = words[..] else {
                let rest = rest.trim();
                return Err(LinkTextError::new(format!("`{rest}`: only `over` TIME can follow")));
            };
            (value, Some(parse_duration(time)?))
        }
    };
    let change = Change::parse(key, value).map_err(|error| error.of(key))?;
    let Some(over) = over else { return Ok(Action::Set(change)) };
    let to = match change {
        Change::Rate(Some(rate)) => Ramp::Rate(rate),
        Change::Delay(delay) => Ramp::Delay(delay),
        Change::Loss(Loss::None) => Ramp::Loss(0.0),
        Change::Loss(Loss::Random(share)) => Ramp::Loss(share),
        _ => {
            return Err(LinkTextError::new(format!(
                "`{key}={value}` cannot come little by little; only a rate, a delay and a share \
                 of loss can (leave out `over`)"
            )));
        }
    };
    Ok(Action::Ramp { to, over })
}

/// The greatest number of events: a longer timeline should be a trace.
const MOST_EVENTS: usize = 100_000;
