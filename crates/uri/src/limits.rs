//! The keys that files and TCP have in common: sizes and times at which reading or writing ends.

use std::time::Duration;

use punctual_units::{parse_bytes_in, parse_duration_in};

use crate::error::ValueError;
use crate::key::{KeyEffect, UriKey};

/// The limits of a file or a TCP connection, and the size of its reads and writes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Limits {
    /// The bytes after which it ends.
    pub max_size: Option<u64>,
    /// The time from its opening after which it ends.
    pub max_time: Option<Duration>,
    /// The time without any byte after which it ends.
    pub max_idle: Option<Duration>,
    /// The most bytes that are read or written at once.
    pub io_size: Option<usize>,
}

/// A target with limits.
pub(crate) trait Limited {
    /// Its limits, to be set.
    fn limits(&mut self) -> &mut Limits;
}

/// `maxsize`.
pub(crate) const fn max_size<T: Limited>() -> UriKey<T> {
    UriKey::new(
        "maxsize",
        &[],
        "1 byte and up; default: no limit",
        "end after this number of bytes",
        KeyEffect::Set(|target, value| {
            let bytes = parse_bytes_in(value, 1)?;
            if bytes == 0 {
                return Err(ValueError("it must be 1 byte and up".to_owned()));
            }
            target.limits().max_size = Some(bytes);
            Ok(())
        }),
    )
}

/// `maxtime`.
pub(crate) const fn max_time<T: Limited>() -> UriKey<T> {
    UriKey::new(
        "maxtime",
        &[],
        "1 ms and up; default: no limit",
        "end this time after it was opened",
        KeyEffect::Set(|target, value| {
            target.limits().max_time = Some(time(value)?);
            Ok(())
        }),
    )
}

/// `maxidle`, with this effect.
pub(crate) const fn max_idle<T: Limited>(about: &'static str) -> UriKey<T> {
    UriKey::new(
        "maxidle",
        &[],
        "1 ms and up; default: no limit",
        about,
        KeyEffect::Set(|target, value| {
            target.limits().max_idle = Some(time(value)?);
            Ok(())
        }),
    )
}

/// `iosize`.
pub(crate) const fn io_size<T: Limited>() -> UriKey<T> {
    UriKey::new(
        "iosize",
        &[],
        "188 bytes to 1 MiB; default 64KiB",
        "most bytes that are read or written at once",
        KeyEffect::Set(|target, value| {
            let bytes = usize::try_from(parse_bytes_in(value, 1)?).unwrap_or(usize::MAX);
            if !(188..=1 << 20).contains(&bytes) {
                return Err(ValueError("it must be 188 bytes to 1 MiB".to_owned()));
            }
            target.limits().io_size = Some(bytes);
            Ok(())
        }),
    )
}

fn time(value: &str) -> Result<Duration, ValueError> {
    let time = parse_duration_in(value, Duration::from_millis(1))?;
    if time < Duration::from_millis(1) {
        return Err(ValueError("it must be 1 ms and up".to_owned()));
    }
    Ok(time)
}
