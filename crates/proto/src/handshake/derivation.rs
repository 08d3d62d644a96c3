//! The derivation of a key from a passphrase, apart from the handshake that needs it.

use punctual_crypto::{Kek, KekCache, KeyLength, Passphrase, Salt};

use crate::ids::IncomingId;

/// The derivation of a key from a passphrase, needed for a caller's request. It takes some 200 µs;
/// the driver of an endpoint runs it on another thread, so that connections do not wait for it.
#[derive(Clone, Debug)]
pub struct KeyDerivation {
    caller: IncomingId,
    passphrase: Passphrase,
    salt: Salt,
    length: KeyLength,
}

/// The result of a [`KeyDerivation`].
#[derive(Clone, Debug)]
pub struct DerivedKey {
    caller: IncomingId,
    passphrase: Passphrase,
    salt: Salt,
    kek: Kek,
}

impl KeyDerivation {
    pub(crate) const fn new(
        caller: IncomingId,
        passphrase: Passphrase,
        salt: Salt,
        length: KeyLength,
    ) -> Self {
        Self { caller, passphrase, salt, length }
    }

    /// Whether the key is in the cache, or is this one, which was derived for the caller.
    pub(crate) fn is_known(&self, derived: Option<&DerivedKey>, cache: &KekCache) -> bool {
        derived.is_some_and(|known| known.passphrase == self.passphrase)
            || cache.contains(&self.passphrase, &self.salt, self.length)
    }

    /// Derives the key.
    pub fn run(self) -> DerivedKey {
        let Self { caller, passphrase, salt, length } = self;
        let kek = Kek::derive(&passphrase, &salt, length);
        DerivedKey { caller, passphrase, salt, kek }
    }
}

impl DerivedKey {
    /// The caller that the key was derived for.
    pub(crate) const fn caller(&self) -> IncomingId {
        self.caller
    }

    /// Puts the key into the cache, where the handshake finds it.
    pub(crate) fn store(self, cache: &mut KekCache) {
        cache.insert(&self.passphrase, &self.salt, self.kek);
    }
}
