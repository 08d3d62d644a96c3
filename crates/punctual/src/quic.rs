//! SRT over QUIC: the options of a port, and its protocol machine.
//!
//! One SRT packet travels in one DATAGRAM frame of QUIC, so that SRT passes where only QUIC's UDP
//! port is open, with certificates and TLS 1.3, and follows a peer whose address changes. SRT's own
//! retransmission and timing work as over UDP.
//!
//! ```
//! use std::sync::Arc;
//!
//! use punctual::quic::{ClientTls, Identity, QuicConfig, SRT_PROTOCOLS, ServerTls, Trust};
//! use punctual::{Carriage, Config, Listener, ListenerConfig, Port, PortConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), punctual::Error> {
//! // A self-signed certificate, which the caller pins by its hash.
//! let identity = Identity::self_signed(&["localhost"])?;
//! let trust = Trust::Pinned(identity.hash().expect("it has a certificate"));
//!
//! let server = Some(ServerTls::new(identity, SRT_PROTOCOLS));
//! let carriage = Carriage::Quic(Arc::new(QuicConfig { server, ..QuicConfig::default() }));
//! let local = Some("127.0.0.1:0".parse().unwrap());
//! let port = PortConfig { local, carriage, ..PortConfig::default() };
//! let listener = Listener::bind_with(ListenerConfig { port, ..Default::default() }).await?;
//!
//! let client = Some(ClientTls::new(trust, SRT_PROTOCOLS));
//! let carriage = Carriage::Quic(Arc::new(QuicConfig { client, ..QuicConfig::default() }));
//! let port = Port::bind(PortConfig { carriage, ..PortConfig::default() }).await?;
//! let call = port.connect(listener.local_addr(), Config::default());
//! let (caller, accepted) = tokio::try_join!(call, listener.accept())?;
//! assert!(caller.quic_info().is_some_and(|quic| quic.mtu >= 1_400));
//! assert_eq!(accepted.peer_addr().port(), port.local_addr().port());
//! # Ok(())
//! # }
//! ```

use std::io;

pub use punctual_quic::pki_types;
pub use punctual_quic::tls::{PemError, TlsConfigError, TlsFailure, certificates_from_pem};
pub use punctual_quic::{
    CertificateHash, ClientTls, CongestionControl, Identity, Protocol, QuicCloseReason,
    QuicConnectError, QuicInfo, Renewal, ServerTls, TransportConfig, Trust,
};

pub use crate::srt_over_quic::QuicConfig;

/// The certificates of the authorities that the system trusts.
///
/// # Errors
///
/// They cannot be read, or there are none.
pub fn system_authorities() -> io::Result<Vec<pki_types::CertificateDer<'static>>> {
    let found = rustls_native_certs::load_native_certs();
    match (found.certs.is_empty(), found.errors.into_iter().next()) {
        (false, _) => Ok(found.certs),
        (true, Some(error)) => Err(io::Error::other(error)),
        (true, None) => Err(io::Error::new(io::ErrorKind::NotFound, "the system has none")),
    }
}

/// The protocols of an end that carries SRT, the most wanted one first.
pub const SRT_PROTOCOLS: &[Protocol] = &[Protocol::SrtWithStreams, Protocol::Srt];
