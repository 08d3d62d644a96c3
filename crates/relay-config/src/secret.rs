//! Secrets, and the files that they were read from.

use std::path::PathBuf;

use punctual_relay_access::Secret;

/// A secret, written in the configuration or in a file that the configuration names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SecretValue {
    /// The secret.
    pub secret: Secret,
    /// The file that it was read from, as the configuration names it.
    pub file: Option<PathBuf>,
}

impl SecretValue {
    /// A secret that is written in the configuration.
    pub fn written(text: &str) -> Self {
        Self { secret: Secret::new(text), file: None }
    }
}
