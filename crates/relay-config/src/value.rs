//! Reading values: each method accepts one kind of value, or says what is wrong with it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use punctual_units::{parse_bytes_in, parse_count, parse_duration};
use toml::de::{DeTable, DeValue};

use crate::named_files::NamedFiles;
use crate::problem::Faults;
use crate::secret::SecretValue;

/// A value of a key.
pub(crate) struct Value<'a> {
    content: &'a DeValue<'a>,
    context: &'a Context<'a>,
}

/// The world in which values are read.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The files that values may name.
    pub(crate) files: &'a NamedFiles,
    /// Whether all values are texts, as in the environment.
    pub(crate) only_texts: bool,
}

impl<'a> Value<'a> {
    pub(crate) const fn new(content: &'a DeValue<'a>, context: &'a Context<'a>) -> Self {
        Self { content, context }
    }

    /// A text with at most this number of bytes.
    pub(crate) fn text(&self, most: usize) -> Result<&'a str, Faults> {
        let DeValue::String(text) = self.content else {
            return Err(format!("this is {}, not a text in quotes", self.kind()).into());
        };
        if text.len() > most {
            return Err(format!("it has {} bytes; at most {most} are allowed", text.len()).into());
        }
        if text.contains('\0') {
            return Err("it contains a NUL character".into());
        }
        Ok(text)
    }

    /// A text that is not empty.
    pub(crate) fn filled_text(&self, most: usize) -> Result<&'a str, Faults> {
        match self.text(most)? {
            "" => Err("it is empty".into()),
            text => Ok(text),
        }
    }

    /// `true` or `false`.
    pub(crate) fn switch(&self) -> Result<bool, Faults> {
        match self.content {
            DeValue::Boolean(switch) => Ok(*switch),
            DeValue::String(text) if self.context.only_texts && text == "true" => Ok(true),
            DeValue::String(text) if self.context.only_texts && text == "false" => Ok(false),
            DeValue::String(text) => {
                Err(format!("`{}` is not true or false without quotes", short(text)).into())
            }
            _ => Err(format!("this is {}, not true or false", self.kind()).into()),
        }
    }

    /// A whole number, also as a text such as `10k`.
    pub(crate) fn count(&self, range: RangeInclusive<u64>) -> Result<u64, Faults> {
        let count = match self.content {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| {
                    Faults::from(format!("`{number}` is not between {}", between(&range)))
                })?,
            DeValue::String(text) => parse_count(short(text))?,
            _ => return Err(format!("this is {}, not a number", self.kind()).into()),
        };
        if range.contains(&count) {
            return Ok(count);
        }
        Err(format!("`{count}` is not between {}", between(&range)).into())
    }

    /// A number like [`Value::count`], in 32 bits.
    pub(crate) fn small_count(&self, range: RangeInclusive<u32>) -> Result<u32, Faults> {
        let (start, end) = range.into_inner();
        self.count(start.into()..=end.into()).map(|count| u32::try_from(count).unwrap_or(end))
    }

    /// A time with its unit.
    pub(crate) fn time(&self, range: RangeInclusive<Duration>) -> Result<Duration, Faults> {
        time_of(&self.number_or_text("a time in quotes, like \"120ms\"")?, &range)
    }

    /// A number of bytes, with or without a unit.
    pub(crate) fn bytes(&self, range: RangeInclusive<u64>) -> Result<u64, Faults> {
        let bytes = parse_bytes_in(&self.number_or_text("a size, like \"100GB\"")?, 1)?;
        match range.contains(&bytes) {
            true => Ok(bytes),
            false => Err(format!("{bytes} bytes are not in this range").into()),
        }
    }

    /// One of several words.
    pub(crate) fn choice<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T, Faults> {
        let text = self.text(MOST_TEXT)?;
        words.iter().find(|(word, _)| *word == text).map(|(_, it)| *it).ok_or_else(|| {
            let words = words.iter().map(|(word, _)| *word);
            let hint = punctual_uri::did_you_mean(short(text), words);
            Faults::from(format!("`{}` is not among the allowed words{hint}", short(text)))
        })
    }

    /// An IP address and a port. `:8890` stands for all addresses of this machine.
    pub(crate) fn address(&self) -> Result<SocketAddr, Faults> {
        let text = self.text(MOST_TEXT)?;
        if let Some(port) = text.strip_prefix(':')
            && let Ok(port) = port.parse()
        {
            return Ok(SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port));
        }
        text.parse().map_err(|_| {
            let hint = match text.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => format!("; the port is missing: `{text}:8890`"),
                Ok(IpAddr::V6(_)) => format!("; write `[{text}]:8890`"),
                Err(_) => String::new(),
            };
            Faults::from(format!("`{}` is not an IP address with a port{hint}", short(text)))
        })
    }

    /// A list of at most `most` parts. In the environment, commas separate the parts.
    pub(crate) fn list<T>(
        &self,
        most: usize,
        mut read: impl FnMut(&Value<'_>) -> Result<T, Faults>,
    ) -> Result<Vec<T>, Faults> {
        if let (true, DeValue::String(text)) = (self.context.only_texts, self.content) {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            let parts: Vec<_> = parts.map(|part| DeValue::String(part.into())).collect();
            return self.parts(most, parts.iter().map(|part| (part, 0..0)), &mut read);
        }
        let DeValue::Array(parts) = self.content else {
            return Err(format!("this is {}, not a list in brackets", self.kind()).into());
        };
        self.parts(most, parts.iter().map(|part| (part.get_ref(), part.span())), &mut read)
    }

    fn parts<'p, T>(
        &self,
        most: usize,
        parts: impl ExactSizeIterator<Item = (&'p DeValue<'p>, Range<usize>)>,
        read: &mut impl FnMut(&Value<'_>) -> Result<T, Faults>,
    ) -> Result<Vec<T>, Faults> {
        if parts.len() > most {
            return Err(
                format!("the list has {} parts; at most {most} are allowed", parts.len()).into()
            );
        }
        let (mut found, mut faults) = (Vec::new(), Vec::new());
        for (index, (content, span)) in parts.enumerate() {
            let part = Value::new(content, self.context);
            match read(&part) {
                Ok(part) => found.push(part),
                Err(fault) => faults.extend(fault.within(&format!("[{index}]"), &span).0),
            }
        }
        if faults.is_empty() { Ok(found) } else { Err(Faults(faults)) }
    }

    /// A table.
    pub(crate) fn table(&self) -> Result<&'a DeTable<'a>, Faults> {
        match self.content {
            DeValue::Table(table) => Ok(table),
            _ => Err(format!("this is {}, not a table in braces", self.kind()).into()),
        }
    }

    /// The world in which the value is read.
    pub(crate) const fn context(&self) -> &'a Context<'a> {
        self.context
    }

    /// A secret that is written here.
    pub(crate) fn secret(&self, most: usize) -> Result<SecretValue, Faults> {
        self.filled_text(most).map(SecretValue::written)
    }

    /// A secret in the file that is named here.
    pub(crate) fn secret_file(&self) -> Result<SecretValue, Faults> {
        Ok(self.context.files.secret(self.filled_text(MOST_PATH)?)?)
    }

    /// The path of a file that exists.
    pub(crate) fn file(&self) -> Result<std::path::PathBuf, Faults> {
        Ok(self.context.files.find(self.filled_text(MOST_PATH)?)?)
    }

    /// The files that the value may name.
    pub(crate) const fn files(&self) -> &'a NamedFiles {
        self.context.files
    }

    fn number_or_text(&self, wanted: &str) -> Result<String, Faults> {
        match self.content {
            DeValue::String(text) => Ok(short(text).to_owned()),
            DeValue::Integer(number) => Ok(number.to_string()),
            _ => Err(format!("this is {}, not {wanted}", self.kind()).into()),
        }
    }

    /// The kind of the value, for errors.
    const fn kind(&self) -> &'static str {
        match self.content {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }
}

/// The message about a key that no table has.
pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let hint = punctual_uri::did_you_mean(short(name), known.clone());
    let known: Vec<&str> = known.collect();
    format!("unknown key{hint} (known: {})", known.join(", "))
}

/// Reads a time in a range.
pub(crate) fn time_of(text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, Faults> {
    let time = parse_duration(text)?;
    match range.contains(&time) {
        true => Ok(time),
        false => Err(format!("`{text}` is not in this range").into()),
    }
}

fn between(range: &RangeInclusive<u64>) -> String {
    format!("{} and {}", range.start(), range.end())
}

/// The start of a text, short enough for a message.
pub(crate) fn short(text: &str) -> &str {
    let end = text.char_indices().nth(MOST_SHOWN).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Characters of a value in a message.
const MOST_SHOWN: usize = 100;
/// Bytes of a text without a limit of its own.
pub(crate) const MOST_TEXT: usize = 4_096;
/// Bytes of the path of a file.
pub(crate) const MOST_PATH: usize = 4_096;
