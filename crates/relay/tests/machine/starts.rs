//! Where viewers start, and how many there may be.

use std::time::Duration;

use punctual_relay::{NotAdmitted, SlowViewer, Start, StreamRules, Viewer, ViewerId, ViewerPhase};

use crate::receiver::{CLIP, PICTURE, packets};
use crate::world::{STEP, World};

const SECOND: Duration = Duration::from_secs(1);

/// The messages that a viewer gets from now on.
fn watch(world: &mut World, id: u64, time: Duration) -> Vec<u8> {
    let (end, mut got) = (world.now + time, Vec::new());
    while world.now < end {
        world.step();
        world.stream.feed(world.now, ViewerId(id), |message| {
            got.extend_from_slice(&message.payload);
            true
        });
    }
    got
}

#[test]
fn a_viewer_starts_at_a_random_access_point_with_the_tables_before_it() {
    for milliseconds in (0..2_000).step_by(37) {
        let mut world = World::new(StreamRules::default());
        world.run(SECOND + Duration::from_millis(milliseconds));
        world.stream.view(ViewerId(7), Viewer::default()).unwrap();
        let got = watch(&mut world, 7, Duration::from_millis(1_300));
        let pids: Vec<u16> = packets(&got).map(punctual_mpegts::Packet::pid).take(3).collect();
        assert_eq!(pids, [0, 0x1000, PICTURE], "after {milliseconds} ms");
        world.view(8);
        world.run(3 * SECOND);
        world.viewer(8).receiver.assert_clean(0);
    }
}

#[test]
fn by_the_rule_gop_a_viewer_starts_at_the_latest_random_access_point() {
    let mut world = World::new(StreamRules { start: Start::Gop, ..StreamRules::default() });
    world.run(3 * SECOND + Duration::from_millis(700));
    world.view(7);
    world.serve();
    assert!(world.viewer(7).receiver.units >= 15, "the pictures of 700 ms are there");
    world.run(3 * SECOND);
    world.viewer(7).receiver.assert_clean(0);
}

#[test]
fn no_viewer_starts_in_the_pictures_of_a_replaced_publisher() {
    let mut world = World::new(StreamRules { start: Start::Gop, ..StreamRules::default() });
    world.run(3 * SECOND);
    world.publish(2, 200);
    world.run(3 * STEP);
    world.view(7);
    world.serve();
    assert_eq!(world.viewer(7).receiver.messages, 0, "the new one has no place to start yet");
    world.run(3 * SECOND);
    let receiver = &world.viewer(7).receiver;
    assert_eq!(receiver.breaks, 0);
    receiver.assert_clean(0);
}

#[test]
fn a_live_viewer_gets_the_next_message_whatever_it_holds() {
    let mut world = World::new(StreamRules { start: Start::Live, ..StreamRules::default() });
    world.run(3 * SECOND);
    let place = world.stream.state(world.now).received_bytes;
    world.stream.view(ViewerId(7), Viewer::default()).unwrap();
    let got = watch(&mut world, 7, SECOND);
    let place = usize::try_from(place).unwrap();
    assert_eq!(got, CLIP.bytes[place..place + got.len()], "the bytes as they were sent");
}

#[test]
fn limits_count_all_viewers_and_those_of_a_user_but_no_parts_of_the_relay() {
    let rules = StreamRules {
        max_viewers: Some(3),
        max_viewers_per_user: Some(2),
        slow_viewer: SlowViewer::Skip,
        ..StreamRules::default()
    };
    let mut world = World::new(rules);
    let eve = Viewer { user: Some("eve".to_owned()), ..Viewer::default() };
    let stream = &mut world.stream;
    for id in 1..=2 {
        stream.view(ViewerId(id), eve.clone()).unwrap();
    }
    assert_eq!(stream.view(ViewerId(3), eve.clone()), Err(NotAdmitted::TooManyOfUser));
    stream.view(ViewerId(4), Viewer::default()).unwrap();
    assert_eq!(stream.view(ViewerId(5), Viewer::default()), Err(NotAdmitted::TooManyViewers));
    let part = Viewer { is_internal: true, ..Viewer::default() };
    stream.view(ViewerId(6), part).unwrap();
    assert_eq!(stream.state(world.now).viewers, 3);
    stream.unview(ViewerId(1));
    assert_eq!(stream.admits_viewer(&eve), Ok(()));
    let state = stream.viewer(world.now, ViewerId(2)).unwrap();
    assert_eq!((state.phase, state.lag), (ViewerPhase::Waiting, Duration::ZERO));
}
