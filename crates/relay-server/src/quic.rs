//! SRT over QUIC at a listener.

use punctual::Carriage;
use punctual_ends::Failure;
use punctual_relay_config::TlsFiles;
use punctual_uri::{Target, Uri};

/// The carriage of a listener with this certificate, or with one that is made now.
///
/// # Errors
///
/// The certificate cannot be read.
pub(crate) fn carriage(tls: &TlsFiles) -> Result<Carriage, Failure> {
    let mut uri = "srt+quic://:1?mode=listener".to_owned();
    for (key, path) in [("cert", &tls.certificate), ("key", &tls.key)] {
        if let Some(path) = path {
            let path = percent_encoding::utf8_percent_encode(
                &path.display().to_string(),
                percent_encoding::NON_ALPHANUMERIC,
            )
            .to_string();
            uri.push_str(&format!("&{key}={path}"));
        }
    }
    let uri: Uri = uri.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    match uri.target {
        Target::Srt(target) => Ok(target.port_config.carriage),
        _ => Err(Failure::usage("the program is built without QUIC")),
    }
}

/// The hash of the certificate that a listener with this carriage shows at first. Warns if callers
/// will refuse the certificate for its dates.
#[cfg(feature = "quic")]
pub(crate) fn certhash(carriage: &Carriage) -> Option<String> {
    let Carriage::Quic(config) = carriage else { return None };
    let identity = config.server.as_ref().map(punctual::quic::ServerTls::identity)?;
    if let Err(fault) = identity.check_dates(punctual::quic::pki_types::UnixTime::now()) {
        tracing::warn!("{fault}: only callers that pin its hash will accept it");
    }
    identity.hash().map(|hash| hash.to_string())
}

#[cfg(not(feature = "quic"))]
pub(crate) const fn certhash(_: &Carriage) -> Option<String> {
    None
}
