//! JSON web tokens, by keys that a server publishes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::action::Action;
use crate::jwks::{Jwks, JwksError};
use crate::pattern::StreamPattern;
use crate::secret::Secret;
use crate::token::MAX_USER;
use crate::user::Permission;
use crate::web::{Url, WebError};

/// The JSON web tokens that a relay accepts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JwtConfig {
    /// The address of the keys: a JSON web key set.
    pub keys: Url,
    /// The claim `iss` that tokens must have.
    pub issuer: Option<String>,
    /// The claim `aud` that tokens must have among theirs.
    pub audience: Option<String>,
    /// The claim with the rights; `punctual` and `mediamtx_permissions` if this is `None`.
    pub claim: Option<String>,
    /// The time in which the server must answer.
    pub timeout: Duration,
}

/// A verifier of JSON web tokens.
#[derive(Debug)]
pub(crate) struct Jwt {
    keys: Jwks,
    config: JwtConfig,
}

/// The contents of a JSON web token that was verified.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct TokenClaims {
    pub(crate) user: Option<String>,
    pub(crate) permissions: Vec<Permission>,
}

/// A JSON web token that is not accepted.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub(crate) enum JwtError {
    #[error("the JSON web token is broken: {0}")]
    Broken(String),
    #[error(
        "the JSON web token is signed by {0:?}, with a shared secret; use RS256, ES256 or EdDSA"
    )]
    Shared(Algorithm),
    #[error("no key of the server signed the JSON web token, or it was changed")]
    Signature,
    #[error("the server's keys have none {0}")]
    UnknownKey(String),
    #[error("the JSON web token expired {} s ago", .0.as_secs())]
    Expired(Duration),
    #[error("the JSON web token has no `exp`, the time when it expires")]
    NoEnd,
    #[error("the JSON web token is not valid yet, for {} s", .0.as_secs())]
    Early(Duration),
    #[error("the JSON web token has not the issuer or audience of this relay")]
    OtherParty,
    #[error("the JSON web token has no claim `{0}` with a list of rights")]
    NoRights(String),
    #[error(transparent)]
    Keys(#[from] JwksError),
}

impl Jwt {
    pub(crate) fn new(config: JwtConfig) -> Result<Self, WebError> {
        let keys = Jwks::new(config.keys.clone(), config.timeout)?;
        Ok(Self { keys, config })
    }

    /// Whether a secret looks like a JSON web token.
    pub(crate) fn is_like(secret: &Secret) -> bool {
        secret.expose().starts_with("eyJ") && secret.expose().matches('.').count() == 2
    }

    pub(crate) const fn config(&self) -> &JwtConfig {
        &self.config
    }

    /// Verifies a token. Cancel safe.
    pub(crate) async fn verify(
        &self,
        token: &Secret,
        now: SystemTime,
    ) -> Result<TokenClaims, JwtError> {
        let token = token.expose();
        if token.len() > MOST_BYTES {
            return Err(JwtError::Broken(format!("it has more than {MOST_BYTES} bytes")));
        }
        let header = decode_header(token).map_err(|error| broken(&error))?;
        let is_shared =
            matches!(header.alg, Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512);
        if is_shared {
            return Err(JwtError::Shared(header.alg));
        }
        let keys = self.keys.find(header.kid.as_deref(), header.alg).await?;
        if keys.is_empty() {
            let kind = || format!("for {:?}", header.alg);
            let kind = header.kid.map_or_else(kind, |id| {
                format!("with the ID `{}`", id.chars().take(MOST_SHOWN).collect::<String>())
            });
            return Err(JwtError::UnknownKey(kind));
        }
        let claims = self.decode(token, &keys, header.alg)?;
        check_times(&claims, now)?;
        let permissions = self.permissions(&claims)?;
        let user = claims.get("sub").and_then(Value::as_str).filter(|user| !user.is_empty());
        if user.is_some_and(|user| user.len() > MAX_USER) {
            return Err(JwtError::Broken(format!("its `sub` has more than {MAX_USER} bytes")));
        }
        Ok(TokenClaims { user: user.map(str::to_owned), permissions })
    }

    fn decode(
        &self,
        token: &str,
        keys: &[DecodingKey],
        algorithm: Algorithm,
    ) -> Result<Map<String, Value>, JwtError> {
        let mut validation = Validation::new(algorithm);
        // The times are checked afterwards, by a clock that is an argument.
        validation.validate_exp = false;
        validation.required_spec_claims.clear();
        validation.validate_aud = self.config.audience.is_some();
        if let Some(audience) = &self.config.audience {
            validation.set_audience(&[audience]);
            validation.required_spec_claims.insert("aud".to_owned());
        }
        if let Some(issuer) = &self.config.issuer {
            validation.set_issuer(&[issuer]);
            validation.required_spec_claims.insert("iss".to_owned());
        }
        let mut error = JwtError::Signature;
        for key in keys {
            match decode::<Map<String, Value>>(token, key, &validation) {
                Ok(token) => return Ok(token.claims),
                Err(other) => match other.kind() {
                    ErrorKind::InvalidIssuer
                    | ErrorKind::InvalidAudience
                    | ErrorKind::MissingRequiredClaim(_) => error = JwtError::OtherParty,
                    ErrorKind::Json(_) | ErrorKind::Base64(_) | ErrorKind::Utf8(_) => {
                        error = broken(&other);
                    }
                    _ => {}
                },
            }
        }
        Err(error)
    }

    fn permissions(&self, claims: &Map<String, Value>) -> Result<Vec<Permission>, JwtError> {
        let names = match &self.config.claim {
            Some(name) => vec![name.as_str()],
            None => CLAIMS.to_vec(),
        };
        let mut found = None;
        for claim in names.iter().filter_map(|name| claims.get(*name)) {
            // Some servers write every claim of their users as text.
            let list = match claim {
                Value::String(text) => serde_json::from_str(text).ok(),
                other => Some(other.clone()),
            };
            let Some(Value::Array(list)) = list else { continue };
            let rights = list.into_iter().take(MOST_RIGHTS).filter_map(permission);
            found.get_or_insert_with(Vec::new).extend(rights);
        }
        found.ok_or_else(|| JwtError::NoRights(names.join("` or `")))
    }
}

/// A right as a claim has it. One that this relay does not know is left out: it gives nothing.
fn permission(value: Value) -> Option<Permission> {
    #[derive(Deserialize)]
    struct TokenRight {
        action: String,
        #[serde(default, alias = "path")]
        stream: String,
    }
    let right: TokenRight = serde_json::from_value(value).ok()?;
    let streams: StreamPattern = right.stream.parse().ok()?;
    Some(Permission { action: right.action.parse::<Action>().ok()?, streams })
}

fn check_times(claims: &Map<String, Value>, now: SystemTime) -> Result<(), JwtError> {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = |name: &str| {
        let seconds = claims.get(name).and_then(Value::as_f64)?;
        Duration::try_from_secs_f64(seconds).ok()
    };
    let end = time("exp").ok_or(JwtError::NoEnd)?;
    match now.checked_sub(end.saturating_add(CLOCKS)) {
        Some(_) => Err(JwtError::Expired(now.saturating_sub(end))),
        None => match time("nbf").and_then(|start| start.checked_sub(now + CLOCKS)) {
            Some(early) if !early.is_zero() => Err(JwtError::Early(early + CLOCKS)),
            _ => Ok(()),
        },
    }
}

/// The fault without the token's text, which the library's errors of JSON may quote.
fn broken(error: &jsonwebtoken::errors::Error) -> JwtError {
    JwtError::Broken(match error.kind() {
        ErrorKind::Json(_) => "a part of it is no JSON of a token".to_owned(),
        ErrorKind::Base64(_) => "a part of it is no base64".to_owned(),
        ErrorKind::InvalidAlgorithmName => "its algorithm is unknown".to_owned(),
        _ => "it has not the form of one".to_owned(),
    })
}

/// The claims with rights: ours and that of `MediaMTX`.
const CLAIMS: [&str; 2] = ["punctual", "mediamtx_permissions"];
/// The most bytes of a token.
const MOST_BYTES: usize = 8 * 1024;
/// The most characters of a key's ID that are shown.
const MOST_SHOWN: usize = 80;
/// The most rights of one claim.
const MOST_RIGHTS: usize = 100;
/// The time by which the clocks of two hosts may differ.
const CLOCKS: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn jwt(claim: Option<&str>) -> Jwt {
        Jwt::new(JwtConfig {
            keys: "http://127.0.0.1:1/keys".parse().expect("a URL"),
            issuer: None,
            audience: None,
            claim: claim.map(str::to_owned),
            timeout: Duration::from_secs(1),
        })
        .expect("no TLS")
    }

    fn object(value: &Value) -> Map<String, Value> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn rights_are_read_from_either_claim_as_list_or_as_text() {
        let list = json!([
            {"action": "publish", "path": "live/a"},
            {"action": "read"},
            {"action": "pprof"},
            {"action": "read", "path": "~("},
            7,
        ]);
        let text = json!(list.to_string());
        let actions = |claims, claim| {
            let found = jwt(claim).permissions(&object(&claims)).expect("rights");
            found.iter().map(|it| (it.action, it.streams.to_string())).collect::<Vec<_>>()
        };
        let expected = vec![(Action::Publish, "live/a".to_owned()), (Action::Read, String::new())];
        assert_eq!(actions(json!({"mediamtx_permissions": list}), None), expected);
        assert_eq!(actions(json!({"punctual": text}), None), expected);
        assert_eq!(actions(json!({"rights": list}), Some("rights")), expected);
        let error = jwt(None).permissions(&object(&json!({"rights": list}))).expect_err("no claim");
        assert!(error.to_string().contains("`punctual` or `mediamtx_permissions`"), "{error}");
    }

    #[test]
    fn a_token_counts_between_its_times_with_room_for_clocks() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let check = |claims| check_times(&object(&claims), now);
        assert_eq!(check(json!({"exp": 1_000_001})), Ok(()));
        assert_eq!(check(json!({"exp": 999_995.5})), Ok(()));
        assert_eq!(check(json!({"exp": 1_000_001, "nbf": 1_000_005})), Ok(()));
        let late = check(json!({"exp": 999_900})).unwrap_err();
        assert_eq!(late, JwtError::Expired(Duration::from_secs(100)));
        let early = check(json!({"exp": 1_001_000, "nbf": 1_000_100})).unwrap_err();
        assert_eq!(early, JwtError::Early(Duration::from_secs(100)));
        for claims in [json!({}), json!({"exp": "soon"}), json!({"exp": -5}), json!({"exp": 1e300})]
        {
            assert_eq!(check(claims), Err(JwtError::NoEnd));
        }
    }
}
