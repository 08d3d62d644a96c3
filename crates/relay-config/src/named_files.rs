//! Files that a configuration names: secrets, certificates.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use punctual_relay_access::Secret;
use punctual_units::{text_of, without_os_error};

use crate::secret::SecretValue;

/// The folders in which relative names are sought, in this order.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedFiles {
    folders: Option<Vec<PathBuf>>,
}

impl NamedFiles {
    /// Files are sought in the folder of systemd's credentials, if there is one, then beside the
    /// configuration.
    pub(crate) fn new(credentials: Option<&Path>, beside: Option<&Path>) -> Self {
        let folders = [credentials, beside].into_iter().flatten().map(Path::to_owned);
        Self { folders: Some(folders.collect()) }
    }

    /// No file can be read: for texts from strangers.
    pub(crate) const fn none() -> Self {
        Self { folders: None }
    }

    /// Whether files can be read.
    pub(crate) const fn can_be_read(&self) -> bool {
        self.folders.is_some()
    }

    /// The path of a file that exists.
    pub(crate) fn find(&self, name: &str) -> Result<PathBuf, String> {
        let Some(folders) = &self.folders else {
            return Err("files cannot be named here".to_owned());
        };
        let candidates: Vec<PathBuf> = match folders.as_slice() {
            [] => vec![PathBuf::from(name)],
            folders => folders.iter().map(|folder| folder.join(name)).collect(),
        };
        match candidates.iter().find(|path| path.exists()) {
            Some(path) => Ok(path.clone()),
            None => {
                let sought: Vec<_> =
                    candidates.iter().map(|path| path.display().to_string()).collect();
                Err(format!("there is no file {}", sought.join(", and no file ")))
            }
        }
    }

    /// The secret in a file: its text without a byte order mark and without the line end that
    /// editors write.
    pub(crate) fn secret(&self, name: &str) -> Result<SecretValue, String> {
        let path = self.find(name)?;
        let error = |error: io::Error| {
            format!("{} cannot be read: {}", path.display(), without_os_error(&error.to_string()))
        };
        let mut bytes = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
            .map_err(error)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(format!("{} has more than {MOST_BYTES} bytes", path.display()));
        }
        let mut text = text_of(bytes).map_err(error)?;
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
        if text.is_empty() {
            return Err(format!("{} is empty", path.display()));
        }
        Ok(SecretValue { secret: Secret::new(text), file: Some(PathBuf::from(name)) })
    }
}

/// The most bytes of a file with a secret.
const MOST_BYTES: u64 = 16_384;
