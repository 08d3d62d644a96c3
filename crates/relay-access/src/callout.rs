//! The question to a server of the operator whether a caller may.

use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use punctual_proto::RejectReason;
use punctual_units::{parse_bitrate_in_bits, parse_duration_in};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::action::Action;
use crate::call::Call;
use crate::decision::{Caller, Refusal, Refused, Terms};
use crate::name::StreamName;
use crate::secret::Secret;
use crate::token::MAX_USER;
use crate::web::{Answer, Url, Web, WebError};

/// A server that decides about callers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CalloutConfig {
    /// The address that gets the question.
    pub url: Url,
    /// The form of the question.
    pub format: CalloutFormat,
    /// The time after which a caller is refused because no answer came.
    pub timeout: Duration,
}

/// The form of the question.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CalloutFormat {
    /// JSON with `user`, `password`, `token`, `ip`, `action`, `path`, `protocol`, `id`, `query` and
    /// `userAgent`, as `MediaMTX` sends it.
    #[default]
    MediaMtx,
    /// A form with `call`, `app`, `name`, `username` and `auth`, as nginx-rtmp and srtrelay send
    /// it; also `addr` and `clientid`.
    Nginx,
}

/// A word that is no form.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("`{0}` is no form of callouts: write mediamtx or nginx")]
pub struct CalloutFormatError(String);

impl FromStr for CalloutFormat {
    type Err = CalloutFormatError;

    fn from_str(word: &str) -> Result<Self, CalloutFormatError> {
        match word {
            "mediamtx" => Ok(Self::MediaMtx),
            "nginx" => Ok(Self::Nginx),
            _ => Err(CalloutFormatError(word.to_owned())),
        }
    }
}

/// A server that decides about callers, with the questions that are under way.
#[derive(Debug)]
pub(crate) struct Callout {
    web: Web,
    format: CalloutFormat,
    asking: Semaphore,
    places: Semaphore,
}

/// A server's consent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Consent {
    pub(crate) user: Option<String>,
    pub(crate) stream: Option<StreamName>,
    pub(crate) terms: Terms,
}

impl Callout {
    pub(crate) fn new(config: &CalloutConfig) -> Result<Self, WebError> {
        Ok(Self {
            web: Web::new(config.url.clone(), config.timeout)?,
            format: config.format,
            asking: Semaphore::new(ASKING),
            places: Semaphore::new(PLACES),
        })
    }

    pub(crate) fn url(&self) -> &Url {
        self.web.url()
    }

    /// Asks the server. Cancel safe: a question that nobody waits for is given up.
    pub(crate) async fn ask(&self, call: &Call, caller: &Caller) -> Result<Consent, Refused> {
        let overload = || {
            let text = format!("{PLACES} callers already wait for the callout {}", self.url());
            Refused::new(Refusal::Overload, text)
        };
        let _place = self.places.try_acquire().map_err(|_| overload())?;
        let _turn = self.asking.acquire().await.expect("it is never closed");
        let (content_type, body) = match self.format {
            CalloutFormat::MediaMtx => ("application/json", mediamtx(call, caller)),
            CalloutFormat::Nginx => ("application/x-www-form-urlencoded", nginx(call, caller)),
        };
        match self.web.post(content_type, Bytes::from(body), MOST_BYTES).await {
            Ok(answer) => self.consent(&answer),
            Err(error) => {
                let code = match error {
                    WebError::Timeout { .. } => RejectReason::GATEWAY_TIMEOUT,
                    _ => RejectReason::BAD_GATEWAY,
                };
                let text = format!("the callout failed: {error}");
                Err(Refused::new(Refusal::CalloutFailed, text).with_code(code))
            }
        }
    }

    fn consent(&self, answer: &Answer) -> Result<Consent, Refused> {
        let fields = fields(answer);
        if !answer.status.is_success() {
            let reason = fields.unwrap_or_default().reason.unwrap_or_default();
            return Err(self.refusal(answer.status.as_u16(), &reason));
        }
        let consent = fields.and_then(AnswerFields::consent);
        consent.map_err(|why| {
            let text = format!("the answer of the callout {} cannot be used: {why}", self.url());
            Refused::new(Refusal::CalloutFailed, text)
        })
    }

    fn refusal(&self, status: u16, reason: &str) -> Refused {
        let (kind, code) = match status {
            401 => (Refusal::Callout, RejectReason::UNAUTHORIZED),
            404 => (Refusal::Callout, RejectReason::NOT_FOUND),
            409 => (Refusal::Callout, RejectReason::CONFLICT),
            429 | 503 => (Refusal::Callout, RejectReason::OVERLOAD),
            400..=499 => (Refusal::Callout, RejectReason::FORBIDDEN),
            _ => (Refusal::CalloutFailed, RejectReason::BAD_GATEWAY),
        };
        let colon = if reason.is_empty() { "" } else { ": " };
        let reason: String = reason.chars().take(MOST_REASON).collect();
        let text = format!("the callout {} answered {status}{colon}{reason}", self.url());
        Refused::new(kind, text).with_code(code)
    }
}

fn mediamtx(call: &Call, caller: &Caller) -> String {
    let credentials = call.credentials();
    let text = |secret: Option<&Secret>| secret.map_or("", Secret::expose).to_owned();
    json!({
        "user": credentials.user().unwrap_or_default(),
        "password": text(credentials.secret()),
        "token": text(credentials.own_token()),
        "ip": caller.address.to_canonical().to_string(),
        "action": call.action().word(),
        "path": call.stream().as_str(),
        "protocol": caller.protocol,
        "id": caller.id,
        "query": call.query(),
        "userAgent": caller.user_agent,
    })
    .to_string()
}

/// The part before the first slash is the application; srtrelay's `stream` is that of names without
/// a slash.
fn nginx(call: &Call, caller: &Caller) -> String {
    let credentials = call.credentials();
    let (app, name) =
        call.stream().as_str().split_once('/').unwrap_or((APP, call.stream().as_str()));
    let verb = if call.action() == Action::Publish { "publish" } else { "play" };
    let secret = credentials.secret().or(credentials.own_token());
    let address = caller.address.to_canonical().to_string();
    let pairs = [
        ("call", verb),
        ("app", app),
        ("name", name),
        ("username", credentials.user().unwrap_or_default()),
        ("auth", secret.map_or("", Secret::expose)),
        ("addr", &address),
        ("clientid", &caller.id),
    ];
    let encoded = |value| utf8_percent_encode(value, &FORM).to_string();
    pairs.map(|(key, value)| format!("{key}={}", encoded(value))).join("&")
}

/// The keys of an answer that the relay knows.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct AnswerFields {
    user: Option<String>,
    stream: Option<String>,
    passphrase: Option<Secret>,
    lifetime: Option<Value>,
    #[serde(alias = "max_bitrate", alias = "maxBitrate")]
    max_bitrate: Option<Value>,
    reason: Option<String>,
}

/// The keys of an answer. One that is no JSON, or no object, has none.
fn fields(answer: &Answer) -> Result<AnswerFields, String> {
    let body = answer.body.trim_ascii();
    if body.is_empty() || !(answer.is_json || body.starts_with(b"{")) {
        return Ok(AnswerFields::default());
    }
    // The error's text may quote the answer: only its place is said.
    let place = |error: serde_json::Error| {
        format!("it is no JSON at line {}, column {}", error.line(), error.column())
    };
    match serde_json::from_slice::<Value>(body).map_err(place)? {
        object @ Value::Object(_) => serde_json::from_value(object)
            .map_err(|_| "`user`, `stream`, `passphrase` and `reason` must be texts".to_owned()),
        _ => Ok(AnswerFields::default()),
    }
}

impl AnswerFields {
    fn consent(self) -> Result<Consent, String> {
        let stream = self.stream.as_deref().map(StreamName::new).transpose();
        let stream = stream.map_err(|error| format!("`stream`: {error}"))?;
        if self.user.as_ref().is_some_and(|user| user.len() > MAX_USER) {
            return Err(format!("`user` has more than {MAX_USER} bytes"));
        }
        let passphrase = self.passphrase.filter(|passphrase| !passphrase.is_empty());
        let length = passphrase.as_ref().map(|passphrase| passphrase.expose().len());
        if let Some(length) = length.filter(|length| !(10..=80).contains(length)) {
            return Err(format!("`passphrase` has {length} bytes, not 10 to 80"));
        }
        let second = Duration::from_secs(1);
        let lifetime = text_of(self.lifetime).map(|text| parse_duration_in(&text, second));
        let lifetime = lifetime.transpose().map_err(|error| format!("`lifetime`: {error}"))?;
        let rate = text_of(self.max_bitrate).map(|text| parse_bitrate_in_bits(&text));
        let max_bitrate = rate.transpose().map_err(|error| format!("`max-bitrate`: {error}"))?;
        let terms = Terms {
            passphrase,
            lifetime: lifetime.filter(|time| !time.is_zero()),
            max_bitrate: max_bitrate.filter(|rate| rate.as_bits_per_sec() > 0),
        };
        Ok(Consent { user: self.user, stream, terms })
    }
}

/// A quantity as text: a number without a unit, or a text with one.
fn text_of(value: Option<Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// The questions that are asked at the same time.
const ASKING: usize = 64;
/// The callers that wait for an answer or for their turn.
const PLACES: usize = 1024;
/// The most bytes of an answer.
const MOST_BYTES: usize = 16 * 1024;
/// The most characters of a reason that the server gives.
const MOST_REASON: usize = 200;
/// The application of streams whose name has no slash.
const APP: &str = "stream";
/// The characters that a form encodes.
const FORM: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use punctual_units::Bitrate;

    use super::*;
    use crate::call::CallDefaults;

    fn call(text: &str) -> Call {
        Call::parse(&text.into(), &CallDefaults::default()).expect("a call")
    }

    fn caller() -> Caller {
        Caller::srt("::ffff:10.0.0.1".parse().expect("an address"), "7")
    }

    fn answer(body: &str) -> Result<Consent, String> {
        let body = Bytes::copy_from_slice(body.as_bytes());
        fields(&Answer { status: StatusCode::OK, is_json: false, body })?.consent()
    }

    #[test]
    fn questions_have_the_fields_of_their_form() {
        let call = call("publish:live/cam:ann:h sh:k=v&token=t");
        let question: Value = serde_json::from_str(&mediamtx(&call, &caller())).expect("JSON");
        let expected = json!({
            "user": "ann", "password": "h sh", "token": "t", "ip": "10.0.0.1",
            "action": "publish", "path": "live/cam", "protocol": "srt", "id": "7",
            "query": "k=v&token=t", "userAgent": "",
        });
        assert_eq!(question, expected);
        let expected = "call=publish&app=live&name=cam&username=ann&auth=h%20sh&addr=10.0.0.1&\
                        clientid=7";
        assert_eq!(nginx(&call, &caller()), expected);
        assert!(
            nginx(&self::call("play/cam"), &caller()).starts_with("call=play&app=stream&name=cam&")
        );
    }

    #[test]
    fn an_answer_sets_terms_in_numbers_or_texts() {
        let consent = answer(
            r#" {"passphrase": "correct horse", "lifetime": "2h", "max-bitrate": 6000000,
                 "stream": "/live/b", "user": "ann", "other": [1]}"#,
        );
        let consent = consent.expect("consent");
        assert_eq!(consent.terms.passphrase, Some("correct horse".into()));
        assert_eq!(consent.terms.lifetime, Some(Duration::from_secs(7200)));
        assert_eq!(consent.terms.max_bitrate, Some(Bitrate::from_mbps(6)));
        assert_eq!(consent.stream.expect("a stream"), "live/b");
        assert_eq!(consent.user.as_deref(), Some("ann"));
        let seconds = answer(r#"{"lifetime": 90, "maxBitrate": "6Mbps", "passphrase": ""}"#);
        let terms = seconds.expect("consent").terms;
        assert_eq!(terms.lifetime, Some(Duration::from_secs(90)));
        assert_eq!(terms.max_bitrate, Some(Bitrate::from_mbps(6)));
        assert_eq!(terms.passphrase, None);
        for body in ["", "OK", "  ", "{}", r#"{"lifetime": 0, "max-bitrate": null}"#] {
            assert_eq!(answer(body), Ok(Consent::default()), "{body}");
        }
    }

    #[test]
    fn an_answer_that_cannot_be_used_names_its_key_and_no_secret() {
        for (body, part) in [
            (r#"{"passphrase": "hush"}"#, "`passphrase` has 4 bytes"),
            (r#"{"passphrase": 5}"#, "must be texts"),
            (&format!(r#"{{"user": "{}"}}"#, "u".repeat(129)), "`user` has more than 128 bytes"),
            (r#"{"lifetime": "long"}"#, "`lifetime`"),
            (r#"{"lifetime": -1}"#, "`lifetime`"),
            (r#"{"max-bitrate": 6}"#, "`max-bitrate`"),
            (r#"{"stream": "../x"}"#, "`stream`"),
            (r#"{"passphrase": "hush"#, "no JSON at line 1"),
        ] {
            let error = answer(body).expect_err("no consent");
            assert!(error.contains(part) && !error.contains("hush"), "{body}: {error}");
        }
    }
}
