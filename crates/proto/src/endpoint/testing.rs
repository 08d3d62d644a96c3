//! Values for the unit tests of this folder.

use std::net::SocketAddr;
use std::time::Duration;

use punctual_crypto::KekCache;
use punctual_units::Instant;
use punctual_wire::{Handshake, SeqNo, SocketId, Timestamp};

use super::EndpointConfig;
use super::connections::Connections;
use super::recent_calls::Call;
use crate::chance::Chance;
use crate::config::Config;
use crate::connection::Connection;
use crate::connection::path_updates::PathUpdates;
use crate::group::Group;
use crate::group_offer::GroupKind;
use crate::handshake::caller::Caller;
use crate::handshake::keys::KeyTools;
use crate::handshake::listener::{Proposal, induction_response};
use crate::handshake::{Negotiated, Step};
use crate::ids::ConnectionId;
use crate::path::{Path, PathId};

/// The socket ID and the first number of every caller of these tests.
const CALLER: SocketId = SocketId::new(7);
const ISN: SeqNo = SeqNo::new(11);

/// The path to a caller on this host.
pub(super) fn host(number: u8) -> PathId {
    SocketAddr::from(([192, 0, 2, number], 9_000)).into()
}

/// The options of a listener that accepts links of groups, too.
pub(super) fn listening() -> Config {
    Config::default().with_group_connect(true)
}

/// The options of a caller of a stream.
pub(super) fn calling(stream_id: &str) -> Config {
    Config::default().with_stream_id(stream_id).expect("it is short")
}

/// The conclusion of a caller with these options that has got this cookie.
pub(super) fn conclusion(now: Instant, path: PathId, config: &Config, cookie: u32) -> Handshake {
    conclude(&mut Caller::new(CALLER, ISN, chance()), now, path, config, cookie)
}

/// The conclusion of a caller that wants to be a link of a group.
pub(super) fn link_conclusion(now: Instant, path: PathId) -> Handshake {
    let mut group = Group::new(GroupKind::Broadcast, Duration::ZERO, 5, now);
    let link = group.add_link(0);
    let mut caller = Caller::of_link(CALLER, group.membership(link), chance());
    conclude(&mut caller, now, path, &Config::default(), 1)
}

/// A conclusion after the checks of a listener.
pub(super) fn proposal(now: Instant, conclusion: Handshake) -> Proposal {
    let checked = Proposal::check(now, Timestamp::default(), conclusion, &listening());
    checked.expect("it fits")
}

/// The connection of a caller of a stream that was accepted, and its call.
pub(super) fn accepted(
    now: Instant,
    path: PathId,
    own: SocketId,
    stream_id: &str,
) -> (Connection, Call) {
    let conclusion = conclusion(now, path, &calling(stream_id), 1);
    let (response, negotiated) = accept(now, path, own, conclusion);
    let connection =
        Connection::accepted(now, Path::usual(path), listening(), negotiated, response);
    (connection, (path, CALLER, ISN))
}

/// Connections with one, that of the caller of a stream.
pub(super) fn connected(
    now: Instant,
    path: PathId,
    stream_id: &str,
) -> (Connections, ConnectionId) {
    let mut connections = Connections::new(&EndpointConfig::new([1; 32]));
    let (connection, call) = accepted(now, path, SocketId::new(3), stream_id);
    let id = connections.insert(now, connection, Some(call));
    (connections, id)
}

/// As [`accepted`], with the other end's state of path updates, which answers challenges.
pub(super) fn accepted_with_updates(
    now: Instant,
    path: PathId,
    own: SocketId,
) -> (Connection, PathUpdates) {
    let (config, by) = (Config::default(), Path::usual(path));
    let mut caller = Caller::new(CALLER, ISN, chance());
    let conclusion = conclude(&mut caller, now, path, &config, 1);
    let (response, negotiated) = accept(now, path, own, conclusion);
    let step = caller.handle(now, Timestamp::default(), &response, &config, &by);
    let Step::Connected(callers, _) = step else { panic!("{step:?}") };
    let connection = Connection::accepted(now, by, listening(), negotiated, response);
    (connection, PathUpdates::new(CALLER, &callers))
}

fn accept(
    now: Instant,
    path: PathId,
    own: SocketId,
    conclusion: Handshake,
) -> (Handshake, Negotiated) {
    let mut tools = KeyTools { chance: &mut chance(), cache: &mut KekCache::default() };
    let proposal = proposal(now, conclusion);
    let accepted = proposal.accept(&listening(), own, &Path::usual(path), None, &mut tools);
    accepted.expect("it fits")
}

fn conclude(
    caller: &mut Caller,
    now: Instant,
    path: PathId,
    config: &Config,
    cookie: u32,
) -> Handshake {
    let by = Path::usual(path);
    let induction = caller.request(now, config, &by);
    let answer = induction_response(&induction, cookie, path, &listening());
    caller.handle(now, Timestamp::default(), &answer, config, &by);
    caller.request(now, config, &by)
}

fn chance() -> Chance {
    Chance::new([2; 32])
}
