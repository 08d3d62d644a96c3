//! The texts that callers of a relay send, and those of its rules.

use std::time::{Duration, UNIX_EPOCH};

use punctual_proto::RawStreamId;
use punctual_relay_access::{
    Action, Call, CallDefaults, Credentials, Network, Password, SigningKey, StreamName,
    StreamPattern, Token, Url, shown,
};

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    if kind % 4 == 0 {
        return call(rest);
    }
    let Ok(text) = std::str::from_utf8(rest) else { return };
    match kind % 4 {
        1 => token(text),
        2 => pattern(text),
        _ => rules(text),
    }
}

/// A stream ID is a call or an error; neither shows a secret or breaks a line.
fn call(bytes: &[u8]) {
    let raw = RawStreamId::from(bytes.to_vec());
    assert!(!shown(&raw).contains('\n'));
    let call = match Call::parse(&raw, &CallDefaults::default()) {
        Ok(call) => call,
        Err(error) => return drop(error.to_string()),
    };
    assert!(StreamName::new(call.stream().as_str()).is_ok());
    let all = format!("{}\n{call:?}", call.shown());
    assert_eq!(call.shown().lines().count().max(1), 1);
    let credentials = call.credentials();
    for secret in credentials.secret().into_iter().chain(credentials.own_token()) {
        let secret = secret.expose();
        let names = [call.stream().as_str(), credentials.user().unwrap_or_default()];
        let is_public = names.iter().any(|name| name.contains(secret));
        let is_escaped = secret.contains(['…', '\\', '\'', '"']);
        if secret.len() >= 8 && !is_public && !is_escaped {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }
}

/// No text is a token that the key signed, unless the key signed it: then it says the same.
fn token(text: &str) {
    let key = SigningKey::new("a key of sixteen").expect("long enough");
    let keys = [key.clone()];
    assert!(Token::verify(text, &keys).is_err());
    let _ = Credentials::from_authorization(text);
    let _ = Credentials::from_query(text);
    let Ok(streams) = text.parse::<StreamPattern>() else { return };
    let token = Token::new(streams, UNIX_EPOCH + Duration::from_secs(9)).allow(Action::Read);
    let Ok(signed) = token.sign(&key) else { return };
    let verified = Token::verify(&signed, &keys).expect("the key signed it");
    assert_eq!(verified.streams(), token.streams());
}

/// A pattern and a name, one a line: the pattern stays the same if it is written and read.
fn pattern(text: &str) {
    let (text, name) = text.split_once('\n').unwrap_or((text, "live/a"));
    let Ok(pattern) = text.parse::<StreamPattern>() else { return };
    let again: StreamPattern = pattern.as_str().parse().expect("it was a pattern");
    assert_eq!(
        (again.matches(name), again.narrowness()),
        (pattern.matches(name), pattern.narrowness())
    );
    assert_eq!(pattern.expand(name, "$1$$").is_some(), pattern.matches(name));
    let exact = StreamPattern::exact(name);
    assert!(exact.matches(name.trim_matches('/')));
    assert_eq!(exact.as_str().parse(), Ok(exact));
}

/// Addresses, networks and passwords of a file.
fn rules(text: &str) {
    if let Ok(url) = text.parse::<Url>() {
        let shown = url.to_string();
        assert_eq!(shown.parse::<Url>().map(|it| it.to_string()), Ok(shown));
    }
    if let Ok(network) = text.parse::<Network>() {
        assert_eq!(network.to_string().parse(), Ok(network));
    }
    if let Ok(password) = Password::new(text) {
        assert!(text.len() < 8 || !format!("{password:?}").contains(text));
    }
}
