use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use punctual_units::Instant;
use siphasher::sip::SipHasher24;

/// A cookie is good in the period in which it was made and in the next one.
const PERIOD: Duration = Duration::from_secs(60);
/// The same for a nonce.
const NONCE_PERIOD: Duration = Duration::from_secs(4);

/// Makes and checks the listener's cookies without keeping any state for a caller.
///
/// A cookie is a keyed hash of the caller's address and the period, so that only who receives at
/// that address can have it. The draft's is an unkeyed hash that anybody can compute; only the
/// listener verifies it, so the choice is ours (draft section 4.3.1.1).
#[derive(Debug)]
pub(crate) struct CookieKey {
    key: [u8; 16],
    start: Instant,
}

impl CookieKey {
    pub(crate) const fn new(key: [u8; 16], now: Instant) -> Self {
        Self { key, start: now }
    }

    pub(crate) fn generate(&self, now: Instant, remote: SocketAddr) -> u32 {
        self.cookie(remote, self.period(now))
    }

    pub(crate) fn verify(&self, now: Instant, remote: SocketAddr, cookie: u32) -> bool {
        let period = self.period(now);
        cookie == self.cookie(remote, period)
            || (period > 0 && cookie == self.cookie(remote, period - 1))
    }

    /// The nonces of a challenge to `remote` that are good at `now`: this period's, which is the
    /// one to use, and the last one's. `purpose` tells challenges apart.
    pub(crate) fn nonces(&self, now: Instant, remote: SocketAddr, purpose: [u64; 2]) -> [u64; 2] {
        let period = (now - self.start).as_secs() / NONCE_PERIOD.as_secs();
        [period, period.wrapping_sub(1)].map(|period| {
            let mut hasher = self.hash(remote, period);
            for word in purpose {
                hasher.write(&word.to_be_bytes());
            }
            hasher.finish()
        })
    }

    fn period(&self, now: Instant) -> u64 {
        (now - self.start).as_secs() / PERIOD.as_secs()
    }

    fn cookie(&self, remote: SocketAddr, period: u64) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "32 of the hash's 64 bits")]
        let cookie = self.hash(remote, period).finish() as u32;
        // 0 is what a caller sends before it has a cookie.
        cookie.max(1)
    }

    fn hash(&self, remote: SocketAddr, period: u64) -> SipHasher24 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        match remote.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write(&remote.port().to_be_bytes());
        hasher.write(&period.to_be_bytes());
        hasher
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_in_this_period_and_the_next() {
        let start = Instant::from_millis(5);
        let key = CookieKey::new([7; 16], start);
        let remote: SocketAddr = "192.0.2.1:4000".parse().expect("an address");
        let cookie = key.generate(start, remote);
        assert!(key.verify(start, remote, cookie));
        assert!(key.verify(start + PERIOD * 2 - Duration::from_nanos(1), remote, cookie));
        assert!(!key.verify(start + PERIOD * 2, remote, cookie));
        assert!(!key.verify(start, "192.0.2.1:4001".parse().expect("an address"), cookie));
        assert!(!key.verify(start, "192.0.2.2:4000".parse().expect("an address"), cookie));
        assert!(!CookieKey::new([8; 16], start).verify(start, remote, cookie));
    }
}
