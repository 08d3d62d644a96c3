//! URIs of sources and destinations, in which `$0` to `$9` may stand for parts of a stream's name.

use std::fmt::Write as _;

use punctual_relay_access::StreamPattern;
use punctual_uri::{Target, Uri, UriError};

use crate::named_files::NamedFiles;
use crate::problem::Faults;
use crate::secret::SecretValue;

/// The URI of a source or a destination. It may contain a passphrase and is shown without it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamUri {
    text: SecretValue,
    shown: String,
}

impl StreamUri {
    /// A URI without `$0` to `$9`.
    fn new(text: &str) -> Self {
        Self { text: SecretValue::written(text), shown: punctual_uri::redacted(text) }
    }

    /// The URI and its target.
    ///
    /// # Errors
    ///
    /// The URI is wrong for this name of a stream, or names a file that has gone since the check.
    pub fn parse(&self) -> Result<Uri, UriError> {
        self.text.secret.expose().parse()
    }

    /// Values that are valid but probably not intended.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let uri: Result<Uri, _> = sample(self.text.secret.expose()).parse();
        uri.map(|uri| uri.warnings().to_vec()).unwrap_or_default()
    }

    /// The URI without its passphrase.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) const fn secret(&self) -> &SecretValue {
        &self.text
    }

    /// The URI of the stream with this name.
    pub(crate) fn filled(&self, pattern: &StreamPattern, name: &str) -> Self {
        let text = self.text.secret.expose();
        if text.contains('$') {
            Self::new(&filled(text, pattern, name, escaped))
        } else {
            self.clone()
        }
    }

    /// Checks a source.
    pub(crate) fn source(text: &str, files: &NamedFiles) -> Result<Self, Faults> {
        let (uri, target) = Self::checked(text, files)?;
        match target.target {
            Target::Stdio => Err("the relay has no standard input; name a file".into()),
            _ => Ok(uri),
        }
    }

    /// Checks a destination.
    pub(crate) fn destination(text: &str, files: &NamedFiles) -> Result<Self, Faults> {
        let (uri, target) = Self::checked(text, files)?;
        match target.target {
            Target::File(_) | Target::Stdio => Err("a file is no destination; use `record`".into()),
            _ => Ok(uri),
        }
    }

    fn checked(text: &str, files: &NamedFiles) -> Result<(Self, Uri), Faults> {
        if !text.contains("://") {
            let hint = punctual_uri::did_you_mean(text, ["publisher"]);
            return Err(format!("it is not a URI like srt://192.0.2.1:8890{hint}").into());
        }
        let lower = text.to_ascii_lowercase();
        if !files.can_be_read()
            && ["file", "cert", "key", "env"].iter().any(|it| lower.contains(it))
        {
            return Err("files cannot be named here".into());
        }
        let target: Uri = sample(text).parse().map_err(|error: UriError| error.to_string())?;
        Ok((Self::new(text), target))
    }
}

/// The URI of some stream: that of any other has the same form.
fn sample(text: &str) -> String {
    filled(text, &StreamPattern::all(), "x", |_| "1".to_owned())
}

/// A text with `$0` replaced by the name, and `$1` to `$9` by the groups of the regular expression.
pub(super) fn filled(
    text: &str,
    pattern: &StreamPattern,
    name: &str,
    escape: fn(&str) -> String,
) -> String {
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.chars().next().and_then(|digit| digit.to_digit(10)) {
            Some(0) => filled += &escape(name),
            Some(number) => {
                let has_groups = pattern.as_str().starts_with('~');
                let group = pattern.expand(name, &format!("${{{number}}}"));
                filled += &escape(&group.filter(|_| has_groups).unwrap_or_default());
            }
            None => filled.push('$'),
        }
        filled += part.strip_prefix(|c: char| c.is_ascii_digit()).unwrap_or(part);
    }
    filled
}

/// The highest number behind a `$`.
pub(super) fn highest_group(text: &str) -> Option<u32> {
    text.split('$').skip(1).filter_map(|part| part.chars().next()?.to_digit(10)).max()
}

/// Part of a name as it stands in a URI: no character of it begins a key, a query or another path.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                escaped.push(char::from(byte));
            }
            other => {
                let _ = write!(escaped, "%{other:02X}");
            }
        }
    }
    without_dots(&escaped)
}

/// Part of a name without segments that lead out of a folder.
pub(super) fn without_dots(text: &str) -> String {
    let segment = |segment| if matches!(segment, "." | "..") { "_" } else { segment };
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, pattern: &str, name: &str) -> String {
        let uri = StreamUri::source(text, &NamedFiles::none()).unwrap();
        uri.filled(&pattern.parse().unwrap(), name).shown().to_owned()
    }

    #[test]
    fn parts_of_a_name_fill_a_uri() {
        let origin = "srt://origin:8890?streamid=read:$0";
        assert_eq!(shown(origin, "live/*", "live/a"), "srt://origin:8890?streamid=read:live/a");
        let camera = "srt://cam-$1.example:900$2?latency=20ms";
        let filled = shown(camera, "~^(\\w+)/(\\d)$", "hall/7");
        assert_eq!(filled, "srt://cam-hall.example:9007?latency=20ms");
        assert_eq!(shown("udp://:5000", "live/*", "live/a"), "udp://:5000");
    }

    #[test]
    fn a_name_adds_no_key_and_no_path_to_a_uri() {
        let origin = "srt://origin:8890?streamid=$0";
        assert_eq!(
            shown(origin, "*", "a&latency=9 y#z"),
            "srt://origin:8890?streamid=a%26latency%3D9%20y%23z"
        );
        assert_eq!(escaped("../é"), "_/%C3%A9");
        let group = filled("/clips/$1.ts", &"~^a(.*)b$".parse().unwrap(), "a..b", escaped);
        assert_eq!(group, "/clips/_.ts");
    }

    #[test]
    fn sources_and_destinations_are_checked() {
        let files = NamedFiles::new(None, None);
        let source = |text| StreamUri::source(text, &files).unwrap_err().0[0].message.clone();
        assert!(source("publsher").contains("did you mean `publisher`?"), "{}", source("publsher"));
        assert!(source("srt://h:1?latncy=2").contains("did you mean `latency`?"));
        assert!(source("file://con").contains("no standard input"));
        assert!(StreamUri::source("file:///clips/$0.ts", &files).is_ok());
        let destination = |text| StreamUri::destination(text, &files).is_ok();
        assert!(destination("srt+quic://h:1") && destination("udp://239.1.1.1:5000?ttl=3"));
        assert!(!destination("file:///a.ts"));
        let uri = StreamUri::destination("srt://h:1?passphrase=hush, hush", &files).unwrap();
        assert!(!format!("{uri:?}").contains("hush"));
        assert!(uri.parse().is_ok());
    }
}
