use std::fmt::Write as _;

use crate::{
    ArrivalOrder, Checksum, DelayFactor, Integrity, InterarrivalJitter, ReadStampError, Sequence,
    SequenceCounts, Stamp, StampReader, TransmissionDelay,
};

/// Measures a stream of stamped payloads at its receiver.
///
/// Hand it every payload with the time of its arrival, and take a [`MeterReport`] at the end of
/// each period, of a second as a rule. Payloads are measured in order of arrival. A damaged one or
/// a duplicate is counted but not timed.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    latency: TransmissionDelay,
    jitter: InterarrivalJitter,
    delay_factor: DelayFactor,
    sequence: Sequence,
    integrity: Integrity,
    stamps: StampReader,
}

impl Meter {
    /// A meter that checks checksums, or with [`Checksum::None`] does not look at them.
    pub fn new(checksum: Checksum) -> Self {
        Self { stamps: StampReader::new(checksum), ..Self::default() }
    }

    /// Takes in payloads that were all received at `received_system_us` by the system clock (µs
    /// since the Unix epoch) and at `received_monotonic_us` by the monotonic clock (µs). It costs
    /// less than taking in one after the other. `damaged` is told why a payload has no stamp to
    /// read; it is counted either way.
    pub fn submit_all(
        &mut self,
        payloads: &[impl AsRef<[u8]>],
        received_system_us: i64,
        received_monotonic_us: i64,
        mut damaged: impl FnMut(ReadStampError),
    ) {
        let mut stamps = std::mem::take(&mut self.stamps);
        stamps.read(payloads, |stamp| match stamp {
            Ok(stamp) => {
                self.submit_stamp(stamp, received_system_us, received_monotonic_us);
            }
            Err(error) => {
                self.submit_damaged(error);
                damaged(error);
            }
        });
        self.stamps = stamps;
    }

    /// Takes in `payload`, received at `received_system_us` by the system clock (µs since the Unix
    /// epoch) and at `received_monotonic_us` by the monotonic clock (µs).
    ///
    /// Gives the payload's stamp.
    ///
    /// # Errors
    ///
    /// Tells why the payload has no stamp to read. It is counted either way.
    pub fn submit(
        &mut self,
        payload: &[u8],
        received_system_us: i64,
        received_monotonic_us: i64,
    ) -> Result<Stamp, ReadStampError> {
        let mut read = Err(ReadStampError::WrongChecksum);
        self.stamps.read(&[payload], |stamp| read = stamp);
        let stamp = read.inspect_err(|&error| self.submit_damaged(error))?;
        self.submit_stamp(stamp, received_system_us, received_monotonic_us);
        Ok(stamp)
    }

    /// Takes in a payload whose stamp is known and whose content was checked otherwise, as where
    /// sender and receiver are in the same program.
    pub fn submit_stamp(
        &mut self,
        stamp: Stamp,
        received_system_us: i64,
        received_monotonic_us: i64,
    ) -> ArrivalOrder {
        let arrival = self.submit_arrival(stamp.seq, stamp.monotonic_us, received_monotonic_us);
        if arrival != ArrivalOrder::Duplicate {
            self.submit_latency(stamp.system_time_us, received_system_us);
        }
        arrival
    }

    /// Takes in the number of a payload and its times by the monotonic clocks.
    pub(crate) fn submit_arrival(
        &mut self,
        seq: u64,
        sent_us: i64,
        received_us: i64,
    ) -> ArrivalOrder {
        let arrival = self.sequence.submit(seq, sent_us);
        if arrival != ArrivalOrder::Duplicate {
            self.jitter.submit(sent_us, received_us);
            self.delay_factor.submit(sent_us, received_us);
        }
        arrival
    }

    /// Takes in the times of a payload by the system clocks.
    pub(crate) fn submit_latency(&mut self, sent_us: i64, received_us: i64) {
        self.latency.submit(sent_us, received_us);
    }

    /// Counts a payload whose stamp cannot be read.
    pub fn submit_damaged(&mut self, error: ReadStampError) {
        self.integrity.submit(error);
    }

    /// Closes the period and tells how the stream does.
    pub fn report(&mut self) -> MeterReport {
        let SequenceCounts { received, lost, reordered, reorder_distance, duplicates, restarts } =
            self.sequence.counts();
        let report = MeterReport {
            latency_us_min: self.latency.min_us(),
            latency_us_max: self.latency.max_us(),
            latency_us_avg: self.latency.average_us(),
            jitter_us: self.jitter.jitter_us(),
            delay_factor_us: self.delay_factor.delay_factor_us(),
            received: received + self.integrity.errors(),
            lost,
            reordered,
            reorder_distance,
            duplicates,
            restarts,
            checksum_errors: self.integrity.checksum_errors,
            length_errors: self.integrity.length_errors,
        };
        self.latency.begin_period();
        self.delay_factor.begin_period();
        report
    }
}

/// The measures of a stream at the end of a period.
///
/// Minimum, maximum and delay factor are of the period, the others of the run so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MeterReport {
    /// Shortest [`TransmissionDelay`] of the period, µs; `None` if nothing arrived.
    pub latency_us_min: Option<i64>,
    /// Longest [`TransmissionDelay`] of the period, µs; `None` if nothing arrived.
    pub latency_us_max: Option<i64>,
    /// Smoothed [`TransmissionDelay`], µs; `None` before the first payload of the run.
    pub latency_us_avg: Option<i64>,
    /// Smoothed [`InterarrivalJitter`], µs.
    pub jitter_us: u64,
    /// [`DelayFactor`] of the period, µs; `None` if nothing arrived.
    pub delay_factor_us: Option<u64>,
    /// Payloads that arrived, the damaged and the duplicates too.
    pub received: u64,
    /// Payloads skipped and not arrived since, or arrived damaged; falls when one arrives after
    /// all.
    pub lost: u64,
    /// Payloads that arrived after one with a higher number.
    pub reordered: u64,
    /// The largest distance of a reordered payload's number below the next expected one.
    pub reorder_distance: u64,
    /// Payloads that had arrived before. Not in the CSV, whose columns are srt-xtransmit's.
    pub duplicates: u64,
    /// Times that the generator started again. Not in the CSV.
    pub restarts: u64,
    /// Damaged payloads of the right length.
    pub checksum_errors: u64,
    /// Payloads of a wrong length.
    pub length_errors: u64,
}

impl MeterReport {
    /// This report as a row under [`CSV_HEADER`], without a line end, for the connection numbered
    /// `connection` at the time `timepoint`. Fields that are not known are empty.
    pub fn csv_row(&self, timepoint: &str, connection: u64) -> String {
        let mut row = format!("{timepoint},{connection}");
        let optional = [
            self.latency_us_min.map(i128::from),
            self.latency_us_max.map(i128::from),
            self.latency_us_avg.map(i128::from),
            Some(i128::from(self.jitter_us)),
            self.delay_factor_us.map(i128::from),
        ];
        let counts = [
            self.received,
            self.lost,
            self.reordered,
            self.reorder_distance,
            self.checksum_errors,
            self.length_errors,
        ];
        for value in optional.into_iter().chain(counts.map(|count| Some(i128::from(count)))) {
            row.push(',');
            if let Some(value) = value {
                write!(row, "{value}").expect("writing to a string never fails");
            }
        }
        row
    }
}

/// The columns of srt-xtransmit's metrics file, which [`MeterReport::csv_row`] fills.
pub const CSV_HEADER: &str = "Timepoint,iConn,usLatencyMin,usLatencyMax,usLatencyAvg,usJitter,\
    usDelayFactor,pktReceived,pktLost,pktReordered,pktReorderDist,pktChecksumError,pktLengthError";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::write_stamp;

    const EPOCH_US: i64 = 1_649_951_173_000_000;

    /// Payload `seq`, sent `seq` ms after the start of both clocks.
    fn payload(seq: u64) -> Vec<u8> {
        let sent = i64::try_from(seq).unwrap() * 1_000;
        let mut payload = vec![0; 188];
        write_stamp(&mut payload, seq, EPOCH_US + sent, sent).unwrap();
        payload
    }

    fn arrive(meter: &mut Meter, payload: &[u8], at_us: i64) {
        let stamped = meter.submit(payload, EPOCH_US + at_us, 777_000_000 + at_us);
        assert_eq!(stamped, Stamp::read(payload));
    }

    #[test]
    fn a_period_in_full() {
        let mut meter = Meter::default();
        arrive(&mut meter, &payload(0), 20_000);
        arrive(&mut meter, &payload(2), 22_160);
        arrive(&mut meter, &payload(1), 22_200);
        arrive(&mut meter, &payload(1), 90_000);
        arrive(&mut meter, &payload(4), 24_000);
        let mut damaged = payload(5);
        damaged[100] ^= 0x10;
        arrive(&mut meter, &damaged, 25_000);
        arrive(&mut meter, &payload(6)[..100], 26_000);
        arrive(&mut meter, &payload(7), 27_000);

        // Latencies 20000, 20160, 21200, 20000, 20000: the average is
        // 20000 + 160/16 = 20010, + 1190/16 = 20084.4, - 84.4/16 = 20079.1, - 79.1/16 = 20074.2.
        // |D| is 160, 1040, 1200, 0: J is 10, 74.4, 144.7, 135.7.
        // Missing are 3, 5 (damaged) and 6 (cut).
        let report = meter.report();
        assert_eq!(
            report,
            MeterReport {
                latency_us_min: Some(20_000),
                latency_us_max: Some(21_200),
                latency_us_avg: Some(20_074),
                jitter_us: 136,
                delay_factor_us: Some(1_200),
                received: 8,
                lost: 3,
                reordered: 1,
                reorder_distance: 2,
                duplicates: 1,
                restarts: 0,
                checksum_errors: 1,
                length_errors: 1,
            }
        );
        assert_eq!(
            report.csv_row("2022-04-14T17:46:13.441614+0200", 3),
            "2022-04-14T17:46:13.441614+0200,3,20000,21200,20074,136,1200,8,3,1,2,1,1"
        );
    }

    #[test]
    fn payloads_together_are_measured_as_one_after_the_other() {
        let mut payloads: Vec<Vec<u8>> = [0, 2, 1, 1, 4, 5].map(payload).into();
        payloads[3][100] ^= 0x10;
        let (mut together, mut alone) = (Meter::default(), Meter::default());
        let mut damaged = Vec::new();
        together.submit_all(&payloads, EPOCH_US + 9_000, 9_000, |error| damaged.push(error));
        for payload in &payloads {
            let _ = alone.submit(payload, EPOCH_US + 9_000, 9_000);
        }
        assert_eq!(together.report(), alone.report());
        assert_eq!(damaged, [ReadStampError::WrongChecksum]);
    }

    #[test]
    fn unknown_values_are_empty() {
        let mut meter = Meter::default();
        assert_eq!(meter.report().csv_row("t", 0), "t,0,,,,0,,0,0,0,0,0,0");
        arrive(&mut meter, &payload(0), 20_000);
        assert_eq!(meter.report().csv_row("t", 0), "t,0,20000,20000,20000,0,0,1,0,0,0,0,0");
        assert_eq!(meter.report().csv_row("t", 0), "t,0,,,20000,0,,1,0,0,0,0,0");
    }

    #[test]
    fn a_row_has_a_value_for_each_column() {
        let columns = CSV_HEADER.split(',').count();
        assert_eq!(columns, 13);
        assert_eq!(MeterReport::default().csv_row("t", 0).split(',').count(), columns);
    }

    proptest! {
        #[test]
        fn any_bytes_are_counted(payloads: Vec<Vec<u8>>, at_us: i64) {
            let mut meter = Meter::default();
            for payload in &payloads {
                prop_assert!(meter.submit(payload, at_us, at_us).is_err());
            }
            let report = meter.report();
            prop_assert_eq!(report.received, payloads.len() as u64);
            prop_assert_eq!(report.checksum_errors + report.length_errors, report.received);
        }
    }
}
