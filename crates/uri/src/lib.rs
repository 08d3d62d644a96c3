//! URIs of the source and the destination of a stream, in the forms of the SRT tools and FFmpeg.
//!
//! A [`Uri`] is parsed from text into a [`Target`]. [`set_option`] sets one option by its key, for
//! options that are not part of a URI. [`topic`](fn@topic) is the help page on all forms and keys;
//! [`options`](fn@options) is the table of the keys of SRT.
//!
//! ```
//! use punctual_uri::{Target, Uri};
//!
//! let uri: Uri = "srt://media.example:4200?latency=250ms".parse()?;
//! let Target::Srt(target) = &uri.target else { panic!("it names an SRT peer") };
//! assert_eq!((target.host.as_str(), target.port), ("media.example", 4200));
//! assert_eq!(target.config.receive_latency().as_millis(), 250);
//!
//! let error = "srt://media.example:4200?latncy=250ms".parse::<Uri>().unwrap_err();
//! assert!(error.to_string().contains("unknown key `latncy`; did you mean `latency`?"));
//! # Ok::<(), punctual_uri::UriError>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "quic")]
mod certificate_files;
mod error;
mod file;
mod key;
mod limits;
mod options;
mod parts;
mod place;
mod query;
#[cfg(feature = "quic")]
mod quic;
mod redact;
mod secrets;
mod srt;
mod srt_keys;
mod suggest;
mod targets;
mod tcp;
mod topic;
mod udp;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

pub use error::UriError;
pub use file::FileTarget;
pub use limits::Limits;
pub use options::{OptionStatus, UriOption, options};
pub use redact::{redacted, redacted_line, redacted_words};
pub use secrets::redacted_stream_id;
pub use srt::{SrtTarget, set_option};
pub use srt_keys::Mode;
pub use suggest::did_you_mean;
pub use tcp::TcpTarget;
pub use topic::topic;
pub use udp::UdpTarget;

use error::Problem;
use parts::Parts;

/// A URI and its target. It is displayed as it was written, but without the passphrase.
#[derive(Clone, Debug)]
pub struct Uri {
    text: String,
    /// The source or destination that it names.
    pub target: Target,
}

/// The source or destination that a URI names.
#[derive(Clone, Debug)]
pub enum Target {
    /// `file:///path/to/clip.ts` or a bare path.
    File(FileTarget),
    /// `srt://host:port` or `srt://:port`; over QUIC with the scheme `srt+quic`.
    Srt(Box<SrtTarget>),
    /// `-` or `file://con`: standard input or output.
    Stdio,
    /// `tcp://host:port` or `tcp://:port`.
    Tcp(TcpTarget),
    /// `udp://host:port` or `udp://:port`; as RTP with the scheme `rtp`.
    Udp(UdpTarget),
}

impl Uri {
    /// Warnings about values that are valid but probably not intended.
    pub fn warnings(&self) -> &[String] {
        match &self.target {
            Target::Srt(target) => &target.warnings,
            _ => &[],
        }
    }
}

impl Uri {
    /// Parses a URI. The keys of `defaults` apply to an SRT URI that does not have them; it is
    /// displayed as it was written, without them.
    ///
    /// # Errors
    ///
    /// The text is not a URI of one of these forms, or a key or a value is wrong.
    pub fn parse_with(text: &str, defaults: &[(&str, &str)]) -> Result<Self, UriError> {
        let error = |problem| UriError { uri: redacted(text), problem };
        let target = match text.split_once("://") {
            None if text == "-" => Target::Stdio,
            None if let Some((scheme, rest)) = scheme_without_slashes(text) => {
                return Err(error(Problem::NoSlashes { scheme, rest, written: redacted(text) }));
            }
            None if let Some((scheme, rest)) = scheme_without_colon(text) => {
                return Err(error(Problem::NoColon { scheme, rest, written: redacted(text) }));
            }
            None if looks_like_host_port(text) => {
                return Err(error(Problem::Bare(redacted(text))));
            }
            None if file::has_keys(text) => {
                return Err(error(Problem::BareKeys(redacted(text))));
            }
            None => Target::File(PathBuf::from(text).into()),
            Some((scheme, rest)) => match scheme.to_lowercase().as_str() {
                "file" if rest == "con" => Target::Stdio,
                "file" => Target::File(targets::file(text, rest)?),
                "srt" => {
                    let parts = Parts::parse(text, rest)?.with_defaults(defaults);
                    Target::Srt(Box::new(SrtTarget::over_udp(&parts)?))
                }
                "srt+quic" => {
                    let parts = Parts::parse(text, rest)?.with_defaults(defaults);
                    Target::Srt(Box::new(over_quic(&parts)?))
                }
                "tcp" => Target::Tcp(targets::tcp(&Parts::parse(text, rest)?)?),
                "rtp" => Target::Udp(targets::rtp(&Parts::parse(text, rest)?)?),
                "udp" => Target::Udp(targets::udp(&Parts::parse(text, rest)?)?),
                other if FOREIGN.contains(&other) => {
                    return Err(error(Problem::Foreign { scheme: other.to_owned() }));
                }
                other => {
                    let suggestion = did_you_mean(other, SCHEMES);
                    let scheme = scheme.to_owned();
                    return Err(error(Problem::UnknownScheme { scheme, suggestion }));
                }
            },
        };
        Ok(Self { text: redacted(text), target })
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        Self::parse_with(text, &[])
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Splits `host:port` into the host, without brackets, and the port.
///
/// # Errors
///
/// The text has another form, or a port outside 1 to 65535.
pub fn split_host_port(text: &str) -> Result<(&str, Option<u16>), UriError> {
    place::split_host_port(text).map_err(|problem| UriError { uri: redacted(text), problem })
}

/// Schemes of live streams that FFmpeg has.
const FOREIGN: [&str; 11] =
    ["rtmp", "rtmps", "rtmpe", "rtmpt", "rtsp", "rtsps", "http", "https", "hls", "mms", "mmsh"];

const SCHEMES: [&str; 6] = ["srt", "srt+quic", "udp", "rtp", "tcp", "file"];

#[cfg(feature = "quic")]
fn over_quic(parts: &Parts<'_>) -> Result<SrtTarget, UriError> {
    SrtTarget::over_quic(parts)
}

#[cfg(not(feature = "quic"))]
fn over_quic(parts: &Parts<'_>) -> Result<SrtTarget, UriError> {
    Err(parts.error(Problem::NoQuic))
}

/// Whether a text without a scheme is probably an address, not a file.
fn looks_like_host_port(text: &str) -> bool {
    let place = text.split_once('?').map_or(text, |(place, _)| place);
    !place.contains('/') && matches!(split_host_port(place), Ok((_, Some(_))))
}

/// The scheme of a text such as `srt:host:4200`, and the text that belongs after its `//`.
fn scheme_without_slashes(text: &str) -> Option<(String, String)> {
    let (scheme, rest) = text.split_once(':')?;
    let scheme = scheme.to_lowercase();
    let rest = rest.trim_start_matches('/');
    let place = rest.split_once('?').map_or(rest, |(place, _)| place);
    let is_stream = ["srt", "srt+quic", "udp", "rtp", "tcp"].contains(&scheme.as_str());
    let has_port = matches!(split_host_port(place), Ok((_, Some(_))));
    (is_stream && has_port).then(|| (scheme, redacted(rest)))
}

/// The scheme of a text such as `srt//host:4200`, and the text that belongs after its `://`.
fn scheme_without_colon(text: &str) -> Option<(String, String)> {
    let (scheme, rest) = text.split_once("//")?;
    let scheme = scheme.to_lowercase();
    let place = rest.split_once('?').map_or(rest, |(place, _)| place);
    let is_stream = ["srt", "srt+quic", "udp", "tcp"].contains(&scheme.as_str());
    let has_port = matches!(split_host_port(place), Ok((_, Some(_))));
    (is_stream && has_port).then(|| (scheme, redacted(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse::<Uri>().unwrap().target
    }

    fn file(text: &str) -> String {
        match target(text) {
            Target::File(target) => target.path.display().to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn schemes_choose_the_target() {
        assert!(matches!(target("srt://:4200"), Target::Srt(_)));
        assert!(matches!(target("SRT://:4200"), Target::Srt(_)));
        assert!(matches!(target("udp://@239.1.1.1:1234"), Target::Udp(_)));
        assert!(matches!(target("udp://:5000"), Target::Udp(UdpTarget { rtp: false, .. })));
        assert!(matches!(target("rtp://:5000?rtpheadersize=12"), Target::Udp(it) if it.rtp));
        assert!(matches!(target("tcp://:5000"), Target::Tcp(_)));
        assert!(matches!(target("-"), Target::Stdio));
        assert!(matches!(target("file://con"), Target::Stdio));
    }

    #[test]
    fn files_are_uris_or_bare_paths() {
        assert_eq!(file("file:///media/clip.ts"), "/media/clip.ts");
        assert_eq!(file("file://clip%20one.ts"), "clip one.ts");
        assert_eq!(file("./clip.ts"), "./clip.ts");
        assert_eq!(file("clip.ts"), "clip.ts");
        assert_eq!(file("take:2.ts"), "take:2.ts");
    }

    #[test]
    fn errors_suggest_the_nearest_valid_spelling() {
        let error = |text: &str| text.parse::<Uri>().unwrap_err().to_string();
        assert!(error("host:4200").contains("`srt://host:4200` or `./host:4200`"));
        assert!(error("str://host:4200").contains("unknown scheme `str`; did you mean `srt`?"));
        assert!(error("rist://host:4200").contains("known are srt, srt+quic, udp, rtp, tcp and"));
        assert!(error("srt://host:4200?latncy=1").contains("unknown key `latncy`"));
    }

    #[test]
    fn a_scheme_without_slashes_is_not_taken_for_a_file() {
        let error = |text: &str| text.parse::<Uri>().unwrap_err().to_string();
        assert_eq!(
            error("srt:127.0.0.1:4200"),
            "`srt:127.0.0.1:4200` lacks the `//`: write `srt://127.0.0.1:4200`, or \
             `./srt:127.0.0.1:4200` for a file"
        );
        assert!(error("UDP:/:5000").contains("write `udp://:5000`"));
        assert!(error("host:4200?latency=1").contains("`srt://host:4200?latency=1` or"));
        assert_eq!(file("srt:clip.ts"), "srt:clip.ts");
        let told = error("srt//h:1?latency=1");
        assert!(told.contains("lacks the `:`: write `srt://h:1?latency=1`"), "{told}");
        assert_eq!(file("srt//clip.ts"), "srt//clip.ts");
    }

    #[test]
    fn users_paths_separators_and_other_schemes_are_explained() {
        let error = |text: &str| text.parse::<Uri>().unwrap_err().to_string();
        for scheme in ["rtmp", "http", "rtsp"] {
            let told = error(&format!("{scheme}://h/live"));
            assert!(told.contains("FFmpeg") && told.contains("| punctual route -"), "{told}");
        }
        let told = error("srt://u:hush@h:1");
        assert!(told.contains("`streamid`") && !told.contains("hush"), "{told}");
        for text in ["srt://h:1&latency=2", "udp://h:1&ttl=2", "srt://h:1;latency=2"] {
            assert!(error(text).contains("the first key follows a `?`"), "{}", error(text));
        }
        for text in ["srt://h:1?latency=20;fc=9", "srt://h:1?latency=20,fc=9"] {
            assert!(error(text).contains("`&` separates keys"), "{}", error(text));
        }
        let joined: Uri = "srt://h:1?streamid=a;latency=20ms".parse().unwrap();
        assert!(joined.warnings().join("").contains("`&` separates keys"));
        let usual: Uri = "srt://h:1?streamid=#!::r=live/a,m=publish".parse().unwrap();
        assert!(usual.warnings().is_empty(), "{:?}", usual.warnings());
    }

    #[test]
    fn a_bare_path_has_no_keys_and_an_error_shows_where_they_go() {
        let error = "clip.ts?grow=wait&maxidle=5s".parse::<Uri>().unwrap_err().to_string();
        assert!(error.contains("`file://clip.ts?grow=wait&maxidle=5s`"), "{error}");
        assert_eq!(file("what?.ts"), "what?.ts");
    }

    #[test]
    fn a_passphrase_in_a_uri_causes_a_warning_that_names_safer_keys() {
        let warnings = |text: &str| text.parse::<Uri>().unwrap().warnings().join("\n");
        let warning = warnings("srt://h:1?passphrase=hush, hush");
        assert!(
            warning.contains("`passphrase-file=PATH`") && warning.contains("`ps`"),
            "{warning}"
        );
    }

    #[test]
    fn an_empty_passphrase_is_refused_and_others_that_matter_are_warned_of() {
        for text in ["srt://h:1?passphrase=", "srt://:1?passphrase&latency=1ms"] {
            let error = text.parse::<Uri>().unwrap_err().to_string();
            assert!(error.contains("it is empty; leave the key out"), "{error}");
        }
        let warnings = |text: &str| text.parse::<Uri>().unwrap().warnings().join("\n");
        assert!(warnings("srt://h:1?pbkeylen=32").contains("the stream is not encrypted"));
        assert!(warnings("srt://h:1?cryptomode=2").contains("the stream is not encrypted"));
        assert!(warnings("srt://h:1?streamid=").contains("`streamid` is empty"));
        assert_eq!(warnings("srt://h:1?streamid=a"), "");
        let error = "srt://h:1?passphrase-env=PUNCTUAL_NOT_SET".parse::<Uri>().unwrap_err();
        assert!(error.to_string().contains("it is not set"), "{error}");
    }

    #[cfg(feature = "quic")]
    #[test]
    fn an_empty_value_does_not_make_quic_insecure() {
        let error = "srt+quic://h:1?insecure=".parse::<Uri>().unwrap_err().to_string();
        assert!(error.contains("it is empty"), "{error}");
        assert!("srt+quic://h:1?certhash=".parse::<Uri>().is_err());
        assert!("srt+quic://h:1?insecure=1".parse::<Uri>().is_ok());
    }

    #[test]
    fn no_passphrase_is_shown_in_any_valid_or_wrong_uri() {
        let uri: Uri = "srt://h:1?passphrase=hush, hush&latency=1".parse().unwrap();
        assert_eq!(uri.to_string(), "srt://h:1?passphrase=…&latency=1");
        assert!(!format!("{uri:?}").contains("hush"));
        for wrong in [
            "srt://h:1?passphrase=hush",
            "srt://h:1?passphrase=hush, hush&latency=x",
            "srt://h:1?passphrase=hush, hush&passphrase=hush, hush",
            "srt://h:1?passphrase=hush%ff",
            "srt://h?passphrase=hush, hush",
            "srt://h:1?passphrasse=hush, hush",
            "srtt://h:1?passphrase=hush, hush",
            "udp://h:1?passphrase=hush, hush",
            "file:///%ff?passphrase=hush, hush",
            "srt:h:1?passphrase=hush, hush",
            "srt:/h:1?passphrase=hush, hush",
            "h:1?passphrase=hush, hush",
            "srt://h:1?pasphrase=hush",
            "srt://h:1?pasphrase=hush%ff",
            "srt://h:1?pw=hush",
            "srt://h:1?passphrase:hush",
            "srt://h:1?latency=120;passphrase=hush",
            "srt://h:1?latency=120ms%26passphrase=hush",
            "srt://h:1&passphrase=hush",
            "srt://h:1/passphrase=hush",
            "srt://h&passphrase=hush:1?fc=1",
            "srt://u:hush@h:1",
            "srt://h:1?mode=passphrase=hush",
            "tcp://h:1?passphrase=hush",
        ] {
            let error = wrong.parse::<Uri>().unwrap_err();
            let shown = format!("{error} {error:?} {}", error.uri());
            assert!(!shown.contains("hush"), "{shown}");
        }
        let error = set_option(Default::default(), "passphrase", "hush").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"));
    }
}
