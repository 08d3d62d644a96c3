//! Publishers that come, go, and take each other's place.

use std::time::Duration;

use punctual_relay::{
    NotAdmitted, Publisher, PublisherId, Seat, SecondPublisher, StreamEvent, StreamRules, Viewer,
    ViewerId,
};

use crate::world::{ANY, STEP, World};

const SECOND: Duration = Duration::from_secs(1);

fn rules(second_publisher: SecondPublisher) -> StreamRules {
    StreamRules { second_publisher, ..StreamRules::default() }
}

#[test]
fn viewers_outlive_their_publisher_for_the_grace_time_and_no_longer() {
    let mut world = World::new(StreamRules::default());
    world.view(7);
    world.run(3 * SECOND);
    world.unpublish();
    world.run(10 * SECOND - 2 * STEP);
    assert!(world.stream.viewer(world.now, ViewerId(7)).is_some());
    assert!(!world.events.iter().any(|event| matches!(event, StreamEvent::Ended { .. })));
    world.run(3 * STEP);
    let ended = StreamEvent::Ended { viewers: vec![ViewerId(7)] };
    assert_eq!(world.events.last(), Some(&ended));
    assert_eq!(world.stream.state(world.now).held_bytes, 0);
    world.viewer(7).receiver.assert_clean(0);
}

#[test]
fn the_stream_goes_on_for_its_viewers_when_the_publisher_comes_back() {
    let mut world = World::new(StreamRules::default());
    world.view(7);
    world.run(3 * SECOND);
    world.unpublish();
    world.run(9 * SECOND);
    let before = world.viewer(7).receiver.units;
    world.publish(2, 5_000);
    world.run(4 * SECOND);
    let receiver = &world.viewer(7).receiver;
    assert!(receiver.units > before + 50, "{} units, {before} before", receiver.units);
    assert_eq!(receiver.breaks, 1);
    // The picture and the sound that were under way when the publisher went.
    receiver.assert_clean(2);
    assert_eq!(world.stream.state(world.now).skips, 0, "no viewer was slow");
}

#[test]
fn a_newer_publisher_replaces_the_older_one_whose_messages_count_no_more() {
    let mut world = World::new(rules(SecondPublisher::Replace));
    world.view(7);
    world.run(2 * SECOND);
    world.publish(2, 3_000);
    let received = world.stream.state(world.now).received_bytes;
    world.stream.push(world.now, PublisherId(1), world.now, vec![0x47; 188].into());
    assert_eq!(world.stream.state(world.now).received_bytes, received);
    world.stream.unpublish(world.now, PublisherId(1));
    world.run(3 * SECOND);
    let replaced = StreamEvent::Replaced { old: PublisherId(1), by: PublisherId(2) };
    assert_eq!(world.events, [StreamEvent::Online(PublisherId(1)), replaced]);
    assert_eq!(world.stream.state(world.now).switches, 1);
    world.viewer(7).receiver.assert_clean(2);
}

#[test]
fn a_publisher_that_waited_follows_one_that_ends_or_falls_silent() {
    let mut world = World::new(rules(SecondPublisher::Standby));
    world.view(7);
    world.run(2 * SECOND);
    for id in [2, 3] {
        let seat = world.stream.publish(world.now, PublisherId(id), ANY);
        assert_eq!(seat, Ok(Seat::Standby));
    }
    world.unpublish();
    world.serve();
    assert_eq!(world.events.last(), Some(&StreamEvent::Promoted(PublisherId(2))));
    // The second one sends nothing.
    world.run(10 * SECOND + STEP);
    let last = &world.events[world.events.len() - 2..];
    let [second, third] = [PublisherId(2), PublisherId(3)];
    assert_eq!(last, [StreamEvent::Stalled(second), StreamEvent::Promoted(third)]);
    assert!(world.stream.viewer(world.now, ViewerId(7)).is_some());
}

#[test]
fn whether_a_publisher_is_admitted_can_be_asked_before_it_comes() {
    let backup = Publisher { is_backup: true, ..ANY };
    for (rule, publisher, is_admitted) in [
        (SecondPublisher::Replace, ANY, true),
        (SecondPublisher::Replace, Publisher::default(), false),
        (SecondPublisher::Refuse, ANY, false),
        (SecondPublisher::Refuse, backup, true),
        (SecondPublisher::Standby, Publisher::default(), true),
    ] {
        let mut world = World::new(rules(rule));
        let asked = world.stream.admits_publisher(publisher);
        assert_eq!(asked.is_ok(), is_admitted, "{rule:?} {publisher:?}");
        let came = world.stream.publish(world.now, PublisherId(2), publisher);
        assert_eq!(came.err(), asked.err());
    }
}

#[test]
fn nobody_comes_to_a_stream_that_has_ended() {
    let mut world = World::new(StreamRules::default());
    world.unpublish();
    assert!(!world.stream.is_over());
    world.run(11 * SECOND);
    assert!(world.stream.is_over());
    let publisher = world.stream.publish(world.now, PublisherId(2), ANY);
    assert_eq!(publisher, Err(NotAdmitted::Ended));
    assert_eq!(world.stream.view(ViewerId(7), Viewer::default()), Err(NotAdmitted::Ended));
    assert_eq!(world.stream.poll_timeout(), None);
}
