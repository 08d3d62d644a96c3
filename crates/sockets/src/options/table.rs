//! The table of options: number, type, access, phase, default and valid values, all libsrt's.

use punctual::OptionPhase;

use super::value::{Kind, Value};

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
pub(crate) struct Row {
    pub(crate) number: OptionNumber,
    /// The name in Punctual's own table of options.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) access: Access,
    pub(crate) phase: OptionPhase,
    pub(crate) default: Default,
    pub(crate) valid: fn(&Value) -> bool,
}

/// A default that a constant can hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    Bool(bool),
    Int(i32),
    Long(i64),
    Text(&'static str),
    NoLinger,
}

impl From<Default> for Value {
    fn from(default: Default) -> Self {
        match default {
            Default::Bool(on) => Self::Bool(on),
            Default::Int(number) => Self::Int(number),
            Default::Long(number) => Self::Long(number),
            Default::Text(text) => Self::Text(text.into()),
            Default::NoLinger => Self::Linger { on: 0, seconds: 0 },
        }
    }
}

macro_rules! table {
    ($( $constant:ident = $number:literal $name:literal $kind:ident $access:ident $phase:ident
        $default:expr, $valid:expr; )*) => {
        impl OptionNumber {
            $( #[doc = concat!("`", $name, "`.")] pub const $constant: Self = Self($number); )*
        }

        /// Every option of libsrt.
        pub(crate) const ROWS: &[Row] = &[$( Row {
            number: OptionNumber::$constant,
            name: $name,
            kind: Kind::$kind,
            access: Access::$access,
            phase: OptionPhase::$phase,
            default: $default,
            valid: $valid,
        } ),*];
    };
}

/// The largest payload of a live packet, bytes.
pub(crate) const MAX_LIVE_PAYLOAD: i32 = 1_456;
/// libsrt's sizes of buffers, packets.
const BUFFER: i32 = 8_192;
const ON: Default = Default::Bool(true);
const OFF: Default = Default::Bool(false);
const ANY: fn(&Value) -> bool = |_| true;
const ONE_AND_UP: fn(&Value) -> bool = |it| it.number() >= 1;
const ZERO_AND_UP: fn(&Value) -> bool = |it| it.number() >= 0;
const MINUS_ONE_AND_UP: fn(&Value) -> bool = |it| it.number() >= -1;

fn is_stream_id(value: &Value) -> bool {
    value.bytes().len() <= punctual::Config::MAX_STREAM_ID
}

fn is_filter(value: &Value) -> bool {
    let text = std::str::from_utf8(value.bytes());
    text.is_ok_and(|text| punctual::Config::default().with_packet_filter(text).is_ok())
}

table! {
    MSS = 0 "mss" Int Both BeforeBinding Default::Int(1_500), |it| it.number() >= 76;
    SNDSYN = 1 "sndsyn" Bool Both AnyTime ON, ANY;
    RCVSYN = 2 "rcvsyn" Bool Both AnyTime ON, ANY;
    ISN = 3 "isn" Int Read AnyTime Default::Int(0), ANY;
    FC = 4 "fc" Int Both BeforeConnecting Default::Int(25_600), |it| it.number() >= 32;
    SNDBUF = 5 "sndbuf" Int Both BeforeBinding Default::Int(BUFFER), ONE_AND_UP;
    RCVBUF = 6 "rcvbuf" Int Both BeforeBinding Default::Int(BUFFER), ONE_AND_UP;
    LINGER = 7 "linger" Linger Both AnyTime Default::NoLinger, ANY;
    UDP_SNDBUF = 8 "udp_sndbuf" Int Both BeforeBinding Default::Int(65_536), ANY;
    UDP_RCVBUF = 9 "udp_rcvbuf" Int Both BeforeBinding Default::Int(12_288_000), ANY;
    RENDEZVOUS = 12 "rendezvous" Bool Both BeforeConnecting OFF, ANY;
    SNDTIMEO = 13 "sndtimeo" Int Both AnyTime Default::Int(-1), MINUS_ONE_AND_UP;
    RCVTIMEO = 14 "rcvtimeo" Int Both AnyTime Default::Int(-1), MINUS_ONE_AND_UP;
    REUSEADDR = 15 "reuseaddr" Bool Both BeforeBinding ON, ANY;
    MAXBW = 16 "maxbw" Long Both AnyTime Default::Long(-1), MINUS_ONE_AND_UP;
    STATE = 17 "state" Int Read AnyTime Default::Int(0), ANY;
    EVENT = 18 "event" Int Read AnyTime Default::Int(0), ANY;
    SNDDATA = 19 "snddata" Int Read AnyTime Default::Int(0), ANY;
    RCVDATA = 20 "rcvdata" Int Read AnyTime Default::Int(0), ANY;
    SENDER = 21 "sender" Bool Both BeforeConnecting OFF, ANY;
    TSBPDMODE = 22 "tsbpdmode" Bool Both BeforeConnecting ON, ANY;
    LATENCY = 23 "latency" Int Both BeforeConnecting Default::Int(120), ZERO_AND_UP;
    INPUTBW = 24 "inputbw" Long Both AnyTime Default::Long(0), ZERO_AND_UP;
    OHEADBW = 25 "oheadbw" Int Both AnyTime Default::Int(25), |it| (5..=100).contains(&it.number());
    PASSPHRASE = 26 "passphrase" Text Write BeforeConnecting Default::Text(""),
        |it| matches!(it.bytes().len(), 0 | 10..=80);
    PBKEYLEN = 27 "pbkeylen" Int Both BeforeConnecting Default::Int(0),
        |it| matches!(it.number(), 0 | 16 | 24 | 32);
    KMSTATE = 28 "kmstate" Int Read AnyTime Default::Int(0), ANY;
    IPTTL = 29 "ipttl" Int Both BeforeBinding Default::Int(-1),
        |it| matches!(it.number(), -1 | 1..=255);
    IPTOS = 30 "iptos" Int Both BeforeBinding Default::Int(-1), ANY;
    TLPKTDROP = 31 "tlpktdrop" Bool Both BeforeConnecting ON, ANY;
    SNDDROPDELAY = 32 "snddropdelay" Int Both AnyTime Default::Int(0), MINUS_ONE_AND_UP;
    NAKREPORT = 33 "nakreport" Bool Both BeforeConnecting ON, ANY;
    VERSION = 34 "version" Int Read AnyTime Default::Int(0x01_05_05), ANY;
    PEERVERSION = 35 "peerversion" Int Read AnyTime Default::Int(0), ANY;
    CONNTIMEO = 36 "conntimeo" Int Both BeforeConnecting Default::Int(3_000), ZERO_AND_UP;
    DRIFTTRACER = 37 "drifttracer" Bool Both AnyTime ON, ANY;
    MININPUTBW = 38 "mininputbw" Long Both AnyTime Default::Long(0), ZERO_AND_UP;
    SNDKMSTATE = 40 "sndkmstate" Int Read AnyTime Default::Int(0), ANY;
    RCVKMSTATE = 41 "rcvkmstate" Int Read AnyTime Default::Int(0), ANY;
    LOSSMAXTTL = 42 "lossmaxttl" Int Both AnyTime Default::Int(0), ANY;
    RCVLATENCY = 43 "rcvlatency" Int Both BeforeConnecting Default::Int(120), ZERO_AND_UP;
    PEERLATENCY = 44 "peerlatency" Int Both BeforeConnecting Default::Int(0), ZERO_AND_UP;
    MINVERSION = 45 "minversion" Int Both BeforeConnecting Default::Int(0x01_00_00), ANY;
    STREAMID = 46 "streamid" Text Both BeforeConnecting Default::Text(""),
        is_stream_id;
    CONGESTION = 47 "congestion" Text Both BeforeConnecting Default::Text("live"),
        |it| matches!(it.bytes(), b"live" | b"file");
    MESSAGEAPI = 48 "messageapi" Bool Both BeforeConnecting ON, ANY;
    PAYLOADSIZE = 49 "payloadsize" Int Both BeforeConnecting Default::Int(1_316), ZERO_AND_UP;
    TRANSTYPE = 50 "transtype" Int Write BeforeBinding Default::Int(0),
        |it| matches!(it.number(), 0 | 1);
    KMREFRESHRATE = 51 "kmrefreshrate" Int Both BeforeConnecting Default::Int(0), ZERO_AND_UP;
    KMPREANNOUNCE = 52 "kmpreannounce" Int Both BeforeConnecting Default::Int(0), ZERO_AND_UP;
    ENFORCEDENCRYPTION = 53 "enforcedencryption" Bool Both BeforeConnecting ON, ANY;
    IPV6ONLY = 54 "ipv6only" Int Both BeforeBinding Default::Int(-1), ANY;
    PEERIDLETIMEO = 55 "peeridletimeo" Int Both BeforeConnecting Default::Int(5_000), ZERO_AND_UP;
    BINDTODEVICE = 56 "bindtodevice" Text Both BeforeBinding Default::Text(""),
        |it| it.bytes().len() < 16;
    GROUPCONNECT = 57 "groupconnect" Int Both BeforeConnecting Default::Int(0),
        |it| matches!(it.number(), 0 | 1);
    GROUPMINSTABLETIMEO = 58 "groupminstabletimeo" Int Both BeforeConnecting Default::Int(60),
        |it| it.number() >= 60;
    GROUPTYPE = 59 "grouptype" Int Read AnyTime Default::Int(0), ANY;
    PACKETFILTER = 60 "packetfilter" Text Both BeforeConnecting Default::Text(""),
        is_filter;
    RETRANSMITALGO = 61 "retransmitalgo" Int Both BeforeConnecting Default::Int(1),
        |it| matches!(it.number(), 0..=2);
    CRYPTOMODE = 62 "cryptomode" Int Both BeforeConnecting Default::Int(0),
        |it| matches!(it.number(), 0..=2);
    MAXREXMITBW = 63 "maxrexmitbw" Long Both AnyTime Default::Long(-1), MINUS_ONE_AND_UP;
}

/// An option that only Punctual has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnRow {
    pub(crate) number: OptionNumber,
    /// The name in Punctual's own table of options.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// The number of the option that takes several options as the query of an SRT URI.
pub(crate) const QUERY: OptionNumber = OptionNumber(1_000);

/// The options of our own. Programs hold the numbers, so that none is used again.
pub(crate) const OWN: &[OwnRow] = &[
    OwnRow { number: OptionNumber(1_003), name: "losstarget", kind: Kind::Text },
    OwnRow { number: OptionNumber(1_005), name: "ratecontrol", kind: Kind::Text },
    OwnRow { number: OptionNumber(1_007), name: "targetrate", kind: Kind::Long },
    OwnRow { number: OptionNumber(1_008), name: "minrate", kind: Kind::Long },
    OwnRow { number: OptionNumber(1_009), name: "queuetarget", kind: Kind::Int },
    OwnRow { number: OptionNumber(1_010), name: "playout", kind: Kind::Int },
    OwnRow { number: OptionNumber(1_013), name: "pathupdate", kind: Kind::Bool },
];

/// The row of libsrt's option with this number.
pub(crate) fn row(number: OptionNumber) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.number == number)
}

/// The row of the option of our own with this number.
pub(crate) fn own(number: OptionNumber) -> Option<&'static OwnRow> {
    OWN.iter().find(|row| row.number == number)
}

#[cfg(test)]
mod tests {
    use punctual::{CONNECTION_OPTIONS, PORT_OPTIONS};

    use super::*;

    #[test]
    fn every_default_is_valid_and_of_its_type() {
        for row in ROWS {
            let value = Value::from(row.default);
            assert!((row.valid)(&value), "{}", row.name);
            let kind = match value {
                Value::Bool(_) => Kind::Bool,
                Value::Int(_) => Kind::Int,
                Value::Long(_) => Kind::Long,
                Value::Text(_) => Kind::Text,
                Value::Linger { .. } => Kind::Linger,
            };
            assert_eq!(kind, row.kind, "{}", row.name);
        }
    }

    #[test]
    fn numbers_names_and_phases_are_those_of_the_librarys_tables() {
        let of_port = PORT_OPTIONS.iter().map(|option| option.info);
        for info in CONNECTION_OPTIONS.iter().map(|option| option.info).chain(of_port) {
            match info.libsrt {
                Some(number) => {
                    let row = row(OptionNumber(i32::from(number))).unwrap();
                    assert_eq!((row.name, row.phase), (info.name, info.phase));
                }
                None => assert!(OWN.iter().any(|own| own.name == info.name), "{}", info.name),
            }
        }
    }

    #[test]
    fn our_own_options_have_fixed_numbers() {
        let name = |number| own(OptionNumber(number)).map(|row| row.name);
        assert_eq!(name(1_003), Some("losstarget"));
        assert_eq!(name(1_013), Some("pathupdate"));
        assert_eq!((name(1_000), name(1_001), name(1_014)), (None, None, None));
    }
}
