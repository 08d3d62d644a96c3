//! Callers whose handshake is not complete, and the limits on them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use punctual_units::Instant;

use crate::initials::host_of;

/// The time that a handshake may take. An honest one takes a few round trips, but each packet that
/// is lost costs twice as long as the one before: 1, 2, 4 and 8 s.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// The most handshakes that are under way; each takes about 100 kB. When one more begins, the
/// oldest one is given up, which had the most time.
const MOST: usize = 512;
/// The most handshakes that one host has under way after it has proved its address.
const MOST_OF_HOST: u32 = 64;
/// The most hosts whose failures are remembered.
const MOST_HOSTS: usize = 4_096;

/// The decision on the first packet of a caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CallerDecision {
    /// The handshake may begin.
    Begin,
    /// The caller has to prove its address by a Retry packet first, which takes no memory here.
    Prove,
    /// The packet is ignored. An honest caller repeats it.
    Ignore,
}

/// The handshakes of callers: the ones under way, and the ones that failed lately.
///
/// A handshake costs time also if it fails at once, as with a protocol that this end does not
/// speak. So failed ones count too: many of either kind let every caller prove its address, and
/// then many of one host are refused to this host.
#[derive(Debug)]
pub(crate) struct QuicHandshakes {
    /// Handshakes under way or failed within about a second from which on addresses are proved.
    prove_above: u32,
    /// The handshakes under way, by the serial number of the connection.
    under_way: BTreeMap<u64, QuicHandshake>,
    failures: Failures,
    /// Hosts that have proved their address.
    hosts: BTreeMap<IpAddr, CallerHost>,
    /// When the latest caller came. Failures count as of this instant.
    now: Instant,
}

#[derive(Clone, Copy, Debug)]
struct QuicHandshake {
    handle: usize,
    deadline: Instant,
    /// The host, if it has proved its address.
    host: Option<IpAddr>,
}

#[derive(Debug, Default)]
struct CallerHost {
    under_way: u32,
    failures: Failures,
}

impl QuicHandshakes {
    /// Addresses are proved from this many handshakes on.
    pub(crate) fn new(prove_above: usize) -> Self {
        Self {
            prove_above: u32::try_from(prove_above).unwrap_or(u32::MAX),
            under_way: BTreeMap::new(),
            failures: Failures::default(),
            hosts: BTreeMap::new(),
            now: Instant::ORIGIN,
        }
    }

    /// Decides on the first packet of a caller.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        is_proved: bool,
    ) -> CallerDecision {
        self.now = now;
        if is_proved {
            let Some(host) = self.hosts.get_mut(&host_of(remote)) else {
                return CallerDecision::Begin;
            };
            let is_busy = host.under_way + host.failures.lately(now) >= MOST_OF_HOST;
            return if is_busy { CallerDecision::Ignore } else { CallerDecision::Begin };
        }
        let under_way = u32::try_from(self.under_way.len()).unwrap_or(u32::MAX);
        if under_way.saturating_add(self.failures.lately(now)) >= self.prove_above {
            CallerDecision::Prove
        } else {
            CallerDecision::Begin
        }
    }

    /// A handshake has begun. Returns the handle of the one that is given up for it, if any.
    pub(crate) fn begun(
        &mut self,
        now: Instant,
        serial: u64,
        handle: usize,
        proved: Option<SocketAddr>,
    ) -> Option<usize> {
        let host = proved.map(host_of);
        if let Some(host) = host {
            self.host(host).under_way += 1;
        }
        let deadline = now + HANDSHAKE_TIMEOUT;
        self.under_way.insert(serial, QuicHandshake { handle, deadline, host });
        (self.under_way.len() > MOST).then(|| self.give_up_oldest()).flatten()
    }

    /// A handshake is complete.
    pub(crate) fn completed(&mut self, serial: u64) {
        self.leave(serial);
    }

    /// A connection has ended: its handshake has failed if it was under way.
    pub(crate) fn ended(&mut self, serial: u64) {
        if let Some(handshake) = self.leave(serial) {
            self.failed(handshake.host);
        }
    }

    /// The first packet of a caller was refused.
    pub(crate) fn refused(&mut self, proved: Option<SocketAddr>) {
        self.failed(proved.map(host_of));
    }

    /// When [`take_overdue`](Self::take_overdue) is to be called.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.under_way.values().next().map(|handshake| handshake.deadline)
    }

    /// The handle of a handshake that has taken too long.
    pub(crate) fn take_overdue(&mut self, now: Instant) -> Option<usize> {
        self.next_deadline().filter(|&deadline| deadline <= now)?;
        self.give_up_oldest()
    }

    fn give_up_oldest(&mut self) -> Option<usize> {
        let (&serial, &QuicHandshake { handle, .. }) = self.under_way.first_key_value()?;
        self.ended(serial);
        Some(handle)
    }

    fn leave(&mut self, serial: u64) -> Option<QuicHandshake> {
        let handshake = self.under_way.remove(&serial)?;
        if let Some(host) = handshake.host.and_then(|host| self.hosts.get_mut(&host)) {
            host.under_way = host.under_way.saturating_sub(1);
        }
        Some(handshake)
    }

    fn failed(&mut self, host: Option<IpAddr>) {
        let now = self.now;
        self.failures.note(now);
        if let Some(host) = host {
            self.host(host).failures.note(now);
        }
    }

    fn host(&mut self, host: IpAddr) -> &mut CallerHost {
        let now = self.now;
        if self.hosts.len() >= MOST_HOSTS && !self.hosts.contains_key(&host) {
            self.hosts.retain(|_, host| host.under_way > 0 || host.failures.lately(now) > 0);
            if self.hosts.len() >= MOST_HOSTS {
                self.hosts.retain(|_, host| host.under_way > 0);
            }
        }
        self.hosts.entry(host).or_default()
    }
}

/// Failures of about the last second: one is forgotten each [`FORGOTTEN`].
#[derive(Debug, Default)]
struct Failures {
    count: u32,
    at: Instant,
}

/// The time after which one failure is forgotten.
const FORGOTTEN: Duration = Duration::from_millis(16);
/// The most failures that are counted, so that they are forgotten in a few seconds.
const MOST_FAILURES: u32 = 128;

impl Failures {
    fn note(&mut self, now: Instant) {
        self.count = (self.lately(now) + 1).min(MOST_FAILURES);
    }

    fn lately(&mut self, now: Instant) -> u32 {
        let passed = now.saturating_since(self.at).as_nanos() / FORGOTTEN.as_nanos();
        let forgotten = u32::try_from(passed).unwrap_or(u32::MAX);
        if self.count <= forgotten {
            (self.count, self.at) = (0, now);
        } else {
            self.count -= forgotten;
            self.at += FORGOTTEN * forgotten;
        }
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    fn caller(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    #[test]
    fn failed_handshakes_let_callers_prove_their_addresses_for_a_second() {
        let mut handshakes = QuicHandshakes::new(64);
        for port in 0..64 {
            assert_eq!(handshakes.judge(MS(1), caller(1, port), false), CallerDecision::Begin);
            handshakes.refused(None);
        }
        assert_eq!(handshakes.judge(MS(1), caller(2, 1), false), CallerDecision::Prove);
        assert_eq!(handshakes.judge(MS(1), caller(2, 1), true), CallerDecision::Begin);
        assert_eq!(handshakes.judge(MS(40), caller(2, 1), false), CallerDecision::Begin);
    }

    #[test]
    fn a_host_with_many_handshakes_or_failures_is_ignored_and_others_are_not() {
        let mut handshakes = QuicHandshakes::new(64);
        for serial in 0..64 {
            let begun = handshakes.begun(MS(1), serial, 7, Some(caller(1, 9)));
            assert_eq!(begun, None);
        }
        assert_eq!(handshakes.judge(MS(2), caller(1, 10), true), CallerDecision::Ignore);
        assert_eq!(handshakes.judge(MS(2), caller(2, 10), true), CallerDecision::Begin);
        handshakes.completed(5);
        assert_eq!(handshakes.judge(MS(2), caller(1, 10), true), CallerDecision::Begin);
        handshakes.ended(6);
        handshakes.refused(Some(caller(1, 10)));
        assert_eq!(handshakes.judge(MS(2), caller(1, 10), true), CallerDecision::Ignore);
    }

    #[test]
    fn handshakes_end_after_their_time_and_the_oldest_when_there_are_too_many() {
        let mut handshakes = QuicHandshakes::new(64);
        let most = MOST as u64;
        for (serial, handle) in (0..most).zip(0..) {
            assert_eq!(handshakes.begun(MS(serial), serial, handle, None), None);
        }
        assert_eq!(handshakes.begun(MS(most), most, 7_000, None), Some(0));
        assert_eq!(handshakes.next_deadline(), Some(MS(30_001)));
        assert_eq!(handshakes.take_overdue(MS(30_000)), None);
        assert_eq!(handshakes.take_overdue(MS(30_002)), Some(1));
        assert_eq!(handshakes.take_overdue(MS(30_002)), Some(2));
        assert_eq!(handshakes.take_overdue(MS(30_002)), None);
    }

    #[test]
    fn few_hosts_are_remembered() {
        let mut handshakes = QuicHandshakes::new(64);
        for host in 0..20_000u32 {
            let remote = SocketAddr::from((std::net::Ipv4Addr::from_bits(host), 9));
            handshakes.refused(Some(remote));
        }
        assert!(handshakes.hosts.len() <= MOST_HOSTS);
    }
}
