//! Deciding on callers by a hook that may wait.

use std::time::Duration;

use punctual_proto::{Config, RejectReason};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::Error;
use crate::listener::{Accepted, CallerInfo, IncomingCall, Listener, not_accepted};
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
///     let id = caller.stream().map_err(|error| error.reject_reason())?;
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
    listener: Listener,
    hook: H,
    decisions: JoinSet<Option<Accepted>>,
    limit: usize,
    deadline: Duration,
}

impl<H, D> Gate<H>
where
    H: Fn(CallerInfo) -> D,
    D: Future<Output = Result<Config, RejectReason>> + Send + 'static,
{
    pub(crate) fn new(listener: Listener, hook: H) -> Self {
        let decisions = JoinSet::new();
        Self { listener, hook, decisions, limit: LIMIT, deadline: DEADLINE }
    }

    /// Lets so many decisions run at once, at least one; default 1024. More callers wait for their
    /// turn, and those beyond the listener's [backlog](crate::ListenerConfig::backlog) are
    /// rejected.
    #[must_use]
    pub fn with_limit(self, limit: usize) -> Self {
        Self { limit: limit.max(1), ..self }
    }

    /// Gives each decision so much time; default 10 s. Then the caller is rejected with
    /// [`RejectReason::GATEWAY_TIMEOUT`]. Callers themselves wait three seconds by default.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
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
        loop {
            tokio::select! {
                Some(decided) = self.decisions.join_next() => match decided {
                    Ok(Some(accepted)) => return Ok(accepted),
                    Ok(None) => {}
                    // The call was dropped with the hook's task, and so rejected.
                    Err(error) => tracing::warn!(%error, "a decision on a caller failed"),
                },
                call = self.listener.incoming(), if self.decisions.len() < self.limit => {
                    let call = call?;
                    let decision = (self.hook)(call.info());
                    self.decisions.spawn(decide(call, decision, self.deadline));
                }
            }
        }
    }

    /// The listener behind the gate, for its address.
    pub fn listener(&self) -> &Listener {
        &self.listener
    }
}

/// Answers a caller as the hook decides.
async fn decide(
    call: IncomingCall,
    decision: impl Future<Output = Result<Config, RejectReason>>,
    deadline: Duration,
) -> Option<Accepted> {
    let remote = call.remote();
    let decided = timeout(deadline, decision).await.unwrap_or(Err(RejectReason::GATEWAY_TIMEOUT));
    match decided {
        Ok(config) => match call.answer_any(Some(config)) {
            Ok(accepted) => return accepted,
            Err(Error::Accept(reason)) => not_accepted(remote, &reason),
            Err(error) => tracing::warn!(%remote, %error, "a caller could not be accepted"),
        },
        Err(reason) => {
            tracing::info!(%remote, %reason, "a caller was refused");
            call.reject(reason);
        }
    }
    None
}

const LIMIT: usize = 1_024;
const DEADLINE: Duration = Duration::from_secs(10);
