//! The metrics of a stream with the draft's payloads.

use super::groups::{GroupCounts, Groups};
use super::stamp::Stamp;
use crate::{Arrival, Checksum, ReadStampError};

/// Measures a stream with the draft's payloads at its receiver, as [`crate::Meter`] does one with
/// srt-xtransmit's.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    checksum: Checksum,
    /// Its latencies are the draft's TD: those of the last payload of each group.
    payloads: crate::Meter,
    groups: Groups,
}

impl Meter {
    /// A meter that checks checksums, or with [`Checksum::None`] does not look at them.
    pub fn new(checksum: Checksum) -> Self {
        Self { checksum, ..Self::default() }
    }

    /// Takes in `payload`, received at `received_system_us` by the system clock (µs since the Unix
    /// epoch) and at `received_monotonic_us` by the monotonic clock (µs). Gives its header.
    ///
    /// # Errors
    ///
    /// The payload has no header to read. It is counted either way.
    pub fn submit(
        &mut self,
        payload: &[u8],
        received_system_us: i64,
        received_monotonic_us: i64,
    ) -> Result<Stamp, ReadStampError> {
        let stamp = Stamp::read(payload, self.checksum);
        let stamp = stamp.inspect_err(|&error| self.payloads.submit_damaged(error))?;
        let sent_us = i64::try_from(stamp.monotonic_us).unwrap_or(i64::MAX);
        let arrival = self.payloads.submit_arrival(stamp.seq, sent_us, received_monotonic_us);
        if arrival != Arrival::Duplicate {
            self.groups.submit(&stamp);
            if stamp.position.is_last() {
                let sent_us = stamp.system_time_us(received_system_us);
                self.payloads.submit_latency(sent_us, received_system_us);
            }
        }
        Ok(stamp)
    }

    /// Closes the period and tells how the stream does.
    pub fn report(&mut self) -> Report {
        Report { payloads: self.payloads.report(), groups: self.groups.counts() }
    }
}

/// The metrics at the end of a period.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// The metrics of payloads; the latencies are those of groups (TD_MIN, TD_MAX, smoothed TD).
    pub payloads: crate::Report,
    /// The counts of groups.
    pub groups: GroupCounts,
}

impl Report {
    /// This report as a row under [`CSV_HEADER`], without a line end.
    pub fn csv_row(&self, timepoint: &str, connection: u64) -> String {
        let GroupCounts { received, incomplete } = self.groups;
        let row = self.payloads.csv_row(timepoint, connection);
        format!("{row},{},{received},{incomplete}", self.payloads.duplicates)
    }
}

/// The columns of [`Report::csv_row`]: those of [`crate::CSV_HEADER`], in which `usLatencyMin`,
/// `usLatencyMax` and `usLatencyAvg` are the draft's `TD_MIN`, `TD_MAX` and smoothed TD, and three
/// more.
pub const CSV_HEADER: &str = "Timepoint,iConn,usLatencyMin,usLatencyMax,usLatencyAvg,usJitter,\
    usDelayFactor,pktReceived,pktLost,pktReordered,pktReorderDist,pktChecksumError,pktLengthError,\
    pktDuplicated,grpReceived,grpIncomplete";

#[cfg(test)]
mod tests {
    use super::super::StampWriter;
    use super::*;

    const EPOCH_US: i64 = 1_666_000_000_000_000;

    /// Payload `seq` of groups of three, sent `seq` ms after the start of both clocks.
    fn payload(seq: u64) -> Vec<u8> {
        let mut payload = vec![0; 188];
        let sent_us = seq * 1_000;
        let writer = StampWriter::new(Checksum::Md5, 3);
        let system_us = EPOCH_US + i64::try_from(sent_us).unwrap();
        writer.write(&mut payload, seq, system_us, sent_us).unwrap();
        payload
    }

    #[test]
    fn the_delay_is_that_of_groups_and_the_rest_that_of_payloads() {
        let mut meter = Meter::default();
        let mut arrive = |payload: &[u8], at_us: i64| {
            meter.submit(payload, EPOCH_US + at_us, 777_000_000 + at_us).is_ok()
        };
        // Group 0 arrives after 20 ms and in order, group 1 lacks its middle.
        for (seq, at_us) in [(0, 20_000), (1, 21_000), (2, 22_000), (3, 23_000), (5, 26_600)] {
            assert!(arrive(&payload(seq), at_us));
        }
        assert!(arrive(&payload(6), 26_700));
        assert!(arrive(&payload(6), 26_800), "a duplicate");
        let mut damaged = payload(7);
        damaged[100] ^= 1;
        assert!(!arrive(&damaged, 27_000) && !arrive(&payload(8)[..100], 28_000));
        let Report { payloads, groups } = meter.report();
        assert_eq!(groups, GroupCounts { received: 1, incomplete: 1 });
        assert_eq!(
            (payloads.latency_us_min, payloads.latency_us_max),
            (Some(20_000), Some(21_600))
        );
        assert_eq!(payloads.latency_us_avg, Some(20_100), "20,000 + 1,600 / 16");
        assert_eq!(payloads.delay_factor_us, Some(1_600));
        assert_eq!((payloads.received, payloads.lost, payloads.duplicates), (9, 1, 1));
        assert_eq!((payloads.checksum_errors, payloads.length_errors), (1, 1));
    }

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let row = Meter::default().report().csv_row("t", 0);
        assert_eq!(row.split(',').count(), CSV_HEADER.split(',').count());
        assert!(CSV_HEADER.starts_with(crate::CSV_HEADER));
    }
}
