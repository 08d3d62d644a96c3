//! Options as Punctual's own configuration takes them.

use std::net::SocketAddr;

use punctual::{
    CDefault, CONNECTION_OPTIONS, Config, ConfigError, OptionInfo, OptionKind, OptionRange,
    OptionValue, PORT_OPTIONS, PortConfig, Takes, Transmission, TypedOption,
};

use super::table::{OptionRow, is_own};
use super::{OptionNumber, Options, PACKET, SocketOptionValue, is_buffer};

/// The options that together select the kind of data, as `Config::with_transmission` does.
const KIND_OF_DATA: [OptionNumber; 3] =
    [OptionNumber::TRANSTYPE, OptionNumber::CONGESTION, OptionNumber::MESSAGEAPI];

/// The configuration of a connection with these options.
///
/// Errors: options that contradict each other, or texts that cannot be read.
pub(super) fn config(options: &Options) -> Result<Config, ConfigError> {
    let transmission = match (options.is_live(), options.is_message_mode()) {
        (true, _) => Transmission::Live,
        (false, true) => Transmission::Messages,
        (false, false) => Transmission::Stream,
    };
    let mut config = match transmission {
        Transmission::Live => options.defaults.config().clone(),
        _ => Config::file(),
    };
    config = config.with_transmission(transmission);
    for (&number, value) in &options.set {
        let Some(option) = of_number(CONNECTION_OPTIONS, number) else { continue };
        if is_own(number) {
            config = with_own(config, &option.info, value)?;
        } else if is_buffer(number) {
            let bytes = value.number().saturating_mul(PACKET);
            config = option.set(config, &bytes.into())?;
        } else if !KIND_OF_DATA.contains(&number) {
            config = option.set(config, &converted(&option.info, value))?;
        }
    }
    config.check()?;
    Ok(config)
}

/// The configuration of a UDP port with these options, bound to `local`.
pub(super) fn port_config(options: &Options, local: SocketAddr) -> PortConfig {
    let mut config = PortConfig { local: Some(local), ..options.defaults.port().clone() };
    for (&number, value) in &options.set {
        if let Some(option) = of_number(PORT_OPTIONS, number) {
            // libsrt also takes values without an effect, which leave the default.
            config = option.set(config.clone(), &converted(&option.info, value)).unwrap_or(config);
        }
    }
    config
}

/// Whether an option takes a value.
pub(super) fn is_valid(row: &OptionRow, value: &SocketOptionValue) -> bool {
    let Some(info) = row.info else { return row.takes.number(value.number(), ANY).is_some() };
    match row.takes {
        _ if is_own(row.number) => with_own(Config::default(), info, value).is_ok(),
        Takes::All => true,
        Takes::Range => is_in_range(row.number, &converted(info, value)),
        takes => takes.number(value.number(), info.range).is_some(),
    }
}

const ANY: OptionRange = OptionRange::Form("");

fn is_in_range(number: OptionNumber, value: &OptionValue) -> bool {
    let of_connection = of_number(CONNECTION_OPTIONS, number);
    let of_port = of_number(PORT_OPTIONS, number);
    of_connection.is_some_and(|it| it.set(Config::default(), value).is_ok())
        || of_port.is_some_and(|it| it.set(PortConfig::default(), value).is_ok())
}

fn of_number<T>(
    table: &'static [TypedOption<T>],
    number: OptionNumber,
) -> Option<&'static TypedOption<T>> {
    table.iter().find(|option| option.info.c.number == number.0)
}

/// Returns `config` with an option of our own, whose texts are those of URIs.
fn with_own(
    config: Config,
    info: &OptionInfo,
    value: &SocketOptionValue,
) -> Result<Config, ConfigError> {
    let text = value.to_text();
    let set = punctual_uri::set_option(config, info.name, &text);
    set.map_err(|_| ConfigError { option: info.name, value: text, expected: "valid" })
}

/// The value in the library's table. A number that only libsrt accepts stands for a valid one.
fn converted(info: &OptionInfo, value: &SocketOptionValue) -> OptionValue {
    let number = value.number();
    match value {
        SocketOptionValue::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => OptionValue::Bytes(bytes.clone()),
        },
        SocketOptionValue::Bool(on) => (*on).into(),
        SocketOptionValue::Linger { on: 0, .. } => 0.into(),
        SocketOptionValue::Linger { seconds, .. } => i64::from(*seconds).max(0).into(),
        SocketOptionValue::Int(_) | SocketOptionValue::Long(_) => {
            match (info.c.default, info.c.takes) {
                (Some(CDefault::Word(words, _)), _) => match usize::try_from(number) {
                    Ok(index) if index < words.len() => words[index].into(),
                    _ => number.into(),
                },
                // -1 is the default, and all others but 0 are on.
                (_, Takes::All) if info.kind == OptionKind::Switch && number != -1 => {
                    (number != 0).into()
                }
                (_, takes) => takes.number(number, info.range).unwrap_or(number).into(),
            }
        }
    }
}
