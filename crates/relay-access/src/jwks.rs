//! The keys by which JSON web tokens are verified, as a server publishes them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::web::{Url, Web, WebError};

/// The keys of a server, which are fetched when they are first needed and from then on at most
/// every [`AGAIN`]: if a token names an unknown key, or if they are older than [`FRESH`]. A fetch
/// that fails leaves the old keys.
#[derive(Clone, Debug)]
pub(crate) struct Jwks(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    web: Web,
    keys: RwLock<Arc<KeySet>>,
    last: Mutex<LastFetch>,
}

#[derive(Debug, Default)]
struct KeySet {
    keys: Vec<Key>,
    fetched: Option<Instant>,
}

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Option<String>,
    kind: Kind,
    key: DecodingKey,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Rsa,
    Ec,
    Ed,
}

/// The latest fetch, and its failure.
#[derive(Debug, Default)]
struct LastFetch {
    began: Option<Instant>,
    error: Option<JwksError>,
}

/// Keys that could not be had.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub(crate) enum JwksError {
    #[error("the keys of JSON web tokens could not be fetched: {0}")]
    Web(#[from] WebError),
    #[error("the keys of JSON web tokens could not be fetched: {url} answered {status}")]
    Status { url: String, status: u16 },
    #[error("{url} has no keys of JSON web tokens: {why}")]
    Broken { url: String, why: String },
}

impl Jwks {
    pub(crate) fn new(url: Url, timeout: Duration) -> Result<Self, WebError> {
        let (keys, last) = (RwLock::default(), Mutex::default());
        Ok(Self(Arc::new(Shared { web: Web::new(url, timeout)?, keys, last })))
    }

    /// The keys that may have signed a token with this header: that with the ID, or all of the kind
    /// if the token names none.
    ///
    /// Cancel safe: a fetch goes on without the one that began it.
    pub(crate) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<DecodingKey>, JwksError> {
        let set = self.0.keys();
        let found = set.find(id, algorithm);
        if !found.is_empty() {
            if set.fetched.is_none_or(|at| at.elapsed() > FRESH) {
                // The answer matters to later tokens only.
                drop(self.fetch());
            }
            return Ok(found);
        }
        let result = self.fetch().await.expect("a fetch does not panic");
        match self.0.keys() {
            set if set.fetched.is_some() => Ok(set.find(id, algorithm)),
            _ => result.map(|()| Vec::new()),
        }
    }

    fn fetch(&self) -> tokio::task::JoinHandle<Result<(), JwksError>> {
        let shared = Arc::clone(&self.0);
        tokio::spawn(async move { shared.fetch().await })
    }
}

impl Shared {
    fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fetches the keys, unless that was done a moment ago. One fetch runs at a time.
    async fn fetch(&self) -> Result<(), JwksError> {
        let mut last = self.last.lock().await;
        if last.began.is_some_and(|began| began.elapsed() < AGAIN) {
            return last.error.clone().map_or(Ok(()), Err);
        }
        last.began = Some(Instant::now());
        let fetched = self.answer().await;
        last.error = fetched.as_ref().err().cloned();
        let set = Arc::new(KeySet { keys: fetched?, fetched: Some(Instant::now()) });
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = set;
        Ok(())
    }

    async fn answer(&self) -> Result<Vec<Key>, JwksError> {
        let answer = self.web.get(MOST_BYTES).await?;
        let url = || self.web.url().to_string();
        if !answer.status.is_success() {
            return Err(JwksError::Status { url: url(), status: answer.status.as_u16() });
        }
        keys(&answer.body).map_err(|why| JwksError::Broken { url: url(), why })
    }
}

impl KeySet {
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<DecodingKey> {
        let fits = |key: &&Key| {
            key.kind == kind_of(algorithm)
                && key.algorithm.as_ref().is_none_or(|it| *it == format!("{algorithm:?}"))
                && id.is_none_or(|id| key.id.as_deref() == Some(id))
        };
        self.keys.iter().filter(fits).map(|key| key.key.clone()).take(MOST_TRIES).collect()
    }
}

/// The keys of a set that can verify signatures. Others in it, and broken ones, are left out.
fn keys(body: &[u8]) -> Result<Vec<Key>, String> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    let set: Set = serde_json::from_slice(body)
        .map_err(|_| "it must be a JSON object with the list `keys`".to_owned())?;
    if set.keys.len() > MOST_KEYS {
        return Err(format!("it has more than {MOST_KEYS} keys"));
    }
    let keys: Vec<_> = set.keys.into_iter().filter_map(key).collect();
    if keys.is_empty() {
        return Err("none of its keys verifies signatures of RSA, ECDSA or EdDSA".to_owned());
    }
    Ok(keys)
}

fn key(value: Value) -> Option<Key> {
    // A key for an algorithm that the library does not know must not lose its restriction to it.
    let algorithm = value.get("alg").and_then(Value::as_str).map(str::to_owned);
    let jwk: Jwk = serde_json::from_value(value).ok()?;
    let kind = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Kind::Rsa,
        AlgorithmParameters::EllipticCurve(_) => Kind::Ec,
        AlgorithmParameters::OctetKeyPair(_) => Kind::Ed,
        _ => return None,
    };
    if matches!(jwk.common.public_key_use, Some(PublicKeyUse::Encryption)) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    Some(Key { id: jwk.common.key_id, algorithm, kind, key })
}

const fn kind_of(algorithm: Algorithm) -> Kind {
    match algorithm {
        Algorithm::ES256 | Algorithm::ES384 => Kind::Ec,
        Algorithm::EdDSA => Kind::Ed,
        _ => Kind::Rsa,
    }
}

/// The least time between two fetches.
const AGAIN: Duration = Duration::from_secs(5);
/// The age from which keys are fetched again in the background.
const FRESH: Duration = Duration::from_secs(3600);
/// The most bytes of a set.
const MOST_BYTES: usize = 256 * 1024;
/// The most keys of a set.
const MOST_KEYS: usize = 100;
/// The most keys that are tried for a token without the ID of its key.
const MOST_TRIES: usize = 8;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_keeps_its_keys_for_signatures_and_leaves_out_others() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let set = json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": x},
            {"kty": "OKP", "crv": "Ed25519", "kid": "b", "x": x, "alg": "EdDSA", "use": "sig"},
            {"kty": "OKP", "crv": "Ed25519", "kid": "c", "x": x, "use": "enc"},
            {"kty": "oct", "kid": "d", "k": "aHVzaA"},
            {"kty": "AKP", "kid": "e"},
            {"kty": "RSA", "kid": "f", "n": "AQAB", "e": "AQAB", "alg": "RS512"},
            "x",
        ]});
        let keys = keys(set.to_string().as_bytes()).expect("keys");
        let ids: Vec<_> = keys.iter().filter_map(|key| key.id.as_deref()).collect();
        assert_eq!(ids, ["a", "b", "f"]);
        let set = KeySet { keys, fetched: None };
        let count = |id, algorithm| set.find(id, algorithm).len();
        assert_eq!((count(None, Algorithm::EdDSA), count(Some("a"), Algorithm::EdDSA)), (2, 1));
        assert_eq!((count(Some("d"), Algorithm::EdDSA), count(None, Algorithm::RS256)), (0, 0));
        assert_eq!(count(Some("f"), Algorithm::RS512), 1);
        // A key of another kind under the same ID cannot have signed the token.
        assert_eq!(count(Some("a"), Algorithm::ES256), 0);
    }

    #[test]
    fn answers_that_are_no_sets_say_so() {
        for (body, part) in [
            ("", "the list `keys`"),
            ("[]", "the list `keys`"),
            (r#"{"keys": []}"#, "none of its keys"),
            (r#"{"keys": [{"kty": "oct", "k": "aHVzaA"}]}"#, "none of its keys"),
        ] {
            let error = keys(body.as_bytes()).expect_err("no keys");
            assert!(error.contains(part), "{error}");
        }
        let many = json!({"keys": vec![json!({}); 101]});
        assert!(keys(many.to_string().as_bytes()).expect_err("too many").contains("100 keys"));
    }
}
