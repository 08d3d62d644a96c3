//! A server's certificate that is renewed while the server runs.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{Identity, TlsConfigError};

/// Gives the new identity of a server, once for each that there is.
///
/// It is asked at each handshake by the task that drives the port, so it has to return at once. An
/// error is logged, and the server keeps the identity that it has.
#[derive(Clone)]
pub struct Renewal(Arc<Ask>);

type Ask = dyn Fn() -> Option<Result<Identity, String>> + Send + Sync;

impl Renewal {
    /// A renewal that asks `newer`.
    pub fn new(
        newer: impl Fn() -> Option<Result<Identity, String>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(newer))
    }
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewal")
    }
}

/// The identity that a server shows in handshakes: its first one, and then the renewed ones.
#[derive(Debug)]
pub(super) struct Shown {
    // TLS asks through a shared reference.
    current: RwLock<Arc<CertifiedKey>>,
    renewal: Option<Renewal>,
}

impl Shown {
    /// Shows `identity` first.
    ///
    /// # Errors
    ///
    /// The certificate and the key do not belong together.
    pub(super) fn new(
        identity: &Identity,
        renewal: Option<Renewal>,
    ) -> Result<Self, TlsConfigError> {
        let current = RwLock::new(certified(identity, &default_provider())?);
        Ok(Self { current, renewal })
    }

    fn renew(&self) {
        let Some(newer) = self.renewal.as_ref().and_then(|renewal| (renewal.0)()) else { return };
        let newer = newer.and_then(|identity| {
            let key = certified(&identity, &default_provider()).map_err(|error| error.to_string());
            Ok((identity.hash(), key?))
        });
        match newer {
            Ok((hash, key)) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = key;
                let hash = hash.map_or_else(String::new, |hash| hash.to_string());
                tracing::info!("the listener has a new certificate, `certhash={hash}`");
            }
            Err(error) => {
                tracing::warn!("the new certificate is not used, and the old one stays: {error}");
            }
        }
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.renew();
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn certified(
    identity: &Identity,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, TlsConfigError> {
    let Identity { chain, key } = identity.clone();
    CertifiedKey::from_der(chain, key, provider)
        .map(Arc::new)
        .map_err(|error| TlsConfigError::Identity(error.to_string()))
}
