//! The options of a UDP port: the table of them, and typed access to their values.

use punctual_proto::{
    AppliesTo, CDefault, COption, ConfigError, OptionInfo, OptionKind, OptionPhase, OptionRange,
    OptionValue, Takes, TypedOption,
};

use crate::config::PortConfig;

/// The default size of the send buffer, bytes.
pub(crate) const SEND_BUFFER: usize = 2 << 20;
/// The default size of the receive buffer, bytes.
pub(crate) const RECEIVE_BUFFER: usize = 8 << 20;

/// The options of a UDP port that have names. Defaults are texts for people; tests compare
/// them with [`PortConfig`].
pub const PORT_OPTIONS: &[TypedOption<PortConfig>] = &[
    TypedOption::new(
        OptionInfo {
            unit: "bytes",
            range: BUFFER,
            default: "2MiB",
            aliases: &["send_buffer_size"],
            ..described(
                "udp_sndbuf",
                libsrt(8, CDefault::Int(65_536), Takes::All),
                OptionKind::Number,
                "the UDP socket's send buffer",
            )
        },
        |config| Some(bytes(config.send_buffer.unwrap_or(SEND_BUFFER))),
        |config, value| {
            let size = buffer("udp_sndbuf", value)?;
            Some(size.map(|size| PortConfig { send_buffer: Some(size), ..config }))
        },
    ),
    TypedOption::new(
        OptionInfo {
            unit: "bytes",
            range: BUFFER,
            default: "8MiB",
            aliases: &["recv_buffer_size"],
            ..described(
                "udp_rcvbuf",
                libsrt(9, CDefault::Int(12_288_000), Takes::All),
                OptionKind::Number,
                "the UDP socket's receive buffer",
            )
        },
        |config| Some(bytes(config.receive_buffer.unwrap_or(RECEIVE_BUFFER))),
        |config, value| {
            let size = buffer("udp_rcvbuf", value)?;
            Some(size.map(|size| PortConfig { receive_buffer: Some(size), ..config }))
        },
    ),
    TypedOption::new(
        OptionInfo {
            unit: "hops",
            range: OptionRange::Form("1 to 255"),
            default: SYSTEM,
            aliases: &["ttl"],
            ..described(
                "ipttl",
                libsrt(29, CDefault::Int(-1), Takes::Range),
                OptionKind::Number,
                "time to live of the datagrams",
            )
        },
        |config| Some(number(config.ttl)),
        |config, value| {
            let ttl = octet("ipttl", value, 1, "1 to 255 hops")?;
            Some(ttl.map(|ttl| PortConfig { ttl, ..config }))
        },
    ),
    TypedOption::new(
        OptionInfo {
            range: OptionRange::Form("0 to 255, or 0xB8"),
            default: SYSTEM,
            aliases: &["tos"],
            ..described(
                "iptos",
                libsrt(30, CDefault::Int(-1), Takes::All),
                OptionKind::Number,
                "type of service of the datagrams",
            )
        },
        |config| Some(number(config.tos)),
        |config, value| {
            let tos = octet("iptos", value, 0, "0 to 255")?;
            Some(tos.map(|tos| PortConfig { tos, ..config }))
        },
    ),
    TypedOption::new(
        OptionInfo {
            unit: "switch",
            range: OptionRange::Form("0 or 1, or -1: the default"),
            default: "0",
            ..described(
                "ipv6only",
                libsrt(54, CDefault::Int(-1), Takes::All),
                OptionKind::Switch,
                "whether [::] excludes IPv4",
            )
        },
        |config| Some(config.ipv6_only.unwrap_or(false).into()),
        |config, value| {
            let ipv6_only = if *value == UNSET { None } else { Some(value.switch()?) };
            Some(Ok(PortConfig { ipv6_only, ..config }))
        },
    ),
    TypedOption::new(
        OptionInfo {
            unit: "text",
            range: OptionRange::Form("name of an interface"),
            default: "none",
            ..described(
                "bindtodevice",
                libsrt(56, CDefault::Text(""), Takes::Range),
                OptionKind::Text,
                "the interface to use, no other",
            )
        },
        |config| Some(config.device.as_deref().unwrap_or_default().into()),
        |config, value| {
            let name = value.text()?;
            if name.len() > LONGEST_DEVICE {
                let expected = "the name of an interface, at most 15 bytes";
                let (option, value) = ("bindtodevice", name.to_owned());
                return Some(Err(ConfigError { option, value, expected }));
            }
            let device = Some(name.to_owned()).filter(|name| !name.is_empty());
            Some(Ok(PortConfig { device, ..config }))
        },
    ),
];

/// The name of the default that the system chooses.
const SYSTEM: &str = "the system's";
/// libsrt's value of an option that is not set.
const UNSET: OptionValue = OptionValue::Number(-1);
/// Systems count the sizes of socket buffers in 32-bit integers.
const BUFFER: OptionRange =
    OptionRange::Numbers { least: 1, most: 1 << 30, text: "1 byte to 1 GiB" };
/// The longest name of an interface, bytes.
const LONGEST_DEVICE: usize = 15;

const fn libsrt(number: i32, default: CDefault, takes: Takes) -> COption {
    COption::of_libsrt(number, default, takes)
}

/// The description of an option, without a unit, a range and a default. All are set before binding,
/// as in libsrt.
const fn described(
    name: &'static str,
    c: COption,
    kind: OptionKind,
    effect: &'static str,
) -> OptionInfo {
    OptionInfo {
        name,
        aliases: &[],
        c,
        kind,
        unit: "",
        range: OptionRange::Form(""),
        default: "",
        applies_to: AppliesTo::Port,
        phase: OptionPhase::BeforeBinding,
        effect,
    }
}

fn bytes(size: usize) -> OptionValue {
    OptionValue::Number(i64::try_from(size).unwrap_or(i64::MAX))
}

fn number(value: Option<u32>) -> OptionValue {
    value.map_or(UNSET, |value| OptionValue::Number(value.into()))
}

/// The size of a buffer.
fn buffer(option: &'static str, value: &OptionValue) -> Option<Result<usize, ConfigError>> {
    let size: i64 = value.number()?;
    Some(match usize::try_from(size) {
        Ok(bytes) if BUFFER.nearest(size) == size => Ok(bytes),
        _ => Err(ConfigError { option, value: value.to_string(), expected: BUFFER.text() }),
    })
}

/// A field of eight bits, `least` at least; `None` for the system's.
fn octet(
    option: &'static str,
    value: &OptionValue,
    least: u32,
    expected: &'static str,
) -> Option<Result<Option<u32>, ConfigError>> {
    if *value == UNSET {
        return Some(Ok(None));
    }
    let number: i64 = value.number()?;
    let octet = u32::try_from(number).ok().filter(|octet| (least..=255).contains(octet));
    Some(match octet {
        Some(octet) => Ok(Some(octet)),
        None => Err(ConfigError { option, value: value.to_string(), expected }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_can_be_read_and_set_to_the_value_that_was_read() {
        let set = PortConfig {
            send_buffer: Some(65_536),
            receive_buffer: Some(1 << 20),
            ttl: Some(7),
            tos: Some(0xB8),
            ipv6_only: Some(true),
            device: Some("lo".to_owned()),
            ..PortConfig::default()
        };
        let mut copied = PortConfig::default();
        for option in PORT_OPTIONS {
            let value = option.get(&set).unwrap();
            copied = option.set(copied, &value).unwrap();
            let default = option.get(&PortConfig::default()).unwrap();
            assert_ne!(value, default, "{}", option.info.name);
            let reset = option.set(set.clone(), &default).unwrap();
            assert_eq!(option.get(&reset), Some(default), "{}", option.info.name);
        }
        assert_eq!(copied, set);
    }

    #[test]
    fn the_error_of_a_wrong_value_names_the_type_or_the_range() {
        let refused = |name, value: OptionValue| {
            PortConfig::default().with_option(name, value).unwrap_err().to_string()
        };
        assert_eq!(refused("udp_sndbuf", 0.into()), "udp_sndbuf is 0; it must be 1 byte to 1 GiB");
        assert_eq!(refused("ipttl", 256.into()), "ipttl is 256; it must be 1 to 255 hops");
        assert_eq!(refused("ipttl", "far".into()), "ipttl is far; it must be a whole number");
        assert_eq!(refused("iptos", (-2).into()), "iptos is -2; it must be 0 to 255");
        assert_eq!(refused("ipv6only", 2.into()), "ipv6only is 2; it must be a switch: on or off");
        assert_eq!(
            refused("ttl", 1.into()),
            "option is ttl; it must be the name of an option of a UDP port"
        );
    }

    #[test]
    fn no_option_has_the_name_or_number_of_another() {
        let connection = punctual_proto::CONNECTION_OPTIONS.iter().map(|option| option.info);
        let all: Vec<_> = PORT_OPTIONS.iter().map(|it| it.info).chain(connection).collect();
        for (index, info) in all.iter().enumerate() {
            let mut rest = all[index + 1..].iter();
            assert!(
                rest.all(|other| { other.name != info.name && other.c.number != info.c.number })
            );
        }
    }
}
