//! The verification of a server's certificate by a client.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::CertificateHash;

/// The reason for which a verifier refused a certificate, for a message to the user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault(Arc<OnceLock<CertificateError>>);

impl Fault {
    pub(crate) fn get(&self) -> Option<&CertificateError> {
        self.0.get()
    }
}

/// Verifies as another verifier does, and keeps the reason of a refusal.
#[derive(Debug)]
pub(super) struct RecordingVerifier {
    inner: Arc<dyn ServerCertVerifier>,
    fault: Fault,
}

impl RecordingVerifier {
    pub(super) fn new(inner: Arc<dyn ServerCertVerifier>, fault: Fault) -> Self {
        Self { inner, fault }
    }
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        if let Err(Error::InvalidCertificate(fault)) = &verified {
            let _ = self.fault.0.set(fault.clone());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Accepts the certificate with one digest, or any. The server must prove in both cases that it has
/// the certificate's key.
#[derive(Debug)]
pub(super) struct PinnedVerifier {
    /// `None` for any certificate.
    hash: Option<CertificateHash>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PinnedVerifier {
    pub(super) fn pinned(hash: CertificateHash, provider: &CryptoProvider) -> Self {
        Self { hash: Some(hash), algorithms: provider.signature_verification_algorithms }
    }

    pub(super) fn insecure(provider: &CryptoProvider) -> Self {
        Self { hash: None, algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for PinnedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.hash {
            Some(hash) if CertificateHash::of(end_entity) != hash => {
                Err(CertificateError::ApplicationVerificationFailure.into())
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
