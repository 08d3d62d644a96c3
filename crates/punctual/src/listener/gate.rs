//! Decisions on callers by an asynchronous hook.

use std::time::Duration;

use punctual_proto::{Config, RejectReason};

use super::Listener;
use super::decisions::Decisions;
use crate::error::Error;
use crate::incoming_call::{Accepted, CallerInfo};
use crate::socket::Socket;

/// A listener whose callers an asynchronous hook decides on, which may query a database, a token's
/// issuer or another server. Many decisions run at the same time, so a slow one delays no other
/// caller.
///
/// The hook returns the options of the connection for this caller, or the reason of a rejection.
/// SRT transfers only the number of a reason, no text; the caller's program has its own words for
/// it, in this implementation those of [`RejectReason`]'s `Display`. The predefined numbers
/// correspond to the status codes of HTTP; use them if they fit.
///
/// ```
/// use std::time::Duration;
///
/// use punctual::{AccessMode, Config, Error, Listener, RejectReason, Socket};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Config::default()).await?;
/// let address = listener.local_addr();
/// let mut gate = listener.gate(|caller| async move {
///     let id = caller.parsed_stream_id().map_err(|error| error.reject_reason())?;
///     // Here the database answers, in its time.
///     tokio::time::sleep(Duration::from_millis(5)).await;
///     match (id.user(), id.mode()) {
///         (Some("ann"), AccessMode::Publish) => {
///             Ok(Config::default().with_latency(Duration::from_millis(300)).unwrap())
///         }
///         (Some(_), _) => Err(RejectReason::FORBIDDEN),
///         (None, _) => Err(RejectReason::UNAUTHORIZED),
///     }
/// });
/// let served = tokio::spawn(async move { gate.accept().await });
///
/// let call = |id| Socket::connect(address, Config::default().with_stream_id(id).unwrap());
/// let refused = call("#!::r=live/a,m=publish").await.unwrap_err();
/// assert_eq!(refused.to_string(), "unauthorized (rejection code 2401)");
/// let socket = call("#!::u=ann,r=live/a,m=publish").await?;
/// assert_eq!(socket.info().peer_latency, Duration::from_millis(300));
/// # served.await.unwrap()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Gate<H> {
    hook: H,
    decisions: Decisions<()>,
}

impl<H, D> Gate<H>
where
    H: Fn(CallerInfo) -> D,
    D: Future<Output = Result<Config, RejectReason>> + Send + 'static,
{
    pub(crate) fn new(listener: Listener, hook: H) -> Self {
        Self { hook, decisions: Decisions::new(listener) }
    }

    /// Sets the largest number of decisions at the same time, at least one; default 1024. Further
    /// callers wait for a decision, and those beyond the listener's
    /// [backlog](crate::ListenerConfig::backlog) are rejected.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.decisions.set_limit(limit);
        self
    }

    /// Sets the time limit of a decision; default 10 s. After it the caller is rejected with
    /// [`RejectReason::GATEWAY_TIMEOUT`]. Callers themselves wait three seconds by default.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.decisions.set_deadline(deadline);
        self
    }

    /// Waits for the next caller that the hook accepts. Decisions continue between two calls of
    /// this method, but new callers are taken only while it is polled.
    ///
    /// Errors: [`Error::Stopped`] when the runtime is shut down.
    ///
    /// Cancel safe: a caller is taken out only as this completes.
    pub async fn accept(&mut self) -> Result<Socket, Error> {
        loop {
            match self.accept_any().await? {
                Accepted::Socket(socket) => return Ok(socket),
                // The group closes when it is dropped here.
                Accepted::Group(_) => {
                    tracing::debug!(
                        "a group called, but only single connections are accepted here"
                    );
                }
            }
        }
    }

    /// Waits for the next caller that the hook accepts, or the next group by its first link, with
    /// the options that the hook returned for that link. The hook decides on the further links as
    /// well; accepted ones join the group, with the options of the first link. Errors as
    /// [`accept`](Self::accept); cancel safe as that is.
    pub async fn accept_any(&mut self) -> Result<Accepted, Error> {
        let Self { hook, decisions } = self;
        let decide = |caller| {
            let decision = hook(caller);
            async { decision.await.map(|config| (config, ())) }
        };
        let (accepted, ()) = decisions.next(decide).await?;
        Ok(accepted)
    }

    /// The listener behind the gate, for its address.
    pub fn listener(&self) -> &Listener {
        self.decisions.listener()
    }
}

/// A [`Gate`] whose hook returns a value of any type with each caller that it accepts: for example
/// the account of a token, which need not be looked up a second time.
///
/// ```
/// use punctual::{Config, Error, Listener, RejectReason, Socket};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Config::default()).await?;
/// let address = listener.local_addr();
/// let mut gate = listener.gate_with_value(|caller| async move {
///     // Here the database answers with the account.
///     let account = caller.stream_id.strip_prefix("token-").ok_or(RejectReason::UNAUTHORIZED)?;
///     Ok((Config::default(), account.to_owned()))
/// });
/// let call = Socket::connect(address, Config::default().with_stream_id("token-ann")?);
/// let (accepted, _caller) = tokio::try_join!(gate.accept(), call)?;
/// let (_socket, account) = accepted;
/// assert_eq!(account, "ann");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ValueGate<H, T> {
    hook: H,
    decisions: Decisions<T>,
}

impl<H, D, T> ValueGate<H, T>
where
    H: Fn(CallerInfo) -> D,
    D: Future<Output = Result<(Config, T), RejectReason>> + Send + 'static,
    T: Send + 'static,
{
    pub(crate) fn new(listener: Listener, hook: H) -> Self {
        Self { hook, decisions: Decisions::new(listener) }
    }

    /// As [`Gate::with_limit`].
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.decisions.set_limit(limit);
        self
    }

    /// As [`Gate::with_deadline`].
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.decisions.set_deadline(deadline);
        self
    }

    /// Waits for the next caller that the hook accepts, and returns it with the hook's value;
    /// otherwise as [`Gate::accept`].
    pub async fn accept(&mut self) -> Result<(Socket, T), Error> {
        loop {
            match self.accept_any().await? {
                (Accepted::Socket(socket), value) => return Ok((socket, value)),
                // The group closes when it is dropped here.
                (Accepted::Group(_), _) => {
                    tracing::debug!(
                        "a group called, but only single connections are accepted here"
                    );
                }
            }
        }
    }

    /// Waits for the next caller that the hook accepts, or the next group, and returns it with the
    /// hook's value for it or for the group's first link; otherwise as [`Gate::accept_any`].
    pub async fn accept_any(&mut self) -> Result<(Accepted, T), Error> {
        self.decisions.next(&self.hook).await
    }

    /// The listener behind the gate, for its address.
    pub fn listener(&self) -> &Listener {
        self.decisions.listener()
    }
}
