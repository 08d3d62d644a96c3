//! The files of a listener's certificate, which are read again when they change.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock};
use std::time::SystemTime;

use punctual::quic::{Identity, Renewal};

/// The file of a certificate, and that of its private key unless both are in one.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFiles {
    pub(crate) chain: PathBuf,
    pub(crate) key: Option<PathBuf>,
}

/// When a file was changed, and its size; `None` if it is not there.
type Version = Option<(SystemTime, u64)>;

impl CertificateFiles {
    /// Reads the files each time that they have changed since now.
    pub(crate) fn renewal(self) -> Renewal {
        // The endpoints of several cores ask at the same time.
        let seen = RwLock::new(self.versions());
        Renewal::new(move || {
            let found = self.versions();
            if found == *seen.read().unwrap_or_else(PoisonError::into_inner) {
                return None;
            }
            *seen.write().unwrap_or_else(PoisonError::into_inner) = found;
            Some(self.read())
        })
    }

    fn versions(&self) -> [Version; 2] {
        let version = |path: &PathBuf| {
            let metadata = std::fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [version(&self.chain), self.key.as_ref().and_then(version)]
    }

    fn read(&self) -> Result<Identity, String> {
        let file = |path: &PathBuf| {
            std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let chain = file(&self.chain)?;
        let key = zeroize::Zeroizing::new(file(self.key.as_ref().unwrap_or(&self.chain))?);
        Identity::from_pem(&chain, &key)
            .map_err(|error| format!("{}: {error}", self.chain.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_again_once_they_have_changed() {
        let name = format!("punctual-certificate-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write("old");
        let files = CertificateFiles { chain: file.clone(), key: None };
        let mut seen = files.versions();
        let mut changed = || {
            let found = files.versions();
            std::mem::replace(&mut seen, found) != found
        };
        assert!(!changed());
        write("newer");
        assert!(changed() && !changed());
        let error = files.read().unwrap_err();
        assert!(error.contains("no private key") && error.starts_with(&*file.to_string_lossy()));
        std::fs::remove_file(&file).unwrap();
        assert!(changed() && files.read().is_err(), "a missing file is a change, too");
    }
}
