//! Sockets before they are connected.

use std::net::SocketAddr;

use punctual_proto::{
    CONNECTION_OPTIONS, Config, ConfigError, OptionPhase, OptionValue, TypedOption,
};

use crate::config::PortConfig;
use crate::config::port_options::PORT_OPTIONS;
use crate::error::Error;
use crate::listener::Listener;
use crate::port::Port;
use crate::socket::Socket;

/// A socket that takes options before it is bound, and then connects, by a call or a rendezvous, or
/// listens: libsrt's order of steps. [`Socket::connect`] and [`Listener::bind`] take all steps at
/// once.
///
/// ```
/// use punctual::{Config, Listener, UnconnectedSocket};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), punctual::Error> {
/// let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Config::default()).await?;
/// let mut socket = UnconnectedSocket::default();
/// socket.set_option("mss", 1_400)?;
/// socket.set_option("ipttl", 32)?;
/// let local = socket.bind("127.0.0.1:0".parse().unwrap()).await?;
/// socket.set_option("streamid", "camera 1")?;
/// assert!(socket.set_option("mss", 1_500).is_err(), "it is bound");
/// assert!(socket.set_option("ipttl", 64).is_err(), "it is bound");
///
/// let call = socket.connect(listener.local_addr());
/// let (caller, accepted) = tokio::try_join!(call, listener.accept())?;
/// assert_eq!((caller.local_addr(), accepted.stream_id()), (local, "camera 1"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct UnconnectedSocket {
    config: Config,
    port_config: PortConfig,
    port: Option<Port>,
}

impl UnconnectedSocket {
    /// A socket with these options of the connection and of its UDP port.
    pub fn new(config: Config, port_config: PortConfig) -> Self {
        Self { config, port_config, port: None }
    }

    /// The options of the connection.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The value of the option with this name in [`CONNECTION_OPTIONS`] or [`PORT_OPTIONS`];
    /// `None` for an unknown name, and for the passphrase, which is write-only.
    pub fn option(&self, name: &str) -> Option<OptionValue> {
        self.config.option(name).or_else(|| self.port_config.option(name))
    }

    /// Sets the option with this name in [`CONNECTION_OPTIONS`] or [`PORT_OPTIONS`].
    ///
    /// Errors: as [`Config::with_option`]; also if the socket is bound and the option can only be
    /// set before that ([`OptionPhase::BeforeBinding`]). On an error nothing changes.
    pub fn set_option(
        &mut self,
        name: &str,
        value: impl Into<OptionValue>,
    ) -> Result<(), ConfigError> {
        let value = value.into();
        let of_port = TypedOption::find(PORT_OPTIONS, name).map(|option| option.info);
        let info = TypedOption::find(CONNECTION_OPTIONS, name).map(|option| option.info);
        if let Some(info) = info.or(of_port)
            && info.phase == OptionPhase::BeforeBinding
            && self.port.is_some()
        {
            let expected = "set before the socket is bound";
            return Err(ConfigError { option: info.name, value: value.to_string(), expected });
        }
        if of_port.is_some() {
            self.port_config = self.port_config.clone().with_option(name, value)?;
        } else {
            self.config = self.config.clone().with_option(name, value)?;
        }
        Ok(())
    }

    /// Binds the socket to `local`; port 0 takes any free port. Returns the address. A socket that
    /// is bound already leaves its former port. Must be called within a tokio runtime.
    ///
    /// Errors: as [`Port::bind`].
    pub async fn bind(&mut self, local: SocketAddr) -> Result<SocketAddr, Error> {
        self.port_config.local = Some(local);
        let port = Port::bind(self.port_config.clone()).await?;
        let local = port.local_addr();
        self.port = Some(port);
        Ok(local)
    }

    /// The address that the socket is bound to; `None` before [`bind`](Self::bind).
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.port.as_ref().map(Port::local_addr)
    }

    /// Calls the listener at `remote` and waits for the answer. A socket that is not bound takes
    /// any free port.
    ///
    /// Errors: as [`Port::connect`].
    ///
    /// Cancel safe: dropping the call takes it back.
    pub async fn connect(self, remote: SocketAddr) -> Result<Socket, Error> {
        let (port, config) = self.into_parts().await?;
        port.connect(remote, config).await
    }

    /// Connects by rendezvous to the end at `remote`, which calls this one at the same time.
    ///
    /// Errors: as [`Port::rendezvous`].
    ///
    /// Cancel safe: dropping it ends the attempt.
    pub async fn rendezvous(self, remote: SocketAddr) -> Result<Socket, Error> {
        let (port, config) = self.into_parts().await?;
        port.rendezvous(remote, config).await
    }

    /// Listens at the port that the socket is bound to, or at any free one. Accepted connections
    /// get the socket's options.
    ///
    /// Errors: as [`Port::bind`].
    pub async fn listen(self) -> Result<Listener, Error> {
        let (port, config) = self.into_parts().await?;
        Listener::at(&port, config)
    }

    async fn into_parts(self) -> Result<(Port, Config), Error> {
        let port = match self.port {
            Some(port) => port,
            None => Port::bind(self.port_config).await?,
        };
        Ok((port, self.config))
    }
}
