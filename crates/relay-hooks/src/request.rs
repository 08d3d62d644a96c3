//! The request about an event: JSON, signed.

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use punctual_relay_access::Secret;
use punctual_units::{UtcTime, one_line};
use punctual_uri::{redacted, redacted_stream_id};
use serde::Serialize;
use sha2::Sha256;

use crate::event::{HookEvent, HookEventKind};

/// The body of a request. Fields of which nothing is known are left out.
#[derive(Debug, Serialize)]
struct Body<'a> {
    id: &'a str,
    event: HookEventKind,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection: Option<ConnectionBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segment: Option<SegmentBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
}

#[derive(Debug, Serialize)]
struct ConnectionBody<'a> {
    id: &'a str,
    protocol: &'a str,
    is_pull: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
}

#[derive(Debug, Serialize)]
struct SegmentBody {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

/// The body of a request about an event, which has the number `id` for the receiver to know one
/// that comes again.
pub(crate) fn body(id: &str, event: &HookEvent) -> Bytes {
    let connection = event.connection.as_ref().map(|it| ConnectionBody {
        id: &it.id,
        protocol: &it.protocol,
        is_pull: it.is_pull,
        address: it.address.as_deref(),
        user: it.user.as_deref(),
        query: it.query.as_deref().map(redacted_stream_id),
    });
    let segment = event.segment.as_ref().map(|it| SegmentBody {
        path: it.path.display().to_string(),
        seconds: it.duration.map(|duration| duration.as_secs_f64()),
        bytes: it.bytes,
    });
    let body = Body {
        id,
        event: event.kind,
        time: event.time.to_string(),
        stream: event.stream.as_deref(),
        connection,
        reason: event.reason.as_deref().map(|reason| one_line(reason).into_owned()),
        segment,
        destination: event.destination.as_deref().map(redacted),
    };
    serde_json::to_vec(&body).expect("plain data has a form in JSON").into()
}

/// The headers of a request that is sent at `now`. The signature is over the timestamp, a full stop
/// and the body, so that a receiver can refuse an old request that somebody sends again.
pub(crate) fn headers(key: Option<&Secret>, id: &str, now: UtcTime, body: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let timestamp = (now.micros() / 1_000_000).to_string();
    if let Some(key) = key {
        let hash = Hmac::<Sha256>::new_from_slice(key.expose().as_bytes());
        let mut hash = hash.expect("a key may have any length");
        hash.update(timestamp.as_bytes());
        hash.update(b".");
        hash.update(body);
        let digits = |byte: u8| format!("{byte:02x}");
        let hash: String = hash.finalize().into_bytes().into_iter().map(digits).collect();
        headers.insert(SIGNATURE, value(&format!("sha256={hash}")));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(TIMESTAMP, value(&timestamp));
    headers.insert(EVENT_ID, value(id));
    headers
}

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and signs are fit for a header")
}

const SIGNATURE: HeaderName = HeaderName::from_static("x-punctual-signature");
const TIMESTAMP: HeaderName = HeaderName::from_static("x-punctual-timestamp");
const EVENT_ID: HeaderName = HeaderName::from_static("x-punctual-event-id");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::HookConnection;

    #[test]
    fn a_request_has_the_event_without_secrets() {
        let connection = HookConnection {
            id: "7".to_owned(),
            protocol: "srt".to_owned(),
            query: Some("x=1&token=hush".to_owned()),
            ..HookConnection::default()
        };
        let event = HookEvent::new(HookEventKind::ForwardUp, UtcTime::default());
        let mut event = event.of_stream("live/\"a\"").of_connection(connection);
        event.destination = Some("srt://h:1?passphrase=hush-hush-hush".to_owned());
        let body = body("5-1", &event);
        let text = str::from_utf8(&body).unwrap();
        assert_eq!(
            text,
            "{\"id\":\"5-1\",\"event\":\"forward-up\",\"time\":\"1970-01-01T00:00:00.000000Z\",\
             \"stream\":\"live/\\\"a\\\"\",\"connection\":{\"id\":\"7\",\"protocol\":\"srt\",\
             \"is_pull\":false,\"query\":\"x=1&token=…\"},\
             \"destination\":\"srt://h:1?passphrase=…\"}"
        );
    }

    #[test]
    fn the_signature_is_the_hmac_of_timestamp_and_body() {
        let now = UtcTime::from_micros(1_700_000_000_999_999);
        let headers = headers(Some(&"key".into()), "5-1", now, b"{}");
        assert_eq!(headers[TIMESTAMP], "1700000000");
        // printf '1700000000.{}' | openssl dgst -sha256 -hmac key
        assert_eq!(headers[SIGNATURE], SIGNED);
        assert!(!super::headers(None, "5-1", now, b"{}").contains_key(SIGNATURE));
    }

    const SIGNED: &str = "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae";
}
