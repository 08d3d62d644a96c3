use std::time::Duration;

use crate::continuity::{Continuity, Verdict};
use crate::pcr::duration_of;
use crate::{Packet, Pcr};

/// The totals that a [`Checker`](crate::Checker) found in the packets of one PID.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PidReport {
    /// Packets.
    pub packets: u64,
    /// Packets whose continuity counter does not follow the one before, unless announced
    /// (ISO/IEC 13818-1 section 2.4.3.3; ETSI TR 101 290 indicator 1.4).
    pub continuity_errors: u64,
    /// Packets missing by the counter: of a run of losses it shows the number modulo 16, so this is
    /// the least that there can be; reordered packets make it larger.
    pub missing_packets: u64,
    /// Copies of the packet before, of which one is permitted.
    pub duplicates: u64,
    /// Packets with a scrambled payload.
    pub scrambled: u64,
    /// Program clock references.
    pub pcrs: u64,
    /// References that stand more than 100 ms after the one before, or before it, unannounced
    /// (ETSI TR 101 290 indicator 2.3b). Lost packets make such a step, too.
    pub pcr_discontinuities: u64,
    /// The longest step forward from one reference to the next by their own time, announced breaks
    /// aside; `None` with fewer than two. ISO/IEC 13818-1 section 2.7.2 permits 100 ms.
    pub pcr_interval_max: Option<Duration>,
}

/// Checks the packets of one PID by their counter and their clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct PidCheck {
    report: PidReport,
    continuity: Continuity,
    pcr: Option<Pcr>,
}

/// The result of the check of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    pub(crate) continuity: Verdict,
    pub(crate) clock: Option<ClockStep>,
}

/// A reference, and its distance from the one before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ClockStep {
    pub(crate) pcr: Pcr,
    pub(crate) step: Step,
}

/// The way from one reference to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// There is none: the reference is the first, or the first after an announced break.
    First,
    /// This number of ticks forward.
    Forward(u64),
    /// Back.
    Back,
}

impl PidCheck {
    /// Checks the next packet. One with neither payload nor adaptation field is reserved: decoders
    /// discard it, and there is no result.
    pub(crate) fn count(&mut self, packet: Packet<'_>) -> Option<Checked> {
        self.report.packets += 1;
        self.report.scrambled += u64::from(packet.is_scrambled());
        let is_reserved = !packet.has_payload() && !packet.has_adaptation_field();
        (!is_reserved).then(|| Checked {
            continuity: self.check_continuity(packet),
            clock: self.check_clock(packet),
        })
    }

    pub(crate) fn report(&self) -> PidReport {
        self.report
    }

    fn check_continuity(&mut self, packet: Packet<'_>) -> Verdict {
        let verdict = self.continuity.check(packet);
        match verdict {
            Verdict::Continuous => {}
            Verdict::Duplicate => self.report.duplicates += 1,
            Verdict::Broken { missing } => {
                self.report.continuity_errors += 1;
                self.report.missing_packets += u64::from(missing);
            }
        }
        verdict
    }

    fn check_clock(&mut self, packet: Packet<'_>) -> Option<ClockStep> {
        if packet.is_discontinuity() {
            self.pcr = None;
        }
        let pcr = packet.pcr()?;
        self.report.pcrs += 1;
        let step = match self.pcr.replace(pcr) {
            None => Step::First,
            Some(earlier) => pcr.ticks_since(earlier).map_or(Step::Back, Step::Forward),
        };
        if step.is_discontinuity() {
            self.report.pcr_discontinuities += 1;
        }
        if let Step::Forward(ticks) = step {
            let interval = Some(duration_of(ticks));
            self.report.pcr_interval_max = self.report.pcr_interval_max.max(interval);
        }
        Some(ClockStep { pcr, step })
    }
}

impl Step {
    /// Whether the clock jumped without announcement (ETSI TR 101 290 indicator 2.3b).
    pub(crate) fn is_discontinuity(self) -> bool {
        match self {
            Self::First => false,
            Self::Forward(ticks) => ticks > PCR_STEP_MAX,
            Self::Back => true,
        }
    }
}

/// 100 ms.
const PCR_STEP_MAX: u64 = Pcr::HZ / 10;
