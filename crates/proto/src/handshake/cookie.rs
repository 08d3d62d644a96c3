use std::hash::Hasher;
use std::time::Duration;

use crate::path::PathId;
use punctual_units::Instant;
use siphasher::sip::SipHasher24;

/// A cookie is valid in the period in which it was generated, and in the next one.
const PERIOD: Duration = Duration::from_secs(60);
/// A nonce is valid in the period in which it was generated, and in the next one.
const NONCE_PERIOD: Duration = Duration::from_secs(4);

/// Generates and verifies the listener's cookies without keeping state for a caller.
///
/// A cookie is a keyed hash of the caller's address and the period, so that only a host that
/// receives datagrams at that address can know it. The draft suggests a hash without a key, which
/// anyone can compute; only the listener verifies the cookie, so that it may choose another one
/// (draft section 4.3.1.1).
#[derive(Debug)]
pub(crate) struct CookieKey {
    key: [u8; 16],
    start: Instant,
}

impl CookieKey {
    pub(crate) const fn new(key: [u8; 16], now: Instant) -> Self {
        Self { key, start: now }
    }

    pub(crate) fn generate(&self, now: Instant, path: PathId) -> u32 {
        self.cookie(path, self.period(now))
    }

    pub(crate) fn verify(&self, now: Instant, path: PathId, cookie: u32) -> bool {
        let period = self.period(now);
        cookie == self.cookie(path, period)
            || (period > 0 && cookie == self.cookie(path, period - 1))
    }

    /// The nonces of a challenge to `path` that are valid at `now`: that of this period, which is
    /// used for new challenges, and that of the last period. `purpose` distinguishes challenges.
    pub(crate) fn nonces(&self, now: Instant, path: PathId, purpose: [u64; 2]) -> [u64; 2] {
        let period = (now - self.start).as_secs() / NONCE_PERIOD.as_secs();
        [period, period.wrapping_sub(1)].map(|period| {
            let mut hasher = self.hash(path, period);
            for word in purpose {
                hasher.write(&word.to_be_bytes());
            }
            hasher.finish()
        })
    }

    fn period(&self, now: Instant) -> u64 {
        (now - self.start).as_secs() / PERIOD.as_secs()
    }

    fn cookie(&self, path: PathId, period: u64) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "32 of the hash's 64 bits")]
        let cookie = self.hash(path, period).finish() as u32;
        // A caller without a cookie sends 0.
        cookie.max(1)
    }

    fn hash(&self, path: PathId, period: u64) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        path.feed(&mut hasher);
        hasher.write(&period.to_be_bytes());
        hasher
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn udp(address: &str) -> PathId {
        address.parse::<SocketAddr>().expect("an address").into()
    }

    #[test]
    fn a_cookie_is_valid_for_its_path_in_this_period_and_the_next() {
        let start = Instant::from_millis(5);
        let key = CookieKey::new([7; 16], start);
        let path = udp("192.0.2.1:4000");
        let cookie = key.generate(start, path);
        assert!(key.verify(start, path, cookie));
        assert!(key.verify(start + PERIOD * 2 - Duration::from_nanos(1), path, cookie));
        assert!(!key.verify(start + PERIOD * 2, path, cookie));
        assert!(!key.verify(start, udp("192.0.2.1:4001"), cookie));
        assert!(!key.verify(start, udp("192.0.2.2:4000"), cookie));
        let numbered = key.generate(start, PathId::numbered(1));
        assert!(!key.verify(start, PathId::numbered(2), numbered));
        assert!(!CookieKey::new([8; 16], start).verify(start, path, cookie));
    }
}
