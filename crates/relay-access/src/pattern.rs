use std::fmt;
use std::str::FromStr;

use regex_lite::{Regex, RegexBuilder};
use thiserror::Error;
use wildmatch::WildMatch;

/// The streams that a rule or a section of settings is about.
///
/// | text | streams |
/// |---|---|
/// | `live/camera` | this stream |
/// | `=~cam*` | the stream after `=`, whatever characters its name has |
/// | `live/*` | `*` stands for any text, slashes included, `?` for one character |
/// | `~^cam(\d+)$` | names in which the regular expression after `~` matches somewhere |
/// | `*`, `all_others`, empty | every stream |
///
/// ```
/// use punctual_relay_access::StreamPattern;
///
/// let pattern: StreamPattern = "~^cam(\\d+)$".parse()?;
/// assert!(pattern.matches("cam12") && !pattern.matches("cam"));
/// let source = pattern.expand("cam12", "srt://10.0.0.$1:9000");
/// assert_eq!(source.as_deref(), Some("srt://10.0.0.12:9000"));
/// # Ok::<(), punctual_relay_access::PatternError>(())
/// ```
#[derive(Clone)]
pub struct StreamPattern {
    text: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Exact(String),
    Glob(WildMatch),
    Regex(Box<Regex>),
    All,
}

/// How narrow a pattern is: an exact name is narrower than a glob, a glob than a regular
/// expression, and that than *all*. Of two globs, the one with more literal characters is narrower.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Narrowness(u8, usize);

/// A text that is no pattern of streams.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PatternError {
    /// The pattern is too long.
    #[error("the pattern has {0} bytes; it must have at most 200")]
    TooLong(usize),
    /// The regular expression after `~` is invalid.
    #[error("`{pattern}` is no regular expression: {why}")]
    Regex {
        /// The text after `~`.
        pattern: String,
        /// The fault in it.
        why: String,
    },
}

impl StreamPattern {
    /// The pattern of this stream only, whatever characters its name has.
    pub fn exact(name: &str) -> Self {
        let name = name.trim_matches('/');
        let is_plain = !name.contains(['*', '?'])
            && !name.starts_with(['~', '='])
            && !["", ALL_OTHERS].contains(&name);
        let text = if is_plain { name.to_owned() } else { format!("={name}") };
        Self { text, kind: Kind::Exact(name.to_owned()) }
    }

    /// The pattern of every stream.
    pub fn all() -> Self {
        Self { text: "*".to_owned(), kind: Kind::All }
    }

    /// Whether the rule is about the stream with this name.
    pub fn matches(&self, name: &str) -> bool {
        match &self.kind {
            Kind::Exact(exact) => exact == name,
            Kind::Glob(glob) => glob.matches(name),
            Kind::Regex(regex) => regex.is_match(name),
            Kind::All => true,
        }
    }

    /// `template` with `$1`, `$2`, … replaced by the groups of the regular expression in `name`,
    /// and `$0` by the match; `None` if the pattern does not match the name. Patterns of other
    /// kinds have no groups and leave the template as it is. `$$` is a dollar sign.
    pub fn expand(&self, name: &str, template: &str) -> Option<String> {
        match &self.kind {
            Kind::Regex(regex) => {
                let mut text = String::new();
                regex.captures(name)?.expand(template, &mut text);
                Some(text)
            }
            _ => self.matches(name).then(|| template.to_owned()),
        }
    }

    /// How narrow the pattern is.
    pub fn narrowness(&self) -> Narrowness {
        match &self.kind {
            Kind::Exact(_) => Narrowness(3, 0),
            Kind::Glob(_) => {
                Narrowness(2, self.text.chars().filter(|c| !matches!(c, '*' | '?')).count())
            }
            Kind::Regex(_) => Narrowness(1, 0),
            Kind::All => Narrowness(0, 0),
        }
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for StreamPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let literal = text.strip_prefix('=');
        let length = literal.unwrap_or(text).len();
        if length > MAX_BYTES {
            return Err(PatternError::TooLong(length));
        }
        if let Some(pattern) = text.strip_prefix('~') {
            let regex = RegexBuilder::new(pattern).size_limit(MAX_PROGRAM).build();
            let error = |why: regex_lite::Error| PatternError::Regex {
                pattern: pattern.to_owned(),
                why: why.to_string(),
            };
            let kind = Kind::Regex(Box::new(regex.map_err(error)?));
            return Ok(Self { text: text.to_owned(), kind });
        }
        if let Some(name) = literal {
            return Ok(Self::exact(name));
        }
        let text = text.trim_matches('/');
        let kind = match text {
            "" | "*" | ALL_OTHERS => Kind::All,
            _ if text.starts_with(['~', '=']) || !text.contains(['*', '?']) => {
                return Ok(Self::exact(text));
            }
            _ => Kind::Glob(WildMatch::new(text)),
        };
        Ok(Self { text: text.to_owned(), kind })
    }
}

impl fmt::Debug for StreamPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Display for StreamPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for StreamPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.narrowness() == other.narrowness()
    }
}

impl Eq for StreamPattern {}

/// `MediaMTX`'s name of every stream without settings of its own.
const ALL_OTHERS: &str = "all_others";
/// The most bytes of a pattern.
const MAX_BYTES: usize = 200;
/// The most bytes of a compiled regular expression.
const MAX_PROGRAM: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn pattern(text: &str) -> StreamPattern {
        text.parse().expect("a pattern")
    }

    #[test]
    fn each_kind_of_pattern_matches_its_names() {
        for (text, yes, no) in [
            ("live/cam", &["live/cam"][..], &["live/cam2", "live", "x/live/cam"][..]),
            ("/live/cam/", &["live/cam"], &["cam"]),
            ("live/*", &["live/a", "live/a/b"], &["live", "xlive/a"]),
            ("cam?", &["cam1", "camé"], &["cam", "cam12"]),
            ("~^cam\\d+$", &["cam1", "cam12"], &["cam", "xcam1", "cam1x"]),
            ("~live", &["live", "a/live/b"], &["liv"]),
            ("all_others", &["anything", "a/b"], &[]),
            ("*", &["anything", "a/b"], &[]),
            ("", &["anything", "a/b"], &[]),
        ] {
            let pattern = pattern(text);
            assert!(yes.iter().all(|name| pattern.matches(name)), "{text}");
            assert!(!no.iter().any(|name| pattern.matches(name)), "{text}");
        }
    }

    /// A ticket for a stream says its pattern as text: it must not become wider on the way.
    #[test]
    fn an_exact_name_stays_exact_when_it_is_written_and_read() {
        for name in ["a", "a*", "?", "~a", "=a", "==", "all_others", "*", "a/b"] {
            let exact = StreamPattern::exact(name);
            let again = pattern(exact.as_str());
            assert_eq!(again, exact, "{name}");
            assert!(again.matches(name) && !again.matches("ab") && !again.matches("x"), "{name}");
        }
        assert!(pattern("/~(").matches("~("));
    }

    #[test]
    fn groups_of_a_regular_expression_fill_a_template() {
        let groups = pattern("~^(\\w+)/(\\d+)$");
        assert_eq!(groups.expand("cam/7", "srt://$1:$2"), Some("srt://cam:7".to_owned()));
        assert_eq!(groups.expand("cam", "srt://$1"), None);
        assert_eq!(pattern("live/*").expand("live/a", "$1"), Some("$1".to_owned()));
    }

    #[test]
    fn an_exact_name_is_narrower_than_globs_expressions_and_all() {
        let texts = ["live/cam", "live/cam*", "live/*", "l*", "~^live/cam$", "all_others"];
        let order = texts.map(|text| pattern(text).narrowness());
        assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
    }

    #[test]
    fn errors_of_patterns_say_what_is_wrong() {
        let error = "~cam(".parse::<StreamPattern>().unwrap_err().to_string();
        assert!(error.contains("`cam(` is no regular expression"), "{error}");
        let long = "x".repeat(201).parse::<StreamPattern>().unwrap_err();
        assert_eq!(long, PatternError::TooLong(201));
        assert!("~(a{1000}){1000}".parse::<StreamPattern>().is_err());
    }
}
