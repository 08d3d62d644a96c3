//! Repeated calls until a listener answers.

use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::Config;

use crate::error::Error;
use crate::port::Port;
use crate::socket::Socket;
use crate::spread::spread;

/// Calls again and again, with growing pauses between the attempts, until a call succeeds.
///
/// Each pause is by chance up to half as long again as it says here: callers that lose their server
/// at the same time do not all call it again at the same time.
///
/// ```
/// use std::time::Duration;
///
/// use punctual::{Config, Reconnect};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), punctual::Error> {
/// # let unanswered = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
/// let config = Config::default().with_connect_timeout(Duration::from_millis(50))?;
/// let reconnect = Reconnect {
///     first_pause: Duration::from_millis(10),
///     attempts: Some(3),
///     ..Reconnect::default()
/// };
/// let error = reconnect.connect(unanswered, config).await.unwrap_err();
/// assert_eq!(error.to_string(), "no answer within 50 ms");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reconnect {
    /// The pause after the first attempt; each later one is twice as long. Default 1 s.
    pub first_pause: Duration,
    /// The longest pause. Default 8 s.
    pub longest_pause: Duration,
    /// The number of attempts, at least one, after which the error of the last one is returned.
    /// `None` (default) for no limit.
    pub attempts: Option<u32>,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(8),
            attempts: None,
        }
    }
}

impl Reconnect {
    /// Calls as [`Socket::connect`] does, from a new UDP port for each attempt. Returns the error
    /// of the last attempt if all have failed.
    ///
    /// Cancel safe: dropping it ends the attempts.
    pub async fn connect(&self, remote: SocketAddr, config: Config) -> Result<Socket, Error> {
        self.repeat(remote, || Socket::connect(remote, config.clone())).await
    }

    /// Calls as [`Port::connect`] does. Returns the error of the last attempt if all have failed.
    ///
    /// Cancel safe: dropping it ends the attempts.
    pub async fn connect_from(
        &self,
        port: &Port,
        remote: SocketAddr,
        config: Config,
    ) -> Result<Socket, Error> {
        self.repeat(remote, || port.connect(remote, config.clone())).await
    }

    async fn repeat<Call: Future<Output = Result<Socket, Error>>>(
        &self,
        remote: SocketAddr,
        call: impl Fn() -> Call,
    ) -> Result<Socket, Error> {
        let mut pause = self.first_pause.min(self.longest_pause);
        let mut attempt = 1;
        loop {
            let error = match call().await {
                Ok(socket) => return Ok(socket),
                Err(error) => error,
            };
            if self.attempts.is_some_and(|attempts| attempt >= attempts) {
                return Err(error);
            }
            tracing::info!(%remote, %error, ?pause, attempt, "the call failed: calling again");
            tokio::time::sleep(spread(pause)).await;
            pause = (2 * pause).min(self.longest_pause);
            attempt = attempt.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use punctual_proto::CloseReason;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn callers_of_one_server_do_not_call_it_again_at_the_same_time() {
        let pause = Duration::from_secs(1);
        let reconnect = Reconnect { first_pause: pause, longest_pause: pause, attempts: Some(2) };
        let remote = SocketAddr::from(([127, 0, 0, 1], 9));
        let mut pauses = HashSet::new();
        for _ in 0..20 {
            let start = Instant::now();
            let fail = || async { Err(Error::Closed(CloseReason::Peer)) };
            assert!(reconnect.repeat(remote, fail).await.is_err());
            pauses.insert(start.elapsed());
        }
        assert!(pauses.len() > 10, "{pauses:?}");
    }
}
