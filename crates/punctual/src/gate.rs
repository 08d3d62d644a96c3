//! Deciding on callers by a hook that may wait.

use std::time::Duration;

use punctual_proto::{Config, RejectReason};

use crate::decisions::Decisions;
use crate::error::Error;
use crate::listener::{Accepted, CallerInfo, Listener};
use crate::socket::Socket;

/// A listener whose callers a hook decides on, which may take its time: it may ask a database, a
/// token's issuer or another server. Callers are decided on at once, so that a slow answer holds
/// nobody else up.
///
/// The hook answers with the options of the connection, made for this caller, or with the reason of
/// a refusal. SRT carries no text of a refusal, only its number: what people read are the words
/// that the caller's program has for it, ours those of [`RejectReason`]'s `Display`. The predefined
/// numbers mean what HTTP's do, so use them where they fit.
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

    /// Lets so many decisions run at once, at least one; default 1024. More callers wait for their
    /// turn, and those beyond the listener's [backlog](crate::ListenerConfig::backlog) are
    /// rejected.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.decisions.set_limit(limit);
        self
    }

    /// Gives each decision so much time; default 10 s. Then the caller is rejected with
    /// [`RejectReason::GATEWAY_TIMEOUT`]. Callers themselves wait three seconds by default.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.decisions.set_deadline(deadline);
        self
    }

    /// The next caller that the hook lets in. Decisions run on between two calls of this, but
    /// callers are taken in only while it is waited for.
    ///
    /// Errors: [`Error::Stopped`] when the runtime is shut down.
    ///
    /// Cancel safe: a caller is handed over only as this completes.
    pub async fn accept(&mut self) -> Result<Socket, Error> {
        loop {
            match self.accept_any().await? {
                Accepted::Socket(socket) => return Ok(socket),
                // Dropped, it closes.
                Accepted::Group(_) => tracing::debug!("a group called where nobody takes any"),
            }
        }
    }

    /// The next caller that the hook lets in, or the next group by its first link, with the options
    /// that the hook gave for that. The hook decides on the further links as well, and they join
    /// if it lets them in, with the options of the first. Errors as [`accept`](Self::accept);
    /// cancel safe as that is.
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

/// A [`Gate`] whose hook hands over a value of its own with each caller that it lets in: the
/// account that a token belongs to, say, which need not be looked up a second time.
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

    /// The next caller that the hook lets in, with the hook's value, otherwise as
    /// [`Gate::accept`].
    pub async fn accept(&mut self) -> Result<(Socket, T), Error> {
        loop {
            match self.accept_any().await? {
                (Accepted::Socket(socket), value) => return Ok((socket, value)),
                // Dropped, it closes.
                (Accepted::Group(_), _) => {
                    tracing::debug!("a group called where nobody takes any");
                }
            }
        }
    }

    /// The next caller that the hook lets in, or the next group, with the hook's value for its
    /// first link, otherwise as [`Gate::accept_any`].
    pub async fn accept_any(&mut self) -> Result<(Accepted, T), Error> {
        self.decisions.next(&self.hook).await
    }

    /// The listener behind the gate, for its address.
    pub fn listener(&self) -> &Listener {
        self.decisions.listener()
    }
}
