use std::sync::{Arc, Mutex, Weak};

use punctual_io::Timer;
use punctual_proto::{CloseReason, Connection, LinkAccess, LinkConnections, LinkId, LinkState};
use punctual_units::Instant;

use super::{Inner, State, lock};
use crate::error::Error;
use crate::signals::GroupSignals;
use crate::socket::Socket;
use crate::wakes::Wakes;

/// Starts the task of a group. It updates the group when a link has events and when a time that the
/// group has set is reached. It closes the group when the last handle is dropped, and ends when the
/// peer has everything.
pub(super) fn start(inner: &Arc<Inner>) -> Result<(), Error> {
    let (group, state) = (Arc::downgrade(inner), Arc::clone(&inner.state));
    let (signals, timer) = (Arc::clone(&inner.signals), Timer::new()?);
    tokio::spawn(run(group, state, signals, timer));
    Ok(())
}

async fn run(
    group: Weak<Inner>,
    state: Arc<Mutex<State>>,
    signals: Arc<GroupSignals>,
    mut timer: Timer,
) {
    loop {
        let ticket = signals.phase.notified();
        if group.strong_count() == 0 {
            let mut state = lock(&state);
            state.begin_close();
            if state.driver.is_closed() {
                return;
            }
        }
        let next = update(&state, &signals);
        match next {
            None => ticket.await,
            Some(at) => {
                tokio::select! {
                    () = ticket => {}
                    () = timer.sleep_until(at) => {}
                }
            }
        }
    }
}

/// Access to the connections of the sockets of a group's links; the endpoint of each has its own
/// lock.
pub(super) struct Sockets;

impl LinkConnections for Sockets {
    type Link = Socket;

    fn now(&self) -> Instant {
        punctual_io::now()
    }

    fn with_connection<R>(
        &mut self,
        socket: &Socket,
        access: LinkAccess,
        work: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        Some(match access {
            LinkAccess::Control => socket.with_driver(work),
            LinkAccess::Query | LinkAccess::Receive | LinkAccess::Submit => {
                socket.with_connection(work)
            }
        })
    }
}

/// Lets the group do what is due, and wakes up the tasks that wait for it. Returns when to
/// update it next.
fn update(state: &Mutex<State>, signals: &GroupSignals) -> Option<Instant> {
    let mut state = lock(state);
    let any_ended = take_ended_links(&mut state);
    let owes_watcher = std::mem::take(&mut state.owes_watcher) || any_ended;
    state.driver.update(&mut Sockets);
    state.forget_drained();
    let now = punctual_io::now();
    let notified = state.notified_due;
    let update = state.driver.next_update();
    let delivery = state.driver.group().next_delivery().filter(|&at| at > notified);
    let is_due = delivery.filter(|&at| at <= now);
    state.notified_due = is_due.unwrap_or(notified);
    state.sleeps_until = update.into_iter().chain(delivery.filter(|&at| at > now)).min();
    let next = state.sleeps_until;
    drop(state);
    if any_ended {
        signals.phase.notify_waiters();
    }
    if any_ended || is_due.is_some() {
        signals.signal_readable(&mut Wakes::default());
    }
    // Another link may carry the stream now, and have room.
    signals.signal_writable();
    if let Some(watcher) = signals.watcher.get().filter(|_| owes_watcher) {
        watcher.phase_changed();
    }
    next
}

/// Reports ended connections to the group. Returns whether there were any.
pub(super) fn take_ended_links(state: &mut State) -> bool {
    let established = state
        .driver
        .links()
        .filter(|&(id, _)| state.driver.group().link_state(id).is_some_and(LinkState::is_up));
    let ended = established.filter_map(|(id, socket)| Some((id, socket.ended()?)));
    let ended: Vec<(LinkId, CloseReason)> = ended.collect();
    let any_ended = !ended.is_empty();
    for (id, reason) in ended {
        log_end(state, id, &reason);
        state.driver.link_ended(&mut Sockets, id);
        state.last_end = Some(reason);
    }
    any_ended
}

/// Logs the end of a link and its reason.
fn log_end(state: &State, id: LinkId, reason: &CloseReason) {
    let Some(remote) = state.driver.link(id).map(Socket::peer_addr) else { return };
    match reason {
        _ if state.closing => tracing::debug!("a link of the group ended: {remote}: {reason}"),
        // The usual end of a stream.
        CloseReason::Peer => tracing::info!("a link of the group ended: {remote}: {reason}"),
        _ => tracing::warn!("a link of the group ended: {remote}: {reason}"),
    }
}
