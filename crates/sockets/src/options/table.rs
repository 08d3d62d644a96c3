//! The options of a socket: the rows of the library's tables, and options of libsrt's calls alone.

use punctual::{
    CDefault, CONNECTION_OPTIONS, COption, OptionInfo, OptionPhase, PORT_OPTIONS, Takes,
};

use super::value::{Kind, of_kind};

/// The name of an option: its number in libsrt's `SRT_SOCKOPT`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct OptionNumber(pub i32);

/// Whether an option can be read and set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Access {
    Both,
    Read,
    Write,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionRow {
    pub(crate) number: OptionNumber,
    pub(crate) kind: Kind,
    pub(crate) access: Access,
    pub(crate) phase: OptionPhase,
    /// libsrt's default; `None` for an option of our own.
    pub(crate) default: Option<CDefault>,
    pub(crate) takes: Takes,
    /// The description in the library's tables; `None` if only libsrt's calls have the option.
    pub(crate) info: Option<&'static OptionInfo>,
}

/// The number of the option that takes several options as the query of an SRT URI.
pub(crate) const QUERY: OptionNumber = OptionNumber(COption::OWN - 1);

/// libsrt's numbers of options of the library's tables, by their names there.
macro_rules! names {
    ($( $constant:ident $name:literal; )*) => {
        impl OptionNumber {
            $( #[doc = concat!("`", $name, "`.")]
            pub const $constant: Self = Self(described($name)); )*
        }
    };
}

/// Options that only libsrt's calls have: reports, and how these calls wait.
macro_rules! table {
    ($( $constant:ident = $number:literal $name:literal $access:ident $phase:ident
        $default:expr, $takes:expr; )*) => {
        impl OptionNumber {
            $( #[doc = concat!("`", $name, "`.")] pub const $constant: Self = Self($number); )*
        }

        const ROWS: &[OptionRow] = &[$( OptionRow {
            number: OptionNumber::$constant,
            kind: Kind::of($default),
            access: Access::$access,
            phase: OptionPhase::$phase,
            default: Some($default),
            takes: $takes,
            info: None,
        } ),*];
    };
}

/// The largest payload of a live packet, bytes.
pub(crate) const MAX_LIVE_PAYLOAD: i32 = 1_456;
const ON: CDefault = CDefault::Bool(true);
const OFF: CDefault = CDefault::Bool(false);
const ZERO: CDefault = CDefault::Int(0);
const NO_LIMIT: CDefault = CDefault::Int(-1);

table! {
    SNDSYN = 1 "sndsyn" Both AnyTime ON, Takes::All;
    RCVSYN = 2 "rcvsyn" Both AnyTime ON, Takes::All;
    ISN = 3 "isn" Read AnyTime ZERO, Takes::All;
    RENDEZVOUS = 12 "rendezvous" Both BeforeConnecting OFF, Takes::All;
    SNDTIMEO = 13 "sndtimeo" Both AnyTime NO_LIMIT, Takes::From(-1);
    RCVTIMEO = 14 "rcvtimeo" Both AnyTime NO_LIMIT, Takes::From(-1);
    REUSEADDR = 15 "reuseaddr" Both BeforeBinding ON, Takes::All;
    STATE = 17 "state" Read AnyTime ZERO, Takes::All;
    EVENT = 18 "event" Read AnyTime ZERO, Takes::All;
    SNDDATA = 19 "snddata" Read AnyTime ZERO, Takes::All;
    RCVDATA = 20 "rcvdata" Read AnyTime ZERO, Takes::All;
    SENDER = 21 "sender" Both BeforeConnecting OFF, Takes::All;
    KMSTATE = 28 "kmstate" Read AnyTime ZERO, Takes::All;
    VERSION = 34 "version" Read AnyTime CDefault::Int(0x01_05_05), Takes::All;
    PEERVERSION = 35 "peerversion" Read AnyTime ZERO, Takes::All;
    SNDKMSTATE = 40 "sndkmstate" Read AnyTime ZERO, Takes::All;
    RCVKMSTATE = 41 "rcvkmstate" Read AnyTime ZERO, Takes::All;
    GROUPTYPE = 59 "grouptype" Read AnyTime ZERO, Takes::All;
}

names! {
    MSS "mss"; FC "fc"; SNDBUF "sndbuf"; RCVBUF "rcvbuf"; LINGER "linger";
    UDP_SNDBUF "udp_sndbuf"; UDP_RCVBUF "udp_rcvbuf"; MAXBW "maxbw"; TSBPDMODE "tsbpdmode";
    LATENCY "latency"; OHEADBW "oheadbw"; PASSPHRASE "passphrase"; PBKEYLEN "pbkeylen";
    IPTTL "ipttl"; IPTOS "iptos"; TLPKTDROP "tlpktdrop"; SNDDROPDELAY "snddropdelay";
    NAKREPORT "nakreport"; CONNTIMEO "conntimeo"; DRIFTTRACER "drifttracer";
    LOSSMAXTTL "lossmaxttl"; RCVLATENCY "rcvlatency"; PEERLATENCY "peerlatency";
    STREAMID "streamid"; CONGESTION "congestion"; MESSAGEAPI "messageapi";
    PAYLOADSIZE "payloadsize"; TRANSTYPE "transtype"; KMREFRESHRATE "kmrefreshrate";
    KMPREANNOUNCE "kmpreannounce"; ENFORCEDENCRYPTION "enforcedencryption"; IPV6ONLY "ipv6only";
    PEERIDLETIMEO "peeridletimeo"; BINDTODEVICE "bindtodevice"; GROUPCONNECT "groupconnect";
    GROUPMINSTABLETIMEO "groupminstabletimeo"; PACKETFILTER "packetfilter";
    RETRANSMITALGO "retransmitalgo";
}

/// The number of the option with this name in the library's tables; without one, the program does
/// not compile.
const fn described(name: &str) -> i32 {
    let mut index = 0;
    while index < CONNECTION_OPTIONS.len() + PORT_OPTIONS.len() {
        let info = if index < CONNECTION_OPTIONS.len() {
            &CONNECTION_OPTIONS[index].info
        } else {
            &PORT_OPTIONS[index - CONNECTION_OPTIONS.len()].info
        };
        if info.is_named(name) {
            return info.c.number;
        }
        index += 1;
    }
    panic!("the tables of options have no option of this name")
}

impl OptionRow {
    fn of(info: &'static OptionInfo) -> Self {
        let number = OptionNumber(info.c.number);
        let is_write_only = number == OptionNumber::PASSPHRASE || number == OptionNumber::TRANSTYPE;
        Self {
            number,
            kind: info.c.default.map_or_else(|| of_kind(info.kind), Kind::of),
            access: if is_write_only { Access::Write } else { Access::Both },
            phase: info.phase,
            default: info.c.default,
            takes: info.c.takes,
            info: Some(info),
        }
    }
}

/// The row of the option with this number.
pub(crate) fn row(number: OptionNumber) -> Option<OptionRow> {
    let of_socket = ROWS.iter().find(|row| row.number == number).copied();
    of_socket.or_else(|| infos().find(|info| info.c.number == number.0).map(OptionRow::of))
}

/// Whether an option is one of our own.
pub(crate) fn is_own(number: OptionNumber) -> bool {
    number > QUERY
}

fn infos() -> impl Iterator<Item = &'static OptionInfo> {
    let of_port = PORT_OPTIONS.iter().map(|option| &option.info);
    CONNECTION_OPTIONS.iter().map(|option| &option.info).chain(of_port)
}

#[cfg(test)]
mod tests {
    use super::super::apply::is_valid;
    use super::super::value::SocketOptionValue;
    use super::*;

    #[test]
    fn every_default_is_valid_and_of_its_type() {
        let rows = infos().map(OptionRow::of).chain(ROWS.iter().copied());
        for row in rows.filter(|row| row.default.is_some()) {
            let value = row.default.map(SocketOptionValue::from).unwrap();
            assert!(is_valid(&row, &value), "{row:?}");
            assert_eq!(value.kind(), row.kind, "{row:?}");
        }
    }

    #[test]
    fn no_option_has_the_number_of_another() {
        let mut numbers: Vec<_> = infos().map(|info| info.c.number).collect();
        numbers.extend(ROWS.iter().map(|row| row.number.0));
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
    }

    /// The headers name each option with its number, and no other.
    #[test]
    fn the_headers_have_the_options_of_the_tables() {
        let own = include_str!("../../../capi/include/srt/punctual.h");
        let libsrt = include_str!("../../../capi/include/srt/srt_options.h");
        let of_own = own.lines().filter_map(|line| {
            let rest = line.strip_prefix("#define PUNCTUAL_SRTO_")?;
            let (name, number) = rest.split_once(" ((SRT_SOCKOPT)")?;
            Some((name.to_lowercase(), number.strip_suffix(')')?.parse::<i32>().ok()?))
        });
        let of_libsrt = libsrt.lines().filter_map(|line| {
            let (name, rest) = line.trim().strip_prefix("SRTO_")?.split_once(" = ")?;
            Some((name.to_lowercase(), rest.split_once(',')?.0.parse::<i32>().ok()?))
        });
        let mut declared: Vec<_> = of_own.chain(of_libsrt).map(|(name, it)| (it, name)).collect();
        declared.retain(|(number, name)| name != "e_size" && *number != QUERY.0);
        declared.sort_unstable();
        let of_socket = ROWS.iter().map(|row| row.number.0);
        let mut known: Vec<_> = infos().map(|info| (info.c.number, info.name.to_owned())).collect();
        for number in of_socket {
            let name = declared.iter().find(|(it, _)| *it == number).map(|(_, name)| name.clone());
            known.push((number, name.unwrap_or_default()));
        }
        known.sort_unstable();
        assert_eq!(declared, known);
    }

    #[test]
    fn our_own_options_have_fixed_numbers() {
        let name = |number| row(OptionNumber(number)).and_then(|row| row.info).map(|it| it.name);
        assert_eq!(name(1_003), Some("losstarget"));
        assert_eq!(name(1_013), Some("pathupdate"));
        assert_eq!((name(1_000), name(1_001), name(1_014)), (None, None, None));
        assert_eq!(OptionNumber::RETRANSMITALGO, OptionNumber(61));
    }
}
