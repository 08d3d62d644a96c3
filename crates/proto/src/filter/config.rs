//! The filter's configuration in text form, such as
//! `fec,cols:10,rows:5,layout:staircase,arq:onreq`, and how two ends agree on one.

use std::fmt;

use punctual_wire::{RejectReason, SeqNo};

use super::grid::Grid;
use super::parity;
use super::receive::FecReceiver;
use super::send::FecSender;
use super::{ReceiveFilter, SendFilter};
use crate::error::ConfigError;

/// The longest text that the handshake carries, bytes.
const MAX_TEXT: usize = 64;
/// The largest number of packets in a matrix: twice the default buffer of libsrt.
const MAX_MATRIX: u64 = 16_384;
/// The largest number of columns if columns are protected: the parity packet of a column carries
/// the column's number in one byte, and the value 255 means a row.
const MAX_COLUMNS: u32 = 255;

const FORM: &str = "like fec,cols:10,rows:5,layout:staircase,arq:onreq; every key may be left out";
const COLS: &str = "cols:2 to cols:16384";
const ROWS: &str = "rows:1 (rows only), rows:2 and more (rows and columns), or rows:-2 and less \
                    (columns only)";
const LAYOUT: &str = "layout:staircase or layout:even";
const ARQ: &str = "arq:always, arq:onreq or arq:never";
const MATRIX: &str = "at most 16384 packets in a matrix of cols times rows";
const NARROW: &str = "at most cols:255 where columns are protected";
const NEEDED: &str = "given cols: at one end at least";

/// When a receiver with a filter sends NAKs for losses \[arq\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Arq {
    /// At once and repeatedly, as without a filter.
    Always,
    /// Once, when the groups that could have rebuilt the packets have ended.
    #[default]
    OnRequest,
    /// Never.
    Never,
}

/// The lines in which columns begin \[layout\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Layout {
    /// All columns begin in one line: their parity packets are sent in a burst.
    Even,
    /// Each column begins a line later than the one before it: their parity packets are spread out.
    #[default]
    Staircase,
}

/// The filter's configuration of one end. A key that is left out is taken from the other end, or
/// has its default.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FilterConfig {
    /// The text as it was given: both ends of a rendezvous must give the same.
    text: String,
    keys: FilterKeys,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct FilterKeys {
    cols: Option<u32>,
    rows: Option<i32>,
    layout: Option<Layout>,
    arq: Option<Arq>,
}

/// The configuration that two ends agreed on: forward error correction over a matrix of packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fec {
    /// The number of packets in a row, which is the number of columns.
    cols: u32,
    /// The number of packets in a column; 1 if only rows are protected, negative if only columns
    /// are.
    rows: i32,
    layout: Layout,
    arq: Arq,
}

impl FilterConfig {
    /// Parses a text. The error names the wrong part and the allowed values.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        if text.len() > MAX_TEXT {
            return Err(flaw(format!("{} bytes long", text.len()), "at most 64 bytes"));
        }
        let mut parts = text.split(',');
        if parts.next() != Some("fec") {
            return Err(flaw(text, FORM));
        }
        let parts: Vec<_> = parts.map(FilterPart::read).collect::<Result<_, _>>()?;
        let mut keys = FilterKeys::default();
        for (index, part) in parts.iter().enumerate() {
            // As in libsrt: a key without a value is left out, and of two values the later counts.
            let is_replaced =
                parts[index + 1..].iter().any(|it| it.key == part.key && !it.value.is_empty());
            if !part.value.is_empty() && !is_replaced {
                keys.set(part)?;
            }
        }
        keys.check()?;
        Ok(Self { text: text.to_owned(), keys })
    }

    /// The text as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The listener's answer to a caller's text, and the agreed configuration. Each end fills in
    /// the keys that the other left out. If the listener adds nothing, the answer is the caller's
    /// text, byte for byte. The error is [`RejectReason::FILTER`] if the ends contradict each
    /// other, or neither gives `cols`.
    pub(crate) fn merge(own: Option<&Self>, peer: &str) -> Result<(String, Fec), RejectReason> {
        let request = Self::parse(peer).map_err(refuse)?.keys;
        let own = own.filter(|own| own.text != peer);
        let keys = own.map_or(Some(request), |own| own.keys.join(request));
        let fec = keys.ok_or(RejectReason::FILTER)?.complete().map_err(refuse)?;
        let answer = if own.is_some() { fec.to_string() } else { peer.to_owned() };
        Ok((answer, fec))
    }

    /// The filter, if this end alone says enough for it.
    pub(crate) fn complete(&self) -> Option<Fec> {
        self.keys.complete().ok()
    }

    /// The configuration of a caller after the listener's answer. A key in the answer counts; a key
    /// that it leaves out is as this end gave it. A filter that this end did not configure is
    /// adopted, as in libsrt.
    pub(crate) fn adopt(own: Option<&Self>, answer: &str) -> Result<Fec, RejectReason> {
        let answer = Self::parse(answer).map_err(refuse)?.keys;
        let own = own.map(|own| own.keys).unwrap_or_default();
        answer.or(own).complete().map_err(refuse)
    }
}

/// A part of a text, such as `cols:10`.
#[derive(Clone, Copy, Debug)]
struct FilterPart<'a> {
    text: &'a str,
    key: &'a str,
    value: &'a str,
}

impl<'a> FilterPart<'a> {
    fn read(text: &'a str) -> Result<Self, ConfigError> {
        let (key, value) = text.split_once(':').ok_or_else(|| flaw(text, FORM))?;
        Ok(Self { text, key, value })
    }
}

impl FilterKeys {
    fn set(&mut self, part: &FilterPart<'_>) -> Result<(), ConfigError> {
        let FilterPart { text, key, value } = *part;
        match key {
            "cols" => {
                let cols = number(value).filter(|cols| *cols >= 2);
                let cols = cols.and_then(|cols| u32::try_from(cols).ok());
                self.cols = Some(cols.ok_or_else(|| flaw(text, COLS))?);
            }
            "rows" => {
                let rows = number(value).filter(|rows| *rows >= 1 || *rows <= -2);
                self.rows = Some(rows.ok_or_else(|| flaw(text, ROWS))?);
            }
            "layout" => {
                let layout = Layout::named(value).ok_or_else(|| flaw(text, LAYOUT))?;
                self.layout = Some(layout);
            }
            "arq" => self.arq = Some(Arq::named(value).ok_or_else(|| flaw(text, ARQ))?),
            _ => return Err(flaw(text, FORM)),
        }
        Ok(())
    }

    /// Checks the size of the matrix, as far as it is given.
    fn check(&self) -> Result<(), ConfigError> {
        let Some(cols) = self.cols else { return Ok(()) };
        let rows = self.rows.unwrap_or(1);
        if u64::from(cols) * u64::from(rows.unsigned_abs()) > MAX_MATRIX {
            return Err(flaw(format!("cols:{cols},rows:{rows}"), MATRIX));
        }
        if rows != 1 && cols > MAX_COLUMNS {
            return Err(flaw(format!("cols:{cols},rows:{rows}"), NARROW));
        }
        Ok(())
    }

    /// The keys of both; `None` if they give different values for a key.
    fn join(self, other: Self) -> Option<Self> {
        fn one<T: PartialEq>(a: Option<T>, b: Option<T>) -> Option<Option<T>> {
            match (a, b) {
                (Some(a), Some(b)) if a != b => None,
                (a, b) => Some(a.or(b)),
            }
        }
        Some(Self {
            cols: one(self.cols, other.cols)?,
            rows: one(self.rows, other.rows)?,
            layout: one(self.layout, other.layout)?,
            arq: one(self.arq, other.arq)?,
        })
    }

    /// The keys of `self`, and those of `other` where `self` has none.
    fn or(self, other: Self) -> Self {
        Self {
            cols: self.cols.or(other.cols),
            rows: self.rows.or(other.rows),
            layout: self.layout.or(other.layout),
            arq: self.arq.or(other.arq),
        }
    }

    fn complete(self) -> Result<Fec, ConfigError> {
        let cols = self.cols.ok_or_else(|| flaw("without a matrix", NEEDED))?;
        self.check()?;
        Ok(Fec {
            cols,
            rows: self.rows.unwrap_or(1),
            layout: self.layout.unwrap_or_default(),
            arq: self.arq.unwrap_or_default(),
        })
    }
}

impl Fec {
    /// Bytes that a parity packet has in addition to the largest payload.
    pub(crate) const OVERHEAD: usize = parity::PREFIX;

    /// The sender's filter of a connection whose first packet has number `isn`.
    pub(crate) fn sender(&self, isn: SeqNo) -> Box<dyn SendFilter> {
        Box::new(FecSender::new(self.grid(), isn))
    }

    /// The receiver's filter of a connection whose first packet has number `isn`.
    pub(crate) fn receiver(&self, isn: SeqNo) -> Box<dyn ReceiveFilter> {
        Box::new(FecReceiver::new(self.grid(), isn))
    }

    /// When the receiver sends NAKs.
    pub(crate) const fn arq(&self) -> Arq {
        self.arq
    }

    pub(super) fn grid(&self) -> Grid {
        let staircase = self.layout == Layout::Staircase;
        Grid::new(self.cols, self.rows.unsigned_abs(), self.rows > 0, staircase)
    }
}

/// Writes the keys in libsrt's order, so that a listener's answer is like libsrt's.
impl fmt::Display for Fec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (arq, layout) = (self.arq.name(), self.layout.name());
        write!(f, "fec,arq:{arq},cols:{},layout:{layout},rows:{}", self.cols, self.rows)
    }
}

macro_rules! names {
    ($type:ident { $($variant:ident = $name:literal),* }) => {
        impl $type {
            fn named(name: &str) -> Option<Self> {
                match name {
                    $( $name => Some(Self::$variant), )*
                    _ => None,
                }
            }

            const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )*
                }
            }
        }
    };
}

names!(Arq { Always = "always", OnRequest = "onreq", Never = "never" });
names!(Layout { Even = "even", Staircase = "staircase" });

/// A whole number of at most five digits.
fn number(text: &str) -> Option<i32> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn flaw(value: impl Into<String>, expected: &'static str) -> ConfigError {
    ConfigError { option: "packetfilter", value: value.into(), expected }
}

fn refuse(_: ConfigError) -> RejectReason {
    RejectReason::FILTER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> FilterConfig {
        FilterConfig::parse(text).expect("a legal text")
    }

    #[track_caller]
    fn assert_refused(text: &str, value: &str, expected: &'static str) {
        let error = FilterConfig::parse(text).unwrap_err();
        assert_eq!(error, flaw(value, expected));
    }

    #[test]
    fn keys_that_are_left_out_have_libsrts_defaults() {
        let (_, fec) = FilterConfig::merge(None, "fec,cols:10").expect("complete");
        assert_eq!(fec.to_string(), "fec,arq:onreq,cols:10,layout:staircase,rows:1");
        let text = "fec,cols:10,rows:-5,layout:even,arq:never";
        let (adopted, fec) = FilterConfig::merge(None, text).expect("complete");
        assert_eq!(
            adopted, text,
            "a listener without a filter of its own repeats the caller's text"
        );
        assert_eq!(fec.to_string(), "fec,arq:never,cols:10,layout:even,rows:-5");
    }

    #[test]
    fn each_error_names_the_wrong_part_and_the_allowed_values() {
        assert_refused("", "", FORM);
        assert_refused("xor,cols:3", "xor,cols:3", FORM);
        assert_refused("fec,", "", FORM);
        assert_refused("fec,cols", "cols", FORM);
        assert_refused("fec,depth:3", "depth:3", FORM);
        assert_refused("fec,cols:1", "cols:1", COLS);
        assert_refused("fec,cols:ten", "cols:ten", COLS);
        assert_refused("fec,cols:99999999999", "cols:99999999999", COLS);
        for rows in ["rows:0", "rows:-1", "rows:+3", "rows:1.5"] {
            assert_refused(&format!("fec,cols:9,{rows}"), rows, ROWS);
        }
        assert_refused("fec,layout:spiral", "layout:spiral", LAYOUT);
        assert_refused("fec,arq:sometimes", "arq:sometimes", ARQ);
        assert_refused("fec,cols:129,rows:128", "cols:129,rows:128", MATRIX);
        assert_refused("fec,cols:256,rows:2", "cols:256,rows:2", NARROW);
        assert_refused(&format!("fec,{}", "x".repeat(61)), "65 bytes long", "at most 64 bytes");
        assert_eq!(
            FilterConfig::parse("fec,cols:1").unwrap_err().to_string(),
            "packetfilter is cols:1; it must be cols:2 to cols:16384"
        );
    }

    #[test]
    fn an_empty_key_is_left_out_and_the_last_of_several_values_counts() {
        for (text, read) in [
            ("fec,cols:5,cols:10", "fec,arq:onreq,cols:10,layout:staircase,rows:1"),
            ("fec,cols:10,cols:", "fec,arq:onreq,cols:10,layout:staircase,rows:1"),
            ("fec,cols:1,rows:,cols:9,arq:", "fec,arq:onreq,cols:9,layout:staircase,rows:1"),
        ] {
            let (answer, fec) = FilterConfig::merge(None, text).expect("complete");
            assert_eq!((answer.as_str(), fec.to_string().as_str()), (text, read));
        }
        assert_refused("fec,cols:10,", "", FORM);
        assert_refused("fec,cols:10,cols:1", "cols:1", COLS);
    }

    #[test]
    fn each_end_fills_in_the_keys_that_the_other_left_out() {
        let own = parse("fec,rows:5,layout:even");
        let (merged, fec) = FilterConfig::merge(Some(&own), "fec,cols:8,arq:always").expect("fits");
        assert_eq!(merged, "fec,arq:always,cols:8,layout:even,rows:5");
        assert_eq!(fec.to_string(), merged);
        let same = FilterConfig::merge(Some(&parse("fec,cols:8")), "fec,cols:8").expect("fits");
        assert_eq!(same.0, "fec,cols:8", "both ends of a rendezvous must say the same");
        let only_type = parse("fec");
        assert!(FilterConfig::merge(Some(&only_type), "fec,cols:8").is_ok());
        assert!(FilterConfig::merge(Some(&parse("fec,cols:8")), "fec").is_ok());
    }

    #[test]
    fn contradicting_or_incomplete_configurations_are_refused() {
        let merge = |own: &str, peer| FilterConfig::merge(Some(&parse(own)), peer).err();
        let refused = Some(RejectReason::FILTER);
        assert_eq!(merge("fec,cols:8", "fec,cols:9"), refused);
        assert_eq!(merge("fec,cols:8,rows:2", "fec,rows:-2"), refused);
        assert_eq!(merge("fec,cols:8,layout:even", "fec,layout:staircase"), refused);
        assert_eq!(merge("fec,cols:8,arq:never", "fec,cols:8,arq:always"), refused);
        assert_eq!(merge("fec", "fec"), refused, "no columns at either end");
        assert_eq!(merge("fec,cols:300", "fec,rows:3"), refused, "too wide together");
        assert_eq!(merge("fec,cols:8", "adaptive"), refused);
        assert_eq!(FilterConfig::merge(None, "fec,rows:2").err(), refused);
    }

    #[test]
    fn a_caller_adopts_the_listeners_answer() {
        let own = parse("fec,cols:10,arq:never");
        let fec = FilterConfig::adopt(Some(&own), "fec,cols:12,rows:3").expect("complete");
        assert_eq!(fec.to_string(), "fec,arq:never,cols:12,layout:staircase,rows:3");
        assert!(FilterConfig::adopt(None, "fec,cols:4").is_ok());
        assert_eq!(FilterConfig::adopt(Some(&own), "other"), Err(RejectReason::FILTER));
        assert_eq!(FilterConfig::adopt(None, "fec"), Err(RejectReason::FILTER));
    }
}
