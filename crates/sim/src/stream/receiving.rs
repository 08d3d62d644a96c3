use std::time::Duration;

use bytes::{Buf, BytesMut};
use punctual_metrics::{ArrivalOrder, Meter, MeterReport, Quantiles, ReadStampError, Stamp};
use punctual_proto::{Message, Transmission};
use punctual_units::Instant;

use super::outcome::StreamIntegrity;
use super::payload::PayloadContent;

/// The receiving application of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Receiving {
    content: PayloadContent,
    size: usize,
    transmission: Transmission,
    /// The beginning of a message, of a stream of bytes.
    begun: BytesMut,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) integrity: StreamIntegrity,
    pub(crate) latency_us: Quantiles,
    meter: Meter,
    /// How late the latest message of this period was.
    period_late_max: Duration,
}

impl Receiving {
    /// Before the first message of `size` bytes.
    pub(crate) fn new(
        content: PayloadContent,
        size: usize,
        transmission: Option<Transmission>,
    ) -> Self {
        Self {
            content,
            size,
            transmission: transmission.unwrap_or_default(),
            begun: BytesMut::new(),
            messages: 0,
            bytes: 0,
            integrity: StreamIntegrity::default(),
            latency_us: Quantiles::default(),
            meter: Meter::default(),
            period_late_max: Duration::ZERO,
        }
    }

    /// Takes in what an SRT connection delivers at `now` of the world, when the
    /// receiver's clock shows `local`.
    pub(crate) fn take(&mut self, now: Instant, local: Instant, message: &Message) {
        match self.transmission {
            Transmission::Live => {
                self.read(now, &message.payload);
                self.judge(local, message.due);
            }
            Transmission::Messages => self.read(now, &message.payload),
            Transmission::Stream => {
                let mut begun = std::mem::take(&mut self.begun);
                begun.extend_from_slice(&message.payload);
                while begun.len() >= self.size {
                    self.read(now, &begun[..self.size]);
                    begun.advance(self.size);
                }
                self.begun = begun;
            }
        }
    }

    /// Takes in a message that is read at `now` of the world.
    pub(crate) fn read(&mut self, now: Instant, payload: &[u8]) {
        self.messages += 1;
        self.bytes += payload.len() as u64;
        let Some((seq, sent)) = self.content.read(payload, self.size) else {
            self.integrity.damaged += 1;
            self.meter.submit_damaged(ReadStampError::WrongChecksum);
            return;
        };
        let (sent_us, now_us) = (micros(sent), micros(now));
        let stamp = Stamp { seq, system_time_us: sent_us, monotonic_us: sent_us };
        match self.meter.submit_stamp(stamp, now_us, now_us) {
            ArrivalOrder::InOrder => {}
            ArrivalOrder::Reordered => self.integrity.disordered += 1,
            ArrivalOrder::Duplicate => {
                self.integrity.doubled += 1;
                return;
            }
        }
        self.latency_us.record(now.as_micros().saturating_sub(sent.as_micros()));
    }

    /// Compares when a message was read with when it was due, both on the receiver's clock.
    fn judge(&mut self, read: Instant, due: Instant) {
        if read < due {
            self.integrity.early += 1;
        } else if read > due {
            self.integrity.late += 1;
            self.integrity.late_max = self.integrity.late_max.max(read - due);
            self.period_late_max = self.period_late_max.max(read - due);
        }
    }

    /// How the stream arrived since the last report, and how late the latest message was; closes
    /// the period.
    pub(crate) fn end_period(&mut self) -> (MeterReport, Duration) {
        (self.meter.report(), std::mem::take(&mut self.period_late_max))
    }

    /// How the stream arrived in the whole run.
    pub(crate) fn report(&self) -> MeterReport {
        let least = self.latency_us.min().map(signed);
        let most = self.latency_us.max().map(signed);
        MeterReport {
            latency_us_min: least,
            latency_us_max: most,
            delay_factor_us: self.latency_us.max().zip(self.latency_us.min()).map(|(a, b)| a - b),
            ..self.meter.clone().report()
        }
    }
}

fn micros(at: Instant) -> i64 {
    signed(at.as_micros())
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX)
}
