//! Streams that publishers send: messages of odd sizes, no transport stream, late messages.

use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::{Fault, Inspector, PACKET_LEN};
use punctual_relay::{Start, StreamRules, Viewer, ViewerId};

use crate::random::Random;
use crate::receiver::{CLIP, packets};
use crate::world::{STEP, World};

/// A stream whose viewer gets all messages as they are.
fn live() -> World {
    let mut world = World::new(StreamRules { start: Start::Live, ..StreamRules::default() });
    world.stream.view(ViewerId(7), Viewer::default()).expect("there is room");
    world
}

/// Sends these messages, and returns those that the viewer gets.
fn pass(world: &mut World, messages: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let mut got = Vec::new();
    for message in messages {
        world.now += STEP;
        world.push(world.now, message);
        world.stream.feed(world.now, ViewerId(7), |message| {
            got.push(message.payload.clone());
            true
        });
    }
    got
}

#[test]
fn messages_of_any_size_become_whole_packets_and_no_byte_is_lost() {
    let mut random = Random::new(36);
    for _ in 0..20 {
        let mut rest = CLIP.bytes.slice(..4_000 * PACKET_LEN);
        let mut messages = Vec::new();
        while !rest.is_empty() {
            let length = random.below(1_456) + 1;
            messages.push(rest.split_to(length.min(rest.len())));
        }
        let got = pass(&mut live(), messages);
        for message in &got {
            assert!(message.len() <= 1_456);
            assert!(packets(message).count() > 0);
        }
        assert_eq!(got.concat(), CLIP.bytes[..4_000 * PACKET_LEN]);
    }
}

#[test]
fn messages_of_any_other_stream_pass_as_they_are() {
    let mut random = Random::new(1);
    let messages: Vec<Bytes> =
        (0..500).map(|n: u32| vec![(n % 251) as u8; random.below(1_456) + 1].into()).collect();
    for start in [Start::RandomAccess, Start::Gop, Start::Live] {
        let mut world = World::new(StreamRules { start, ..StreamRules::default() });
        world.stream.view(ViewerId(7), Viewer::default()).expect("there is room");
        let got = pass(&mut world, messages.clone());
        assert_eq!(world.stream.state(world.now).is_transport_stream, Some(false));
        assert_eq!(got, messages, "{start:?}");
    }
}

#[test]
fn all_that_is_held_is_bounded_whether_or_not_viewers_take_it() {
    let mut world = World::new(StreamRules::default());
    for id in 10..30 {
        world.view(id);
        world.viewer(id).stalls_until = world.now + Duration::from_secs(3_600);
    }
    let mut most = 0;
    for _ in 0..100 {
        world.run(Duration::from_millis(300));
        most = most.max(world.stream.state(world.now).held_bytes);
    }
    // The viewers' second, and half a second to finish; the latest group of pictures is shorter.
    assert!(most <= 250_000 * 16 / 10, "{most}");
}

#[test]
fn messages_that_are_late_by_a_stall_of_the_relay_reach_all_viewers() {
    let mut world = World::new(StreamRules::default());
    world.view(7);
    world.run(Duration::from_secs(2));
    let begun = world.now;
    let before = world.viewer(7).receiver.messages;
    let place = usize::try_from(world.stream.state(begun).received_bytes).unwrap();
    // All messages of three seconds at once, with the times at which they were due.
    world.now = begun + Duration::from_secs(3);
    let late = CLIP.bytes.slice(place..place + 570 * 1_316);
    for number in 0..570 {
        let due = begun + STEP * number;
        let at = number as usize * 1_316;
        world.push(due, late.slice(at..at + 1_316));
    }
    world.serve();
    let receiver = &world.viewer(7).receiver;
    assert_eq!(receiver.messages - before, 570);
    assert_eq!(receiver.breaks, 0);
    receiver.assert_clean(0);
}

/// The faults of the way in, and those of the way out.
fn faults(world: &World, fault: Fault) -> (u64, u64) {
    let count = |inspector: &Inspector| inspector.health().of(fault).count;
    (count(world.stream.inspector()), count(world.stream.way_out()))
}

#[test]
fn the_way_out_has_the_faults_of_all_sources_and_none_of_their_splices() {
    let mut world = World::new(StreamRules::default());
    world.run(Duration::from_secs(3));
    assert_eq!(faults(&world, Fault::Continuity), (0, 0));
    world.lose();
    world.run(Duration::from_secs(1));
    let (found, left) = faults(&world, Fault::Continuity);
    assert!(found > 0 && found == left, "{found} in, {left} out");
    world.publish(2, 900);
    world.run(Duration::from_secs(3));
    assert_eq!(faults(&world, Fault::Continuity), (0, left), "the way in is that of its source");
    assert_eq!(faults(&world, Fault::PcrDiscontinuity), (0, 0), "the splice is marked");
    let out = world.stream.way_out().packets();
    assert!(out > world.stream.inspector().packets(), "{out} packets over both sources");
}

#[test]
fn the_silence_between_two_sources_is_a_fault_of_the_way_out_alone() {
    let mut world = World::new(StreamRules::default());
    world.run(Duration::from_secs(3));
    assert_eq!(faults(&world, Fault::Pat), (0, 0));
    world.unpublish();
    world.run(Duration::from_secs(4));
    world.publish(2, 0);
    world.run(Duration::from_secs(2));
    let (found, left) = faults(&world, Fault::Pat);
    assert!(found == 0 && left > 0, "{found} in, {left} out");
    assert_eq!(faults(&world, Fault::Continuity), (0, 0));
}
