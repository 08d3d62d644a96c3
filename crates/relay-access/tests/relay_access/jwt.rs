//! Decisions by JSON web tokens.

use std::time::{Duration, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use punctual_proto::RejectReason;
use punctual_relay_access::{Access, AccessConfig, Credentials, JwtConfig, Refusal, Role};
use serde_json::{Value, json};

use crate::server::{Reply, Server};
use crate::{access, decide, refused};

/// A key of an identity server.
struct Key {
    id: &'static str,
    algorithm: Algorithm,
    key: EncodingKey,
}

impl Key {
    fn ed(id: &'static str) -> Self {
        let pair = Ed25519KeyPair::generate().expect("a key");
        let key = EncodingKey::from_ed_der(pair.to_pkcs8v1().expect("a key").as_ref());
        Self { id, algorithm: Algorithm::EdDSA, key }
    }

    fn ec(id: &'static str) -> Self {
        let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(signing, &SystemRandom::new()).expect("a key");
        let key = EncodingKey::from_ec_der(document.as_ref());
        Self { id, algorithm: Algorithm::ES256, key }
    }

    fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm).expect("a public key");
        jwk.common.key_id = Some(self.id.to_owned());
        serde_json::to_value(jwk).expect("JSON")
    }

    fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) };
        encode(&header, claims, &self.key).expect("a token")
    }
}

fn set(keys: &[&Key]) -> Reply {
    Reply::json(&json!({ "keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>() }))
}

fn config(server: &Server) -> JwtConfig {
    JwtConfig {
        keys: server.url("/keys").parse().expect("a URL"),
        issuer: None,
        audience: None,
        claim: None,
        timeout: Duration::from_secs(10),
    }
}

fn of(config: JwtConfig) -> Access {
    access(AccessConfig { jwt: Some(config), ..AccessConfig::default() })
}

fn in_seconds(seconds: i64) -> i64 {
    let now = crate::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    i64::try_from(now).expect("before the end of time") + seconds
}

/// A token that allows to read all of `live/*`.
fn claims() -> Value {
    json!({
        "sub": "ann", "iss": "https://id.example", "aud": ["relay", "other"],
        "exp": in_seconds(600),
        "mediamtx_permissions": [{"action": "read", "path": "live/*"}],
    })
}

fn with(mut claims: Value, name: &str, value: impl Into<Value>) -> Value {
    claims[name] = value.into();
    claims
}

async fn read(access: &Access, token: &str) -> punctual_relay_access::Decision {
    decide(access, &format!("read:live/cam?jwt={token}")).await
}

#[tokio::test]
async fn tokens_of_known_keys_admit_by_their_rights() {
    let (ed, ec) = (Key::ed("a"), Key::ec("b"));
    let server = Server::start(set(&[&ed, &ec])).await;
    let access = of(config(&server));
    for token in [ed.sign(&claims()), ec.sign(&claims())] {
        assert_eq!(read(&access, &token).await.expect("an admission").user(), Some("ann"));
        // As password, where MediaMTX expects it.
        assert!(decide(&access, &format!("read:live/cam:x:{token}")).await.is_ok());
        let refused = refused(decide(&access, &format!("publish:live/cam:x:{token}")).await);
        assert_eq!(refused.reason(), Refusal::NoRight);
        assert_eq!(refused.text(), "the user `ann` has no right to publish of `live/cam`");
    }
    assert_eq!(server.questions().len(), 1, "the keys are kept");
    let none = refused(decide(&access, "read:live/cam").await);
    assert_eq!(none.reason(), Refusal::NoCredentials);
}

#[tokio::test]
async fn a_token_must_have_the_issuer_the_audience_and_a_time() {
    let key = Key::ed("a");
    let server = Server::start(set(&[&key])).await;
    let parties = JwtConfig {
        issuer: Some("https://id.example".to_owned()),
        audience: Some("relay".to_owned()),
        ..config(&server)
    };
    let access = of(parties);
    assert!(read(&access, &key.sign(&claims())).await.is_ok());
    for (claims, reason, part) in [
        (with(claims(), "iss", "other"), Refusal::WrongToken, "issuer or audience"),
        (with(claims(), "aud", "other"), Refusal::WrongToken, "issuer or audience"),
        (with(claims(), "aud", Value::Null), Refusal::WrongToken, "issuer or audience"),
        (with(claims(), "exp", in_seconds(-60)), Refusal::ExpiredToken, "expired 6"),
        (with(claims(), "exp", "soon"), Refusal::WrongToken, "no `exp`"),
        (with(claims(), "sub", "u".repeat(129)), Refusal::WrongToken, "`sub` has more than"),
        (with(claims(), "nbf", in_seconds(60)), Refusal::WrongToken, "not valid yet"),
        (with(claims(), "mediamtx_permissions", 1), Refusal::WrongToken, "no claim `punctual`"),
    ] {
        let refused = refused(read(&access, &key.sign(&claims)).await);
        assert_eq!(refused.reason(), reason, "{refused}");
        assert!(refused.text().contains(part), "{refused}");
    }
}

#[tokio::test]
async fn tokens_of_other_keys_and_shared_ones_are_refused() {
    let (key, other) = (Key::ed("a"), Key::ed("a"));
    let server = Server::start(set(&[&key])).await;
    let access = of(config(&server));
    let forged = refused(read(&access, &other.sign(&claims())).await);
    assert_eq!((forged.reason(), forged.code()), (Refusal::WrongToken, RejectReason::UNAUTHORIZED));
    assert!(forged.text().contains("no key of the server signed"), "{forged}");
    // The public key as a shared secret: the old attack.
    let public = key.public().to_string();
    let header = Header { kid: Some("a".to_owned()), ..Header::new(Algorithm::HS256) };
    let shared = encode(&header, &claims(), &EncodingKey::from_secret(public.as_bytes()));
    let shared = refused(read(&access, &shared.expect("a token")).await);
    assert!(shared.text().contains("HS256"), "{shared}");
    for broken in ["eyJ.x.y", "eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJFZERTQSJ9.e30.AAAA"] {
        assert_eq!(refused(read(&access, broken).await).reason(), Refusal::WrongToken, "{broken}");
    }
    let long = format!("eyJ{}.x.y", "A".repeat(9000));
    let long = access.operator(&Credentials::token(long), "::1".parse().expect("an address")).await;
    assert!(long.expect_err("a refusal").text().contains("more than 8192 bytes"));
}

/// RFC 7515, appendix A.2: the token is right, and expired in 2011.
#[tokio::test]
async fn the_rsa_signature_of_the_standard_is_verified() {
    let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0\
             Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS\
             5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH\
             7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt\
                 cGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3X\
                 OiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f\
                 _nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwu\
                 sC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlV\
                 mtVrBp0igcN_IoypGlUPQGe77Rw";
    let keys = json!({"keys": [{"kty": "RSA", "n": n, "e": "AQAB"}]});
    let server = Server::start(Reply::json(&keys)).await;
    let access = of(config(&server));
    let here = "192.0.2.1".parse().expect("an address");
    let reason = async |token: &str| {
        let refused = access.operator(&Credentials::token(token), here).await;
        refused.expect_err("a refusal").reason()
    };
    assert_eq!(reason(token).await, Refusal::ExpiredToken);
    assert_eq!(reason(&token.replace("cC4h", "cC4i")).await, Refusal::WrongToken);
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_once_in_a_while_and_old_keys_stay() {
    let (old, new) = (Key::ed("old"), Key::ed("new"));
    let server = Server::start(set(&[&old])).await;
    let access = of(config(&server));
    assert!(read(&access, &old.sign(&claims())).await.is_ok());
    // The server has a new key, but the last fetch is a moment ago.
    server.answer(set(&[&old, &new]));
    for _ in 0..20 {
        let refused = refused(read(&access, &new.sign(&claims())).await);
        assert!(refused.text().contains("none with the ID `new`"), "{refused}");
    }
    assert_eq!(server.questions().len(), 1);
    pass(Duration::from_secs(6)).await;
    assert!(read(&access, &new.sign(&claims())).await.is_ok());
    assert_eq!(server.questions().len(), 2);
    // A server that fails takes away no key.
    for reply in [Reply::status(500), Reply::Garbage, Reply::Endless, Reply::json(&"[]")] {
        server.answer(reply);
        pass(Duration::from_secs(6)).await;
        let unknown = refused(read(&access, &Key::ed("x").sign(&claims())).await);
        assert_eq!(unknown.reason(), Refusal::WrongToken);
        assert!(read(&access, &old.sign(&claims())).await.is_ok());
    }
    assert_eq!(server.questions().len(), 6);
}

/// Lets time pass for the relay; the server's answers come in real time.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn old_keys_are_fetched_again_while_they_serve() {
    let key = Key::ed("a");
    let server = Server::start(set(&[&key])).await;
    let access = of(config(&server));
    assert!(read(&access, &key.sign(&claims())).await.is_ok());
    pass(Duration::from_secs(3700)).await;
    server.answer(set(&[&Key::ed("b")]));
    assert!(read(&access, &key.sign(&claims())).await.is_ok(), "the fetch is not awaited");
    while read(&access, &key.sign(&claims())).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.questions().len(), 2);
}

#[tokio::test]
async fn keys_that_cannot_be_fetched_refuse_with_the_failure() {
    let key = Key::ed("a");
    let server = Server::start(Reply::status(500)).await;
    let short = JwtConfig { timeout: Duration::from_millis(300), ..config(&server) };
    let refused_by = async |reply: Reply| {
        server.answer(reply);
        refused(read(&of(short.clone()), &key.sign(&claims())).await)
    };
    let status = refused_by(Reply::status(500)).await;
    assert!(status.text().ends_with("/keys answered 500"), "{status}");
    assert_eq!(
        (status.reason(), status.code()),
        (Refusal::CalloutFailed, RejectReason::BAD_GATEWAY)
    );
    let slow = refused_by(Reply::After(Duration::from_secs(60))).await;
    assert_eq!(slow.code(), RejectReason::GATEWAY_TIMEOUT, "{slow}");
    let endless = refused_by(Reply::Endless).await;
    assert!(endless.text().contains("has more than 262144 bytes"), "{endless}");
}

#[tokio::test]
async fn a_fetch_goes_on_without_the_caller_that_began_it() {
    let key = Key::ed("a");
    let server = Server::start(set(&[&key])).await;
    let access = of(config(&server));
    let token = key.sign(&claims());
    tokio::select! {
        biased;
        _ = read(&access, &token) => panic!("the keys are not there at once"),
        () = std::future::ready(()) => {}
    }
    assert!(read(&access, &token).await.is_ok());
    assert_eq!(server.questions().len(), 1);
}

#[tokio::test]
async fn a_token_gives_roles_of_the_api_too() {
    let key = Key::ed("a");
    let server = Server::start(set(&[&key])).await;
    let access = of(config(&server));
    let here = "127.0.0.1".parse().expect("an address");
    let rights = json!([{"action": "api-operate"}]);
    let token = key.sign(&json!({"sub": "ann", "exp": in_seconds(60), "punctual": rights}));
    let operator = access.operator(&Credentials::token(token), here).await.expect("an operator");
    assert_eq!((operator.user(), operator.role()), (Some("ann"), Some(Role::Operate)));
    // Where tokens are accepted, an address of this host alone is no proof.
    assert!(access.operator(&Credentials::default(), here).await.is_err());
}
