//! The clip that `--demo` publishes.

use std::io::Write;
use std::sync::Arc;

use punctual_program::exit::Failure;
use punctual_relay_access::StreamName;
use punctual_relay_config::{RetryRange, SourceSettings};
use tempfile::NamedTempFile;

use crate::hub::Hub;
use crate::pull::pull_uri;

/// Publishes the clip as `demo` in a loop, while the file exists.
///
/// # Errors
///
/// The temporary file cannot be written.
pub(crate) fn publish(hub: &Arc<Hub>) -> Result<NamedTempFile, Failure> {
    let mut file = tempfile::Builder::new().prefix("clip-").suffix(".ts").tempfile()?;
    file.write_all(CLIP)?;
    let path = file.path().display().to_string();
    let uri = path.parse().map_err(|error| Failure::runtime(format!("{path}: {error}")))?;
    let name = StreamName::new("demo").map_err(|error| Failure::runtime(error.to_string()))?;
    let source = SourceSettings::default();
    let retry: RetryRange = source.retry;
    tokio::spawn(pull_uri(Arc::clone(hub), name, uri, retry, punctual_ends::Stop::default()));
    Ok(file)
}

const CLIP: &[u8] = include_bytes!("../../../assets/clip.ts");
