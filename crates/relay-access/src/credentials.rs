use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::query::Query;
use crate::secret::Secret;

/// The proofs that a caller gives of itself: in a stream ID, in a header of HTTP, or in a query.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Credentials {
    user: Option<String>,
    secret: Option<Secret>,
    token: Option<Secret>,
}

impl Credentials {
    /// A user and a password.
    pub fn password(user: impl Into<String>, password: impl Into<Secret>) -> Self {
        let (user, secret) = (user.into(), password.into());
        Self {
            user: Some(user).filter(|user| !user.is_empty()),
            secret: Some(secret).filter(|secret| !secret.is_empty()),
            token: None,
        }
    }

    /// A token alone.
    pub fn token(token: impl Into<Secret>) -> Self {
        Self { token: Some(token.into()).filter(|token| !token.is_empty()), ..Self::default() }
    }

    /// The contents of HTTP's header `Authorization`: `Bearer TOKEN`, or `Basic` with user and
    /// password. Other schemes are ignored.
    pub fn from_authorization(header: &str) -> Self {
        let Some((scheme, value)) = header.trim().split_once(' ') else { return Self::default() };
        let value = value.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Self::token(value);
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Self::default();
        }
        let text = STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let text = text.map(Secret::from);
        let pair = text.as_ref().and_then(|text| text.expose().split_once(':'));
        pair.map_or_else(Self::default, |(user, password)| Self::password(user, password))
    }

    /// The credentials in the query of a URL: `token` or `jwt`, `user`, and `pass` or `password`.
    pub fn from_query(query: &str) -> Self {
        Self::default().or_query(&Query::new(query))
    }

    /// The same; what is missing comes from the query.
    pub(crate) fn or_query(self, query: &Query) -> Self {
        let find = |keys: &[&str]| keys.iter().find_map(|key| query.get(key));
        let secret = |keys| find(keys).map(Secret::from);
        Self {
            user: self.user.or_else(|| find(&["user"])),
            secret: self.secret.or_else(|| secret(&["pass", "password"])),
            token: self.token.or_else(|| secret(&["token", "jwt"])),
        }
    }

    /// The same, with the token of `other` if there is none.
    pub(crate) fn or_token(self, token: Option<&str>) -> Self {
        let other = token.filter(|token| !token.is_empty()).map(Secret::from);
        Self { token: self.token.or(other), ..self }
    }

    /// The user that the caller says it is.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The password.
    pub fn secret(&self) -> Option<&Secret> {
        self.secret.as_ref()
    }

    /// The token, or else the password, since most callers have only one place for a secret.
    pub fn any_token(&self) -> Option<&Secret> {
        self.token.as_ref().or(self.secret.as_ref())
    }

    /// The token, if it has a place of its own.
    pub fn own_token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.user.is_none() && self.secret.is_none() && self.token.is_none()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("secret", &self.secret)
            .field("token", &self.token)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_read_from_the_headers_that_programs_send() {
        let bearer = Credentials::from_authorization("Bearer  hush ");
        assert_eq!(bearer, Credentials::token("hush"));
        let basic = Credentials::from_authorization("basic YW5uOmh1OnNo");
        assert_eq!(basic, Credentials::password("ann", "hu:sh"));
        for other in ["", "Bearer", "Digest x", "Basic ???", "Basic YW5u", "Bearer "] {
            assert!(Credentials::from_authorization(other).is_empty(), "{other}");
        }
        assert!(!format!("{bearer:?} {basic:?}").contains("hu"));
    }

    #[test]
    fn credentials_are_read_from_queries_and_decoded() {
        let query = Credentials::from_query("x=1&user=ann&pass=h%C3%BC&token=a%2Bb");
        assert_eq!(query.user(), Some("ann"));
        assert_eq!(query.secret(), Some(&"hü".into()));
        assert_eq!(query.any_token(), Some(&"a+b".into()));
        assert_eq!(Credentials::password("ann", "hush").any_token(), Some(&"hush".into()));
        assert!(Credentials::from_query("x=1").is_empty());
    }
}
