//! Hundreds of viewers that stall, and publishers that replace each other, from a seed.

use std::time::Duration;

use punctual_relay::{StreamEvent, StreamRules, ViewerId};

use crate::world::World;

/// Numbers from a seed (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("a small number")
    }
}

#[test]
fn hundreds_of_viewers_that_stall_and_change_publishers_see_no_error() {
    for seed in [36, 2_026] {
        println!("seed {seed}");
        show(seed, 300, 5_000);
    }
}

/// A show of this number of steps: viewers come, stall and go, publishers replace each other or
/// go away for a while.
fn show(seed: u64, viewers: u64, steps: usize) {
    let mut random = Random::new(seed);
    let mut world = World::new(StreamRules::default());
    let mut publisher = 1;
    let (mut newest, mut away) = (0, 0_usize);
    for _ in 0..steps {
        while world.viewers.len() < usize::try_from(viewers).expect("a small number") {
            newest += 1;
            world.view(newest);
        }
        for _ in 0..2 {
            let id = ViewerId(newest - random.below(300) as u64);
            if let Some(place) = world.viewers.get_mut(&id) {
                let stall = 1 << (6 + random.below(6));
                place.stalls_until = world.now + Duration::from_millis(stall);
            }
        }
        if random.below(30) == 0 {
            let id = ViewerId(newest - random.below(300) as u64);
            world.stream.unview(id);
            if let Some(place) = world.viewers.remove(&id) {
                judge(&place.receiver);
            }
        }
        match random.below(400) {
            _ if away > 1 => away -= 1,
            _ if away == 1 => {
                (publisher, away) = (publisher + 1, 0);
                world.publish(publisher, random.below(15_980));
            }
            0 => {
                publisher += 1;
                world.publish(publisher, random.below(15_980));
            }
            1 => {
                world.unpublish();
                away = random.below(1_500) + 2;
            }
            _ => {}
        }
        world.step();
    }
    let ended = world.events.iter().any(|event| matches!(event, StreamEvent::Ended { .. }));
    assert!(!ended, "the publisher was never away for longer than the grace time");
    assert!(world.skipped().len() > 100, "viewers were slow: {}", world.skipped().len());
    assert_eq!(world.stream.state(world.now).skips, world.skipped().len() as u64);
    for place in world.viewers.values() {
        judge(&place.receiver);
    }
}

/// No error, and a unit is cut only where the publisher or the viewer's place went.
fn judge(receiver: &crate::receiver::Receiver) {
    receiver.assert_clean(2 * (receiver.breaks + 1));
}
