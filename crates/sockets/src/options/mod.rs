//! The options of a socket, with libsrt's numbers, values and rules.

mod apply;
mod defaults;
mod table;
mod value;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use punctual::{Config, ConfigError, OptionPhase, PortConfig};

pub use self::defaults::Defaults;
pub(crate) use self::table::MAX_LIVE_PAYLOAD;
pub use self::table::OptionNumber;
use self::table::{Access, QUERY, row};
pub use self::value::{Kind, SocketOptionValue};
use crate::code::Code;

/// The linger time that libsrt gives sockets of files, seconds.
const FILE_LINGER: i32 = 180;
/// The least size of a receive buffer, packets.
const LEAST_BUFFER: i32 = 32;
/// The bytes of a packet in a buffer.
const PACKET: i64 = 1_472;
/// The bytes that a packet filter adds to a packet.
const FILTER_HEADER: i32 = 4;

/// Whether an option is the size of a buffer, which is kept in packets.
fn is_buffer(number: OptionNumber) -> bool {
    matches!(number, OptionNumber::SNDBUF | OptionNumber::RCVBUF)
}

/// The options of a socket: the values that were set, and defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    set: BTreeMap<OptionNumber, SocketOptionValue>,
    defaults: Arc<Defaults>,
}

/// The type of an option's values; `None` if there is no option with this number.
pub fn kind(number: OptionNumber) -> Option<Kind> {
    if number == QUERY {
        return Some(Kind::Text);
    }
    row(number).map(|row| row.kind)
}

/// The last phase in which an option can be set; `None` if it cannot be set or does not exist.
pub(crate) fn phase(number: OptionNumber) -> Option<OptionPhase> {
    if number == QUERY {
        return Some(OptionPhase::BeforeBinding);
    }
    row(number).filter(|row| row.access != Access::Read).map(|row| row.phase)
}

impl Options {
    /// Options of which none is set.
    pub(crate) fn new(defaults: Arc<Defaults>) -> Self {
        Self { defaults, ..Self::default() }
    }

    /// The value of an option; `None` for an unknown one or one that is only set.
    pub(crate) fn get(&self, number: OptionNumber) -> Option<SocketOptionValue> {
        let row = row(number).filter(|row| row.access != Access::Write)?;
        let number =
            if number == OptionNumber::LATENCY { OptionNumber::RCVLATENCY } else { number };
        let kept = self.set.get(&number).cloned();
        if is_buffer(number) {
            let packets = kept.or_else(|| row.default.map(SocketOptionValue::from))?;
            return Some(self.buffer_bytes(&packets));
        }
        kept.or_else(|| self.defaults.shown(&row))
            .or_else(|| row.default.map(SocketOptionValue::from))
    }

    /// The number of an option, such as 1 for a switch that is on.
    pub(crate) fn number(&self, number: OptionNumber) -> i64 {
        self.get(number).map_or(0, |value| value.number())
    }

    /// The number of an option of 32 bits.
    pub(crate) fn int(&self, number: OptionNumber) -> i32 {
        i32::try_from(self.number(number)).unwrap_or(i32::MAX)
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, number: OptionNumber) -> bool {
        self.number(number) != 0
    }

    /// Sets an option. Errors: the option does not exist or cannot be set, or the value is not
    /// valid.
    pub(crate) fn set(
        &mut self,
        number: OptionNumber,
        value: SocketOptionValue,
    ) -> Result<(), Code> {
        if number == QUERY {
            return self.set_query(&value);
        }
        let row = row(number).filter(|row| row.access != Access::Read);
        let row = row.filter(|row| apply::is_valid(row, &value)).ok_or(Code::InvalidParameter)?;
        if number == OptionNumber::GROUPMINSTABLETIMEO
            && value.number() > self.number(OptionNumber::PEERIDLETIMEO)
        {
            return Err(Code::InvalidParameter);
        }
        let value = self.rounded(number, value)?;
        match number {
            OptionNumber::LATENCY => {
                self.set.insert(OptionNumber::RCVLATENCY, value.clone());
                self.set.insert(OptionNumber::PEERLATENCY, value);
            }
            OptionNumber::TRANSTYPE => self.set_profile(value.number() == 1),
            _ => {
                self.set.insert(row.number, value);
            }
        }
        if number == OptionNumber::KMREFRESHRATE {
            self.lower_pre_announce();
        }
        Ok(())
    }

    /// The options that an accepted socket inherits, with the caller's stream ID.
    pub(crate) fn inherited(&self, stream_id: &[u8]) -> Self {
        let mut options = self.clone();
        options.set.insert(OptionNumber::STREAMID, SocketOptionValue::Text(stream_id.to_vec()));
        options
    }

    /// The configuration of a connection with these options.
    ///
    /// Errors: options that contradict each other, or texts that cannot be read.
    pub(crate) fn config(&self) -> Result<Config, ConfigError> {
        apply::config(self)
    }

    /// The configuration of a UDP port with these options, bound to `local`.
    pub(crate) fn port_config(&self, local: SocketAddr) -> PortConfig {
        apply::port_config(self, local)
    }

    /// Whether the connection carries messages, and not a stream of bytes.
    pub(crate) fn is_message_mode(&self) -> bool {
        self.is_on(OptionNumber::MESSAGEAPI)
    }

    /// Whether it carries live messages.
    pub(crate) fn is_live(&self) -> bool {
        self.get(OptionNumber::CONGESTION).is_some_and(|value| value.bytes() == b"live")
    }

    /// Whether a passphrase is set.
    pub(crate) fn has_passphrase(&self) -> bool {
        self.set.get(&OptionNumber::PASSPHRASE).is_some_and(|it| !it.bytes().is_empty())
    }

    /// Takes defaults for this socket alone; options that were set before keep their values.
    fn set_query(&mut self, value: &SocketOptionValue) -> Result<(), Code> {
        let query = std::str::from_utf8(value.bytes()).map_err(|_| Code::InvalidParameter)?;
        let defaults = Defaults::parse(query).map_err(|_| Code::InvalidParameter)?;
        self.defaults = Arc::new(defaults);
        Ok(())
    }

    /// The value that libsrt keeps: sizes of buffers are whole packets.
    fn rounded(
        &self,
        number: OptionNumber,
        value: SocketOptionValue,
    ) -> Result<SocketOptionValue, Code> {
        let SocketOptionValue::Int(int) = value else { return Ok(value) };
        let packet = self.int(OptionNumber::MSS) - 28;
        Ok(SocketOptionValue::Int(match number {
            OptionNumber::SNDBUF => int / packet,
            OptionNumber::RCVBUF => {
                (int / packet).max(LEAST_BUFFER).min(self.int(OptionNumber::FC))
            }
            OptionNumber::UDP_SNDBUF | OptionNumber::UDP_RCVBUF => {
                int.max(self.int(OptionNumber::MSS))
            }
            OptionNumber::PAYLOADSIZE if int > self.most_payload() => {
                return Err(Code::InvalidParameter);
            }
            OptionNumber::KMPREANNOUNCE if int > self.most_pre_announce() => {
                return Err(Code::InvalidParameter);
            }
            _ => int,
        }))
    }

    /// The size of a buffer in bytes, from its packets.
    fn buffer_bytes(&self, packets: &SocketOptionValue) -> SocketOptionValue {
        let packets = i32::try_from(packets.number()).unwrap_or(i32::MAX);
        SocketOptionValue::Int(packets.saturating_mul(self.int(OptionNumber::MSS) - 28))
    }

    /// The largest payload of a packet: the packet filter needs a part of it.
    fn most_payload(&self) -> i32 {
        let has_filter = self
            .set
            .get(&OptionNumber::PACKETFILTER)
            .is_some_and(|filter| !filter.bytes().is_empty());
        MAX_LIVE_PAYLOAD - if has_filter { FILTER_HEADER } else { 0 }
    }

    /// libsrt allows half of the refresh rate, or of its default.
    fn most_pre_announce(&self) -> i32 {
        match self.int(OptionNumber::KMREFRESHRATE) {
            0 => (0x100_0000 - 1) / 2,
            rate => (rate - 1) / 2,
        }
    }

    fn lower_pre_announce(&mut self) {
        let most = self.most_pre_announce();
        let announced = match self.int(OptionNumber::KMPREANNOUNCE) {
            0 => 4_096,
            announced => announced,
        };
        if announced > most {
            self.set.insert(OptionNumber::KMPREANNOUNCE, SocketOptionValue::Int(most));
        }
    }

    /// Sets the options of files, or of live streams.
    fn set_profile(&mut self, file: bool) {
        let live = !file;
        for switch in [
            OptionNumber::TSBPDMODE,
            OptionNumber::TLPKTDROP,
            OptionNumber::NAKREPORT,
            OptionNumber::MESSAGEAPI,
        ] {
            self.set.insert(switch, SocketOptionValue::Bool(live));
        }
        let numbers = [
            (OptionNumber::RCVLATENCY, if live { 120 } else { 0 }),
            (OptionNumber::PEERLATENCY, 0),
            (OptionNumber::SNDDROPDELAY, if live { 0 } else { -1 }),
            (OptionNumber::PAYLOADSIZE, if live { 1_316 } else { 0 }),
            (OptionNumber::RETRANSMITALGO, i32::from(live)),
        ];
        self.set.extend(numbers.map(|(number, value)| (number, SocketOptionValue::Int(value))));
        let (on, seconds) = if live { (0, 0) } else { (1, FILE_LINGER) };
        self.set.insert(OptionNumber::LINGER, SocketOptionValue::Linger { on, seconds });
        let congestion = if live { "live" } else { "file" };
        self.set.insert(OptionNumber::CONGESTION, SocketOptionValue::Text(congestion.into()));
        self.set.insert(OptionNumber::TRANSTYPE, SocketOptionValue::Int(i32::from(file)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_sets_both_latencies_and_reads_the_receivers() {
        let mut options = Options::default();
        options.set(OptionNumber::LATENCY, SocketOptionValue::Int(300)).unwrap();
        options.set(OptionNumber::RCVLATENCY, SocketOptionValue::Int(200)).unwrap();
        assert_eq!(options.get(OptionNumber::LATENCY), Some(SocketOptionValue::Int(200)));
        assert_eq!(options.get(OptionNumber::PEERLATENCY), Some(SocketOptionValue::Int(300)));
    }

    #[test]
    fn buffers_are_whole_packets_within_libsrts_bounds() {
        let mut options = Options::default();
        options.set(OptionNumber::RCVBUF, SocketOptionValue::Int(1)).unwrap();
        assert_eq!(options.int(OptionNumber::RCVBUF), 32 * 1_472);
        options.set(OptionNumber::SNDBUF, SocketOptionValue::Int(3_000)).unwrap();
        assert_eq!(options.int(OptionNumber::SNDBUF), 2 * 1_472);
    }

    #[test]
    fn the_file_profile_can_be_taken_back() {
        let mut options = Options::default();
        options.set(OptionNumber::TRANSTYPE, SocketOptionValue::Int(1)).unwrap();
        assert!(!options.is_live() && !options.is_message_mode());
        options.set(OptionNumber::TRANSTYPE, SocketOptionValue::Int(0)).unwrap();
        assert!(options.is_live() && options.is_message_mode());
        assert_eq!(options.int(OptionNumber::PAYLOADSIZE), 1_316);
    }

    #[test]
    fn options_of_our_own_take_texts_or_numbers() {
        let mut options = Options::default();
        let number = OptionNumber(1_003);
        assert_eq!(options.get(number), Some(SocketOptionValue::Text(b"0.001%".to_vec())));
        options.set(number, SocketOptionValue::Text(b"0.5%".to_vec())).unwrap();
        assert_eq!(options.get(number), Some(SocketOptionValue::Text(b"0.5%".to_vec())));
        options.set(OptionNumber(1_010), SocketOptionValue::Int(700)).unwrap();
        assert_eq!(options.get(OptionNumber(1_010)), Some(SocketOptionValue::Int(700)));
        let invalid = options.set(number, SocketOptionValue::Text(b"much".to_vec()));
        assert_eq!(invalid, Err(Code::InvalidParameter));
    }
}
