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
