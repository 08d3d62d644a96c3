//! Viewers that take the stream too slowly.

use std::time::Duration;

use punctual_mpegts::PACKET_LEN;
use punctual_relay::{SlowViewer, Start, StreamEvent, StreamRules, Viewer, ViewerId, ViewerPhase};

use crate::receiver::CLIP;
use crate::world::{MESSAGE, STEP, World};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_slow_viewer_skips_is_named_and_sees_whole_pictures_only() {
    for stall in (1_010..1_450).step_by(20) {
        let mut world = World::new(StreamRules::default());
        world.view(7);
        world.run(2 * SECOND + Duration::from_millis(stall * 3 % 1_000));
        world.viewer(7).stalls_until = world.now + Duration::from_millis(stall);
        world.run(5 * SECOND);
        let skipped = world.skipped();
        assert_eq!(skipped.len(), 1, "{skipped:?}");
        assert_eq!(skipped[0].0, 7);
        let lag = skipped[0].1;
        assert!(lag > SECOND && lag < SECOND + 2 * STEP, "it is told at once: {lag:?}");
        let state = world.stream.viewer(world.now, ViewerId(7)).unwrap();
        assert_eq!((state.skips, state.phase), (1, ViewerPhase::Playing));
        assert!(state.lag < Duration::from_millis(100), "{:?}", state.lag);
        let receiver = &world.viewer(7).receiver;
        assert_eq!(receiver.breaks, 1);
        receiver.assert_clean(0);
    }
}

#[test]
fn a_viewer_that_takes_a_little_all_the_time_counts_as_slow_too() {
    let mut world = World::new(StreamRules::default());
    world.stream.view(ViewerId(7), Viewer::default()).unwrap();
    let mut turn = 0;
    for _ in 0..2_000 {
        world.step();
        turn += 1;
        let mut has_room = turn % 3 == 0;
        world.stream.feed(world.now, ViewerId(7), |_| std::mem::take(&mut has_room));
        let lag = world.stream.viewer(world.now, ViewerId(7)).unwrap().lag;
        assert!(lag < SECOND + Duration::from_millis(500), "{lag:?}");
    }
    world.serve();
    assert!(world.skipped().len() >= 4, "{:?}", world.skipped());
}

#[test]
fn a_slow_viewer_delays_nobody() {
    let run = |stall: Duration| {
        let mut world = World::new(StreamRules::default());
        for id in 1..=5 {
            world.view(id);
        }
        world.run(2 * SECOND);
        world.viewer(3).stalls_until = world.now + stall;
        world.run(6 * SECOND);
        world.viewers.remove(&ViewerId(3));
        world.viewers.values().map(|place| place.digest).collect::<Vec<_>>()
    };
    let alone = run(Duration::ZERO);
    for stall in [1_200, 3_000, 60_000] {
        assert_eq!(run(Duration::from_millis(stall)), alone, "a stall of {stall} ms");
    }
}

#[test]
fn the_rules_may_disconnect_a_slow_viewer_but_no_part_of_the_relay() {
    let rules = StreamRules { slow_viewer: SlowViewer::Disconnect, ..StreamRules::default() };
    let mut world = World::new(rules);
    world.view(7);
    let part = Viewer { is_internal: true, ..Viewer::default() };
    world.stream.view(ViewerId(8), part).unwrap();
    world.run(2 * SECOND);
    world.stream.feed(world.now, ViewerId(8), |_| true);
    world.viewer(7).stalls_until = world.now + 2 * SECOND;
    world.run(2 * SECOND);
    let slow = world.events.iter().filter(
        |event| matches!(event, StreamEvent::TooSlow { viewer: ViewerId(7), lag } if *lag > SECOND),
    );
    assert_eq!(slow.count(), 1);
    assert!(world.stream.viewer(world.now, ViewerId(7)).is_none());
    world.stream.feed(world.now, ViewerId(8), |_| true);
    world.serve();
    assert_eq!(world.skipped().iter().map(|it| it.0).collect::<Vec<_>>(), [8]);
}

#[test]
fn a_unit_that_its_publisher_never_finishes_does_not_hold_up_a_skip() {
    let mut world = World::new(StreamRules::default());
    world.view(7);
    world.run(2 * SECOND);
    // Of a PES packet of private data of 50,000 bytes comes the first packet alone.
    let mut packet = [0xFF; PACKET_LEN];
    packet[..13].copy_from_slice(&[0x47, 0x41, 0xF0, 0x10, 0, 0, 1, 0xBD, 0xC3, 0x50, 0x80, 0, 0]);
    world.push(world.now, packet.to_vec());
    world.run(SECOND);
    world.viewer(7).stalls_until = world.now + Duration::from_millis(1_200);
    world.run(4 * SECOND);
    let state = world.stream.viewer(world.now, ViewerId(7)).unwrap();
    assert_eq!((state.skips, state.phase), (1, ViewerPhase::Playing));
    world.viewer(7).receiver.assert_clean(0);
}

#[test]
fn without_places_to_start_a_slow_viewer_gets_the_newest_message() {
    let mut world = World::new(StreamRules { start: Start::Live, ..StreamRules::default() });
    world.stream.view(ViewerId(7), Viewer::default()).unwrap();
    let mut got = Vec::new();
    for number in 0..600_u32 {
        world.now += STEP;
        world.push(world.now, number.to_be_bytes().repeat(MESSAGE / 4));
        let has_room = !(100..400).contains(&number);
        world.stream.feed(world.now, ViewerId(7), |message| {
            if has_room {
                got.push(u32::from_be_bytes(*message.payload.first_chunk().unwrap()));
            }
            has_room
        });
    }
    assert!(CLIP.bytes.len() > MESSAGE);
    assert!(got.is_sorted(), "the order stays");
    let after = got.iter().find(|number| **number >= 100).copied().unwrap();
    assert!(got.len() > 280 && after < 400, "{} messages, on at {after}", got.len());
    assert_eq!(got.last(), Some(&599));
}
