use std::collections::BTreeMap;
use std::time::Duration;

/// Losses by how long nothing came through and how slow the link was then, in bounded memory.
///
/// Times are rounded up to 5 ms.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct LossEvents {
    kinds: BTreeMap<(u64, u64), Kind>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Kind {
    events: u64,
    packets: u64,
}

/// Losses of one kind.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LossEvent {
    /// Number of these events.
    pub(crate) events: u64,
    /// Packets lost in all of them.
    pub(crate) packets: u64,
    /// The time for which nothing came through.
    pub(crate) span: Duration,
    /// The round trip at that time, if it was not the usual one.
    pub(crate) rtt: Option<Duration>,
}

impl LossEvents {
    pub(crate) fn add(&mut self, packets: u64, span: Duration, rtt: Option<Duration>) {
        let key = (grains(span), rtt.map_or(0, grains));
        let room = self.kinds.len() < MOST_KINDS;
        let kind = match self.kinds.get_mut(&key) {
            Some(kind) => kind,
            None if room => self.kinds.entry(key).or_default(),
            // The worst kind is on the safe side.
            None => self.kinds.last_entry().expect("it is full").into_mut(),
        };
        kind.events += 1;
        kind.packets += packets;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (&key, theirs) in &other.kinds {
            let kind = self.kinds.entry(key).or_default();
            kind.events += theirs.events;
            kind.packets += theirs.packets;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = LossEvent> {
        self.kinds.iter().map(|(&(span, rtt), kind)| LossEvent {
            events: kind.events,
            packets: kind.packets,
            span: GRAIN * u32::try_from(span).unwrap_or(u32::MAX),
            rtt: (rtt > 0).then(|| GRAIN * u32::try_from(rtt).unwrap_or(u32::MAX)),
        })
    }

    /// The longest time that nothing came through.
    pub(crate) fn longest(&self) -> Duration {
        self.iter().map(|event| event.span).max().unwrap_or_default()
    }

    #[cfg(test)]
    fn packets(&self) -> u64 {
        self.kinds.values().map(|kind| kind.packets).sum()
    }
}

/// At most 20 s, which is more than any connection outlives.
fn grains(time: Duration) -> u64 {
    let grains = time.as_nanos().div_ceil(GRAIN.as_nanos());
    u64::try_from(grains).unwrap_or(u64::MAX).min(4_000)
}

const GRAIN: Duration = Duration::from_millis(5);
const MOST_KINDS: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn losses_of_a_kind_are_counted_together() {
        let mut events = LossEvents::default();
        events.add(1, MS(2), None);
        events.add(2, MS(4), None);
        events.add(50, MS(99), Some(MS(301)));
        let mut more = LossEvents::default();
        more.add(1, MS(1), None);
        events.merge(&more);
        let all: Vec<LossEvent> = events.iter().collect();
        assert_eq!(
            all,
            [
                LossEvent { events: 3, packets: 4, span: MS(5), rtt: None },
                LossEvent { events: 1, packets: 50, span: MS(100), rtt: Some(MS(305)) },
            ]
        );
        assert_eq!((events.longest(), events.packets()), (MS(100), 54));
    }

    #[test]
    fn memory_is_bounded_whatever_a_peer_says() {
        let mut events = LossEvents::default();
        for i in 0..100_000 {
            events.add(1, MS(i), Some(MS(i * 7)));
        }
        assert_eq!(events.kinds.len(), MOST_KINDS);
        assert_eq!(events.packets(), 100_000);
    }
}
