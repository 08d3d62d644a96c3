//! The keys of `srt://` URIs as a table for people and programs, generated from the rows that parse
//! them.

use punctual::{AppliesTo, CONNECTION_OPTIONS, OptionInfo, OptionPhase, PORT_OPTIONS};

use crate::key::{KeyEffect, UriKey};
use crate::srt_keys::SRT_KEYS;

/// An option of `srt://` URIs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UriOption {
    /// The name: libsrt's if libsrt has the option.
    pub name: &'static str,
    /// Other names, from FFmpeg and the SRT tools.
    pub aliases: &'static [&'static str],
    /// The unit of bare numbers (`ms`, `bytes/s`), or the kind of the value (`switch`, `text`).
    pub unit: &'static str,
    /// The default.
    pub default: &'static str,
    /// The valid values.
    pub range: &'static str,
    /// The end that it applies to: `both ends`, `caller`, `listener`, `sender`, `receiver`, `this
    /// end` (the address that it uses) or `UDP port`.
    pub concerns: &'static str,
    /// When it can be set: `before binding`, `before connecting`, or `any time` in the library,
    /// where it takes effect at once on an established connection.
    pub phase: &'static str,
    /// The effect, in one line; for an option without effect, the reason.
    pub effect: &'static str,
    /// Whether the option has an effect.
    pub status: OptionStatus,
}

/// Whether an option of `srt://` URIs has an effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OptionStatus {
    /// The option has the described effect.
    Works,
    /// The option is accepted and ignored, since it is not needed here.
    Ignored,
    /// The option is refused, since its feature does not exist here; only values that do not need
    /// the feature are accepted.
    Refused,
}

/// Every option of `srt://` and `srt+quic://` URIs, in the order of the help.
pub fn options() -> impl Iterator<Item = UriOption> {
    #[cfg(feature = "quic")]
    let of_quic = crate::quic::QUIC_KEYS.iter().map(UriOption::of);
    #[cfg(not(feature = "quic"))]
    let of_quic = std::iter::empty();
    SRT_KEYS.iter().map(UriOption::of).chain(of_quic)
}

impl UriOption {
    fn of<T>(key: &UriKey<T>) -> Self {
        let (range, default) = parts(key);
        let (status, effect) = match key.effect {
            KeyEffect::Set(_) | KeyEffect::Option(_) => (OptionStatus::Works, key.about),
            KeyEffect::Ignored => (OptionStatus::Ignored, key.about),
            KeyEffect::Refused { reason, .. } => (OptionStatus::Refused, reason),
        };
        Self {
            name: key.name,
            aliases: key.aliases,
            unit: key.unit,
            default,
            range,
            concerns: key.applies_to.map_or("", AppliesTo::as_str),
            phase: phase_of(key.name).as_str(),
            effect,
            status,
        }
    }
}

/// The phase of an option. Keys that are not in the library's tables belong to the address, to QUIC
/// and to the program.
fn phase_of(name: &str) -> OptionPhase {
    described().find(|info| info.name == name).map_or(OptionPhase::BeforeBinding, |info| info.phase)
}

/// The options of the library's tables: those of a connection and those of a UDP port.
fn described() -> impl Iterator<Item = OptionInfo> {
    let of_connection = CONNECTION_OPTIONS.iter().map(|option| option.info);
    of_connection.chain(PORT_OPTIONS.iter().map(|option| option.info))
}

/// Range and default of `0 to 65535 ms; default 120ms`, without the unit.
fn parts<T>(key: &UriKey<T>) -> (&'static str, &'static str) {
    let bare = |text: &'static str| text.strip_suffix(key.unit).unwrap_or(text).trim_end();
    let (form, default) = match key.default {
        Some(default) => (key.value, default),
        None => key.value.split_once("; default").unwrap_or((key.value, "")),
    };
    let range = bare(form).trim_end_matches(',');
    let range = if range == key.unit { "" } else { range };
    (range, bare(default.trim_start_matches([':', ' '])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/options.md");

    fn working() -> impl Iterator<Item = UriOption> {
        options().filter(|option| option.status == OptionStatus::Works)
    }

    #[test]
    fn every_working_option_has_an_end_an_effect_and_a_default() {
        for option in working() {
            assert!(!option.concerns.is_empty(), "{}: which end does it apply to?", option.name);
            assert!(!option.effect.is_empty(), "{}: what does it do?", option.name);
            assert!(!option.default.is_empty() || option.unit == "text", "{}", option.name);
        }
    }

    #[test]
    fn each_option_has_its_phase() {
        let phase = |name| options().find(|option| option.name == name).unwrap().phase;
        assert_eq!(phase("latency"), "before connecting");
        assert_eq!(phase("maxbw"), "any time");
        assert_eq!(phase("ipttl"), "before binding");
    }

    #[test]
    fn ranges_and_defaults_come_without_their_unit() {
        let latency = options().find(|option| option.name == "latency").unwrap();
        assert_eq!((latency.range, latency.default, latency.unit), ("0 to 65535", "120", "ms"));
        let limit = options().find(|option| option.name == "maxbw").unwrap();
        assert_eq!(limit.default, "-1");
        let switch = options().find(|option| option.name == "tlpktdrop").unwrap();
        assert_eq!((switch.range, switch.default), ("", "on"));
    }

    /// The page has a row for each option, with the same cells as the program.
    #[test]
    fn the_page_of_options_agrees_with_the_program() {
        for option in working() {
            let start = format!("| `{}` |", option.name);
            let row = PAGE.lines().find(|line| line.starts_with(&start));
            let row = row.unwrap_or_else(|| panic!("docs/options.md has no row `{start}`"));
            let cells: Vec<String> = row.split('|').map(plain).collect();
            for (what, cell) in [
                ("unit", option.unit),
                ("default", option.default),
                ("range", option.range),
                ("where", option.concerns),
            ] {
                assert!(
                    cells.contains(&plain(cell)),
                    "docs/options.md: the {what} of `{}` is `{cell}`, not in {row}",
                    option.name
                );
            }
        }
    }

    #[test]
    fn the_page_lists_the_options_of_each_phase() {
        for phase in [OptionPhase::BeforeBinding, OptionPhase::AnyTime] {
            let start = format!("- {}: ", phase.as_str());
            let line = PAGE.lines().find_map(|line| line.strip_prefix(&start));
            let line = line.unwrap_or_else(|| panic!("docs/options.md has no line `{start}`"));
            let (list, _) = line.split_once(';').unwrap_or((line, ""));
            let of_phase = described().filter(|info| info.phase == phase);
            let names: Vec<String> = of_phase.map(|info| format!("`{}`", info.name)).collect();
            assert_eq!(list, names.join(", "), "{start}");
        }
    }

    /// A cell without its typography.
    fn plain(cell: &str) -> String {
        cell.replace('−', "-").replace([' ', ',', '`'], "")
    }
}
