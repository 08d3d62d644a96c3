use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket};

use super::Signals;
use super::batch::Batch;
use super::established::{Cause, Established};
use super::path_updates;
use super::send::timestamp;
use super::timer::{Timer, TimerTable};

/// Commands of key messages outside the handshake.
pub(crate) const KMREQ: u16 = 3;
pub(crate) const KMRSP: u16 = 4;

impl Established {
    /// Appends its datagrams to `out` as far as `batch` has room, control packets first; whether it
    /// has. Datagrams that are too long for the path are taken out again.
    pub(crate) fn write_datagrams(
        &mut self,
        now: Instant,
        start: Instant,
        batch: &mut Batch,
        out: &mut Vec<u8>,
        timers: &mut TimerTable,
        signals: &mut Signals,
    ) -> bool {
        if !self.is_live() {
            return true;
        }
        let mut only_data = false;
        loop {
            let before = out.len();
            if only_data || !self.write_control(now, start, out, timers, signals) {
                let (rtt, crypt) = (self.rtt.estimate(), self.crypt.as_deref_mut());
                if !self.sender.write_packet(now, start, self.peer, rtt, crypt, out) {
                    return self.write_shutdowns(now, start, batch, out, timers, signals);
                }
                self.last.sent = now;
                // Sending data brings up nothing else, but for this.
                only_data = !self.response.precedes_data() && !self.owes_key_request();
            }
            if !batch.add(out, before) {
                return false;
            }
        }
    }

    fn write_control(
        &mut self,
        now: Instant,
        start: Instant,
        out: &mut Vec<u8>,
        timers: &mut TimerTable,
        signals: &mut Signals,
    ) -> bool {
        if self.response.precedes_data() && self.sender.next_send().is_due(now) {
            self.response.go_ahead_of_data();
        }
        let wrote = if self.has_control() {
            self.write_pending(now, start, out, timers)
        } else {
            self.write_nak_copy(now, start, out)
        };
        if wrote {
            self.last.sent = now;
            self.reschedule(now, Cause::Data, timers, signals);
        }
        wrote
    }

    fn write_pending(
        &mut self,
        now: Instant,
        start: Instant,
        out: &mut Vec<u8>,
        timers: &mut TimerTable,
    ) -> bool {
        if self.write_key_message(now, start, out) {
            return true;
        }
        let losses;
        let body;
        let pending = &mut self.pending;
        let control = if let Some(response) = self.response.take() {
            Control::Handshake(Box::new(response.clone()))
        } else if let Some(answer) = pending.path_answer.take() {
            body = answer;
            Control::Extension { command: path_updates::ANSWER, body: &body }
        } else if let Some(number) = pending.ack_ack.take() {
            Control::AckAck(number)
        } else if std::mem::take(&mut pending.ack) {
            if let Some(updates) = &mut self.path_updates {
                timers.set(Timer::Quiet, now + updates.begin_quiet());
            }
            let ack = self.receiver.make_ack(now, self.rtt.estimate());
            if let Some(number) = ack.number() {
                self.rtt.ack_sent(now, number);
            }
            Control::Ack(ack)
        } else if let Some(light) = self.receiver.take_light_ack() {
            Control::Ack(light)
        } else if let Some(list) =
            self.receiver.take_nak(now, self.loss_list_words, self.rtt.estimate())
        {
            losses = list;
            Control::Nak(losses.as_list())
        } else if let Some(request) = self.sender.next_drop_request() {
            Control::DropRequest(request)
        } else if let Some(error) = pending.error.take() {
            Control::PeerError(error.code())
        } else if std::mem::take(&mut pending.idle) {
            Control::KeepAliveIdle
        } else if std::mem::take(&mut pending.path_probe) {
            Control::Extension { command: path_updates::PROBE, body: &[0; 16] }
        } else if std::mem::take(&mut pending.keep_alive) {
            Control::KeepAlive
        } else {
            return false;
        };
        self.emit(now, start, control, out);
        true
    }

    /// The copy of a loss report, which tells by its time that it is one.
    fn write_nak_copy(&mut self, now: Instant, start: Instant, out: &mut Vec<u8>) -> bool {
        let Some((made, list)) = self.receiver.take_nak_copy(now) else {
            return false;
        };
        self.emit(made, start, Control::Nak(list.as_list()), out);
        true
    }

    /// An answer to a key message, or a key message of our own.
    fn write_key_message(&mut self, now: Instant, start: Instant, out: &mut Vec<u8>) -> bool {
        if let Some(body) = self.pending.key_answer.take() {
            self.emit(now, start, Control::Extension { command: KMRSP, body: &body }, out);
            return true;
        }
        let rtt = self.rtt.estimate().smoothed;
        let Some(crypt) = self.crypt.as_mut().filter(|crypt| crypt.sealing.owes_request()) else {
            return false;
        };
        let Some(body) = crypt.sealing.take_request(now, rtt) else { return false };
        let control = Control::Extension { command: KMREQ, body };
        ControlPacket { timestamp: timestamp(start, now), dest: self.peer, control }.emit(out);
        true
    }

    /// Says SHUTDOWN, if it is time, as often as `batch` has room; whether it has.
    fn write_shutdowns(
        &mut self,
        now: Instant,
        start: Instant,
        batch: &mut Batch,
        out: &mut Vec<u8>,
        timers: &mut TimerTable,
        signals: &mut Signals,
    ) -> bool {
        while self.pending.shutdowns > 0 {
            let before = out.len();
            self.emit(now, start, Control::Shutdown, out);
            self.last.sent = now;
            self.pending.shutdowns -= 1;
            if self.pending.shutdowns == 0 {
                self.finish_close(signals);
                self.reschedule(now, Cause::Data, timers, signals);
            }
            if !batch.add(out, before) {
                return false;
            }
        }
        true
    }

    fn emit(&self, now: Instant, start: Instant, control: Control<'_>, out: &mut Vec<u8>) {
        ControlPacket { timestamp: timestamp(start, now), dest: self.peer, control }.emit(out);
    }
}
