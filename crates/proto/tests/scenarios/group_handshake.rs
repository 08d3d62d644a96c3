//! How a connection becomes a link of a group, and which callers are refused.

use punctual_proto::{CloseReason, GroupKind, RejectReason};
use punctual_wire::{
    Control, ControlPacket, Extension, GroupExtension, HandshakeRequest, Packet, SocketId,
};

use crate::bond::{TestBond, address};
use crate::datagram::Kind;
use crate::pair::Side;
use crate::{MS, SECS, latency, link};

fn bond(seed: u64) -> TestBond {
    TestBond::new(seed, GroupKind::Backup, &latency(120), &[link(), link()])
}

/// The group extensions that one end sent over a path, without repetitions.
fn groups(bond: &TestBond, path: usize, side: Side) -> Vec<GroupExtension> {
    let handshakes = bond.records[path].handshakes(side);
    let blocks = handshakes.iter().flat_map(|(_, handshake, _)| &handshake.extensions);
    let mut groups: Vec<GroupExtension> = blocks
        .filter_map(|block| match block {
            Extension::Group(group) => Some(*group),
            _ => None,
        })
        .collect();
    groups.dedup();
    groups
}

#[test]
fn both_ends_name_their_group_on_every_link() {
    let mut bond = bond(1);
    bond.connect(&[300, 7]);
    let (ours, theirs) = (bond.caller.group().id(), bond.listener.group().id());
    assert_eq!(ours >> 30, 1);
    for (path, weight) in [(0, 300), (1, 7)] {
        let block = |group_id| GroupExtension { group_id, kind: 2, flags: 0, weight };
        assert_eq!(groups(&bond, path, Side::Caller), [block(ours)]);
        assert_eq!(groups(&bond, path, Side::Listener), [block(theirs)]);
    }
    assert_eq!(bond.caller.group().peer_group(), Some(theirs));
    assert_eq!(bond.listener.group().peer_group(), Some(ours));
}

#[test]
fn a_listener_accepts_groups_only_if_it_is_configured_to() {
    let mut bond = bond(2);
    bond.listener.endpoints()[0].listen(Some(latency(120)));
    bond.call(0, 0);
    bond.run_for(SECS(1));
    let refused = CloseReason::Rejected(RejectReason::GROUP);
    assert_eq!(bond.caller.closed.iter().map(|it| &it.1).collect::<Vec<_>>(), [&refused]);
}

#[test]
fn links_share_timestamps_time_base_and_latency() {
    let mut bond = bond(3);
    bond.call(0, 1);
    bond.run_for(SECS(3));
    let second = bond.call(1, 0);
    bond.run_for(SECS(1));
    let (endpoint, id) = bond.caller.members[&second];
    let info =
        bond.caller.endpoints()[endpoint].connections().get(id).expect("a connection").info();
    assert_eq!(info.receive_latency, MS(120));
    // The timestamp counts from the start of the group, three seconds before the second call.
    let first = &bond.records[1].of_kind(Side::Caller, Kind::Handshake)[0].1;
    let Ok(Packet::Control(packet)) = Packet::parse(first) else { panic!("a handshake") };
    assert_eq!(packet.timestamp.as_micros(), 3_000_000);
}

/// The listener's answer to a conclusion with a changed group extension.
fn answer_to(change: impl Fn(&mut GroupExtension)) -> HandshakeRequest {
    let mut bond = bond(4);
    bond.call(0, 0);
    bond.run_for(MS(25));
    let sent = bond.records[0].of_kind(Side::Caller, Kind::Handshake);
    let datagram = &sent.last().expect("the conclusion").1;
    let Ok(Packet::Control(packet)) = Packet::parse(datagram) else { panic!("a handshake") };
    let Control::Handshake(mut conclusion) = packet.control else { panic!("a handshake") };
    conclusion.socket_id = SocketId::new(77);
    for block in &mut conclusion.extensions {
        if let Extension::Group(group) = block {
            change(group);
        }
    }
    let mut bytes = Vec::new();
    let control = Control::Handshake(conclusion);
    ControlPacket { timestamp: packet.timestamp, dest: SocketId::LISTENER, control }
        .emit(&mut bytes);
    let listener = &mut bond.listener.endpoints()[0];
    listener.handle_datagram(bond.now, address(0), bytes.into());
    let mut answer = Vec::new();
    if listener.poll_transmit(bond.now, 1, &mut answer).is_none() {
        // The caller waits for the application: the conclusion passed the checks.
        return HandshakeRequest::Conclusion;
    }
    match Packet::parse(&answer) {
        Ok(Packet::Control(ControlPacket { control: Control::Handshake(it), .. })) => it.request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_group_extensions_are_rejected() {
    let refused = HandshakeRequest::Rejection(RejectReason::GROUP);
    assert_eq!(answer_to(|_| {}), HandshakeRequest::Conclusion);
    assert_eq!(answer_to(|group| group.kind = 0), refused);
    assert_eq!(answer_to(|group| group.kind = 3), refused);
    assert_eq!(answer_to(|group| group.flags = 1), refused);
    assert_eq!(answer_to(|group| group.group_id &= !(1 << 30)), refused);
    assert_eq!(answer_to(|group| group.group_id |= 1 << 31), refused);
}
