//! Repeated calls until a listener answers.

use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::Config;

use crate::error::Error;
use crate::port::Port;
use crate::socket::Socket;

/// Calls again and again, with growing pauses between the attempts, until a call succeeds.
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
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(self.longest_pause);
            attempt = attempt.saturating_add(1);
        }
    }
}
