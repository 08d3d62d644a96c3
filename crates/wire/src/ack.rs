use crate::words::{Word, put_words, seq_no};
use crate::{AckNo, ParseError, SeqNo};

/// An acknowledgement in one of its three sizes (draft section 3.2.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ack {
    /// The sequence number alone, between the timed ACKs. Nobody acknowledges it.
    Light {
        /// All packets before this one were received or given up.
        next: SeqNo,
    },
    /// Sequence number and state of the link.
    Small {
        /// Number of this ACK. The draft wants 0 here; libsrt counts on, and so should a sender.
        number: AckNo,
        /// All packets before this one were received or given up.
        next: SeqNo,
        /// State of the link.
        link: AckLink,
    },
    /// The whole report of a receiver.
    Full {
        /// Number of this ACK.
        number: AckNo,
        /// All packets before this one were received or given up.
        next: SeqNo,
        /// State of the link.
        link: AckLink,
        /// The rates that the receiver measured.
        rates: AckRates,
        /// The packets that arrived. Only receivers of this implementation report them, to senders
        /// that announced that they read them.
        arrivals: Option<AckArrivals>,
    },
}

/// State of the link as the receiver sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckLink {
    /// Smoothed round-trip time in µs.
    pub rtt_us: u32,
    /// Variance of the round-trip time in µs.
    pub rtt_var_us: u32,
    /// Free space in the receive buffer, in packets. At 0 the sender stops.
    pub free_buffer: u32,
}

/// The rates that a receiver measures and reports in a full ACK.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckRates {
    /// Packets arriving a second; 0 if not known.
    pub packets_per_sec: u32,
    /// Estimated capacity of the link in packets a second; 0 if not known.
    pub capacity_pps: u32,
    /// Bytes arriving a second. `None` in the 24-byte body, which peers before 1.0.3 and UDT send.
    pub bytes_per_sec: Option<u32>,
}

/// The arrivals at a receiver, the newest round trip, and the packets that it gave up. Not in the
/// draft: the eighth to twelfth word of a full ACK, which other implementations ignore.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AckArrivals {
    /// Data packets that arrived so far, originals, retransmissions and duplicates alike; wraps.
    pub packets: u32,
    /// The newest round-trip time, µs, not smoothed; 0 before the first.
    pub latest_rtt_us: u32,
    /// Data packets that the receiver will never deliver; wraps. `None` from versions that do not
    /// report them.
    pub given_up: Option<u32>,
    /// The newest original that arrived, of a live stream. Only reported beside `given_up`.
    pub newest: Option<NewestArrival>,
}

/// The newest original that has arrived, by which the sender measures a round trip.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewestArrival {
    /// Its number.
    pub seq: SeqNo,
    /// The time from its arrival to this report, µs.
    pub delay_us: u32,
}

impl Ack {
    /// All packets before this one were received or given up.
    pub fn next(&self) -> SeqNo {
        match *self {
            Self::Light { next } | Self::Small { next, .. } | Self::Full { next, .. } => next,
        }
    }

    /// The number to answer with an ACKACK. `None` for a light ACK, and for any other whose number
    /// is 0: the draft's small ACK.
    pub fn number(&self) -> Option<AckNo> {
        Some(self.header_number()).filter(|number| number.value() != 0)
    }

    /// State of the link, unless the ACK is light.
    pub fn link(&self) -> Option<AckLink> {
        match *self {
            Self::Light { .. } => None,
            Self::Small { link, .. } | Self::Full { link, .. } => Some(link),
        }
    }

    /// The rates that the receiver measured, if the ACK is full.
    pub fn rates(&self) -> Option<AckRates> {
        match *self {
            Self::Light { .. } | Self::Small { .. } => None,
            Self::Full { rates, .. } => Some(rates),
        }
    }

    /// The packets that arrived, if the receiver reports them.
    pub fn arrivals(&self) -> Option<AckArrivals> {
        match *self {
            Self::Light { .. } | Self::Small { .. } => None,
            Self::Full { arrivals, .. } => arrivals,
        }
    }

    /// The size of the body tells which ACK it is. Words beyond those known are ignored: old
    /// versions sent an eighth.
    pub(crate) fn parse(number: AckNo, body: &[u8]) -> Result<Self, ParseError> {
        let (words, _) = body.as_chunks();
        let too_short = |need| ParseError::TooShort { what: "ACK", need, got: body.len() };
        match *words {
            [] => Err(too_short(LIGHT_LEN)),
            [next] => Ok(Self::Light { next: seq_no("ACK", next)? }),
            [_, _] | [_, _, _] => Err(too_short(SMALL_LEN)),
            [next, rtt, rtt_var, free] | [next, rtt, rtt_var, free, _] => {
                let link = AckLink::from_words(rtt, rtt_var, free);
                Ok(Self::Small { number, next: seq_no("ACK", next)?, link })
            }
            [next, rtt, rtt_var, free, packets, capacity, ref more @ ..] => {
                let link = AckLink::from_words(rtt, rtt_var, free);
                let rates = AckRates {
                    packets_per_sec: u32::from_be_bytes(packets),
                    capacity_pps: u32::from_be_bytes(capacity),
                    bytes_per_sec: more.first().map(|bytes| u32::from_be_bytes(*bytes)),
                };
                let arrivals = match *more {
                    [_, packets, latest_rtt, ref last @ ..] => Some(AckArrivals {
                        packets: u32::from_be_bytes(packets),
                        latest_rtt_us: u32::from_be_bytes(latest_rtt),
                        given_up: last.first().map(|packets| u32::from_be_bytes(*packets)),
                        newest: match *last {
                            [_, seq, delay, ..] => Some(NewestArrival {
                                seq: seq_no("ACK", seq)?,
                                delay_us: u32::from_be_bytes(delay),
                            }),
                            _ => None,
                        },
                    }),
                    _ => None,
                };
                Ok(Self::Full { number, next: seq_no("ACK", next)?, link, rates, arrivals })
            }
        }
    }

    /// The number in the packet's header.
    pub(crate) fn header_number(&self) -> AckNo {
        match *self {
            Self::Light { .. } => AckNo::new(0),
            Self::Small { number, .. } | Self::Full { number, .. } => number,
        }
    }

    pub(crate) fn emit(&self, buffer: &mut Vec<u8>) {
        put_words(buffer, &[self.next().value()]);
        if let Some(link) = self.link() {
            put_words(buffer, &[link.rtt_us, link.rtt_var_us, link.free_buffer]);
        }
        if let Some(rates) = self.rates() {
            put_words(buffer, &[rates.packets_per_sec, rates.capacity_pps]);
            put_words(buffer, rates.bytes_per_sec.as_slice());
        }
        if let Some(arrivals) = self.arrivals() {
            if self.rates().is_some_and(|rates| rates.bytes_per_sec.is_none()) {
                put_words(buffer, &[0]);
            }
            put_words(buffer, &[arrivals.packets, arrivals.latest_rtt_us]);
            put_words(buffer, arrivals.given_up.as_slice());
            if let Some(newest) = arrivals.newest.filter(|_| arrivals.given_up.is_some()) {
                put_words(buffer, &[newest.seq.value(), newest.delay_us]);
            }
        }
    }

    pub(crate) fn emitted_len(&self) -> usize {
        match self {
            Self::Light { .. } => LIGHT_LEN,
            Self::Small { .. } => SMALL_LEN,
            Self::Full { arrivals: Some(arrivals), .. } => {
                let newest = arrivals.newest.filter(|_| arrivals.given_up.is_some());
                let words = arrivals.given_up.iter().len() + 2 * newest.iter().len();
                FULL_LEN + ARRIVALS_LEN + 4 * words
            }
            Self::Full { rates: AckRates { bytes_per_sec: None, .. }, .. } => FULL_UDT_LEN,
            Self::Full { .. } => FULL_LEN,
        }
    }
}

impl AckLink {
    fn from_words(rtt: Word, rtt_var: Word, free: Word) -> Self {
        Self {
            rtt_us: u32::from_be_bytes(rtt),
            rtt_var_us: u32::from_be_bytes(rtt_var),
            free_buffer: u32::from_be_bytes(free),
        }
    }
}

// Bytes of the bodies.
const LIGHT_LEN: usize = 4;
const SMALL_LEN: usize = 16;
const FULL_UDT_LEN: usize = 24;
const FULL_LEN: usize = 28;
const ARRIVALS_LEN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: AckNo = AckNo::new(9);
    const NEXT: SeqNo = SeqNo::new(1);
    const LINK: AckLink = AckLink { rtt_us: 2, rtt_var_us: 3, free_buffer: 4 };

    /// A body of the words 1, 2, 3 and so on.
    fn body(words: u32) -> Vec<u8> {
        (1..=words).flat_map(u32::to_be_bytes).collect()
    }

    fn rates(bytes_per_sec: Option<u32>) -> AckRates {
        AckRates { packets_per_sec: 5, capacity_pps: 6, bytes_per_sec }
    }

    #[test]
    fn size_of_the_body_tells_which_ack_it_is() {
        let small = Ack::Small { number: NUMBER, next: NEXT, link: LINK };
        let full = |bytes, arrivals| Ack::Full {
            number: NUMBER,
            next: NEXT,
            link: LINK,
            rates: rates(bytes),
            arrivals,
        };
        let arrivals =
            |given_up| Some(AckArrivals { packets: 8, latest_rtt_us: 9, given_up, newest: None });
        let newest = Some(NewestArrival { seq: SeqNo::new(11), delay_us: 12 });
        let with_newest = arrivals(Some(10)).map(|arrivals| AckArrivals { newest, ..arrivals });
        let cases = [
            (1, Ack::Light { next: NEXT }),
            (4, small),
            (5, small),
            (6, full(None, None)),
            (7, full(Some(7), None)),
            (8, full(Some(7), None)),
            (9, full(Some(7), arrivals(None))),
            (10, full(Some(7), arrivals(Some(10)))),
            (11, full(Some(7), arrivals(Some(10)))),
            (12, full(Some(7), with_newest)),
            (13, full(Some(7), with_newest)),
        ];
        for (words, ack) in cases {
            assert_eq!(Ack::parse(NUMBER, &body(words)), Ok(ack), "{words} words");
        }
    }

    #[test]
    fn bodies_between_the_sizes_are_too_short() {
        for (words, need) in [(0, 4), (2, 16), (3, 16)] {
            let body = body(words);
            let error = ParseError::TooShort { what: "ACK", need, got: body.len() };
            assert_eq!(Ack::parse(NUMBER, &body), Err(error));
        }
    }

    #[test]
    fn emits_what_it_parses() {
        for words in [1, 4, 6, 7, 9, 10, 12] {
            let mut emitted = Vec::new();
            let ack = Ack::parse(NUMBER, &body(words)).unwrap();
            ack.emit(&mut emitted);
            assert_eq!(emitted, body(words));
            assert_eq!(emitted.len(), ack.emitted_len());
        }
    }

    #[test]
    fn sequence_numbers_of_32_bits_are_refused() {
        let error = ParseError::SeqTopBit { what: "ACK", word: 0xFFFF_FFFF };
        for words in [1, 4, 6, 7] {
            let mut body = body(words);
            body[..4].fill(0xFF);
            assert_eq!(Ack::parse(NUMBER, &body), Err(error));
        }
    }

    #[test]
    fn only_numbered_acks_are_to_be_acknowledged() {
        assert_eq!(Ack::parse(NUMBER, &body(1)).unwrap().number(), None);
        assert_eq!(Ack::parse(AckNo::new(0), &body(4)).unwrap().number(), None);
        assert_eq!(Ack::parse(NUMBER, &body(4)).unwrap().number(), Some(NUMBER));
    }
}
