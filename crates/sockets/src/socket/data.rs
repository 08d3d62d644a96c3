//! Sending and receiving.

use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use bytes::Bytes;
use bytes::buf::UninitSlice;
use punctual::{
    CloseReason, Error, Instant, Message, MsgNo, SendOptions, Submitted, Transmission, Wakes,
};

use super::control::MessageControl;
use super::inbox::Inbox;
use super::link::Link;
use super::{Socket, Stage};
use crate::code::{Code, Failure};
use crate::events::Events;
use crate::options::MAX_LIVE_PAYLOAD;

impl Socket {
    /// Sends a message, or bytes of a stream. Returns the number of bytes that were taken.
    pub(crate) fn send(&self, data: &[u8], control: &mut MessageControl) -> Result<usize, Failure> {
        let link = self.link.get().ok_or_else(|| self.not_connected())?;
        self.check_open()?;
        if data.is_empty() {
            return Ok(0);
        }
        if link.mode == Transmission::Stream {
            return self.write(link, data, control);
        }
        if link.mode == Transmission::Live && data.len() > self.most_live_bytes() {
            return Err(Code::InvalidMessageCall.into());
        }
        let options = self.send_options(link, control)?;
        let number = message_number(control.number)?;
        let mut first = Some(Bytes::copy_from_slice(data));
        let _one_at_a_time = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let submitted = self.until_room(|| {
            // The first attempt nearly always finds room. Its payload is not cloned: the first
            // clone of a buffer allocates.
            let payload = first.take().unwrap_or_else(|| Bytes::copy_from_slice(data));
            link.send(payload, options, number)
        })?;
        self.note_submitted(link, &submitted, control);
        Ok(data.len())
    }

    /// Sends bytes of a stream, as many as there is room for.
    fn write(
        &self,
        link: &Link,
        data: &[u8],
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        let number = message_number(control.number)?;
        // A stream has no origin times, but a wrong one is refused as that of a message is.
        self.send_options(link, control)?;
        let mut left = Bytes::copy_from_slice(data);
        let _one_at_a_time = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let submitted = self.until_room(|| link.write(&mut left, number))?;
        self.note_submitted(link, &submitted, control);
        Ok(data.len() - left.len())
    }

    /// Tells the caller the numbers of its message, and notes whether the buffer is full now.
    fn note_submitted(&self, link: &Link, submitted: &Submitted, control: &mut MessageControl) {
        if !submitted.has_room {
            self.note_full(link);
        }
        if link.means.is_due(submitted.at) {
            link.means.sample(submitted.at, &link.statistics());
        }
        control.sequence = i32::try_from(submitted.seq.value()).unwrap_or(-1);
        control.number = i32::try_from(submitted.msgno.value()).unwrap_or(-1);
        if control.time == 0 || !link.is_timed {
            control.time = i64::try_from(submitted.at.as_micros()).unwrap_or(0);
        }
    }

    /// Repeats `attempt` until there is room, if calls that send wait.
    fn until_room<R>(
        &self,
        mut attempt: impl FnMut() -> Result<Option<R>, Error>,
    ) -> Result<R, Failure> {
        let mut deadline = None;
        loop {
            let mark = self.readiness.mark();
            if let Some(done) = attempt().map_err(|error| send_failure(&error))? {
                return Ok(done);
            }
            self.readiness.clear(self.id, Events::OUT, mark);
            if !self.settings.send_blocks() {
                return Err(Code::AgainSend.into());
            }
            let deadline = *deadline.get_or_insert_with(|| self.settings.send_deadline());
            if !self.readiness.wait(mark, deadline) {
                return Err(Code::Timeout.into());
            }
            self.check_open()?;
        }
    }

    /// The send buffer is full now.
    fn note_full(&self, link: &Link) {
        let mark = self.readiness.mark();
        if !link.has_room() {
            self.readiness.clear(self.id, Events::OUT, mark);
        }
    }

    /// Fails if nothing can be sent any more.
    fn check_open(&self) -> Result<(), Failure> {
        let has_ended = self.is_known_closed() || self.broken.load(Ordering::Relaxed);
        if has_ended { Err(Code::ConnectionLost.into()) } else { Ok(()) }
    }

    fn most_live_bytes(&self) -> usize {
        match self.settings.payload() {
            0 => usize::try_from(MAX_LIVE_PAYLOAD).unwrap_or(usize::MAX),
            payload => payload,
        }
    }

    fn send_options(&self, link: &Link, control: &MessageControl) -> Result<SendOptions, Failure> {
        let origin = match u64::try_from(control.time) {
            Ok(0) => None,
            // A time in the future counts as now; the largest numbers would be no times at all.
            Ok(origin) if origin >= self.opened_at() => {
                Some(origin.min(punctual::now().as_micros()))
            }
            _ => return Err(Code::InvalidMessageCall.into()),
        };
        let ttl = u64::try_from(control.ttl).ok().map(Duration::from_millis);
        let origin = origin.filter(|_| link.is_timed).map(Instant::from_micros);
        Ok(SendOptions { ttl, origin, in_order: control.in_order })
    }

    /// Receives a message, or bytes of a stream, into `buffer`. Returns the number of bytes; 0 at
    /// the end of a stream.
    pub(crate) fn receive(
        &self,
        buffer: &mut UninitSlice,
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        let link = self.link.get().ok_or_else(|| self.not_connected())?;
        if buffer.len() == 0 {
            return Err(Code::InvalidParameter.into());
        }
        if link.mode == Transmission::Live && buffer.len() < self.settings.payload() {
            return Err(Code::InvalidMessageCall.into());
        }
        let mut inbox = self.inbox();
        if inbox.is_empty() {
            inbox = self.await_data(link, inbox)?;
        }
        let read = match link.mode {
            Transmission::Stream => inbox.read(buffer),
            _ => inbox.pop().map_or(0, |message| take(&message, link, buffer, control)),
        };
        if inbox.is_empty() {
            self.note_exhausted(link, &mut inbox);
        }
        Ok(read)
    }

    /// Waits until the inbox has something, if calls that receive wait. At the end of a stream it
    /// stays empty.
    fn await_data<'a>(
        &'a self,
        link: &Link,
        mut inbox: MutexGuard<'a, Inbox>,
    ) -> Result<MutexGuard<'a, Inbox>, Failure> {
        let mut deadline = None;
        loop {
            let mark = self.readiness.mark();
            let filled = match inbox.is_drained(mark) {
                true => Ok(()),
                false => inbox.fill(mark, |messages, limit| link.receive(messages, limit)),
            };
            if let Err(error) = filled {
                self.announce_end();
                // That there is nothing to read is known now.
                self.readiness.clear(self.id, Events::IN, self.readiness.mark());
                return self.end_of_data(link, &error).map(|()| inbox);
            }
            if !inbox.is_empty() {
                return Ok(inbox);
            }
            if self.is_closed() {
                return self.end_of_data(link, &Error::Closed(CloseReason::Local)).map(|()| inbox);
            }
            self.readiness.clear(self.id, Events::IN, mark);
            if !self.settings.receive_blocks() {
                return Err(Code::AgainReceive.into());
            }
            drop(inbox);
            let deadline = *deadline.get_or_insert_with(|| self.settings.receive_deadline());
            let in_time = self.readiness.wait(mark, deadline);
            inbox = self.inbox();
            if !in_time && inbox.is_empty() {
                return Err(Code::Timeout.into());
            }
            if !inbox.is_empty() {
                return Ok(inbox);
            }
        }
    }

    /// The result of a call once everything was received: streams have an end, messages do not.
    fn end_of_data(&self, link: &Link, error: &Error) -> Result<(), Failure> {
        let closed = matches!(error, Error::Closed(CloseReason::Peer | CloseReason::Local));
        match link.mode {
            Transmission::Stream if closed => Ok(()),
            _ => Err(Code::ConnectionLost.into()),
        }
    }

    /// Nothing more is due now.
    fn note_exhausted(&self, link: &Link, inbox: &mut Inbox) {
        let mark = self.readiness.mark();
        if inbox.is_drained(mark) {
            self.readiness.clear(self.id, Events::IN, mark);
            return;
        }
        match inbox.fill(mark, |messages, limit| link.receive(messages, limit)) {
            Ok(()) if inbox.is_empty() && inbox.was_drained() => {
                self.readiness.clear(self.id, Events::IN, mark);
            }
            Ok(()) => {}
            Err(_) => {
                self.announce_end();
                self.readiness.clear(self.id, Events::IN, self.readiness.mark());
            }
        }
    }

    /// Something can be received, unless the application has taken it already.
    ///
    /// The driver takes live messages out of the connection itself, since a thread of the
    /// application that did so would compete with it for the lock of the port. It waits for no
    /// thread that uses the inbox, which may have lost its processor.
    pub(super) fn announce_data(&self, link: &Link, wakes: &mut Wakes) {
        let inbox = match self.inbox.try_lock() {
            Ok(inbox) => Some(inbox),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match inbox {
            Some(mut inbox) if link.is_live() => self.hand_over(link, &mut inbox, wakes),
            inbox => {
                let has_some = inbox.is_some_and(|inbox| !inbox.is_empty());
                if has_some || link.readiness().readable {
                    self.readiness.raise_together(self.id, Events::IN, wakes);
                }
            }
        }
    }

    /// Fills the inbox if it is empty. Otherwise the application does so when it has emptied it.
    fn hand_over(&self, link: &Link, inbox: &mut Inbox, wakes: &mut Wakes) {
        if !inbox.is_empty() {
            self.readiness.raise_together(self.id, Events::IN, wakes);
            return;
        }
        let mark = self.readiness.mark();
        // The end of the connection is reported as a change of its phase.
        let _ = inbox.fill(mark, |messages, limit| link.receive(messages, limit));
        if !inbox.is_empty() {
            self.readiness.raise_together(self.id, Events::IN, wakes);
            inbox.remain_drained(self.readiness.mark());
        }
    }

    /// The connection has ended. Subscribers that wait for data hear of it after the last message;
    /// the others at once.
    pub(super) fn announce_break(&self) {
        let Some(link) = self.link.get() else { return };
        let mut inbox = self.inbox();
        if !inbox.is_empty() {
            self.readiness.raise_held(self.id);
            return;
        }
        let mark = self.readiness.mark();
        match inbox.fill(mark, |messages, limit| link.receive(messages, limit)) {
            Ok(()) if inbox.is_empty() => self.readiness.raise_held(self.id),
            Ok(()) => {
                self.readiness.raise(self.id, Events::IN);
                self.readiness.raise_held(self.id);
            }
            Err(_) => self.announce_end(),
        }
    }

    /// The connection has ended, and everything was received.
    fn announce_end(&self) {
        let is_broken = matches!(self.lock().stage, Stage::Broken(_));
        if is_broken && !self.readiness.events().any(Events::ERR) {
            self.readiness.raise(self.id, Events::BROKEN);
        }
    }

    /// The number of messages that were taken from the connection and not received yet.
    pub(super) fn waiting_messages(&self) -> usize {
        self.inbox().len()
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The number that a program gives its message; `None` if the library counts.
fn message_number(number: i32) -> Result<Option<MsgNo>, Failure> {
    match u32::try_from(number) {
        Ok(number @ 1..) if number <= MsgNo::MAX.value() => Ok(Some(MsgNo::new(number))),
        Err(_) if number == COUNTED => Ok(None),
        _ => Err(Code::InvalidParameter.into()),
    }
}

/// Stands for a message number that the library counts.
const COUNTED: i32 = -1;

fn send_failure(error: &Error) -> Failure {
    match error {
        Error::Size { .. } => Code::LargeMessage.into(),
        Error::Peer(_) => Code::Peer.into(),
        _ => Code::ConnectionLost.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_fails, pair, receive, send, set};
    use crate::{Library, OptionNumber};

    const AT_ONCE: (OptionNumber, i32) = (OptionNumber::LATENCY, 0);

    fn send_at(library: &Library, id: i32, time: i64) -> Result<MessageControl, Failure> {
        let mut control = MessageControl { time, ..MessageControl::default() };
        library.send(id, b"on time", &mut control).map(|_| control)
    }

    #[test]
    fn any_origin_time_is_taken_or_refused() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[AT_ONCE]);
        for future in [i64::MAX, i64::MAX / 2, i64::MAX / 1_000 + 1] {
            send_at(&library, ends.caller, future).unwrap();
            assert_eq!(receive(&library, ends.accepted).unwrap(), b"on time");
        }
        for past in [-1, i64::MIN, 1] {
            assert_fails(send_at(&library, ends.caller, past), Code::InvalidMessageCall);
        }
        library.shut_down();
    }

    #[test]
    fn a_message_has_the_numbers_that_its_sender_was_told() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[AT_ONCE]);
        let sent = send_at(&library, ends.caller, 0).unwrap();
        let mut received = MessageControl::default();
        let mut buffer = [0; 1_500];
        assert_eq!(library.receive(ends.accepted, &mut buffer, &mut received).unwrap(), 7);
        assert_eq!((received.sequence, received.number), (sent.sequence, sent.number));
        library.shut_down();
    }

    #[test]
    fn a_call_that_would_wait_fails_at_once_or_after_its_time() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[]);
        set(&library, ends.accepted, &[(OptionNumber::RCVTIMEO, 1)]);
        assert_fails(receive(&library, ends.accepted), Code::Timeout);
        set(&library, ends.accepted, &[(OptionNumber::RCVSYN, 0)]);
        assert_fails(receive(&library, ends.accepted), Code::AgainReceive);
        library.shut_down();
    }

    #[test]
    fn the_largest_message_is_that_of_the_mode() {
        let library = Library::start().unwrap();
        let live = pair(&library, &[]);
        let large = [0; 1_317];
        let sent = library.send(live.caller, &large, &mut MessageControl::default());
        assert_fails(sent, Code::InvalidMessageCall);
        let messages = [(OptionNumber::TRANSTYPE, 1), (OptionNumber::MESSAGEAPI, 1)];
        let file = pair(&library, &messages);
        assert_eq!(send(&library, file.caller, &large), large.len());
        let bounded = [messages[0], messages[1], (OptionNumber::SNDBUF, 100_000)];
        let bounded = pair(&library, &bounded);
        let sent = library.send(bounded.caller, &[0; 200_000], &mut MessageControl::default());
        assert_fails(sent, Code::LargeMessage);
        library.shut_down();
    }

    #[test]
    fn a_stream_ends_and_live_messages_break_off() {
        let library = Library::start().unwrap();
        let stream = pair(&library, &[(OptionNumber::TRANSTYPE, 1)]);
        send(&library, stream.caller, b"the last bytes");
        library.close(stream.caller);
        assert_eq!(receive(&library, stream.accepted).unwrap(), b"the last bytes");
        assert_eq!(receive(&library, stream.accepted).unwrap(), b"");
        let live = pair(&library, &[AT_ONCE]);
        library.close(live.caller);
        assert_fails(receive(&library, live.accepted), Code::ConnectionLost);
        library.shut_down();
    }
}
