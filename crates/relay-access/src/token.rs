//! Short signed tokens, which fit into a stream ID.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;
use punctual_units::DisplayDuration;
use thiserror::Error;

use crate::action::Action;
use crate::name::StreamName;
use crate::pattern::StreamPattern;
use crate::secret::{Secret, is_same, keyed};

/// A right that its holder proves by a signature: actions on some streams, until a time.
///
/// The text has about 45 characters for one stream, none of which separates the parts of a stream
/// ID: letters, digits, `-` and `_`. It holds, in base64url after [`PREFIX`](Self::PREFIX):
///
/// | bytes | |
/// |---|---|
/// | 1 | the key's number, a hash of it, so that a relay with several keys tries one |
/// | 1 | the actions, a bit for each |
/// | 4 | the end, in seconds since 1970 |
/// | 1, n | the length of the user's name, 0 for none, and the name |
/// | n | the pattern of the streams |
/// | 16 | the first half of HMAC-SHA-256 of all before; RFC 2104 advises against a shorter one |
///
/// A token admits calls until its end. A stream that runs then goes on.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use punctual_relay_access::{Action, SigningKey, StreamName, Token};
///
/// let key = SigningKey::new("0123456789abcdef")?;
/// let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
/// let token = Token::new("live/a".parse()?, now + Duration::from_secs(7200)).allow(Action::Read);
/// let text = token.sign(&key)?;
/// assert!(text.len() <= 60);
///
/// let token = Token::verify(&text, &[key])?;
/// let stream = StreamName::new("live/a")?;
/// assert!(token.check(Action::Read, Some(&stream), now).is_ok());
/// assert!(token.check(Action::Publish, Some(&stream), now).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Token {
    streams: StreamPattern,
    actions: u8,
    end: SystemTime,
    user: Option<String>,
    key: Option<KeyPrint>,
}

/// A key that signs and verifies tokens.
#[derive(Clone, Eq, PartialEq)]
pub struct SigningKey(Secret);

/// A hash of a key, by which one finds it again without holding it.
pub(crate) type KeyPrint = [u8; 16];

/// A key that is too short, or a file without keys.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SigningKeyError {
    /// The key can be guessed.
    #[error("the signing key has {0} bytes; it must have at least 16: `openssl rand -hex 32`")]
    Short(usize),
    /// There is no key.
    #[error("there is no signing key: write one into each line; `openssl rand -hex 32` makes one")]
    None,
}

/// A token that cannot be made, or that does not allow a call.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TokenError {
    /// The text is not that of a token.
    #[error("the text is no token, or a part of one")]
    Malformed,
    /// Somebody else signed the token, or changed it.
    #[error("no signing key of this relay signed the token, or it was changed")]
    Forged,
    /// The token has ended.
    #[error("the token expired {:#} ago", DisplayDuration(*.0))]
    Expired(Duration),
    /// The token is for other streams.
    #[error("the token is for `{allowed}`, not for this stream")]
    OtherStream {
        /// The streams that the token is for.
        allowed: String,
    },
    /// The token is for other actions.
    #[error("the token does not allow to {0}")]
    OtherAction(Action),
    /// The token allows nothing.
    #[error("a token must allow an action")]
    NoAction,
    /// The name of the user or the pattern is too long.
    #[error("a token's user has at most 128 bytes, and its pattern of streams 201")]
    TooLong,
    /// The end lies beyond the times that a token can have.
    #[error("a token must end between 1970 and 2106")]
    End,
}

impl Token {
    /// The beginning of each token's text.
    pub const PREFIX: &'static str = "pt1-";

    /// A token for these streams until this time, without any action.
    pub const fn new(streams: StreamPattern, end: SystemTime) -> Self {
        Self { streams, actions: 0, end, user: None, key: None }
    }

    /// The same, which also allows this action.
    #[must_use]
    pub fn allow(self, action: Action) -> Self {
        Self { actions: self.actions | action.bit(), ..self }
    }

    /// The same, for this user, whose connections are counted together.
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()).filter(|user| !user.is_empty()), ..self }
    }

    /// The text of the token.
    ///
    /// # Errors
    ///
    /// It allows no action, or is too long for a stream ID.
    pub fn sign(&self, key: &SigningKey) -> Result<String, TokenError> {
        let user = self.user.as_deref().unwrap_or_default();
        let streams = self.streams.as_str();
        if user.len() > MAX_USER || streams.len() > MAX_STREAMS {
            return Err(TokenError::TooLong);
        }
        if self.actions == 0 {
            return Err(TokenError::NoAction);
        }
        let end = self.end.duration_since(UNIX_EPOCH).map_err(|_| TokenError::End)?;
        let end = u32::try_from(end.as_secs()).map_err(|_| TokenError::End)?;
        let length = u8::try_from(user.len()).expect("at most 128");
        let mut bytes = vec![key.number(), self.actions];
        bytes.extend(end.to_be_bytes());
        bytes.push(length);
        bytes.extend(user.bytes().chain(streams.bytes()));
        let signature = key.sign(&bytes);
        bytes.extend(signature);
        Ok(format!("{}{}", Self::PREFIX, URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The token in `text`, if one of the keys signed it.
    ///
    /// # Errors
    ///
    /// [`Malformed`](TokenError::Malformed) if the text looks like no token, which may then be
    /// a password; [`Forged`](TokenError::Forged) if no key signed it.
    pub fn verify(text: &str, keys: &[SigningKey]) -> Result<Self, TokenError> {
        let code = text.strip_prefix(Self::PREFIX).filter(|code| code.len() <= MAX_CODE);
        let bytes = code.and_then(|code| URL_SAFE_NO_PAD.decode(code).ok());
        let bytes = bytes.ok_or(TokenError::Malformed)?;
        let (fields, signature) = bytes.split_last_chunk::<16>().ok_or(TokenError::Malformed)?;
        let &[number, actions, e0, e1, e2, e3, length, ref texts @ ..] = fields else {
            return Err(TokenError::Malformed);
        };
        let texts = std::str::from_utf8(texts).map_err(|_| TokenError::Malformed)?;
        let (user, streams) = texts.split_at_checked(length.into()).ok_or(TokenError::Malformed)?;
        let streams = streams.parse().map_err(|_| TokenError::Malformed)?;
        let mut candidates = keys.iter().filter(|key| key.number() == number);
        let key = candidates.find(|key| key.has_signed(fields, signature));
        let key = key.ok_or(TokenError::Forged)?;
        let end = Duration::from_secs(u32::from_be_bytes([e0, e1, e2, e3]).into());
        let token =
            Self { actions, key: Some(key.print()), ..Self::new(streams, UNIX_EPOCH + end) };
        Ok(token.with_user(user))
    }

    /// Whether the token allows this action now, on this stream if the action has one.
    ///
    /// # Errors
    ///
    /// It does not, and why.
    pub fn check(
        &self,
        action: Action,
        stream: Option<&StreamName>,
        now: SystemTime,
    ) -> Result<(), TokenError> {
        self.check_end(now)?;
        if !self.allows(action) {
            return Err(TokenError::OtherAction(action));
        }
        if stream.is_some_and(|stream| !self.streams.matches(stream.as_str())) {
            return Err(TokenError::OtherStream { allowed: self.streams.to_string() });
        }
        Ok(())
    }

    /// Whether the token admits calls now.
    pub(crate) fn check_end(&self, now: SystemTime) -> Result<(), TokenError> {
        match now.duration_since(self.end) {
            Ok(ago) => Err(TokenError::Expired(ago)),
            Err(_) => Ok(()),
        }
    }

    /// Whether the token allows this action, on some streams.
    pub fn allows(&self, action: Action) -> bool {
        let mut mine = Action::ALL.into_iter().filter(|mine| self.actions & mine.bit() != 0);
        mine.any(|mine| mine.includes(action))
    }

    /// The streams that the token is for.
    pub const fn streams(&self) -> &StreamPattern {
        &self.streams
    }

    /// The user that the token is for.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The time from which the token admits no call.
    pub const fn end(&self) -> SystemTime {
        self.end
    }

    /// The key that signed the token, if it was verified.
    pub(crate) const fn key(&self) -> Option<KeyPrint> {
        self.key
    }
}

impl SigningKey {
    /// The key with this text, of at least 16 bytes.
    ///
    /// # Errors
    ///
    /// The text is shorter.
    pub fn new(text: impl Into<Secret>) -> Result<Self, SigningKeyError> {
        let key = text.into();
        match key.expose().len() {
            short @ ..16 => Err(SigningKeyError::Short(short)),
            _ => Ok(Self(key)),
        }
    }

    /// The keys of a file, one a line; lines that begin with `#` are comments. The first key signs,
    /// all verify: so a new key goes to the top, and the old one stays until its tokens have ended.
    ///
    /// # Errors
    ///
    /// There is none, or one is too short.
    pub fn list(text: &str) -> Result<Vec<Self>, SigningKeyError> {
        let lines = text.lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys = keys.map(Self::new).collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(SigningKeyError::None) } else { Ok(keys) }
    }

    /// A key that nobody knows, from the system's random numbers.
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        Self(URL_SAFE_NO_PAD.encode(bytes).into())
    }

    fn sign(&self, fields: &[u8]) -> [u8; 16] {
        self.hash(b"punctual relay token 1\0", fields)
    }

    fn has_signed(&self, fields: &[u8], signature: &[u8; 16]) -> bool {
        is_same(&self.sign(fields), signature)
    }

    /// A hash of the key that names it in tokens.
    fn number(&self) -> u8 {
        self.print()[0]
    }

    pub(crate) fn print(&self) -> KeyPrint {
        self.hash(b"punctual relay signing key\0", b"")
    }

    /// The first half of a hash of both, by this key.
    fn hash(&self, label: &[u8], bytes: &[u8]) -> [u8; 16] {
        let hash = keyed(self.0.expose().as_bytes(), label).chain_update(bytes);
        let hash: [u8; 32] = hash.finalize().into_bytes().into();
        *hash.first_chunk().expect("32 bytes")
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

/// The most bytes of the name of a user that another program gives.
pub(crate) const MAX_USER: usize = 128;
/// The most bytes of the pattern of streams: a name after `=`. A token of that length still fits
/// into a stream ID.
const MAX_STREAMS: usize = 1 + StreamName::MAX_BYTES;
/// The most characters after the prefix.
const MAX_CODE: usize = (7 + MAX_USER + MAX_STREAMS + 16).div_ceil(3) * 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_780_000_000)
    }

    fn key(text: &str) -> SigningKey {
        SigningKey::new(text.repeat(16)).expect("long enough")
    }

    fn token(streams: &str) -> Token {
        Token::new(streams.parse().expect("a pattern"), now() + HOUR)
    }

    fn stream(name: &str) -> StreamName {
        StreamName::new(name).expect("a name")
    }

    #[test]
    fn a_token_is_short_and_has_no_mark_of_a_stream_id() {
        let text = token("live/a").allow(Action::Read).with_user("ann").sign(&key("k")).unwrap();
        assert!(text.len() <= 60, "{} characters: {text}", text.len());
        assert!(!text.contains([',', '=', ':', '/', '#', '?', '&', '%', '+', '.', ' ']), "{text}");
        let streams = format!("={}*", "x".repeat(199));
        let longest = token(&streams).allow(Action::Read).with_user("u".repeat(128));
        let text = longest.sign(&key("k")).unwrap();
        assert!(text.len() <= 512 - "read:?token=".len(), "{}", text.len());
        assert_eq!(Token::verify(&text, &[key("k")]).unwrap().user(), longest.user());
    }

    #[test]
    fn a_token_allows_its_actions_on_its_streams_until_its_end() {
        let text = token("live/*").allow(Action::Read).allow(Action::Playback).sign(&key("k"));
        let token = Token::verify(&text.unwrap(), &[key("a"), key("k")]).unwrap();
        let check = |action, name, now| token.check(action, Some(&stream(name)), now);
        assert_eq!(check(Action::Read, "live/a", now()), Ok(()));
        assert_eq!(check(Action::Playback, "live/a", now()), Ok(()));
        let other = check(Action::Publish, "live/a", now()).unwrap_err();
        assert_eq!(other, TokenError::OtherAction(Action::Publish));
        let other = check(Action::Read, "sport/a", now()).unwrap_err();
        assert_eq!(other.to_string(), "the token is for `live/*`, not for this stream");
        let late = check(Action::Read, "live/a", now() + 2 * HOUR).unwrap_err();
        assert!(late.to_string().starts_with("the token expired 1"), "{late}");
    }

    #[test]
    fn only_the_keys_of_the_relay_verify_a_token() {
        let text = token("live/a").allow(Action::Read).sign(&key("k")).unwrap();
        assert_eq!(Token::verify(&text, &[]), Err(TokenError::Forged));
        let others = ["a", "b", "c"].map(key);
        assert_eq!(Token::verify(&text, &others), Err(TokenError::Forged));
        for text in ["", "hush", "pt1-", "pt1-AAAA", "pt1-?", &text[..20], &text[4..]] {
            assert_eq!(Token::verify(text, &[key("k")]), Err(TokenError::Malformed), "{text}");
        }
    }

    #[test]
    fn tokens_that_nobody_could_use_are_not_signed() {
        let sign = |token: Token| token.sign(&key("k")).unwrap_err();
        assert_eq!(sign(token("a")), TokenError::NoAction);
        let readable = |token: Token| token.allow(Action::Read);
        let long = Token::new(StreamPattern::exact(&"x".repeat(202)), now() + HOUR);
        assert_eq!(sign(readable(long)), TokenError::TooLong);
        assert_eq!(sign(readable(token("a").with_user("u".repeat(129)))), TokenError::TooLong);
        let late = Token::new(StreamPattern::all(), UNIX_EPOCH + Duration::from_secs(1 << 32));
        assert_eq!(sign(readable(late)), TokenError::End);
    }

    #[test]
    fn keys_of_a_file_are_lines_and_short_ones_are_refused() {
        let keys = SigningKey::list("# new\n0123456789abcdef\n\n fedcba9876543210 \n").unwrap();
        let expected = ["0123456789abcdef", "fedcba9876543210"];
        assert_eq!(keys, expected.map(|text| SigningKey::new(text).unwrap()));
        assert_eq!(SigningKey::list("# none\n"), Err(SigningKeyError::None));
        assert_eq!(SigningKey::list("short"), Err(SigningKeyError::Short(5)));
        assert_ne!(SigningKey::random(), SigningKey::random());
        assert!(!format!("{keys:?}").contains("0123"));
    }

    proptest! {
        #[test]
        fn a_signed_token_is_verified_and_no_changed_one(
            name in "[a-z*~]{1,20}", user in "[a-zé]{0,10}", actions in 1_u8..128,
            end in any::<u32>(), at in any::<prop::sample::Index>(), flip in 1_u8..=255,
        ) {
            let streams = StreamPattern::exact(&name);
            let end = UNIX_EPOCH + Duration::from_secs(end.into());
            let token = Token { actions, ..Token::new(streams, end) }.with_user(user);
            let text = token.sign(&key("k")).unwrap();
            let verified = Token::verify(&text, &[key("k")]).unwrap();
            prop_assert_eq!((verified.user(), verified.end()), (token.user(), end));
            prop_assert_eq!(verified.streams(), token.streams());
            prop_assert_eq!(verified.actions, actions);
            let mut bytes = URL_SAFE_NO_PAD.decode(&text[4..]).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            let changed = format!("pt1-{}", URL_SAFE_NO_PAD.encode(bytes));
            prop_assert!(Token::verify(&changed, &[key("k")]).is_err());
        }

        #[test]
        fn any_text_is_no_token(text in "(pt1-)?[A-Za-z0-9_-]{0,300}") {
            prop_assert!(Token::verify(&text, &[key("k")]).is_err());
        }
    }
}
