use std::sync::{Arc, Weak};

use punctual_io::Timer;
use punctual_proto::{CloseReason, LinkId, LinkState};

use super::{Inner, State};
use crate::error::Error;
use crate::shared::GroupSignals;
use crate::socket::Socket;

/// Starts the task of a group: it looks at the links when the machine wants it or when something
/// happens to one, until nobody holds the group.
pub(super) fn start(inner: &Arc<Inner>) -> Result<(), Error> {
    let (group, signals) = (Arc::downgrade(inner), Arc::clone(&inner.signals));
    let timer = Timer::new()?;
    tokio::spawn(run(group, signals, timer));
    Ok(())
}

async fn run(group: Weak<Inner>, signals: Arc<GroupSignals>, mut timer: Timer) {
    loop {
        let ticket = signals.phase.notified();
        let Some(inner) = group.upgrade() else { return };
        let next = inner.look();
        drop(inner);
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

impl Inner {
    /// Looks at the links, and does what is due; when to look again.
    fn look(&self) -> Option<punctual_units::Instant> {
        let mut state = self.lock();
        let ended: Vec<(LinkId, _)> = state
            .machine
            .links()
            .filter(|(_, _, state)| *state != LinkState::Gone)
            .filter_map(|(id, ..)| Some((id, state.members.get(&id)?.ended()?)))
            .collect();
        let any_ended = !ended.is_empty();
        for (id, reason) in ended {
            state.tell_end(id, &reason);
            state.machine.link_down(punctual_io::now(), id);
            state.last_end = Some(reason);
            // Nothing is left to deliver: no reader need take note of it.
            if state.members.get(&id).is_some_and(|it| it.statistics().receive_buffer_packets == 0)
            {
                state.forget(id);
            }
        }
        state.ask_links();
        state.take_losses();
        let now = punctual_io::now();
        state.machine.handle_timeout(now);
        state.carry_out();
        let told = state.told_due;
        let delivery = state.machine.next_delivery().filter(|&at| at > told);
        let is_due = delivery.filter(|&at| at <= now);
        state.told_due = is_due.unwrap_or(told);
        state.sleeps_until =
            state.machine.poll_timeout().into_iter().chain(delivery.filter(|&at| at > now)).min();
        let next = state.sleeps_until;
        drop(state);
        if is_due.is_some() {
            self.signals.readable.notify_waiters();
        }
        // Another link may carry the stream now.
        self.signals.writable.notify_waiters();
        if any_ended {
            self.signals.readable.notify_waiters();
        }
        next
    }
}

impl State {
    /// Says which link has ended, and why.
    fn tell_end(&self, id: LinkId, reason: &CloseReason) {
        let Some(remote) = self.members.get(&id).map(Socket::peer_addr) else { return };
        match reason {
            _ if self.closing => tracing::debug!("a link of the group ended: {remote}: {reason}"),
            // So a stream ends.
            CloseReason::Peer => tracing::info!("a link of the group ended: {remote}: {reason}"),
            _ => tracing::warn!("a link of the group ended: {remote}: {reason}"),
        }
    }
}
