//! The rights that a configuration gives, over SRT and over HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_relay_access::{
    Access, Action, Admitted, Call, CallError, Credentials, Refused, Role, StreamName, TicketKey,
};
use punctual_relay_config::Configuration;
use punctual_relay_http::{Allowed, Answer, Caller, Credential, Right, Ticket, Verdict};

/// The rules about callers that are in force; a reload replaces them.
pub(crate) struct Rights {
    current: Mutex<Arc<Access>>,
    tickets: TicketKey,
}

impl Rights {
    /// The rights of a configuration.
    ///
    /// # Errors
    ///
    /// A rule cannot be, in a sentence.
    pub(crate) fn new(configuration: &Configuration) -> Result<Self, String> {
        let tickets = TicketKey::random();
        let current = Mutex::new(Arc::new(rules(configuration, tickets.clone())?));
        Ok(Self { current, tickets })
    }

    /// The rules in force.
    pub(crate) fn current(&self) -> Arc<Access> {
        Arc::clone(&self.lock())
    }

    /// The rules of another configuration, without taking them.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub(crate) fn of(&self, configuration: &Configuration) -> Result<Arc<Access>, String> {
        rules(configuration, self.tickets.clone()).map(Arc::new)
    }

    /// Takes other rules.
    pub(crate) fn set(&self, access: Arc<Access>) {
        *self.lock() = access;
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Access>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn verdict(&self, caller: &Caller, right: &Right) -> Verdict {
        let access = self.current();
        let needed = match right {
            Right::Read => Action::Api(Role::Read),
            Right::Operate => Action::Api(Role::Operate),
            Right::Administer => Action::Api(Role::Admin),
            Right::Metrics => Action::Metrics,
            Right::View(stream) => return viewer(&access, caller, Action::Read, stream).await,
            Right::Playback(stream) => {
                return viewer(&access, caller, Action::Playback, stream).await;
            }
        };
        let credentials = credentials(&caller.credential);
        match access.operator(&credentials, caller.address).await {
            Ok(operator) if operator.may(needed) => {
                let user = operator.user().map(str::to_owned);
                Verdict::Allowed(Allowed { user, lifetime: None })
            }
            Ok(_) => Verdict::Forbidden,
            Err(refused) => verdict(&refused),
        }
    }
}

impl punctual_relay_http::Access for Rights {
    fn decide<'a>(&'a self, caller: &'a Caller, right: &'a Right) -> Answer<'a, Verdict> {
        Box::pin(self.verdict(caller, right))
    }

    fn ticket<'a>(&'a self, caller: &'a Caller, right: &'a Right) -> Answer<'a, Option<Ticket>> {
        Box::pin(async move {
            let access = self.current();
            let (action, stream) = match right {
                Right::View(stream) => (Action::Read, stream),
                Right::Playback(stream) => (Action::Playback, stream),
                _ => return None,
            };
            let admitted = admitted(&access, caller, action, stream).await.ok()?;
            let ticket = access.ticket(&admitted, TICKET).ok()?;
            Some(Ticket { ticket, expires_in_s: TICKET.as_secs() })
        })
    }
}

/// Whether a caller may do this with a stream, and on what terms.
async fn viewer(access: &Access, caller: &Caller, action: Action, stream: &str) -> Verdict {
    match admitted(access, caller, action, stream).await {
        Ok(admitted) => Verdict::Allowed(Allowed {
            user: admitted.user().map(str::to_owned),
            lifetime: admitted.lifetime(),
        }),
        Err(refused) => verdict(&refused),
    }
}

async fn admitted(
    access: &Access,
    caller: &Caller,
    action: Action,
    stream: &str,
) -> Result<Admitted, Refused> {
    let name = StreamName::new(stream).map_err(CallError::from)?;
    let call = Call::by_http(action, name, credentials(&caller.credential), "");
    let mut who = punctual_relay_access::Caller::srt(caller.address, "http");
    who.protocol = "http";
    access.decide(&call, &who).await
}

fn verdict(refused: &Refused) -> Verdict {
    match refused.http_status() {
        401 => Verdict::Unknown,
        _ => Verdict::Forbidden,
    }
}

fn credentials(credential: &Credential) -> Credentials {
    match credential {
        Credential::None => Credentials::default(),
        Credential::Bearer(token) | Credential::Ticket(token) => Credentials::token(token.as_str()),
        Credential::Basic { user, password } => {
            Credentials::password(user.as_str(), password.as_str())
        }
    }
}

/// The rules of a configuration.
fn rules(configuration: &Configuration, tickets: TicketKey) -> Result<Access, String> {
    Access::new(configuration.access()?, tickets).map_err(|error| error.to_string())
}

/// The time for which a ticket is valid.
const TICKET: Duration = Duration::from_secs(60);
