//! Users, as the file of a relay has them.

use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;

use crate::action::Action;
use crate::credentials::Credentials;
use crate::name::StreamName;
use crate::network::Network;
use crate::password::Password;
use crate::pattern::StreamPattern;

/// A right: an action, on some streams if the action is about one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Permission {
    /// The action.
    pub action: Action,
    /// The streams; actions without a stream ignore them.
    pub streams: StreamPattern,
}

impl Permission {
    /// Whether the right is one to this action, on this stream if the action has one.
    pub fn allows(&self, action: Action, stream: Option<&StreamName>) -> bool {
        self.action.includes(action)
            && stream.is_none_or(|stream| self.streams.matches(stream.as_str()))
    }
}

/// A user: proofs of who it is, and its rights.
///
/// A caller is the user if it gives every proof that the user has: the name with the password, the
/// token, and an address in one of the networks. [`ANY`](Self::ANY) may do without proofs.
#[derive(Debug)]
pub struct User {
    name: String,
    password: Option<Password>,
    token: Option<Password>,
    networks: Vec<Network>,
    permissions: Vec<Permission>,
}

/// A user that cannot be.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum UserError {
    /// The name is empty.
    #[error("a user must have a name; `any` stands for every caller")]
    NoName,
    /// Nothing proves that a caller is the user.
    #[error("the user `{0}` needs a password, a token or networks; only `any` may have none")]
    NoProof(String),
    /// The token is hashed by argon2.
    #[error(
        "the token of the user `{0}` must not be an argon2 hash, which would be computed for every \
         caller: write `sha256:…`"
    )]
    SlowToken(String),
    /// `any` has a password, which belongs to a name.
    #[error("the user `any` cannot have a password, since callers give the name of a user with it")]
    PasswordOfAny,
}

impl User {
    /// The name of the user that every caller is.
    pub const ANY: &'static str = "any";

    /// A user without proofs and rights.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { name, password: None, token: None, networks: Vec::new(), permissions: Vec::new() }
    }

    /// The same, with a password.
    #[must_use]
    pub fn with_password(self, password: Password) -> Self {
        Self { password: Some(password), ..self }
    }

    /// The same, with a token: a secret that a caller gives without a name.
    #[must_use]
    pub fn with_token(self, token: Password) -> Self {
        Self { token: Some(token), ..self }
    }

    /// The same, from addresses of these networks only.
    #[must_use]
    pub fn with_networks(self, networks: Vec<Network>) -> Self {
        Self { networks, ..self }
    }

    /// The same, with one more right.
    #[must_use]
    pub fn with_permission(mut self, action: Action, streams: StreamPattern) -> Self {
        self.permissions.push(Permission { action, streams });
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rights.
    pub fn permissions(&self) -> &[Permission] {
        &self.permissions
    }

    /// Whether the user can be, as read from a file.
    ///
    /// # Errors
    ///
    /// It cannot, and why.
    pub fn check(&self) -> Result<(), UserError> {
        let is_any = self.is_any();
        let has_proof =
            !self.networks.is_empty() || self.password.is_some() || self.token.is_some();
        match () {
            () if self.name.is_empty() => Err(UserError::NoName),
            () if !has_proof && !is_any => Err(UserError::NoProof(self.name.clone())),
            () if self.token.as_ref().is_some_and(Password::is_argon2) => {
                Err(UserError::SlowToken(self.name.clone()))
            }
            () if self.password.is_some() && is_any => Err(UserError::PasswordOfAny),
            () => Ok(()),
        }
    }

    /// Whether the user has a right to this action, on this stream if the action has one.
    pub(crate) fn allows(&self, action: Action, stream: Option<&StreamName>) -> bool {
        self.permissions.iter().any(|permission| permission.allows(action, stream))
    }

    /// Whether callers are this user without a password or a token, from this address.
    pub(crate) fn needs_no_secret(&self, address: IpAddr) -> bool {
        self.password.is_none() && self.token.is_none() && self.is_at(address)
    }

    /// Whether the caller is the user, unless that takes long.
    pub(crate) fn prove(&self, credentials: &Credentials, address: IpAddr) -> Proof {
        if !self.has_name(credentials) {
            return Proof::Other;
        }
        let token = credentials.any_token();
        match (&self.token, token) {
            (Some(right), Some(token)) if right.verify(token) => {}
            (Some(_), _) => return Proof::Other,
            (None, _) => {}
        }
        if !self.is_at(address) {
            // Where the address is the only proof, any caller elsewhere is somebody else.
            let is_named = self.password.is_some() || self.token.is_some();
            return if is_named { Proof::WrongAddress } else { Proof::Other };
        }
        match (&self.password, credentials.secret()) {
            (None, _) => Proof::Right,
            (Some(_), None) => Proof::WrongPassword,
            (Some(password), Some(attempt)) if password.is_slow(attempt) => Proof::Slow,
            (Some(_), Some(_)) => self.prove_slowly(credentials),
        }
    }

    /// The last step of [`prove`](Self::prove), however long it takes.
    pub(crate) fn prove_slowly(&self, credentials: &Credentials) -> Proof {
        let is_right = match (&self.password, credentials.secret()) {
            (Some(password), Some(attempt)) => password.verify(attempt),
            _ => false,
        };
        if is_right { Proof::Right } else { Proof::WrongPassword }
    }

    /// A hash of the entry's name and proofs, by which it is found again when the file was read
    /// again: a user whose password was changed is another one.
    pub(crate) fn print(&self) -> UserPrint {
        let print = |secret: &Option<Password>| secret.as_ref().map(Password::print);
        UserPrint {
            name: self.name.as_str().into(),
            proofs: [print(&self.password), print(&self.token)],
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        self.name == Self::ANY
    }

    /// Whether the caller gives the user's name, if it has to.
    fn has_name(&self, credentials: &Credentials) -> bool {
        self.password.is_none() || credentials.user() == Some(&self.name)
    }

    pub(crate) fn is_at(&self, address: IpAddr) -> bool {
        self.networks.is_empty() || self.networks.iter().any(|it| it.contains(address))
    }
}

/// Whether a caller is a user.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Proof {
    /// It is.
    Right,
    /// The answer takes tens of milliseconds.
    Slow,
    /// It gives the user's name with a wrong password.
    WrongPassword,
    /// It would be, at another address.
    WrongAddress,
    /// It says nothing of this user.
    Other,
}

/// An entry of a file, without its secrets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct UserPrint {
    name: Arc<str>,
    proofs: [Option<[u8; 32]>; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Password {
        Password::new(text).expect("a password")
    }

    fn here() -> IpAddr {
        "10.0.0.1".parse().expect("an address")
    }

    fn networks(text: &str) -> Vec<Network> {
        vec![text.parse().expect("a network")]
    }

    #[test]
    fn a_caller_is_a_user_if_it_gives_all_proofs() {
        let right = Credentials::password("ann", "hush");
        let wrong = Credentials::password("ann", "x");
        let token = Credentials::token("hush");
        let nobody = Credentials::default();
        let ann = || User::new("ann");
        for (user, credentials, proof) in [
            (ann().with_password(secret("hush")), &right, Proof::Right),
            (ann().with_password(secret("hush")), &wrong, Proof::WrongPassword),
            (ann().with_password(secret("hush")), &token, Proof::Other),
            (ann().with_password(secret("hush")), &nobody, Proof::Other),
            (ann().with_token(secret("hush")), &token, Proof::Right),
            (ann().with_token(secret("hush")), &right, Proof::Right),
            (ann().with_token(secret("hush")), &wrong, Proof::Other),
            (ann().with_networks(networks("10.0.0.0/8")), &nobody, Proof::Right),
            (ann().with_networks(networks("10.1.0.0/16")), &nobody, Proof::Other),
            (User::new("any"), &nobody, Proof::Right),
            (User::new("any"), &wrong, Proof::Right),
        ] {
            assert_eq!(user.prove(credentials, here()), proof, "{user:?} {credentials:?}");
        }
        let elsewhere = ann().with_password(secret("hush")).with_networks(networks("192.0.2.0/24"));
        assert_eq!(elsewhere.prove(&right, here()), Proof::WrongAddress);
    }

    #[test]
    fn rights_are_per_action_and_stream() {
        let user = User::new("any")
            .with_permission(Action::Publish, "live/*".parse().expect("a pattern"))
            .with_permission(Action::Metrics, StreamPattern::exact("ignored"));
        let stream = |name| StreamName::new(name).expect("a name");
        assert!(user.allows(Action::Publish, Some(&stream("live/a"))));
        assert!(!user.allows(Action::Publish, Some(&stream("a"))));
        assert!(!user.allows(Action::Read, Some(&stream("live/a"))));
        assert!(user.allows(Action::Metrics, None));
    }

    #[test]
    fn users_without_proofs_or_with_slow_tokens_are_refused() {
        let hash = "argon2:$argon2id$v=19$m=1024,t=1,p=1$c2FsdHNhbHQ$\
                    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for (user, part) in [
            (User::new(""), "must have a name"),
            (User::new("ann"), "`ann` needs a password"),
            (User::new("ann").with_token(secret(hash)), "sha256:"),
            (User::new("any").with_password(secret("x")), "`any` cannot have a password"),
        ] {
            let error = user.check().expect_err("no user").to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(User::new("any").check(), Ok(()));
        assert_eq!(User::new("ann").with_networks(networks("::1")).check(), Ok(()));
    }
}
