//! The filter's text form, `fec,cols:10,rows:5,layout:staircase,arq:onreq`, and how two ends agree
//! on one.

use std::fmt;

use punctual_wire::RejectReason;

use super::grid::Grid;
use crate::error::ConfigError;

/// Longest text, bytes: what the handshake carries.
const MAX_TEXT: usize = 64;
/// Most packets in a matrix: twice what libsrt's buffer of usual size holds.
const MAX_MATRIX: u64 = 16_384;
/// Most columns where columns are protected: a column's packet carries its number in a byte, and
/// the last value means a row.
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

/// How losses are reported while a filter repairs them \[arq\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Arq {
    /// At once and again, as without a filter.
    Always,
    /// Once, when the groups that could have rebuilt them are over.
    #[default]
    OnRequest,
    /// Not at all.
    Never,
}

/// Where columns begin \[layout\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Layout {
    /// All on one row: their packets go out in a burst.
    Even,
    /// Each a row later than the one before it: their packets are spread.
    #[default]
    Staircase,
}

/// A filter's configuration as one end states it: a key that is left out is for the other end to
/// say, or else has its default.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FilterConfig {
    /// As it was given: both ends of a rendezvous must give the same.
    text: String,
    keys: Keys,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Keys {
    cols: Option<u32>,
    rows: Option<i32>,
    layout: Option<Layout>,
    arq: Option<Arq>,
}

/// What two ends agreed on: forward error correction over a matrix of packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fec {
    /// Packets in a row, and columns.
    cols: u32,
    /// Packets in a column; 1 for rows alone, negative for columns alone.
    rows: i32,
    layout: Layout,
    arq: Arq,
}

impl FilterConfig {
    /// Reads a text; the error says which part is wrong and what would be right.
    pub(crate) fn parse(text: &str) -> Result<Self, ConfigError> {
        if text.len() > MAX_TEXT {
            return Err(flaw(format!("{} bytes long", text.len()), "at most 64 bytes"));
        }
        let mut parts = text.split(',');
        if parts.next() != Some("fec") {
            return Err(flaw(text, FORM));
        }
        let mut keys = Keys::default();
        for part in parts {
            keys.read(part)?;
        }
        keys.check()?;
        Ok(Self { text: text.to_owned(), keys })
    }

    /// The text as it was given.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What a listener makes of a caller's wish: each end fills what the other left out. Refused if
    /// they contradict each other, or both leave out what has no default.
    /// Returns the answer, too. Where nothing is added it is what the caller said, to the letter.
    pub(crate) fn merge(own: Option<&Self>, peer: &str) -> Result<(String, Fec), RejectReason> {
        let wish = Self::parse(peer).map_err(refuse)?.keys;
        let own = own.filter(|own| own.text != peer);
        let keys = own.map_or(Some(wish), |own| own.keys.join(wish)).ok_or(RejectReason::FILTER)?;
        let fec = keys.complete().map_err(refuse)?;
        let answer = if own.is_some() { fec.to_string() } else { peer.to_owned() };
        Ok((answer, fec))
    }

    /// What a caller makes of the listener's answer: its word counts, and what it leaves out is as
    /// this end wished. A filter that this end did not ask for is adopted, as libsrt does.
    pub(crate) fn adopt(own: Option<&Self>, answer: &str) -> Result<Fec, RejectReason> {
        let answer = Self::parse(answer).map_err(refuse)?.keys;
        let own = own.map(|own| own.keys).unwrap_or_default();
        answer.or(own).complete().map_err(refuse)
    }
}

impl Keys {
    fn read(&mut self, part: &str) -> Result<(), ConfigError> {
        let (key, value) = part.split_once(':').ok_or_else(|| flaw(part, FORM))?;
        let repeated = match key {
            "cols" => {
                let cols = number(value).filter(|cols| *cols >= 2);
                let cols = cols.and_then(|cols| u32::try_from(cols).ok());
                self.cols.replace(cols.ok_or_else(|| flaw(part, COLS))?).is_some()
            }
            "rows" => {
                let rows = number(value).filter(|rows| *rows >= 1 || *rows <= -2);
                self.rows.replace(rows.ok_or_else(|| flaw(part, ROWS))?).is_some()
            }
            "layout" => {
                let layout = Layout::named(value).ok_or_else(|| flaw(part, LAYOUT))?;
                self.layout.replace(layout).is_some()
            }
            "arq" => {
                let arq = Arq::named(value).ok_or_else(|| flaw(part, ARQ))?;
                self.arq.replace(arq).is_some()
            }
            _ => return Err(flaw(part, FORM)),
        };
        if repeated { Err(flaw(part, "given once")) } else { Ok(()) }
    }

    /// Whether what is given can be a matrix.
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

    /// Both together; `None` if they give different values for a key.
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

    /// This where it says something, else the other.
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
    /// How losses are reported.
    pub(crate) const fn arq(&self) -> Arq {
        self.arq
    }

    pub(super) fn grid(&self) -> Grid {
        let staircase = self.layout == Layout::Staircase;
        Grid::new(self.cols, self.rows.unsigned_abs(), self.rows > 0, staircase)
    }
}

/// The keys in libsrt's order, so that what a listener answers looks as libsrt's.
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
    fn what_is_left_out_has_libsrts_defaults() {
        let (_, fec) = FilterConfig::merge(None, "fec,cols:10").expect("complete");
        assert_eq!(fec.to_string(), "fec,arq:onreq,cols:10,layout:staircase,rows:1");
        let text = "fec,cols:10,rows:-5,layout:even,arq:never";
        let (adopted, fec) = FilterConfig::merge(None, text).expect("complete");
        assert_eq!(adopted, text, "a listener without a wish says the caller's again");
        assert_eq!(fec.to_string(), "fec,arq:never,cols:10,layout:even,rows:-5");
    }

    #[test]
    fn each_refusal_says_which_part_is_wrong_and_what_would_be_right() {
        assert_refused("", "", FORM);
        assert_refused("xor,cols:3", "xor,cols:3", FORM);
        assert_refused("fec,", "", FORM);
        assert_refused("fec,cols", "cols", FORM);
        assert_refused("fec,depth:3", "depth:3", FORM);
        assert_refused("fec,cols:1", "cols:1", COLS);
        assert_refused("fec,cols:ten", "cols:ten", COLS);
        assert_refused("fec,cols:99999999999", "cols:99999999999", COLS);
        for rows in ["rows:0", "rows:-1", "rows:", "rows:+3", "rows:1.5"] {
            assert_refused(&format!("fec,cols:9,{rows}"), rows, ROWS);
        }
        assert_refused("fec,layout:spiral", "layout:spiral", LAYOUT);
        assert_refused("fec,arq:sometimes", "arq:sometimes", ARQ);
        assert_refused("fec,cols:10,cols:10", "cols:10", "given once");
        assert_refused("fec,cols:129,rows:128", "cols:129,rows:128", MATRIX);
        assert_refused("fec,cols:256,rows:2", "cols:256,rows:2", NARROW);
        assert_refused(&format!("fec,{}", "x".repeat(61)), "65 bytes long", "at most 64 bytes");
        assert_eq!(
            FilterConfig::parse("fec,cols:1").unwrap_err().to_string(),
            "packetfilter is cols:1; it must be cols:2 to cols:16384"
        );
    }

    #[test]
    fn a_listener_fills_what_the_caller_leaves_out_and_the_other_way_round() {
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
    fn what_contradicts_or_is_not_whole_is_refused() {
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
    fn a_caller_takes_the_listeners_word() {
        let own = parse("fec,cols:10,arq:never");
        let fec = FilterConfig::adopt(Some(&own), "fec,cols:12,rows:3").expect("complete");
        assert_eq!(fec.to_string(), "fec,arq:never,cols:12,layout:staircase,rows:3");
        assert!(FilterConfig::adopt(None, "fec,cols:4").is_ok());
        assert_eq!(FilterConfig::adopt(Some(&own), "other"), Err(RejectReason::FILTER));
        assert_eq!(FilterConfig::adopt(None, "fec"), Err(RejectReason::FILTER));
    }
}
