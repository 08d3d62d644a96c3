//! The packets that an established connection sends.

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{Ack, Control};

use super::Established;
use crate::connection::output::Output;
use crate::connection::path_updates;
use crate::connection::signals::ConnectionSignals;
use crate::connection::timer::{ConnectionTimer, TimerCause};
use crate::error::CloseReason;

/// Writes the packets of a connection that are due, in one pass.
#[derive(Debug)]
pub(super) struct Writer<'a, 'b> {
    pub(super) connection: &'a mut Established,
    pub(super) out: &'a mut Output<'b>,
    pub(super) signals: &'a mut ConnectionSignals,
}

impl Writer<'_, '_> {
    /// Writes datagrams as far as the batch has room, control packets first. Returns whether it
    /// still has. The batch takes out datagrams that are too long for the path.
    pub(super) fn write_datagrams(mut self) -> bool {
        let has_room =
            !self.connection.is_live() || (self.write_packets() && self.write_shutdowns());
        if has_room {
            self.connection.reschedule(self.out.now, TimerCause::Written, self.signals);
        }
        has_room
    }

    fn write_packets(&mut self) -> bool {
        let mut only_data = false;
        loop {
            let before = self.out.buffer.len();
            if only_data || !self.write_control() {
                let (rtt, crypt) =
                    (self.connection.rtt.estimate(), self.connection.keys.crypt_mut());
                let peer = self.connection.negotiated.fixed.peer_socket_id;
                if !self.connection.sender.write_packet(
                    self.out.now,
                    self.out.start,
                    peer,
                    rtt,
                    crypt,
                    self.out.buffer,
                ) {
                    return true;
                }
                self.connection.lifetime.note_sent(self.out.now);
                // A data packet makes no other control packets due than these two.
                only_data = !self.connection.response.precedes_data()
                    && !self.connection.keys.request_is_due();
            }
            if !self.out.batch.add(self.out.buffer, before) {
                return false;
            }
        }
    }

    /// Writes the next control packet, if one waits.
    fn write_control(&mut self) -> bool {
        if self.connection.response.precedes_data()
            && self.connection.sender.next_send().is_due(self.out.now)
        {
            self.connection.response.go_ahead_of_data();
        }
        let wrote = if self.connection.has_control() {
            self.write_key_message() || self.write_pending()
        } else {
            self.write_nak_copy()
        };
        if wrote {
            self.connection.lifetime.note_sent(self.out.now);
        }
        wrote
    }

    fn write_pending(&mut self) -> bool {
        let (now, rtt, dest) =
            (self.out.now, self.connection.rtt.estimate(), self.connection.peer());
        let losses;
        let body;
        let control = if let Some(response) = self.connection.response.take() {
            Control::Handshake(Box::new(response.clone()))
        } else if let Some(answer) = self.connection.pending.path_answer.take() {
            body = answer;
            Control::Extension { command: path_updates::ANSWER, body: &body }
        } else if let Some(number) = self.connection.pending.ack_ack.take() {
            Control::AckAck(number)
        } else if std::mem::take(&mut self.connection.pending.ack) {
            Control::Ack(self.make_ack(now, rtt))
        } else if let Some(light) = self.connection.receiver.take_light_ack() {
            Control::Ack(light)
        } else if let Some(list) =
            self.connection.receiver.take_nak(now, self.connection.room.loss_list, rtt)
        {
            losses = list;
            Control::Nak(losses.as_list())
        } else if let Some(request) = self.connection.sender.next_drop_request() {
            Control::DropRequest(request)
        } else if let Some(control) = self.connection.pending.take_last() {
            control
        } else {
            return false;
        };
        let is_feedback = matches!(control, Control::Ack(_) | Control::Nak(_));
        self.out.emit(now, dest, control);
        if is_feedback {
            self.connection.reschedule(now, TimerCause::Data, self.signals);
        }
        true
    }

    fn make_ack(&mut self, now: Instant, rtt: Rtt) -> Ack {
        if let Some(updates) = &mut self.connection.path_updates {
            self.connection.timers.set(ConnectionTimer::Quiet, now + updates.begin_quiet());
        }
        let wait = self.connection.rtt.timeout();
        let ack = self.connection.receiver.make_ack(now, rtt, wait);
        if let Some(number) = ack.number() {
            self.connection.rtt.ack_sent(now, number);
        }
        ack
    }

    /// Writes the copy of a NAK. It has the timestamp of the NAK, by which the peer knows it for a
    /// copy.
    fn write_nak_copy(&mut self) -> bool {
        let Some((made, list)) = self.connection.receiver.take_nak_copy(self.out.now) else {
            return false;
        };
        self.out.emit(
            made,
            self.connection.negotiated.fixed.peer_socket_id,
            Control::Nak(list.as_list()),
        );
        self.connection.reschedule(self.out.now, TimerCause::NakCopyWritten, self.signals);
        true
    }

    /// Writes the answer to a key message, or an announcement of a key.
    fn write_key_message(&mut self) -> bool {
        let (dest, rtt) = (self.connection.peer(), self.connection.rtt.estimate().smoothed);
        let Some(message) = self.connection.keys.take(self.out.now, rtt) else { return false };
        let command = message.command;
        self.out.emit(self.out.now, dest, Control::Extension { command, body: &message.body });
        if message.is_request() {
            self.connection.reschedule(self.out.now, TimerCause::Data, self.signals);
        }
        true
    }

    /// Writes the copies of SHUTDOWN that are due, as far as the batch has room. Returns whether it
    /// still has. The connection ends with the last copy.
    fn write_shutdowns(&mut self) -> bool {
        while self.connection.lifetime.shutdown_is_due() {
            let before = self.out.buffer.len();
            self.out.emit(self.out.now, self.connection.peer(), Control::Shutdown);
            self.connection.lifetime.note_sent(self.out.now);
            if self.connection.lifetime.note_shutdown_sent() {
                self.connection.lifetime.end(CloseReason::Local);
                self.connection.receiver.end();
                self.signals.closed = Some(CloseReason::Local);
                self.connection.reschedule(self.out.now, TimerCause::Data, self.signals);
            }
            if !self.out.batch.add(self.out.buffer, before) {
                return false;
            }
        }
        true
    }
}
