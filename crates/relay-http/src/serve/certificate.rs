//! The certificate of a port, read again when its files change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

/// A certificate and its key, from files. Connections after a change of the files get the new one;
/// if that cannot be used, a line in the log says why, and the old one stays.
#[derive(Clone)]
pub struct Certificate(Arc<ServerConfig>);

/// A certificate that cannot be used.
#[derive(Debug)]
pub struct CertificateError(String);

impl std::fmt::Display for CertificateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CertificateError {}

impl Certificate {
    /// The certificate with its chain and the private key, both as PEM. TLS is 1.3.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the key does not belong to the certificate.
    pub fn from_files(
        chain: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CertificateError> {
        let files = Files { chain: chain.into(), key: key.into() };
        let (seen, current) = (files.versions(), files.read()?);
        let shown = ShownOverTcp { files, state: RwLock::new(State { seen, current }) };
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| CertificateError(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shown));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.0).into()
    }
}

#[derive(Debug)]
struct Files {
    chain: PathBuf,
    key: PathBuf,
}

/// When a file was changed, and its size; `None` if it is not there.
type Version = Option<(SystemTime, u64)>;

impl Files {
    fn versions(&self) -> [Version; 2] {
        [&self.chain, &self.key].map(|path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        })
    }

    fn read(&self) -> Result<Arc<CertifiedKey>, CertificateError> {
        let at = |path: &Path, error: &dyn std::fmt::Display| {
            CertificateError(format!("{}: {error}", path.display()))
        };
        let chain = CertificateDer::pem_file_iter(&self.chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| at(&self.chain, &error))?;
        if chain.is_empty() {
            return Err(at(&self.chain, &"no certificate in it"));
        }
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| at(&self.key, &error))?;
        let certified = CertifiedKey::from_der(chain, key, &default_provider());
        certified.map(Arc::new).map_err(|error| at(&self.chain, &error))
    }
}

/// Shows the latest certificate that could be read.
#[derive(Debug)]
struct ShownOverTcp {
    files: Files,
    // TLS asks through a shared reference.
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    seen: [Version; 2],
    current: Arc<CertifiedKey>,
}

impl ResolvesServerCert for ShownOverTcp {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let found = self.files.versions();
        if found == self.state.read().unwrap_or_else(PoisonError::into_inner).seen {
            return Some(self.current());
        }
        let newer = self.files.read();
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.seen = found;
        match newer {
            Ok(newer) => {
                tracing::info!("HTTPS has a new certificate, {}", self.files.chain.display());
                state.current = newer;
            }
            Err(error) => {
                tracing::warn!("the new certificate is not used, and the old one stays: {error}");
            }
        }
        Some(Arc::clone(&state.current))
    }
}

impl ShownOverTcp {
    fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).current)
    }
}
