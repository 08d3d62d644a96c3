//! The sources of a configuration: the file, the environment, and changes by the API.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use punctual_units::{text_of, without_os_error};

use crate::api_changes::ApiChanges;
use crate::named_files::NamedFiles;
use crate::problem::{ConfigProblem, problem};

/// The variables of the environment that count for the configuration.
#[derive(Clone, Default)]
pub struct Environment {
    /// The variables with our prefix, and with MediaMTX's.
    pub(crate) variables: Vec<(String, String)>,
    credentials: Option<PathBuf>,
    state: Option<PathBuf>,
}

/// The sources of a configuration, in memory. Later ones win: the file, the environment, the file
/// of persistent API changes, the other API changes.
#[derive(Clone, Default)]
pub struct Sources {
    pub(crate) file: Option<ConfigText>,
    pub(crate) environment: Environment,
    pub(crate) state: ApiChanges,
    pub(crate) live: ApiChanges,
    state_path: Option<PathBuf>,
    pub(crate) files: NamedFiles,
}

/// A text and the name of its file.
#[derive(Clone)]
pub(crate) struct ConfigText {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Environment {
    /// Takes what counts from all variables. `CREDENTIALS_DIRECTORY` and `STATE_DIRECTORY` are
    /// systemd's.
    pub fn new(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut environment = Self::default();
        for (name, value) in all {
            match name.as_str() {
                "CREDENTIALS_DIRECTORY" => environment.credentials = Some(PathBuf::from(value)),
                "STATE_DIRECTORY" => {
                    let first = value.split(':').next().unwrap_or_default();
                    environment.state = Some(PathBuf::from(first));
                }
                _ if name.starts_with(OWN) || name.starts_with(FOREIGN) => {
                    environment.variables.push((name, value));
                }
                _ => {}
            }
        }
        environment.variables.sort();
        environment
    }

    /// The variables of this process.
    pub fn of_process() -> Self {
        let all = std::env::vars_os();
        Self::new(all.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }))
    }
}

impl Sources {
    /// A text in place of a file, which can name no other files: for a check of what a stranger
    /// sends.
    pub fn text(name: &str, text: &str) -> Self {
        let file = Some(ConfigText { name: name.to_owned(), text: text.to_owned() });
        Self { file, files: NamedFiles::none(), ..Self::default() }
    }

    /// The same, with these variables.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// Reads the file, if there is to be one, and the persistent API changes: `state.toml` in
    /// `$STATE_DIRECTORY`, or else beside the file.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or the file of API changes is not TOML.
    pub fn read(path: Option<&Path>, environment: Environment) -> Result<Self, Vec<ConfigProblem>> {
        let file = match path {
            None => None,
            Some(path) => {
                let name = path.display().to_string();
                let text = read(path).map_err(|message| vec![problem(&name, "", &message)])?;
                Some(ConfigText { name, text })
            }
        };
        let beside = path.and_then(Path::parent);
        let state_path = environment.state.as_deref().or(beside).map(|folder| folder.join(STATE));
        let state = match &state_path {
            Some(path) if path.exists() => {
                let name = path.display().to_string();
                let text = read(path).map_err(|message| vec![problem(&name, "", &message)])?;
                ApiChanges::parse(&name, &text)?
            }
            _ => ApiChanges::default(),
        };
        let files = NamedFiles::new(environment.credentials.as_deref(), beside);
        Ok(Self { file, environment, state, live: ApiChanges::default(), state_path, files })
    }

    /// The same, with the file and the environment read again: for a reload. Changes by the API
    /// that are not persistent stay.
    ///
    /// # Errors
    ///
    /// As [`Sources::read`].
    pub fn read_again(&self, environment: Environment) -> Result<Self, Vec<ConfigProblem>> {
        let path = self.file.as_ref().map(|file| Path::new(&file.name));
        let mut sources = Self::read(path, environment)?;
        sources.live = self.live.clone();
        Ok(sources)
    }

    /// The same configuration with another text of the file, for a check without a change.
    #[must_use]
    pub fn with_text(&self, text: &str) -> Self {
        let name = self.file.as_ref().map_or_else(|| "text".to_owned(), |file| file.name.clone());
        Self { file: Some(ConfigText { name, text: text.to_owned() }), ..self.clone() }
    }

    /// The same, with some keys of a stream's section changed, or of `[defaults]` if `section` is
    /// `None`. `patch` is a JSON object; a key with `null` returns to its value in the file.
    ///
    /// # Errors
    ///
    /// The patch is not an object, or has a value that TOML cannot have.
    pub fn patched(
        &self,
        section: Option<&str>,
        patch: &serde_json::Value,
        persist: bool,
    ) -> Result<Self, String> {
        let mut sources = self.clone();
        let (target, other) = match persist {
            true => (&mut sources.state, &mut sources.live),
            false => (&mut sources.live, &mut sources.state),
        };
        target.merge(section, patch)?;
        if persist {
            other.forget_keys(section, patch);
        }
        Ok(sources)
    }

    /// The same, without the API changes of a section; persistent ones stay unless `persist`.
    #[must_use]
    pub fn without_changes(&self, section: Option<&str>, persist: bool) -> Self {
        let mut sources = self.clone();
        sources.live.remove(section);
        if persist {
            sources.state.remove(section);
        }
        sources
    }

    /// Writes the persistent API changes into their file, whole or not at all. Only the owner may
    /// read it, because it may contain passphrases.
    ///
    /// # Errors
    ///
    /// There is no place for the file, or it cannot be written.
    pub fn write_state(&self) -> io::Result<()> {
        let Some(path) = &self.state_path else {
            let message = "there is no folder for changes that persist: start the relay with a \
                           configuration file, or with STATE_DIRECTORY";
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        };
        let new = path.with_extension("toml.new");
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(self.state.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(new, path)
    }
}

fn read(path: &Path) -> Result<String, String> {
    let error =
        |error: io::Error| format!("it cannot be read: {}", without_os_error(&error.to_string()));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(error)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(error)?;
    text_of(bytes).map_err(error)
}

/// The start of the names of our variables, and of MediaMTX's.
pub(crate) const OWN: &str = "PUNCTUAL_RELAY_";
pub(crate) const FOREIGN: &str = "MTX_";

/// The file of persistent API changes.
const STATE: &str = "state.toml";

/// The most bytes of a configuration.
pub(crate) const MOST_BYTES: u64 = 1 << 20;
