//! TLS 1.3: identities, trust, and the application protocols (ALPN).

mod errors;
mod renewal;
pub mod simulated;
mod verifier;

use std::fmt;
use std::sync::{Arc, OnceLock};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{KeyLogFile, RootCertStore, version};
use thiserror::Error;

pub use self::errors::TlsFailure;
pub(crate) use self::errors::failure_of;
pub use self::renewal::Renewal;
use self::renewal::Shown;
pub(crate) use self::verifier::Fault;
use self::verifier::{PinnedVerifier, RecordingVerifier};

/// The protocol of the application in a QUIC connection (ALPN, RFC 7301). A client offers all that
/// it can speak, the most wanted one first; the server takes the first that it can speak, too.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Protocol {
    /// `punctual-srt`: as [`Srt`](Self::Srt); in addition an SRT packet that is too long for a
    /// DATAGRAM frame travels on a unidirectional stream of its own.
    SrtWithStreams,
    /// `srt`: each DATAGRAM frame carries one SRT packet (draft-sharabayko-srt-over-quic-00, which
    /// leaves the name open).
    Srt,
    /// `punctual-datagrams`: each DATAGRAM frame carries one message.
    Datagrams,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::SrtWithStreams, Self::Srt, Self::Datagrams];

    /// The name in the TLS handshake.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SrtWithStreams => "punctual-srt",
            Self::Srt => "srt",
            Self::Datagrams => "punctual-datagrams",
        }
    }

    /// The protocol with this name.
    pub fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name().as_bytes() == name)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The SHA-256 digest of a certificate in DER form, by which a client can pin it.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct CertificateHash(pub [u8; 32]);

impl CertificateHash {
    /// The digest of a certificate in DER form.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, certificate);
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Self(hash)
    }

    /// Reads 64 hexadecimal digits, with or without colons between the bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Vec<u8> = text
            .chars()
            .filter(|&digit| digit != ':')
            .map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok()))
            .collect::<Option<_>>()?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[pair.len() - 1]).collect();
        let hash: [u8; 32] = bytes.try_into().ok().filter(|_| digits.len() == 64)?;
        Some(Self(hash))
    }
}

impl fmt::Display for CertificateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CertificateHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CertificateHash({self})")
    }
}

/// A certificate chain, the end's own certificate first, and its private key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl Identity {
    /// An identity from DER parts, the end's own certificate first.
    pub const fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self { chain, key }
    }

    /// A new self-signed certificate for these names, with a new key of curve P-256. It exists in
    /// memory alone.
    ///
    /// # Errors
    ///
    /// A name is no DNS name or IP address.
    pub fn self_signed(names: &[&str]) -> Result<Self, TlsConfigError> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| TlsConfigError::Names(error.to_string()))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Ok(Self { chain: vec![made.cert.into()], key: key.into() })
    }

    /// An identity from PEM: the certificates, the end's own one first, and the private key, which
    /// must not be encrypted (PKCS #8, PKCS #1 or SEC1).
    ///
    /// # Errors
    ///
    /// One of the texts has no certificate or no private key, or is broken.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, PemError> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound if holds(key, "ENCRYPTED PRIVATE KEY") => PemError::Encrypted,
            pem::Error::NoItemsFound => PemError::NoKey,
            error => PemError::Broken(error.to_string()),
        })?;
        Ok(Self { chain: certificates_from_pem(chain)?, key })
    }

    /// The digest of the end's own certificate.
    pub fn hash(&self) -> Option<CertificateHash> {
        self.chain.first().map(CertificateHash::of)
    }

    /// Whether the end's own certificate is valid at this time by its dates.
    ///
    /// # Errors
    ///
    /// [`TlsFailure::Expired`], also if it is not valid yet.
    pub fn check_dates(&self, now: UnixTime) -> Result<(), TlsFailure> {
        self.chain.first().map_or(Ok(()), |certificate| errors::check_dates(certificate, now))
    }
}

/// The certificates in a PEM text, in their order.
///
/// # Errors
///
/// The text has none, or is broken.
pub fn certificates_from_pem(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text)
        .collect::<Result<_, _>>()
        .map_err(|error| PemError::Broken(error.to_string()))?;
    if certificates.is_empty() {
        return Err(PemError::NoCertificate);
    }
    Ok(certificates)
}

fn holds(text: &[u8], label: &str) -> bool {
    String::from_utf8_lossy(text).contains(&format!("-----BEGIN {label}-----"))
}

/// A PEM text that cannot be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PemError {
    /// It has no certificate.
    #[error("the file has no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// It has no private key.
    #[error("the file has no private key in PEM form (`-----BEGIN PRIVATE KEY-----`)")]
    NoKey,
    /// The private key is encrypted.
    #[error("the private key is encrypted; decrypt it by `openssl pkey -in FILE -out FILE2`")]
    Encrypted,
    /// It is not valid PEM.
    #[error("the file is not valid PEM: {0}")]
    Broken(String),
}

/// The certificates of a server that a client trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Certificates for the server's name that one of these authorities has issued.
    Authorities(Vec<CertificateDer<'static>>),
    /// The certificate with this digest, with any name, issuer and dates.
    Pinned(CertificateHash),
    /// All certificates. An attacker on the path can read and change everything.
    Insecure,
}

/// The TLS of a client.
#[derive(Clone, Debug)]
pub struct ClientTls {
    pub(crate) protocols: Vec<Protocol>,
    trust: Trust,
    identity: Option<Identity>,
    key_log: bool,
}

impl ClientTls {
    /// A client that trusts `trust` and offers these protocols, the most wanted one first.
    pub fn new(trust: Trust, protocols: &[Protocol]) -> Self {
        Self { protocols: protocols.to_vec(), trust, identity: None, key_log: false }
    }

    /// Sets the client's own certificate, for servers that ask for one.
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Appends the secrets of each connection to the file that the environment variable
    /// `SSLKEYLOGFILE` names, in the form that Wireshark reads. Default: not.
    pub const fn with_key_log(mut self, is_on: bool) -> Self {
        self.key_log = is_on;
        self
    }

    /// The configuration of one connection, and where its verifier writes why it refused the
    /// server's certificate.
    pub(crate) fn build(&self) -> Result<(QuicClientConfig, Fault), TlsConfigError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let fault = Fault::default();
        let inner: Arc<dyn ServerCertVerifier> = match &self.trust {
            Trust::Authorities(roots) => {
                let store = roots_of(roots)?;
                rustls::client::WebPkiServerVerifier::builder_with_provider(
                    store.into(),
                    provider.clone(),
                )
                .build()
                .map_err(|error| TlsConfigError::Authorities(error.to_string()))?
            }
            Trust::Pinned(hash) => Arc::new(PinnedVerifier::pinned(*hash, &provider)),
            Trust::Insecure => Arc::new(PinnedVerifier::insecure(&provider)),
        };
        let verifier = RecordingVerifier::new(inner, fault.clone());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| TlsConfigError::Library(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.identity {
            Some(Identity { chain, key }) => builder
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(|error| TlsConfigError::Identity(error.to_string()))?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = names(&self.protocols);
        if self.key_log {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        let config = QuicClientConfig::try_from(config)
            .map_err(|error| TlsConfigError::Library(error.to_string()))?;
        Ok((config, fault))
    }
}

/// The TLS of a server.
#[derive(Clone, Debug)]
pub struct ServerTls {
    pub(crate) protocols: Vec<Protocol>,
    identity: Identity,
    renewal: Option<Renewal>,
    /// Made once: the endpoints of all cores show the same identity.
    shown: Arc<OnceLock<Arc<Shown>>>,
    client_authorities: Vec<CertificateDer<'static>>,
    key_log: bool,
}

impl ServerTls {
    /// A server with this identity that speaks these protocols.
    pub fn new(identity: Identity, protocols: &[Protocol]) -> Self {
        Self {
            protocols: protocols.to_vec(),
            identity,
            renewal: None,
            shown: Arc::default(),
            client_authorities: Vec::new(),
            key_log: false,
        }
    }

    /// Accepts only clients with a certificate that one of these authorities has issued.
    pub fn require_client_certificates(
        mut self,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Self {
        self.client_authorities = authorities;
        self
    }

    /// Asks `renewal` for a new identity at each handshake.
    pub fn with_renewal(mut self, renewal: Renewal) -> Self {
        self.renewal = Some(renewal);
        self
    }

    /// As [`ClientTls::with_key_log`].
    pub const fn with_key_log(mut self, is_on: bool) -> Self {
        self.key_log = is_on;
        self
    }

    /// The identity that the server shows first.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn build(&self) -> Result<QuicServerConfig, TlsConfigError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|error| TlsConfigError::Library(error.to_string()))?;
        let builder = if self.client_authorities.is_empty() {
            builder.with_no_client_auth()
        } else {
            let store = roots_of(&self.client_authorities)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(store.into(), provider)
                .build()
                .map_err(|error| TlsConfigError::Authorities(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        };
        let shown = Arc::new(Shown::new(&self.identity, self.renewal.clone())?);
        let shown = Arc::clone(self.shown.get_or_init(|| shown));
        let mut config = builder.with_cert_resolver(shown);
        config.alpn_protocols = names(&self.protocols);
        if self.key_log {
            config.key_log = Arc::new(KeyLogFile::new());
        }
        QuicServerConfig::try_from(config)
            .map_err(|error| TlsConfigError::Library(error.to_string()))
    }
}

/// Certificates or keys that cannot be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum TlsConfigError {
    /// The certificates of authorities cannot be used.
    #[error("the certificates of authorities cannot be used: {0}")]
    Authorities(String),
    /// The end's own certificate or key cannot be used, or they do not belong together.
    #[error("the certificate and its key cannot be used: {0}")]
    Identity(String),
    /// A self-signed certificate cannot have these names.
    #[error("a certificate for these names cannot be made: {0}")]
    Names(String),
    /// The TLS library refused the configuration.
    #[error("TLS cannot be set up: {0}")]
    Library(String),
}

fn names(protocols: &[Protocol]) -> Vec<Vec<u8>> {
    protocols.iter().map(|protocol| protocol.name().as_bytes().to_vec()).collect()
}

fn roots_of(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsConfigError> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store
            .add(certificate.clone())
            .map_err(|error| TlsConfigError::Authorities(error.to_string()))?;
    }
    Ok(store)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_back_with_and_without_colons() {
        let hash = Identity::self_signed(&["localhost"]).expect("a name").hash().expect("one");
        let text = hash.to_string();
        let pairs: Vec<_> = (0..32).map(|byte| &text[2 * byte..2 * byte + 2]).collect();
        assert_eq!(CertificateHash::parse(&text), Some(hash));
        assert_eq!(CertificateHash::parse(&pairs.join(":").to_uppercase()), Some(hash));
        for wrong in [&text[1..], &format!("{text}0"), "", &text.replacen(&text[..1], "x", 1)] {
            assert_eq!(CertificateHash::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_identity_is_read_from_pem_and_errors_name_the_missing_part() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let read = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("both are there");
        assert_eq!(read.hash(), Some(CertificateHash::of(&made.cert.into())));
        let both = format!("{key}{chain}");
        assert!(Identity::from_pem(both.as_bytes(), both.as_bytes()).is_ok());

        let error = |chain: &str, key: &str| {
            Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err()
        };
        assert_eq!(error(&key, &key), PemError::NoCertificate);
        assert_eq!(error(&chain, &chain), PemError::NoKey);
        let encrypted = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
        assert_eq!(error(&chain, &encrypted), PemError::Encrypted);
        let broken = error(&chain.replace("-----END", "-----AND"), &key);
        assert!(matches!(broken, PemError::Broken(_)), "{broken}");
    }

    #[test]
    fn protocols_have_names_of_their_own() {
        for protocol in Protocol::ALL {
            assert_eq!(Protocol::from_name(protocol.name().as_bytes()), Some(protocol));
        }
        assert_eq!(Protocol::from_name(b"h3"), None);
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let [one, two] = [(); 2].map(|()| Identity::self_signed(&["localhost"]).expect("a name"));
        let mixed = Identity::new(one.chain, two.key);
        let refused = ServerTls::new(mixed, &[Protocol::Srt]).build().map(drop);
        assert!(matches!(refused, Err(TlsConfigError::Identity(_))), "{refused:?}");
    }
}
