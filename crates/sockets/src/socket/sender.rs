//! Sending messages, and bytes of a stream.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use punctual::{Error, Instant, MsgNo, SendOptions, Submitted, Transmission};
use punctual_blocking::Events;

use super::control::MessageControl;
use super::core::Core;
use super::link::Link;
use crate::code::{Code, Failure};
use crate::options::MAX_LIVE_PAYLOAD;

/// The sending half of a socket.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// Held by the thread that sends: two sends follow each other.
    one_at_a_time: Mutex<()>,
}

impl Sender {
    /// Sends a message, or bytes of a stream. Returns the number of bytes that were taken.
    pub(super) fn send(
        &self,
        core: &Core,
        data: &[u8],
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        let link = core.connected_to_send()?;
        core.check_open()?;
        if data.is_empty() {
            return Ok(0);
        }
        if link.mode == Transmission::Stream {
            return self.write(core, link, data, control);
        }
        if link.mode == Transmission::Live && data.len() > most_live_bytes(core) {
            return Err(Code::InvalidMessageCall.into());
        }
        let options = send_options(core, link, control)?;
        let number = message_number(control.number)?;
        let mut first = Some(Bytes::copy_from_slice(data));
        let _one_at_a_time = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let submitted = until_room(core, || {
            // The first attempt nearly always finds room. Its payload is not cloned: the first
            // clone of a buffer allocates.
            let payload = first.take().unwrap_or_else(|| Bytes::copy_from_slice(data));
            link.send(payload, options, number)
        })?;
        note_submitted(core, link, &submitted, control);
        Ok(data.len())
    }

    /// Sends bytes of a stream, as many as there is room for.
    fn write(
        &self,
        core: &Core,
        link: &Link,
        data: &[u8],
        control: &mut MessageControl,
    ) -> Result<usize, Failure> {
        let number = message_number(control.number)?;
        // A stream has no origin times, but a wrong one is refused as that of a message is.
        send_options(core, link, control)?;
        let mut left = Bytes::copy_from_slice(data);
        let _one_at_a_time = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        let submitted = until_room(core, || link.write(&mut left, number))?;
        note_submitted(core, link, &submitted, control);
        Ok(data.len() - left.len())
    }
}

/// Tells the caller the numbers of its message, and notes whether the buffer is full now.
fn note_submitted(core: &Core, link: &Link, submitted: &Submitted, control: &mut MessageControl) {
    if !submitted.has_room {
        note_full(core, link);
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
    core: &Core,
    mut attempt: impl FnMut() -> Result<Option<R>, Error>,
) -> Result<R, Failure> {
    let mut deadline = None;
    loop {
        let mark = core.mark();
        if let Some(done) = attempt().map_err(|error| send_failure(&error))? {
            return Ok(done);
        }
        core.clear(Events::OUT, mark);
        if !core.settings.send_blocks() {
            return Err(Code::AgainSend.into());
        }
        let deadline = *deadline.get_or_insert_with(|| core.settings.send_deadline());
        if !core.readiness.wait(mark, deadline) {
            return Err(Code::Timeout.into());
        }
        core.check_open()?;
    }
}

/// The send buffer is full now.
fn note_full(core: &Core, link: &Link) {
    let mark = core.mark();
    if !link.has_room() {
        core.clear(Events::OUT, mark);
    }
}

fn most_live_bytes(core: &Core) -> usize {
    match core.settings.payload() {
        0 => usize::try_from(MAX_LIVE_PAYLOAD).unwrap_or(usize::MAX),
        payload => payload,
    }
}

fn send_options(
    core: &Core,
    link: &Link,
    control: &MessageControl,
) -> Result<SendOptions, Failure> {
    let origin = match u64::try_from(control.time) {
        Ok(0) => None,
        // The largest numbers would be no times at all.
        Ok(origin) if origin >= core.opened_at() => Some(origin.min(LATEST)),
        _ => return Err(Code::InvalidMessageCall.into()),
    };
    let ttl = u64::try_from(control.ttl).ok().map(Duration::from_millis);
    let origin = origin.filter(|_| link.is_timed).map(Instant::from_micros);
    Ok(SendOptions { ttl, origin, in_order: control.in_order })
}

/// The number that a program gives its message; `None` if the library counts.
fn message_number(number: i32) -> Result<Option<MsgNo>, Failure> {
    match u32::try_from(number) {
        Ok(number @ 1..) if number <= MsgNo::MAX.value() => Ok(Some(MsgNo::new(number))),
        Err(_) if number == COUNTED => Ok(None),
        _ => Err(Code::InvalidParameter.into()),
    }
}

/// A time of which nanoseconds can be counted, microseconds: in some hundreds of years.
const LATEST: u64 = u64::MAX / 1_000;
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
    fn a_message_of_the_future_is_due_a_latency_after_its_time() {
        let library = Library::start().unwrap();
        let ends = pair(&library, &[(OptionNumber::LATENCY, 20)]);
        for ahead in [0, 90_000, 250_000] {
            let sent = i64::try_from(punctual::now().as_micros()).unwrap() + ahead;
            send_at(&library, ends.caller, sent).unwrap();
            receive(&library, ends.accepted).unwrap();
            let came = i64::try_from(punctual::now().as_micros()).unwrap();
            assert!(came >= sent + 20_000, "{ahead} us ahead, and {} us early", sent - came);
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
