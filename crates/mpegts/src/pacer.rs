use std::collections::VecDeque;
use std::time::Duration;

use crate::pcr::duration_of;
use crate::{PACKET_LEN, Packet, Pcr};

/// Tells when to send each packet of a recorded transport stream, at the pace of its clock.
///
/// Packets go in by [`push`](Self::push) and come out by [`pop`](Self::pop), all of them and in
/// order, with their time since the first. Between two program clock references the bytes are
/// evenly spaced, as ISO/IEC 13818-1 section 2.4.2.2 has it; what comes before the first reference
/// goes at the rate up to the second, what comes after the last at the rate before it. For this the
/// pacer looks ahead to the next reference, [`LOOK_AHEAD`](Self::LOOK_AHEAD) packets at the most.
///
/// The clock is that of the first PID with a reference, and another one's if that falls silent. It
/// may wrap. If it breaks (a discontinuity indicator, a step back, or one forward of more than a
/// second), the packets up to the break keep the last rate and the new clock goes on from there.
#[derive(Clone, Debug, Default)]
pub struct PcrPacer {
    ready: VecDeque<(Duration, [u8; PACKET_LEN])>,
    /// Packets whose time is not known yet.
    waiting: VecDeque<[u8; PACKET_LEN]>,
    /// The time of the first waiting packet, in ticks of the PCR clock since the first packet of
    /// all.
    time: u64,
    rate: Option<Rate>,
    pcr_pid: Option<u16>,
    /// The latest reference, and the place of its packet among the waiting packets.
    latest: Option<(usize, Pcr)>,
    is_broken: bool,
    pushed: u64,
}

impl PcrPacer {
    /// How many packets may wait for the next reference: 12 MB, or 100 ms at 980 Mb/s.
    pub const LOOK_AHEAD: usize = 65_536;

    /// Takes in the next packet. Take out what is ready by [`pop`](Self::pop) before many more.
    ///
    /// # Errors
    ///
    /// More than [`LOOK_AHEAD`](Self::LOOK_AHEAD) packets wait, without two references of one PID
    /// among them. A pacer that gave an error is of no more use.
    pub fn push(&mut self, packet: Packet<'_>) -> Result<(), PacingError> {
        self.pushed += 1;
        self.take(packet);
        if self.waiting.len() > Self::LOOK_AHEAD {
            self.change_clock();
            if self.waiting.len() > Self::LOOK_AHEAD {
                return Err(self.no_clock());
            }
        }
        Ok(())
    }

    /// Says that the stream has ended, so that its last packets are ready.
    ///
    /// A packet that is pushed later begins another stream, or the same one again, which follows
    /// this one without a pause: the time goes on.
    ///
    /// # Errors
    ///
    /// The stream has packets, but no two references of one PID within a second.
    pub fn finish(&mut self) -> Result<(), PacingError> {
        self.change_clock();
        if let Some(rate) = self.rate.take() {
            self.release(self.waiting.len(), rate);
        } else if !self.waiting.is_empty() {
            return Err(self.no_clock());
        }
        self.pcr_pid = None;
        self.latest = None;
        self.is_broken = false;
        Ok(())
    }

    /// The next packet whose time is known, and that time: since the first packet of all.
    pub fn pop(&mut self) -> Option<(Duration, [u8; PACKET_LEN])> {
        self.ready.pop_front()
    }

    fn take(&mut self, packet: Packet<'_>) {
        let place = self.waiting.len();
        self.waiting.push_back(*packet.bytes());
        if packet.has_transport_error() || self.pcr_pid.is_some_and(|pid| pid != packet.pid()) {
            return;
        }
        // The indicator holds until the next reference, which its packet may not have yet.
        self.is_broken |= self.pcr_pid.is_some() && packet.is_discontinuity();
        if let Some(pcr) = packet.pcr() {
            self.pcr_pid = Some(packet.pid());
            self.see_pcr(place, pcr);
        }
    }

    /// Sets the time of what waits before the packet at `place`, which has the reference `pcr`.
    fn see_pcr(&mut self, place: usize, pcr: Pcr) {
        let is_broken = std::mem::take(&mut self.is_broken);
        let Some((earlier_place, earlier)) = self.latest else {
            self.latest = Some((place, pcr));
            return;
        };
        match pcr.ticks_since(earlier).filter(|&ticks| ticks <= STEP_MAX && !is_broken) {
            // The copy of a packet, or a clock that stands still: it tells no pace.
            Some(0) => return,
            Some(ticks) => {
                self.rate = Some(Rate { ticks, packets: (place - earlier_place) as u64 });
            }
            // At a break the last rate holds. Without one, all wait for the first.
            None => {}
        }
        let released = self.rate.map_or(0, |rate| {
            self.release(place, rate);
            place
        });
        self.latest = Some((place - released, pcr));
    }

    /// Makes the first `count` waiting packets ready, at `rate`.
    fn release(&mut self, count: usize, rate: Rate) {
        for (place, packet) in self.waiting.drain(..count).enumerate() {
            let at = self.time + rate.ticks_for(place as u64);
            self.ready.push_back((duration_of(at), packet));
        }
        self.time += rate.ticks_for(count as u64);
    }

    /// If another PID than the present one has references among the waiting packets, goes by those.
    fn change_clock(&mut self) {
        let other =
            self.waiting.iter().filter_map(|bytes| Packet::new(bytes).ok()).find_map(|packet| {
                let is_other = packet.pcr().is_some() && self.pcr_pid != Some(packet.pid());
                is_other.then_some(packet.pid())
            });
        if other.is_some() {
            self.pcr_pid = other;
            self.latest = None;
            self.is_broken = false;
            for bytes in std::mem::take(&mut self.waiting) {
                self.take(Packet::new(&bytes).expect("it was a packet when it came"));
            }
        }
    }

    fn no_clock(&self) -> PacingError {
        let packets = self.waiting.len() as u64;
        PacingError::NoClock { first: self.pushed - packets, packets }
    }
}

/// A stream that does not tell its own pace.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PacingError {
    /// The stream has no program clock references, or they are too far apart.
    #[error(
        "no two program clock references (PCR) of one PID within a second in {packets} packets from \
         packet {first} on: a transport stream that tells its pace has one every 100 ms"
    )]
    NoClock {
        /// How many packets came before these.
        first: u64,
        /// How many packets were searched.
        packets: u64,
    },
}

/// A number of packets in a number of ticks of the PCR clock.
#[derive(Clone, Copy, Debug)]
struct Rate {
    ticks: u64,
    packets: u64,
}

impl Rate {
    fn ticks_for(self, packets: u64) -> u64 {
        packets * self.ticks / self.packets
    }
}

/// A longer step is a break of the clock: 1 s, ten times what section 2.7.2 permits.
const STEP_MAX: u64 = Pcr::HZ;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{Sample, packet};

    const MS: u64 = Pcr::HZ / 1_000;

    fn push(pacer: &mut PcrPacer, samples: &[Sample]) -> Result<(), PacingError> {
        samples.iter().try_for_each(|sample| pacer.push(Packet::new(&sample.bytes).unwrap()))
    }

    /// The times of `samples` in ms, each packet checked to be the one that went in.
    fn pace(samples: &[Sample]) -> Vec<u64> {
        let mut pacer = PcrPacer::default();
        push(&mut pacer, samples).unwrap();
        pacer.finish().unwrap();
        let paced: Vec<_> = std::iter::from_fn(|| pacer.pop()).collect();
        let sent: Vec<_> = samples.iter().map(|sample| sample.bytes).collect();
        assert_eq!(paced.iter().map(|&(_, bytes)| bytes).collect::<Vec<_>>(), sent);
        paced.iter().map(|(at, _)| u64::try_from(at.as_millis()).unwrap()).collect()
    }

    fn plain(counter: u8) -> Sample {
        packet(0x100, counter)
    }

    fn clock(pid: u16, ms: u64) -> Sample {
        packet(pid, 0).pcr(ms * MS)
    }

    #[test]
    fn bytes_are_evenly_spaced_between_references() {
        let stream = [
            clock(0x100, 1_000),
            plain(1),
            plain(2),
            plain(3),
            clock(0x100, 1_040),
            plain(5),
            clock(0x100, 1_100),
            plain(7),
        ];
        assert_eq!(pace(&stream), [0, 10, 20, 30, 40, 70, 100, 130]);
    }

    #[test]
    fn packets_before_the_first_reference_go_at_its_rate() {
        let stream = [plain(0), plain(1), clock(0x100, 500), plain(3), clock(0x100, 520)];
        assert_eq!(pace(&stream), [0, 10, 20, 30, 40]);
    }

    #[test]
    fn a_packet_comes_out_as_soon_as_the_next_reference_is_there() {
        let mut pacer = PcrPacer::default();
        push(&mut pacer, &[clock(0x100, 0), plain(1)]).unwrap();
        assert_eq!(pacer.pop(), None);
        push(&mut pacer, &[clock(0x100, 20)]).unwrap();
        assert_eq!(pacer.pop().unwrap().0, Duration::ZERO);
        assert_eq!(pacer.pop().unwrap().0, Duration::from_millis(10));
        assert_eq!(pacer.pop(), None);
    }

    #[test]
    fn the_clock_may_wrap() {
        let last = Pcr::MODULUS - 10 * MS;
        let stream = [plain(0).pcr(last), plain(1), plain(2).pcr(last + 20 * MS), plain(3)];
        assert_eq!(pace(&stream), [0, 10, 20, 30]);
    }

    #[test]
    fn over_a_break_of_the_clock_the_last_rate_holds() {
        let before = [clock(0x100, 1_000), plain(1), clock(0x100, 1_020), plain(3)];
        let after = |start: Sample| [start, plain(5), clock(0x100, 9_040)];
        let expected = [0, 10, 20, 30, 40, 60, 80];
        let ahead = clock(0x100, 9_000);
        assert_eq!(pace(&[&before[..], &after(ahead)].concat()), expected);
        let behind = [clock(0x100, 0), plain(5), clock(0x100, 40)];
        assert_eq!(pace(&[&before[..], &behind].concat()), expected);

        // A step that could be one of the old clock, announced by the packet before.
        let announced = [
            clock(0x100, 1_000),
            plain(1),
            clock(0x100, 1_020),
            plain(3).discontinuity(),
            clock(0x100, 1_120),
            plain(5),
            clock(0x100, 1_160),
        ];
        assert_eq!(pace(&announced), expected);
    }

    #[test]
    fn a_break_before_any_rate_waits_for_the_first() {
        let stream = [clock(0x100, 70_000), plain(1), clock(0x100, 0), plain(3), clock(0x100, 20)];
        assert_eq!(pace(&stream), [0, 10, 20, 30, 40]);
    }

    #[test]
    fn a_clock_that_does_not_advance_gives_no_pace() {
        let stream = [clock(0x100, 5), clock(0x100, 5), plain(1), clock(0x100, 35)];
        assert_eq!(pace(&stream), [0, 10, 20, 30]);
    }

    #[test]
    fn goes_by_one_program_and_changes_when_its_clock_falls_silent() {
        let two = [clock(0x100, 0), clock(0x200, 777), plain(2), clock(0x100, 30)];
        assert_eq!(pace(&two), [0, 10, 20, 30]);
        let joined =
            [clock(0x100, 0), clock(0x100, 10), clock(0x200, 500), plain(3), clock(0x200, 540)];
        assert_eq!(pace(&joined), [0, 10, 30, 50, 70]);

        let silent = vec![packet(0x200, 0); PcrPacer::LOOK_AHEAD / 2];
        let mut stream = vec![clock(0x100, 0), clock(0x100, 10)];
        for second in 0..3 {
            stream.push(clock(0x200, 1_000 * second));
            stream.extend(&silent);
        }
        // Three seconds after the 10 ms of the first clock, less what rounding takes.
        assert_eq!(pace(&stream).last(), Some(&3_009));
    }

    #[test]
    fn time_goes_on_from_one_pass_to_the_next() {
        let file = [clock(0x100, 1_000), plain(1), clock(0x100, 1_020), plain(3)];
        let mut pacer = PcrPacer::default();
        for pass in 0..3 {
            push(&mut pacer, &file).unwrap();
            pacer.finish().unwrap();
            let times: Vec<_> = std::iter::from_fn(|| pacer.pop())
                .map(|(at, _)| u64::try_from(at.as_millis()).unwrap())
                .collect();
            assert_eq!(times, [0, 10, 20, 30].map(|ms| 40 * pass + ms));
        }
    }

    #[test]
    fn a_stream_without_a_clock_is_an_error() {
        let mut pacer = PcrPacer::default();
        assert_eq!(pacer.finish(), Ok(()));
        push(&mut pacer, &[clock(0x100, 0), clock(0x100, 10), plain(2)]).unwrap();
        pacer.finish().unwrap();
        push(&mut pacer, &[clock(0x100, 0), plain(1)]).unwrap();
        let error = pacer.finish().unwrap_err();
        assert_eq!(error, PacingError::NoClock { first: 3, packets: 2 });
        assert_eq!(
            error.to_string(),
            "no two program clock references (PCR) of one PID within a second in 2 packets from \
             packet 3 on: a transport stream that tells its pace has one every 100 ms"
        );

        let mut pacer = PcrPacer::default();
        let silent = vec![plain(0); PcrPacer::LOOK_AHEAD];
        push(&mut pacer, &silent).unwrap();
        assert_eq!(
            push(&mut pacer, &silent[..1]),
            Err(PacingError::NoClock { first: 0, packets: 65_537 })
        );
    }

    fn any_sample() -> impl Strategy<Value = Sample> {
        let ticks = prop_oneof![0..40 * MS, 0..Pcr::MODULUS];
        (0x100_u16..0x102, any::<u8>(), proptest::option::of(ticks), any::<bool>()).prop_map(
            |(pid, byte, ticks, broken)| {
                let sample = packet(pid, byte).payload(byte);
                let sample = if broken { sample.discontinuity() } else { sample };
                ticks.map_or(sample, |ticks| sample.pcr(ticks))
            },
        )
    }

    proptest! {
        #[test]
        fn time_never_runs_back_and_no_packet_is_lost(
            samples in proptest::collection::vec(any_sample(), 0..200),
        ) {
            let mut stream = vec![clock(0x100, 0), clock(0x100, 20)];
            stream.extend(samples);
            let times = pace(&stream);
            prop_assert!(times.is_sorted(), "{times:?}");
        }
    }
}
