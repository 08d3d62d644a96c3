//! The table of options: name, type, unit, range, default, end, phase and effect of each, with
//! typed access to its value.
//!
//! URIs, `punctual options`, the C library and the documentation use this table. A row of
//! [`CONNECTION_OPTIONS`] gets and sets one option of a [`Config`]; the library has such rows for
//! the options of a UDP port.

mod c_form;
mod range;
mod table;
mod value;

pub use self::c_form::{CDefault, COption, Takes};
use self::range::Measured;
pub use self::range::OptionRange;
pub use self::table::CONNECTION_OPTIONS;
pub use self::value::OptionValue;
use crate::config::Config;
use crate::error::ConfigError;
use std::fmt::Debug;

/// The description of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptionInfo {
    /// The name, lower case: libsrt's without `SRTO_` where libsrt has the option.
    pub name: &'static str,
    /// Other names in URIs, from FFmpeg, GStreamer and the SRT tools.
    pub aliases: &'static [&'static str],
    /// The option in the C library.
    pub c: COption,
    /// The type of the values.
    pub kind: OptionKind,
    /// The unit of bare numbers (`ms`, `bytes/s`), or the sort of value (`switch`, `text`).
    pub unit: &'static str,
    /// The valid values.
    pub range: OptionRange,
    /// The default.
    pub default: &'static str,
    /// The end at which the option has an effect.
    pub applies_to: AppliesTo,
    /// The phase until which the option can be set.
    pub phase: OptionPhase,
    /// The effect, in one line.
    pub effect: &'static str,
}

/// The type of an option's values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OptionKind {
    /// On or off.
    Switch,
    /// A whole number; some options also take words for special values.
    Number,
    /// A time. A bare number is in milliseconds.
    Milliseconds,
    /// A time. A bare number is in seconds.
    Seconds,
    /// A rate. A bare number is in bytes per second.
    Rate,
    /// A share of packets, 0 to 1.
    Share,
    /// Text, or one of several words.
    Text,
}

/// The end at which an option has an effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AppliesTo {
    /// Both ends: the handshake combines their values, or each end uses its own.
    Both,
    /// The end that calls.
    Caller,
    /// The end that waits for calls.
    Listener,
    /// The end that sends the stream.
    Sender,
    /// The end that receives the stream.
    Receiver,
    /// This end: its local address.
    Local,
    /// The UDP port, with all its connections.
    Port,
}

impl AppliesTo {
    /// The end in words: `both ends`, `caller`, `listener`, `sender`, `receiver`, `this end` or
    /// `UDP port`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Both => "both ends",
            Self::Caller => "caller",
            Self::Listener => "listener",
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Local => "this end",
            Self::Port => "UDP port",
        }
    }
}

/// The phase until which an option can be set. The phases are libsrt's, so that programs for libsrt
/// find the same rules.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum OptionPhase {
    /// Until the socket is bound to a UDP port.
    BeforeBinding,
    /// Until the socket connects or listens.
    BeforeConnecting,
    /// At any time: on an established connection it takes effect at once.
    AnyTime,
}

impl OptionPhase {
    /// The phase in words: `before binding`, `before connecting` or `any time`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BeforeBinding => "before binding",
            Self::BeforeConnecting => "before connecting",
            Self::AnyTime => "any time",
        }
    }
}

impl OptionInfo {
    /// Whether this is the option's name.
    pub const fn is_named(&self, name: &str) -> bool {
        let (own, name) = (self.name.as_bytes(), name.as_bytes());
        let mut index = 0;
        while index < own.len() && index < name.len() && own[index] == name[index] {
            index += 1;
        }
        index == own.len() && index == name.len()
    }

    /// Whether libsrt has the option.
    pub const fn is_of_libsrt(&self) -> bool {
        self.c.number < COption::OWN
    }

    /// The name in libsrt, such as `SRTO_LATENCY`; `None` if libsrt does not have the option.
    pub fn libsrt_name(&self) -> Option<String> {
        self.is_of_libsrt().then(|| format!("SRTO_{}", self.name.to_uppercase()))
    }
}

/// An option of a `T` ([`Config`], or the library's options of a UDP port): its description, and
/// typed access to its value.
#[derive(Clone, Copy, Debug)]
pub struct TypedOption<T: 'static> {
    /// The description of the option.
    pub info: OptionInfo,
    get: fn(&T) -> Option<OptionValue>,
    set: fn(T, &OptionValue) -> Option<Result<T, ConfigError>>,
}

impl<T> TypedOption<T> {
    /// An option with this description, which `get` reads and `set` sets. `get` returns `None` for
    /// a secret value, `set` for a value of a wrong type.
    pub const fn new(
        info: OptionInfo,
        get: fn(&T) -> Option<OptionValue>,
        set: fn(T, &OptionValue) -> Option<Result<T, ConfigError>>,
    ) -> Self {
        Self { info, get, set }
    }

    /// The option with this name in `table`.
    pub fn find(table: &'static [Self], name: &str) -> Option<&'static Self> {
        table.iter().find(|option| option.info.name == name)
    }

    /// The value of the option; `None` for a passphrase, which is write-only.
    pub fn get(&self, options: &T) -> Option<OptionValue> {
        (self.get)(options)
    }

    /// Returns `options` with this value. A time, a rate or a switch may be given as a number, in
    /// the option's unit.
    ///
    /// # Errors
    ///
    /// The value has the wrong type or lies outside the range; the error names the range.
    pub fn set(&self, options: T, value: &OptionValue) -> Result<T, ConfigError> {
        (self.set)(options, value).unwrap_or_else(|| {
            Err(ConfigError {
                option: self.info.name,
                value: value.to_string(),
                expected: self.info.kind.expected(),
            })
        })
    }
}

impl OptionKind {
    const fn expected(self) -> &'static str {
        match self {
            Self::Switch => "a switch: on or off",
            Self::Number => "a whole number",
            Self::Milliseconds => "a time, or a number of milliseconds",
            Self::Seconds => "a time, or a number of seconds",
            Self::Rate => "a rate, or a number of bytes per second",
            Self::Share => "a share, 0 to 1",
            Self::Text => "text",
        }
    }
}

/// Checks that a value lies in the range of the option with this name.
pub(crate) fn check_range<V>(name: &'static str, value: V) -> Result<(), ConfigError>
where
    V: Copy + Debug + Into<Measured>,
{
    let range = TypedOption::find(CONNECTION_OPTIONS, name).map_or(ANY_SHARE, |it| it.info.range);
    if range.contains(value.into()) {
        return Ok(());
    }
    let value = format!("{value:?}");
    Err(ConfigError { option: name, value, expected: range.text() })
}

/// The range of the share that no row has: the retransmission ceiling.
const ANY_SHARE: OptionRange = OptionRange::Shares { most: 1.0, text: "a share up to 100%" };

/// Checks that `new` differs from `present` only in options that can be changed at any time.
pub(crate) fn check_change(present: &Config, new: &Config) -> Result<(), ConfigError> {
    // The share of a link has no row, and can be changed at any time.
    let mut reached = present.clone().with_rate_policy(new.rate_policy());
    for option in CONNECTION_OPTIONS {
        let value = option.get(new);
        if value == option.get(present) {
            continue;
        }
        let error = |expected| ConfigError {
            option: option.info.name,
            value: value.as_ref().map_or_else(String::new, OptionValue::to_string),
            expected,
        };
        if option.info.phase != OptionPhase::AnyTime {
            return Err(error(UNCHANGED));
        }
        reached = option.set(reached, value.as_ref().ok_or_else(|| error(UNCHANGED))?)?;
    }
    if reached == *new {
        return Ok(());
    }
    // A passphrase, or an option that has no name, such as a custom policy.
    let value = "a changed one".to_owned();
    Err(ConfigError { option: "an option", value, expected: UNCHANGED })
}

const UNCHANGED: &str = "left as it was, because it cannot be changed after connecting";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_units::Bitrate;

    use super::*;
    use crate::config::{BufferSize, MaxBandwidth, RetransmitAlgorithm};
    use crate::transmission::Transmission;

    #[test]
    fn every_option_can_be_read_and_set_to_the_value_that_was_read() {
        for config in [Config::default(), Config::file()] {
            for option in CONNECTION_OPTIONS {
                let Some(value) = option.get(&config) else {
                    assert_eq!(option.info.name, "passphrase");
                    continue;
                };
                let again = option.set(config.clone(), &value).unwrap();
                assert_eq!(option.get(&again), Some(value));
                // `latency` sets two options, and reads one of them, as in libsrt.
                assert!(again == config || option.info.name == "latency", "{}", option.info.name);
            }
        }
    }

    /// The ends of each range are valid, and the next values are not.
    #[test]
    fn an_option_takes_the_values_of_its_range_and_no_others() {
        for option in CONNECTION_OPTIONS {
            let info = option.info;
            let is_valid = |value: OptionValue| option.set(Config::default(), &value).is_ok();
            match info.range {
                // Versions have no limit but their size; 0 stands for the default of these two.
                OptionRange::Numbers { .. } if info.unit == "version" => {}
                OptionRange::Numbers { least, most, .. } => {
                    assert!(is_valid(least.into()) && is_valid(most.into()), "{}", info.name);
                    assert!(!is_valid((most + 1).into()), "{}", info.name);
                    let below = if info.name.starts_with("km") { -1 } else { least - 1 };
                    assert!(!is_valid(below.into()), "{}", info.name);
                }
                OptionRange::Shares { most, .. } => {
                    assert!(is_valid(0.0.into()) && is_valid(most.into()), "{}", info.name);
                    assert!(!is_valid((most + 1e-9).into()), "{}", info.name);
                }
                OptionRange::Form(_) => {}
            }
        }
    }

    #[test]
    fn libsrts_numbers_outside_a_range_stand_for_the_nearest_or_are_refused() {
        let taken = |name, number| {
            let info = TypedOption::find(CONNECTION_OPTIONS, name).unwrap().info;
            info.c.takes.number(number, info.range)
        };
        assert_eq!([75, 76, 9_000].map(|size| taken("mss", size)), [None, Some(76), Some(1_500)]);
        assert_eq!([-1, 0].map(|time| taken("conntimeo", time)), [None, Some(1)]);
        assert_eq!([0, 1].map(|rate| taken("kmrefreshrate", rate)), [Some(0), Some(3)]);
        assert_eq!([0, 9_000].map(|size| taken("payloadsize", size)), [Some(1_456); 2]);
        assert_eq!([-7, 7].map(|packets| taken("lossmaxttl", packets)), [Some(0), Some(7)]);
    }

    #[test]
    fn numbers_set_options_as_in_libsrt() {
        let set = |name, number: i64| Config::default().with_option(name, number).unwrap();
        assert_eq!(set("latency", 200).receive_latency(), Duration::from_millis(200));
        assert_eq!(set("linger", 2).linger(), Duration::from_secs(2));
        assert_eq!(set("maxbw", -1).max_bandwidth(), MaxBandwidth::Unlimited);
        assert_eq!(set("maxbw", 0).max_bandwidth(), MaxBandwidth::Relative);
        let ten = MaxBandwidth::Absolute(Bitrate::from_mbps(10));
        assert_eq!(set("maxbw", 1_250_000).max_bandwidth(), ten);
        assert_eq!(set("sndbuf", 147_200).send_buffer(), BufferSize::Packets(100));
        assert_eq!(set("snddropdelay", -1).send_drop_delay(), None);
        assert_eq!(
            *set("retransmitalgo", 0).retransmit_algorithm(),
            RetransmitAlgorithm::Aggressive
        );
        assert!(!set("tlpktdrop", 0).too_late_drop());
    }

    #[test]
    fn the_error_of_a_wrong_value_names_the_type_or_the_range() {
        let refused = |name, value: OptionValue| {
            Config::default().with_option(name, value).unwrap_err().to_string()
        };
        assert_eq!(
            refused("latency", "soon".into()),
            "latency is soon; it must be a time, or a number of milliseconds"
        );
        assert_eq!(refused("mss", 75.into()), "mss is 75; it must be 76 to 1500 bytes");
        assert_eq!(refused("mss", (-1).into()), "mss is -1; it must be a whole number");
        assert_eq!(
            refused("latancy", 1.into()),
            "option is latancy; it must be the name of an option of a connection"
        );
        let error = refused("passphrase", "too short".into());
        assert!(!error.contains("short"), "{error}");
    }

    #[test]
    fn names_and_numbers_of_options_are_unique() {
        for (index, option) in CONNECTION_OPTIONS.iter().enumerate() {
            let rest = &CONNECTION_OPTIONS[index + 1..];
            assert!(rest.iter().all(|other| other.info.name != option.info.name));
            assert!(rest.iter().all(|other| other.info.c.number != option.info.c.number));
        }
        let latency = TypedOption::find(CONNECTION_OPTIONS, "latency").unwrap().info;
        assert_eq!(latency.libsrt_name().as_deref(), Some("SRTO_LATENCY"));
    }

    #[test]
    fn transtype_selects_the_profile_of_files_or_of_live_streams() {
        let file = Config::default().with_option("transtype", "file").unwrap();
        assert_eq!(file, Config::file());
        assert_eq!(file.with_option("transtype", "live").unwrap(), Config::default());
        let messages = Config::file().with_option("messageapi", true).unwrap();
        assert_eq!(messages.transmission(), Transmission::Messages);
    }
}
