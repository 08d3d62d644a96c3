//! The decision about a caller.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use punctual_proto::RejectReason;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::action::{Action, Role};
use crate::call::Call;
use crate::callout::{Callout, CalloutConfig};
use crate::credentials::Credentials;
use crate::decision::{Admitted, Caller, Decision, Ground, Refusal, Refused};
use crate::jwks::JwksError;
use crate::jwt::{Jwt, JwtConfig, JwtError, TokenClaims};
use crate::name::StreamName;
use crate::operator::Operator;
use crate::pattern::StreamPattern;
use crate::secret::Secret;
use crate::token::{SigningKey, Token, TokenError};
use crate::user::{Permission, Proof, User, UserError};
use crate::web::WebError;

/// The rules of a relay about its callers.
///
/// Without any rule, everybody may publish, read and play back, and callers on this host may do
/// everything in the API.
#[derive(Debug, Default)]
pub struct AccessConfig {
    /// The users of the file.
    pub users: Vec<User>,
    /// The keys of signed tokens; the first signs.
    pub signing_keys: Vec<SigningKey>,
    /// The JSON web tokens that are accepted.
    pub jwt: Option<JwtConfig>,
    /// The server that is asked about callers whom no user of the file lets in.
    pub callout: Option<CalloutConfig>,
}

/// A rule that cannot be.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum AccessError {
    /// A user.
    #[error(transparent)]
    User(#[from] UserError),
    /// A server that is asked.
    #[error(transparent)]
    Web(#[from] WebError),
}

/// The key of tickets: tokens that the relay itself signs for browsers, which cannot set headers in
/// a `WebSocket` or a player. The key is known to this process only, and stays when rules change.
#[derive(Clone, Debug)]
pub struct TicketKey(SigningKey);

impl TicketKey {
    /// A new key.
    pub fn random() -> Self {
        Self(SigningKey::random())
    }
}

/// The rules of a relay about its callers, ready to decide.
///
/// These proofs are looked at in turn, and the first kind that the caller gives decides: a signed
/// token, a JSON web token (if the relay accepts them), a user of the file. Callers whom no user of
/// the file lets in are told to the callout, if there is one.
#[derive(Debug)]
pub struct Access {
    /// Those with a name before those for every caller.
    users: Vec<Arc<User>>,
    /// The keys of the file, and last that of tickets.
    keys: Vec<SigningKey>,
    ticket_key: TicketKey,
    jwt: Option<Jwt>,
    callout: Option<Callout>,
    /// Turns to compute slow hashes.
    hashing: Arc<Semaphore>,
    /// Callers that wait for a turn, or have one.
    waiting: Arc<Semaphore>,
}

impl Access {
    /// The rules of a configuration.
    ///
    /// # Errors
    ///
    /// A rule cannot be, or the certificates of this system cannot be read.
    pub fn new(config: AccessConfig, ticket_key: TicketKey) -> Result<Self, AccessError> {
        config.users.iter().try_for_each(User::check)?;
        let mut users: Vec<_> = config.users.into_iter().map(Arc::new).collect();
        users.sort_by_key(|user| user.is_any());
        let mut keys = config.signing_keys;
        keys.push(ticket_key.0.clone());
        Ok(Self {
            users,
            keys,
            ticket_key,
            jwt: config.jwt.map(Jwt::new).transpose()?,
            callout: config.callout.as_ref().map(Callout::new).transpose()?,
            hashing: Arc::new(Semaphore::new(HASHING)),
            waiting: Arc::new(Semaphore::new(WAITING)),
        })
    }

    /// Decides about a caller. Cancel safe: a decision that nobody waits for has no effect.
    ///
    /// # Errors
    ///
    /// The caller is refused.
    pub async fn decide(&self, call: &Call, caller: &Caller) -> Decision {
        let (action, stream) = (call.action(), call.stream());
        let (credentials, address) = (call.credentials(), caller.address);
        if let Some(token) = self.signed_token(credentials) {
            let token = token?;
            token.check(action, Some(stream), now())?;
            let streams = token.streams().as_str().into();
            let ground = Ground::Token { streams, key: token.key() };
            return Ok(Admitted::new(call, token.user(), ground, address));
        }
        if let Some((jwt, claims)) = self.web_token(credentials).await? {
            let may = claims.permissions.iter().any(|it| it.allows(action, Some(stream)));
            if !may {
                return Err(no_right(claims.user.as_deref(), action, Some(stream)));
            }
            let ground = Ground::Jwt { keys: jwt.config().keys.to_string().into() };
            return Ok(Admitted::new(call, claims.user.as_deref(), ground, address));
        }
        let known = self.known(credentials, address).await?;
        if let Some(user) = known.users.iter().find(|user| user.allows(action, Some(stream))) {
            let name = Some(user.name()).filter(|_| !user.is_any());
            return Ok(Admitted::new(call, name, Ground::User(user.print()), address));
        }
        match &self.callout {
            Some(callout) => {
                let consent = callout.ask(call, caller).await?;
                let user = consent.user.as_deref().or(credentials.user());
                let ground = Ground::Callout { url: callout.url().to_string().into() };
                let admitted = Admitted::new(call, user, ground, address);
                let stream = consent.stream.unwrap_or_else(|| stream.clone());
                Ok(admitted.on(stream).with_terms(consent.terms))
            }
            None if self.is_open() => Ok(Admitted::new(call, None, Ground::Open, address)),
            None => Err(known.refusal(credentials, address, action, Some(stream))),
        }
    }

    /// Decides about the use of the API, the page and the metrics. The callout is not asked. Cancel
    /// safe.
    ///
    /// # Errors
    ///
    /// The caller may use none of them.
    pub async fn operator(
        &self,
        credentials: &Credentials,
        address: IpAddr,
    ) -> Result<Operator, Refused> {
        if let Some(token) = self.signed_token(credentials) {
            let token = token?;
            token.check_end(now())?;
            let operator = Operator::new(token.user(), |action| token.allows(action));
            return operator.ok_or_else(|| no_right(token.user(), Action::Api(Role::Read), None));
        }
        if let Some((_, claims)) = self.web_token(credentials).await? {
            let may = |action| claims.permissions.iter().any(|it| it.allows(action, None));
            let operator = Operator::new(claims.user.as_deref(), may);
            let user = claims.user.as_deref();
            return operator.ok_or_else(|| no_right(user, Action::Api(Role::Read), None));
        }
        let known = self.known(credentials, address).await?;
        let is_local = address.to_canonical().is_loopback();
        let may = |action: Action| {
            let is_unruled = is_local && self.jwt.is_none() && !self.rules(action);
            is_unruled || known.users.iter().any(|user| user.allows(action, None))
        };
        let name = known.users.iter().map(|user| user.name()).find(|name| *name != User::ANY);
        let refusal = || known.refusal(credentials, address, Action::Api(Role::Read), None);
        Operator::new(name, may).ok_or_else(refusal)
    }

    /// A ticket that admits as `admitted` was, for a time of at most an hour.
    ///
    /// # Errors
    ///
    /// The names are too long for a token.
    pub fn ticket(&self, admitted: &Admitted, lifetime: Duration) -> Result<String, TokenError> {
        let streams = StreamPattern::exact(admitted.stream().as_str());
        self.sign(Self::token(streams, lifetime).allow(admitted.action()), admitted.user())
    }

    /// A ticket for the API with the rights of `operator`, for a time of at most an hour.
    ///
    /// # Errors
    ///
    /// The name is too long for a token.
    pub fn api_ticket(
        &self,
        operator: &Operator,
        lifetime: Duration,
    ) -> Result<String, TokenError> {
        let actions = Action::ALL.into_iter().filter(|action| operator.may(*action));
        let token = actions.fold(Self::token(StreamPattern::all(), lifetime), Token::allow);
        self.sign(token, operator.user())
    }

    /// Whether these rules, after a change, would let in a caller that was let in before. They
    /// cannot ask the callout again: its word stays while it is the same server. A token's end
    /// matters to new calls only.
    pub fn would_still_admit(&self, admitted: &Admitted) -> bool {
        let (action, stream) = (admitted.action(), admitted.stream());
        let allows = |user: &User| user.allows(action, Some(stream));
        let for_all =
            self.users.iter().any(|user| user.needs_no_secret(admitted.address()) && allows(user));
        for_all
            || match admitted.ground() {
                Ground::Open => self.is_open(),
                Ground::User(print) => self.users.iter().any(|user| {
                    user.print() == *print && user.is_at(admitted.address()) && allows(user)
                }),
                Ground::Token { key, .. } if *key == Some(self.ticket_key.0.print()) => {
                    let name = admitted.user();
                    let others = self.jwt.is_some() || self.callout.is_some();
                    others
                        || self.is_open()
                        || self.users.iter().any(|user| Some(user.name()) == name && allows(user))
                }
                Ground::Token { key, .. } => {
                    self.keys.iter().any(|known| *key == Some(known.print()))
                }
                Ground::Jwt { keys } => {
                    self.jwt.as_ref().is_some_and(|it| it.config().keys.to_string() == **keys)
                }
                Ground::Callout { url } => {
                    self.callout.as_ref().is_some_and(|it| it.url().to_string() == **url)
                }
            }
    }

    /// Whether no rule is about streams.
    pub fn is_open(&self) -> bool {
        let file_keys = self.keys.len() - 1;
        let has_rules = [Action::Publish, Action::Read, Action::Playback].map(|it| self.rules(it));
        file_keys == 0 && self.jwt.is_none() && self.callout.is_none() && !has_rules.contains(&true)
    }

    /// Whether a user of the file has a right to this action, or to a part of the API.
    fn rules(&self, action: Action) -> bool {
        let is_alike = |right: &Permission| match (right.action, action) {
            (Action::Api(_), Action::Api(_)) => true,
            (one, other) => one == other,
        };
        self.users.iter().any(|user| user.permissions().iter().any(is_alike))
    }

    /// The signed token that the caller gives, or its fault.
    fn signed_token(&self, credentials: &Credentials) -> Option<Result<Token, TokenError>> {
        match Token::verify(credentials.any_token()?.expose(), &self.keys) {
            // A password may look like the start of a token.
            Err(TokenError::Malformed) => None,
            verified => Some(verified),
        }
    }

    /// The JSON web token that the caller gives, verified.
    async fn web_token(
        &self,
        credentials: &Credentials,
    ) -> Result<Option<(&Jwt, TokenClaims)>, Refused> {
        let token: Option<&Secret> = credentials.any_token().filter(|token| Jwt::is_like(token));
        match (&self.jwt, token) {
            (Some(jwt), Some(token)) => Ok(Some((jwt, jwt.verify(token, now()).await?))),
            _ => Ok(None),
        }
    }

    /// The users that the caller is.
    async fn known(&self, credentials: &Credentials, address: IpAddr) -> Result<Known, Refused> {
        let mut known = Known { users: Vec::new(), miss: Proof::Other };
        for user in &self.users {
            let proof = match user.prove(credentials, address) {
                Proof::Slow => self.prove_slowly(user, credentials).await?,
                proof => proof,
            };
            match proof {
                Proof::Right => known.users.push(Arc::clone(user)),
                Proof::WrongPassword | Proof::WrongAddress => known.miss = proof,
                Proof::Other | Proof::Slow => {}
            }
        }
        Ok(known)
    }

    /// Computes a slow hash on another thread, few at a time.
    async fn prove_slowly(
        &self,
        user: &Arc<User>,
        credentials: &Credentials,
    ) -> Result<Proof, Refused> {
        let overload = |_| {
            let text = format!("{WAITING} callers already wait until their passwords are hashed");
            Refused::new(Refusal::Overload, text)
        };
        let place = Arc::clone(&self.waiting).try_acquire_owned().map_err(overload)?;
        let turn = Arc::clone(&self.hashing).acquire_owned().await.expect("it is never closed");
        let (user, credentials) = (Arc::clone(user), credentials.clone());
        let proof = tokio::task::spawn_blocking(move || {
            let _held = (place, turn);
            user.prove_slowly(&credentials)
        });
        Ok(proof.await.expect("a hash does not panic"))
    }

    fn token(streams: StreamPattern, lifetime: Duration) -> Token {
        Token::new(streams, now() + lifetime.min(MOST_TICKET))
    }

    fn sign(&self, token: Token, user: Option<&str>) -> Result<String, TokenError> {
        token.with_user(user.unwrap_or_default()).sign(&self.ticket_key.0)
    }
}

/// The users that a caller is, and the nearest miss.
struct Known {
    users: Vec<Arc<User>>,
    miss: Proof,
}

impl Known {
    /// The refusal of a caller whom none of its users has a right for.
    fn refusal(
        &self,
        credentials: &Credentials,
        address: IpAddr,
        action: Action,
        stream: Option<&StreamName>,
    ) -> Refused {
        let name = credentials.user().unwrap_or_default();
        if let Some(user) = self.users.iter().find(|user| !user.is_any()) {
            return no_right(Some(user.name()), action, stream);
        }
        match self.miss {
            Proof::WrongPassword => {
                Refused::new(Refusal::WrongPassword, format!("the password of `{name}` is wrong"))
            }
            Proof::WrongAddress => {
                let user = if name.is_empty() { "token" } else { &format!("user `{name}`") };
                let text = format!("the {user} is not let in from {}", address.to_canonical());
                Refused::new(Refusal::Address, text)
            }
            _ if credentials.is_empty() => {
                let wish = wish(action, stream);
                let text = format!("no user, password or token was given, which {wish} needs");
                Refused::new(Refusal::NoCredentials, text)
            }
            _ if name.is_empty() => {
                Refused::new(Refusal::UnknownUser, "the token or password is that of no user")
            }
            _ => Refused::new(Refusal::UnknownUser, format!("there is no user `{name}`")),
        }
    }
}

fn no_right(user: Option<&str>, action: Action, stream: Option<&StreamName>) -> Refused {
    let user = user.map_or("the caller".to_owned(), |user| format!("the user `{user}`"));
    let text = format!("{user} has no right to {}", wish(action, stream));
    Refused::new(Refusal::NoRight, text)
}

fn wish(action: Action, stream: Option<&StreamName>) -> String {
    match stream {
        Some(stream) => format!("{action} of `{stream}`"),
        None => "the API".to_owned(),
    }
}

impl From<JwtError> for Refused {
    fn from(error: JwtError) -> Self {
        let (reason, code) = match &error {
            JwtError::Keys(JwksError::Web(WebError::Timeout { .. })) => {
                (Refusal::CalloutFailed, Some(RejectReason::GATEWAY_TIMEOUT))
            }
            JwtError::Keys(_) => (Refusal::CalloutFailed, None),
            JwtError::Expired(_) => (Refusal::ExpiredToken, None),
            _ => (Refusal::WrongToken, None),
        };
        let refused = Self::new(reason, error.to_string());
        code.into_iter().fold(refused, Self::with_code)
    }
}

/// The time of day, against which tokens of other hosts end.
fn now() -> SystemTime {
    SystemTime::now()
}

/// The slow hashes that are computed at the same time.
const HASHING: usize = 2;
/// The callers that wait for a slow hash.
const WAITING: usize = 256;
/// The longest time of a ticket.
const MOST_TICKET: Duration = Duration::from_secs(3600);
