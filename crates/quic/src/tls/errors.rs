//! The reasons for which a TLS handshake fails, in words for a user.

use std::time::Duration;

use punctual_units::{DisplayDuration, one_line};
use quinn_proto::{ConnectionError, TransportErrorCode};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{AlertDescription, CertificateError, OtherError};
use thiserror::Error;

use super::verifier::Fault;

/// The reason for which a TLS handshake failed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum TlsFailure {
    /// The certificate is not valid any more, or not yet.
    #[error("the server's certificate {0}, by this machine's clock")]
    Expired(String),
    /// The certificate is for other names.
    #[error("the server's certificate is for another name: {0}")]
    WrongName(String),
    /// No authority that this end trusts has issued the certificate.
    #[error(
        "the server's certificate was issued by none of the trusted authorities; trust its \
         authority by `ca`, or pin it by `certhash`"
    )]
    UnknownIssuer,
    /// The certificate has another digest than the pinned one.
    #[error(
        "the server's certificate is not the pinned one; its hash has changed, or an attacker \
             is on the path"
    )]
    NotPinned,
    /// The certificate is one of an authority, which no server may show.
    #[error(
        "the server's certificate is that of an authority (CA:TRUE), as `openssl req -x509` makes \
         it: make it with `-addext basicConstraints=critical,CA:FALSE`, or pin it by `certhash`"
    )]
    IsAuthority,
    /// The certificate is broken in another way.
    #[error("the server's certificate cannot be used: {0}")]
    BadCertificate(String),
    /// The ends have no application protocol in common.
    #[error("the other end speaks none of the offered protocols (ALPN)")]
    NoCommonProtocol,
    /// The server wants a client certificate, and this end has none.
    #[error("the server accepts only clients with a certificate; give one by `cert` and `key`")]
    CertificateRequired,
    /// The other end refused this end's certificate.
    #[error("the other end refused this end's certificate: {0}")]
    Refused(String),
    /// Any other failure.
    #[error("the TLS handshake failed: {0}")]
    Other(String),
}

/// The failure of TLS that ended a connection, if it was one.
pub(crate) fn failure_of(error: &ConnectionError, fault: Option<&Fault>) -> Option<TlsFailure> {
    let (code, reason, is_own) = match error {
        ConnectionError::TransportError(error) => (error.code, error.reason.clone(), true),
        ConnectionError::ConnectionClosed(close) => {
            (close.error_code, String::from_utf8_lossy(&close.reason).into_owned(), false)
        }
        _ => return None,
    };
    if let Some(fault) = fault.and_then(Fault::get) {
        return Some(certificate_failure(fault));
    }
    let alert = alert_of(code)?;
    Some(match alert {
        AlertDescription::NoApplicationProtocol => TlsFailure::NoCommonProtocol,
        AlertDescription::CertificateRequired if !is_own => TlsFailure::CertificateRequired,
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
            if !is_own =>
        {
            TlsFailure::Refused(format!("{alert:?}"))
        }
        _ if reason.is_empty() => TlsFailure::Other(format!("{alert:?}")),
        _ => TlsFailure::Other(one_line(&reason).into_owned()),
    })
}

/// Whether a certificate is valid at this time by its dates.
pub(super) fn check_dates(
    certificate: &CertificateDer<'_>,
    now: UnixTime,
) -> Result<(), TlsFailure> {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else { return Ok(()) };
    // The dates are checked first; without an authority the rest fails in any case.
    let usage = webpki::KeyUsage::server_auth();
    match certificate.verify_for_usage(&[], &[], &[], now, usage, None, None) {
        Err(webpki::Error::CertExpired { time, not_after }) => {
            Err(TlsFailure::Expired(expired(time, not_after)))
        }
        Err(webpki::Error::CertNotValidYet { time, not_before }) => {
            Err(TlsFailure::Expired(not_yet_valid(time, not_before)))
        }
        _ => Ok(()),
    }
}

fn expired(now: UnixTime, end: UnixTime) -> String {
    format!("expired {} ago", time_between(end, now))
}

fn not_yet_valid(now: UnixTime, start: UnixTime) -> String {
    format!("will be valid in {}", time_between(now, start))
}

fn time_between(start: UnixTime, end: UnixTime) -> String {
    let seconds = end.as_secs().saturating_sub(start.as_secs());
    match seconds / SECONDS_OF_A_DAY {
        0 | 1 => format!("{:#}", DisplayDuration(Duration::from_secs(seconds))),
        days => format!("{days} days"),
    }
}

const SECONDS_OF_A_DAY: u64 = 86_400;

fn certificate_failure(fault: &CertificateError) -> TlsFailure {
    match fault {
        CertificateError::ExpiredContext { time, not_after } => {
            TlsFailure::Expired(expired(*time, *not_after))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            TlsFailure::Expired(not_yet_valid(*time, *not_before))
        }
        CertificateError::Expired => TlsFailure::Expired("has expired".to_owned()),
        CertificateError::NotValidYet => TlsFailure::Expired("is not valid yet".to_owned()),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFailure::WrongName(fault.to_string())
        }
        CertificateError::UnknownIssuer => TlsFailure::UnknownIssuer,
        CertificateError::ApplicationVerificationFailure => TlsFailure::NotPinned,
        CertificateError::Other(OtherError(error))
            if error.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
        {
            TlsFailure::IsAuthority
        }
        other => TlsFailure::BadCertificate(other.to_string()),
    }
}

/// QUIC's error codes 0x100 to 0x1ff are the alerts of TLS (RFC 9001, section 4.8).
fn alert_of(code: TransportErrorCode) -> Option<AlertDescription> {
    let code = u64::from(code).checked_sub(0x100)?;
    u8::try_from(code).ok().map(AlertDescription::from)
}
