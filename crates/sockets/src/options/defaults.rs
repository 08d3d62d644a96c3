//! Defaults for programs that cannot set options.

use punctual::{
    CDefault, CONNECTION_OPTIONS, Config, OptionInfo, OptionKind, OptionValue, PORT_OPTIONS,
    PortConfig, TypedOption,
};
use punctual_uri::{Target, Uri};

use super::table::OptionRow;
use super::value::{Kind, SocketOptionValue};

/// The defaults of all sockets: libsrt's, or the user's own.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    config: Config,
    port: PortConfig,
    /// The names of the options that differ from libsrt's default.
    names: Vec<String>,
}

impl Defaults {
    /// Reads options in the form of an SRT URI's query, such as `latency=300&losstarget=0.1%`.
    ///
    /// Errors: a sentence that names the option that is unknown or has a value that is not valid.
    pub fn parse(query: &str) -> Result<Self, String> {
        let uri = format!("srt://localhost:1?{query}");
        let target = uri.parse::<Uri>().map_err(|error| error.to_string())?.target;
        let Target::Srt(target) = target else { return Err("not options of SRT".to_owned()) };
        let keys = query.split('&').filter_map(|pair| pair.split('=').next());
        let names = keys.map(str::to_owned).collect();
        Ok(Self { config: target.config, port: target.port_config, names })
    }

    /// The options of a connection.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The options of a UDP port.
    pub(crate) fn port(&self) -> &PortConfig {
        &self.port
    }

    /// The value that an option shows if it is one of our own, or if the user's default differs
    /// from libsrt's.
    pub(crate) fn shown(&self, row: &OptionRow) -> Option<SocketOptionValue> {
        let info = row.info?;
        let named = |it: &String| it == info.name || (it == "latency" && info.name == "rcvlatency");
        if row.default.is_some() && !self.names.iter().any(named) {
            return None;
        }
        let of_port = TypedOption::find(PORT_OPTIONS, info.name);
        let of_connection = TypedOption::find(CONNECTION_OPTIONS, info.name);
        let value = of_port.and_then(|option| option.get(&self.port));
        let value = value.or_else(|| of_connection.and_then(|option| option.get(&self.config)));
        convert(&value?, row.kind, info)
    }
}

/// The value of an option in the type that libsrt's calls carry.
fn convert(value: &OptionValue, kind: Kind, info: &OptionInfo) -> Option<SocketOptionValue> {
    if kind == Kind::Text {
        return Some(SocketOptionValue::Text(value.to_string().into_bytes()));
    }
    let number = match value {
        OptionValue::Switch(on) => i64::from(*on),
        OptionValue::Number(number) => *number,
        OptionValue::Time(time) if info.kind == OptionKind::Seconds => {
            i64::try_from(time.as_secs()).ok()?
        }
        OptionValue::Time(time) => i64::try_from(time.as_millis()).ok()?,
        OptionValue::Rate(rate) => i64::try_from(rate.as_bytes_per_sec()).ok()?,
        OptionValue::Text(text) => {
            let Some(CDefault::Word(words, _)) = info.c.default else { return None };
            i64::try_from(words.iter().position(|word| word == text)?).ok()?
        }
        OptionValue::Share(_) | OptionValue::Bytes(_) => return None,
    };
    match kind {
        Kind::Bool => Some(SocketOptionValue::Bool(number != 0)),
        Kind::Int => Some(SocketOptionValue::Int(i32::try_from(number).ok()?)),
        Kind::Long => Some(SocketOptionValue::Long(number)),
        Kind::Text | Kind::Linger => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{OptionNumber, Options};
    use super::*;

    #[test]
    fn the_users_defaults_are_shown_and_apply() {
        let defaults = Defaults::parse("latency=300&retransmitalgo=deadline&ipttl=32").unwrap();
        let mut options = Options::new(Arc::new(defaults));
        assert_eq!(options.int(OptionNumber::LATENCY), 300);
        assert_eq!(options.int(OptionNumber::RETRANSMITALGO), 2);
        assert_eq!(options.int(OptionNumber::MSS), 1_500);
        assert_eq!((options.int(OptionNumber::IPTTL), options.int(OptionNumber::IPTOS)), (32, -1));
        let local = "127.0.0.1:0".parse().unwrap();
        assert_eq!(options.port_config(local).ttl, Some(32));
        options.set(OptionNumber::IPTTL, SocketOptionValue::Int(64)).unwrap();
        assert_eq!(options.port_config(local).ttl, Some(64));
        let error = Defaults::parse("latncy=1").unwrap_err();
        assert!(error.contains("latncy"), "{error}");
    }
}
