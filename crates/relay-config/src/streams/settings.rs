//! The settings of one stream.

use std::ops::RangeInclusive;
use std::time::Duration;

use punctual_relay_access::StreamPattern;

use super::record_path::RecordPath;
use super::uri::{StreamUri, highest_group};
use crate::secret::SecretValue;
use crate::toml_text;
use crate::value::time_of;

/// The settings of one stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StreamSettings {
    /// The source.
    pub source: SourceSettings,
    /// Its publishers.
    pub publishers: PublisherSettings,
    /// Its viewers.
    pub viewers: ViewerSettings,
    /// Its passphrases.
    pub encryption: EncryptionSettings,
    /// The least latency of its connections; `None`: the listener's.
    pub latency: Option<Duration>,
    /// The destinations that it is sent to.
    pub forward: Vec<ForwardSettings>,
    /// Its recording.
    pub record: RecordSettings,
}

/// The source of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceSettings {
    /// The URI that is pulled; `None`: callers publish.
    pub uri: Option<StreamUri>,
    /// Whether it is pulled only while somebody views.
    pub on_demand: bool,
    /// The time that viewers wait for a source on demand.
    pub start_timeout: Duration,
    /// The time after the last viewer at which a source on demand is closed.
    pub close_after: Duration,
    /// The pauses between attempts, of a source and of destinations.
    pub retry: RetryRange,
}

/// The pauses between attempts: each is twice as long as the one before, with jitter, and the first
/// again after 60 s of good media.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RetryRange {
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

/// The publishers of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PublisherSettings {
    /// The answer to a second publisher.
    pub on_second: SecondPublisher,
    /// The time for which viewers outlive their publisher.
    pub keep_viewers: Duration,
}

/// The answer to a second publisher of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SecondPublisher {
    /// It replaces the first one, if it has the same rights.
    Replace,
    /// It is refused.
    Refuse,
    /// It waits, and takes over when the first one ends.
    Standby,
}

/// The viewers of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ViewerSettings {
    /// The place at which a viewer begins.
    pub start: ViewerStart,
    /// The treatment of a viewer that is too slow.
    pub slow: SlowViewer,
    /// The media that wait for a viewer, as time, before it is too slow.
    pub buffer: Duration,
    /// The answer to a viewer of a stream that is absent.
    pub absent: AbsentStream,
    /// The most viewers; 0: no limit.
    pub most: u32,
    /// The most viewers of one user; 0: no limit.
    pub most_per_user: u32,
}

/// The place at which a viewer begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ViewerStart {
    /// The next random access point.
    RandomAccess,
    /// The latest random access point, with the media since then.
    Gop,
    /// The next packet.
    Live,
}

/// The treatment of a viewer that is too slow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SlowViewer {
    /// It goes on at a later random access point.
    Skip,
    /// It is disconnected.
    Disconnect,
}

/// The answer to a viewer of a stream that is absent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AbsentStream {
    /// The viewer is refused.
    Refuse,
    /// The viewer waits for the stream for this time.
    Hold(Duration),
}

/// The passphrases of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EncryptionSettings {
    /// The passphrase of its publishers; `None`: their calls are not encrypted.
    pub publish: Option<SecretValue>,
    /// The passphrase of its viewers; `None`: their calls are not encrypted.
    pub read: Option<SecretValue>,
    /// The bytes of the keys: 16, 24 or 32; `None`: the caller's choice.
    pub key_length: Option<u8>,
    /// The cipher.
    pub cipher: CipherChoice,
}

/// The cipher of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CipherChoice {
    /// The caller's choice.
    Auto,
    /// AES-CTR.
    Ctr,
    /// AES-GCM.
    Gcm,
}

/// A destination of a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ForwardSettings {
    /// Its name in the API and in metrics.
    pub name: String,
    /// The URI; the check lets no table pass that has none.
    pub to: Option<StreamUri>,
}

/// The recording of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordSettings {
    /// Whether the stream is recorded from its start.
    pub enabled: bool,
    /// The names of segments.
    pub path: RecordPath,
    /// The time of a segment.
    pub segment: Duration,
    /// The age at which segments are deleted; zero: never.
    pub delete_after: Duration,
    /// The bytes of all segments of the stream, beyond which the oldest are deleted; 0: no limit.
    pub max_bytes: u64,
}

impl StreamSettings {
    /// The settings of the stream with this name.
    pub(super) fn filled(&self, pattern: &StreamPattern, name: &str) -> Self {
        let mut filled = self.clone();
        let fill = |uri: &mut Option<StreamUri>| {
            *uri = uri.take().map(|uri| uri.filled(pattern, name));
        };
        fill(&mut filled.source.uri);
        filled.forward.iter_mut().for_each(|forward| fill(&mut forward.to));
        filled
    }

    /// The faults of several keys together, each with the key that shows it. `pattern` is that of
    /// the section; `[defaults]` have none.
    pub(crate) fn faults(&self, pattern: Option<&StreamPattern>) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let is_exact = pattern.is_some_and(super::is_exact);
        let has_groups = pattern.is_some_and(|pattern| pattern.as_str().starts_with('~'));
        if self.source.uri.is_some() && !self.source.on_demand && !is_exact {
            let message = "only a section with the exact name of a stream can be pulled all the \
                           time; for other sections write `source-on-demand = true`";
            faults.push(("source", message.to_owned()));
        }
        let named = |uri: &Option<StreamUri>| {
            let group = highest_group(uri.as_ref()?.secret().secret.expose())?;
            (group > 0 && !has_groups).then(|| {
                format!(
                    "`${group}` is a group of a regular expression, which only sections like \
                     `[stream.\"~^cam(.*)$\"]` have; `$0` is the name of the stream"
                )
            })
        };
        faults.extend(named(&self.source.uri).map(|message| ("source", message)));
        faults.extend(
            self.forward.iter().filter_map(|it| named(&it.to)).map(|message| ("forward", message)),
        );
        if self.record.enabled && !is_exact && !self.record.path.names_stream() {
            let message = "the section is about several streams; their files need `%path`";
            faults.push(("record-path", message.to_owned()));
        }
        faults
    }
}

impl RetryRange {
    /// Reads `1s..30s`, or one time for all pauses.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (first, longest) = text.split_once("..").unwrap_or((text, text));
        let pause = |text: &str| {
            time_of(text, &PAUSES).map_err(|faults| {
                faults.0.into_iter().next().map(|fault| fault.message).unwrap_or_default()
            })
        };
        let (first, longest) = (pause(first)?, pause(longest)?);
        match first <= longest {
            true => Ok(Self { first, longest }),
            false => Err("the first pause is longer than the longest".to_owned()),
        }
    }

    /// The text that is read as this range.
    pub(crate) fn text(&self) -> String {
        format!("{}..{}", toml_text::time(self.first), toml_text::time(self.longest))
    }
}

impl AbsentStream {
    /// Reads `refuse`, `hold` or `hold 30s`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(rest) = text.strip_prefix("hold") else {
            return match text {
                "refuse" => Ok(Self::Refuse),
                _ => {
                    let text = crate::value::short(text);
                    let hint = punctual_uri::did_you_mean(text, ["refuse", "hold"]);
                    Err(format!("`{text}` is not among the allowed words{hint}"))
                }
            };
        };
        match rest.trim() {
            "" => Ok(Self::Hold(Duration::from_secs(10))),
            time => {
                let range = Duration::from_millis(100)..=Duration::from_secs(3_600);
                time_of(time, &range).map(Self::Hold).map_err(|faults| {
                    faults.0.into_iter().next().map(|fault| fault.message).unwrap_or_default()
                })
            }
        }
    }

    /// The text that is read as this answer.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Refuse => "refuse".to_owned(),
            Self::Hold(time) => format!("hold {}", toml_text::time(time)),
        }
    }
}

impl Default for SourceSettings {
    fn default() -> Self {
        let ten = Duration::from_secs(10);
        let retry = RetryRange { first: Duration::from_secs(1), longest: Duration::from_secs(30) };
        Self { uri: None, on_demand: false, start_timeout: ten, close_after: ten, retry }
    }
}

impl Default for PublisherSettings {
    fn default() -> Self {
        Self { on_second: SecondPublisher::Replace, keep_viewers: Duration::from_secs(10) }
    }
}

impl Default for ViewerSettings {
    fn default() -> Self {
        Self {
            start: ViewerStart::RandomAccess,
            slow: SlowViewer::Skip,
            buffer: Duration::from_secs(1),
            absent: AbsentStream::Refuse,
            most: 0,
            most_per_user: 0,
        }
    }
}

impl Default for EncryptionSettings {
    fn default() -> Self {
        Self { publish: None, read: None, key_length: None, cipher: CipherChoice::Auto }
    }
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            path: RecordPath::default(),
            segment: Duration::from_secs(3_600),
            delete_after: Duration::from_secs(86_400),
            max_bytes: 0,
        }
    }
}

const PAUSES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_read_and_written() {
        for text in ["1s..30s", "500ms..1min", "5s..5s"] {
            assert_eq!(RetryRange::parse(text).unwrap().text(), text);
        }
        assert_eq!(RetryRange::parse("5s").unwrap().text(), "5s..5s");
        for wrong in ["", "5", "30s..1s", "1s..2s..3s", "0s", "1s..2h"] {
            assert!(RetryRange::parse(wrong).is_err(), "{wrong}");
        }
        for text in ["refuse", "hold 10s", "hold 1min"] {
            assert_eq!(AbsentStream::parse(text).unwrap().text(), text);
        }
        assert_eq!(AbsentStream::parse("hold").unwrap().text(), "hold 10s");
        let error = AbsentStream::parse("hodl").unwrap_err();
        assert!(error.contains("did you mean `hold`?"), "{error}");
        assert!(AbsentStream::parse("hold 2h").is_err());
    }
}
