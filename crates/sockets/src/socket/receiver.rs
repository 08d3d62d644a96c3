//! Receiving messages, and bytes of a stream.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use bytes::buf::UninitSlice;
use punctual::{CloseReason, Error, Message, Transmission, Wakes};
use punctual_blocking::{Events, MessageInbox};

use super::control::MessageControl;
use super::core::Core;
use super::link::Link;
use crate::code::{Code, Failure};

/// The receiving half of a socket.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    inbox: Mutex<MessageInbox>,
}

impl Receiver {
    /// Receives a message, or bytes of a stream, into `buffer`. Returns the number of bytes; 0 at
    /// the end of a stream.
    pub(super) fn receive(
        &self,
        core: &Core,
        buffer: &mut UninitSlice,
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        let link = core.connected()?;
        if buffer.len() == 0 {
            return Err(Code::InvalidParameter.into());
        }
        if link.mode == Transmission::Live && buffer.len() < core.settings.payload() {
            return Err(Code::InvalidMessageCall.into());
        }
        let mut inbox = self.inbox();
        if inbox.is_empty() {
            inbox = self.await_data(core, link, inbox)?;
        }
        let read = match link.mode {
            Transmission::Stream => inbox.read(buffer),
            _ => inbox.pop().map_or(0, |message| take(&message, link, buffer, control)),
        };
        if inbox.is_empty() {
            note_exhausted(core, link, &mut inbox);
        }
        Ok(read)
    }

    /// Waits until the inbox has something, if calls that receive wait. At the end of a stream it
    /// stays empty.
    fn await_data<'a>(
        &'a self,
        core: &Core,
        link: &Link,
        mut inbox: MutexGuard<'a, MessageInbox>,
    ) -> Result<MutexGuard<'a, MessageInbox>, Failure> {
        let mut deadline = None;
        loop {
            let mark = core.mark();
            let filled = match inbox.is_drained(mark) {
                true => Ok(()),
                false => inbox.fill(mark, |messages, limit| link.receive(messages, limit)),
            };
            if let Err(error) = filled {
                announce_end(core);
                // That there is nothing to read is known now.
                core.clear(Events::IN, core.mark());
                return end_of_data(link, &error).map(|()| inbox);
            }
            if !inbox.is_empty() {
                return Ok(inbox);
            }
            if core.is_closed() {
                return end_of_data(link, &Error::Closed(CloseReason::Local)).map(|()| inbox);
            }
            if link.is_connecting() {
                return Err(Code::NotConnected.into());
            }
            core.clear(Events::IN, mark);
            if !core.settings.receive_blocks() {
                return Err(Code::AgainReceive.into());
            }
            drop(inbox);
            let deadline = *deadline.get_or_insert_with(|| core.settings.receive_deadline());
            let in_time = core.readiness.wait(mark, deadline);
            inbox = self.inbox();
            if !in_time && inbox.is_empty() {
                return Err(Code::Timeout.into());
            }
            if !inbox.is_empty() {
                return Ok(inbox);
            }
        }
    }

    /// Something can be received, unless the application has taken it already.
    ///
    /// The driver takes live messages out of the connection itself, since a thread of the
    /// application that did so would compete with it for the lock of the port. It waits for no
    /// thread that uses the inbox, which may have lost its processor.
    pub(super) fn announce_data(&self, core: &Core, link: &Link, wakes: &mut Wakes) {
        let inbox = match self.inbox.try_lock() {
            Ok(inbox) => Some(inbox),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match inbox {
            Some(mut inbox) if link.is_live() => hand_over(core, link, &mut inbox, wakes),
            inbox => {
                let has_some = inbox.is_some_and(|inbox| !inbox.is_empty());
                if has_some || link.readiness().readable {
                    core.raise_together(Events::IN, wakes);
                }
            }
        }
    }

    /// The connection has ended. Subscribers that wait for data hear of it after the last message;
    /// the others at once.
    pub(super) fn announce_break(&self, core: &Core) {
        let Some(link) = core.link() else { return };
        let mut inbox = self.inbox();
        if !inbox.is_empty() {
            core.raise_held();
            return;
        }
        let mark = core.mark();
        match inbox.fill(mark, |messages, limit| link.receive(messages, limit)) {
            Ok(()) if inbox.is_empty() => core.raise_held(),
            Ok(()) => {
                core.raise(Events::IN);
                core.raise_held();
            }
            Err(_) => announce_end(core),
        }
    }

    /// The number of messages that were taken from the connection and not received yet.
    pub(super) fn waiting(&self) -> usize {
        self.inbox().len()
    }

    fn inbox(&self) -> MutexGuard<'_, MessageInbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of a call once everything was received: streams have an end, messages do not.
fn end_of_data(link: &Link, error: &Error) -> Result<(), Failure> {
    let closed = matches!(error, Error::Closed(CloseReason::Peer | CloseReason::Local));
    match link.mode {
        Transmission::Stream if closed => Ok(()),
        _ => Err(Code::ConnectionLost.into()),
    }
}

/// Nothing more is due now.
fn note_exhausted(core: &Core, link: &Link, inbox: &mut MessageInbox) {
    let mark = core.mark();
    if inbox.is_drained(mark) {
        core.clear(Events::IN, mark);
        return;
    }
    match inbox.fill(mark, |messages, limit| link.receive(messages, limit)) {
        Ok(()) if inbox.is_empty() && inbox.was_drained() => {
            core.clear(Events::IN, mark);
        }
        Ok(()) => {}
        Err(_) => {
            announce_end(core);
            core.clear(Events::IN, core.mark());
        }
    }
}

/// Fills the inbox if it is empty. Otherwise the application does so when it has emptied it.
fn hand_over(core: &Core, link: &Link, inbox: &mut MessageInbox, wakes: &mut Wakes) {
    if !inbox.is_empty() {
        core.raise_together(Events::IN, wakes);
        return;
    }
    let mark = core.mark();
    // The end of the connection is reported as a change of its phase.
    let _ = inbox.fill(mark, |messages, limit| link.receive(messages, limit));
    if !inbox.is_empty() {
        core.raise_together(Events::IN, wakes);
        inbox.remain_drained(core.mark());
    }
}

/// The connection has ended, and everything was received.
fn announce_end(core: &Core) {
    if core.is_broken() && !core.readiness.events().any(Events::ERR) {
        core.raise(Events::BROKEN);
    }
}

/// Copies a message into `buffer`; what does not fit is lost, as in libsrt. The sequence number is
/// that of the message's last packet.
fn take(
    message: &Message,
    link: &Link,
    buffer: &mut UninitSlice,
    control: &mut MessageControl,
) -> usize {
    let len = message.payload.len().min(buffer.len());
    buffer[..len].copy_from_slice(&message.payload[..len]);
    control.time = i64::try_from(message.due.as_micros()).unwrap_or(0);
    let further_packets = link.packets(message.payload.len()).saturating_sub(1);
    let last = message.seq.plus(u32::try_from(further_packets).unwrap_or(0));
    control.sequence = i32::try_from(last.value()).unwrap_or(-1);
    control.number = i32::try_from(message.msgno.value()).unwrap_or(-1);
    len
}
