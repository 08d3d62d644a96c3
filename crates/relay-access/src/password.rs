use std::fmt;
use std::sync::OnceLock;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, Params, PasswordVerifier};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::secret::{Secret, is_same, keyed};

/// A password or a token as a file has it: plain, or as a hash.
///
/// | text | |
/// |---|---|
/// | `sha256:…` | the secret's SHA-256, in base64 or hexadecimal; for tokens of programs |
/// | `argon2:$argon2id$v=19$m=…,t=…,p=…$SALT$HASH` | for passwords of people |
/// | other | the secret itself |
pub struct Password {
    check: Check,
    written: Secret,
    /// A hash of the one right attempt, once it was made: argon2 is not computed for each request
    /// of a page.
    right: OnceLock<[u8; 32]>,
}

enum Check {
    Plain(Secret),
    Sha256([u8; 32]),
    Argon2(Box<PasswordHash>),
}

/// A text that is no hash of a password.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PasswordError {
    /// The password is empty.
    #[error("a password or token must not be empty")]
    Empty,
    /// The text after `sha256:` is no hash.
    #[error("after `sha256:` must stand a hash of 32 bytes, in base64 or as 64 hexadecimal digits")]
    Sha256,
    /// The text after `argon2:` is no hash.
    #[error("after `argon2:` must stand a hash such as $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH")]
    Argon2,
    /// The hash takes too long, or too much memory.
    #[error(
        "the argon2 hash needs {0} MiB for each try; at most 256 MiB in one pass, or 64 in four, \
         are allowed"
    )]
    Costly(u64),
}

impl Password {
    /// The password as written in a file.
    ///
    /// # Errors
    ///
    /// It is empty, or no hash of the form that it begins as.
    pub fn new(written: impl Into<Secret>) -> Result<Self, PasswordError> {
        let written = written.into();
        let text = written.expose();
        let check = if text.is_empty() {
            return Err(PasswordError::Empty);
        } else if let Some(hash) = text.strip_prefix("sha256:") {
            Check::Sha256(sha256(hash.trim()).ok_or(PasswordError::Sha256)?)
        } else if let Some(hash) = text.strip_prefix("argon2:") {
            Check::Argon2(Box::new(argon2(hash.trim())?))
        } else {
            Check::Plain(written.clone())
        };
        Ok(Self { check, written, right: OnceLock::new() })
    }

    /// Whether a check may take tens of milliseconds.
    pub(crate) fn is_slow(&self, attempt: &Secret) -> bool {
        matches!(self.check, Check::Argon2(_)) && !self.is_known(attempt)
    }

    /// Whether the check is that of a slow hash.
    pub(crate) const fn is_argon2(&self) -> bool {
        matches!(self.check, Check::Argon2(_))
    }

    /// Whether `attempt` is the password.
    pub fn verify(&self, attempt: &Secret) -> bool {
        let bytes = attempt.expose().as_bytes();
        match &self.check {
            Check::Plain(secret) => secret == attempt,
            Check::Sha256(hash) => is_same(&Sha256::digest(bytes), hash),
            Check::Argon2(_) if self.is_known(attempt) => true,
            Check::Argon2(hash) => {
                let is_right = Argon2::default().verify_password(bytes, hash.as_ref()).is_ok();
                if is_right {
                    let _ = self.right.set(print(bytes));
                }
                is_right
            }
        }
    }

    /// A hash by which the same entry of a file is found again after it was read again.
    pub(crate) fn print(&self) -> [u8; 32] {
        print(self.written.expose().as_bytes())
    }

    /// Whether `attempt` was right before.
    fn is_known(&self, attempt: &Secret) -> bool {
        let right = self.right.get();
        right.is_some_and(|right| is_same(right, &print(attempt.expose().as_bytes())))
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.check {
            Check::Plain(_) => "\"…\"",
            Check::Sha256(_) => "\"sha256:…\"",
            Check::Argon2(_) => "\"argon2:…\"",
        })
    }
}

fn sha256(text: &str) -> Option<[u8; 32]> {
    let bytes = match text.len() {
        64 => {
            (0..32).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect()
        }
        _ => STANDARD.decode(text).ok(),
    };
    bytes.and_then(|bytes: Vec<u8>| bytes.try_into().ok())
}

fn argon2(text: &str) -> Result<PasswordHash, PasswordError> {
    let hash = PasswordHash::new(text).map_err(|_| PasswordError::Argon2)?;
    let params = Params::try_from(&hash).map_err(|_| PasswordError::Argon2)?;
    if !hash.algorithm.as_str().starts_with("argon2") || hash.salt.is_none() || hash.hash.is_none()
    {
        return Err(PasswordError::Argon2);
    }
    let mebibytes = u64::from(params.m_cost()) / 1024;
    match mebibytes * u64::from(params.t_cost()) {
        ..=256 => Ok(hash),
        _ => Err(PasswordError::Costly(mebibytes)),
    }
}

/// A hash of a secret by a key that only this process has, so that a copy of its memory does not
/// give away secrets which can be found by trying.
fn print(bytes: &[u8]) -> [u8; 32] {
    static KEY: OnceLock<[u8; 32]> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system has random numbers");
        key
    });
    keyed(key, bytes).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn password(written: &str) -> Password {
        Password::new(written).expect("a password")
    }

    #[test]
    fn each_form_verifies_the_password_and_no_other() {
        let hash = STANDARD.encode(Sha256::digest("hush"));
        let hex: String = Sha256::digest("hush").iter().map(|byte| format!("{byte:02x}")).collect();
        let argon2 = argon2_of("hush");
        for written in [
            "hush",
            &format!("sha256:{hash}"),
            &format!("sha256:{hex}"),
            &format!("argon2:{argon2}"),
        ] {
            let password = password(written);
            // Twice, since the right one is remembered.
            for _ in 0..2 {
                assert!(!password.verify(&"Hush".into()) && !password.verify(&"".into()));
                assert!(password.verify(&"hush".into()), "{written}");
            }
            assert!(!format!("{password:?}").contains("hush"));
        }
        let written = format!("sha256:{hash}");
        assert!(!password(&written).verify(&written.into()), "the hash itself is no password");
    }

    #[test]
    fn only_the_first_right_attempt_is_slow() {
        let password = password(&format!("argon2:{}", argon2_of("hush")));
        let right = "hush".into();
        assert!(password.is_slow(&right) && password.verify(&right) && !password.is_slow(&right));
        assert!(password.is_slow(&"other".into()));
        assert!(!self::password("hush").is_slow(&right));
    }

    #[test]
    fn hashes_that_are_broken_or_too_costly_are_refused() {
        let error = |written: &str| Password::new(written).expect_err("no password");
        assert_eq!(error(""), PasswordError::Empty);
        for hash in ["sha256:", "sha256:abc", &format!("sha256:{}", "g".repeat(64))] {
            assert_eq!(error(hash), PasswordError::Sha256, "{hash}");
        }
        for hash in ["argon2:", "argon2:x", "argon2:$scrypt$ln=1$c2FsdHNhbHQ$aGFzaGhhc2g"] {
            assert_eq!(error(hash), PasswordError::Argon2, "{hash}");
        }
        let costly = argon2_of("hush").replace("m=1024", "m=1048576");
        assert_eq!(error(&format!("argon2:{costly}")), PasswordError::Costly(1024));
    }

    #[test]
    fn the_same_entry_is_found_again_by_its_print() {
        assert_eq!(password("hush").print(), password("hush").print());
        assert_ne!(password("hush").print(), password("other").print());
    }

    /// A hash of little cost.
    fn argon2_of(password: &str) -> String {
        use argon2::{Algorithm, PasswordHasher, Version};
        let params = Params::new(1024, 1, 1, None).expect("parameters");
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let hash: PasswordHash =
            argon2.hash_password_with_salt(password.as_bytes(), b"saltsalt").expect("a hash");
        hash.to_string()
    }
}
