//! The statistics of an SRT connection as libsrt's tools write them: one row a period, in CSV or
//! JSON, with libsrt's names; and [`read`], which reads such files.

#![forbid(unsafe_code)]

mod fields;
mod json;
mod quic;
pub mod read;

use std::fmt::Write as _;

pub use fields::{FIELDS, Field, Sample, Value};
pub use json::{json_group_row, json_row};
pub use quic::{QuicStatistics, quic_csv_header, quic_csv_row};

/// The header of libsrt's CSV, followed by the columns that its tools leave out. It has `Time`
/// twice, as libsrt's has.
pub fn csv_header() -> String {
    let mut header = "Timepoint,Time,SocketID".to_owned();
    for field in FIELDS {
        let _ = write!(header, ",{}", field.csv);
    }
    header
}

/// A row under [`csv_header`], without a line end, for the socket `id` at the time `now`.
pub fn csv_row(now: &str, id: u32, sample: &Sample) -> String {
    let mut row = format!("{now},{},{id}", sample.total.elapsed.as_millis());
    for field in FIELDS {
        let _ = write!(row, ",{}", (field.value)(sample));
    }
    row
}

/// [`csv_header`] with srt-xtransmit's column for the weight of a link in its group, and with a
/// column for the peer's address at the end.
pub fn csv_header_with_weight() -> String {
    csv_header().replacen("SocketID", "SocketID,weight", 1) + ",peer"
}

/// A row under [`csv_header_with_weight`]; `peer` is an address, or empty for a group.
pub fn csv_row_with_weight(now: &str, id: u32, weight: u16, peer: &str, sample: &Sample) -> String {
    let row = csv_row(now, id, sample);
    let head = format!("{now},{},{id}", sample.total.elapsed.as_millis());
    format!("{head},{weight}{},{peer}", &row[head.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::tests::sample;

    #[test]
    fn the_csv_has_libsrts_columns() {
        assert_eq!(csv_header(), format!("{LIBSRT_COLUMNS},pktRcvUndecrypt"));
        assert_eq!(
            csv_row("2026-01-02T03:04:05.000006+0000", 7, &sample()),
            "2026-01-02T03:04:05.000006+0000,2000,7,2000,0,0,0,20.125,0,1000,520,0,0,0,0,0,0,0,0,\
             0,0,0,0,0,0,0,0,0,0,0,0,0,680000,0,0,0,0,0,5.44,120,3"
        );
        let columns = |row: &str| row.split(',').count();
        assert_eq!(columns(&csv_header()), columns(&csv_row("", 7, &sample())));
    }

    #[test]
    fn a_round_trip_that_was_not_measured_has_no_value() {
        let mut unknown = sample();
        unknown.total.rtt = std::time::Duration::ZERO;
        let row = csv_row("now", 7, &unknown);
        assert!(row.starts_with("now,2000,7,2000,0,0,0,,0,1000,520,"), "{row}");
        let row = csv_row("2026-01-02T03:04:05.000006+0000", 7, &unknown);
        let read = read::StatsTable::parse(&format!("{}\n{row}\n", csv_header()));
        let read = read.expect("it is legal");
        assert_eq!(read.connections[0].column("msRTT"), Some(&[None][..]));
    }

    #[test]
    fn the_weight_follows_the_socket_id() {
        assert!(csv_header_with_weight().starts_with("Timepoint,Time,SocketID,weight,Time,"));
        let row = csv_row_with_weight("now", 7, 50, "[::1]:9", &sample());
        assert!(row.ends_with(",[::1]:9") && csv_header_with_weight().ends_with(",peer"));
        assert!(row.starts_with("now,2000,7,50,2000,0,"), "{row}");
        let columns = |row: &str| row.split(',').count();
        assert_eq!(columns(&csv_header_with_weight()), columns(&row));
    }

    /// The header that srt-live-transmit 1.5.1 writes.
    const LIBSRT_COLUMNS: &str = "Timepoint,Time,SocketID,Time,pktFlowWindow,\
        pktCongestionWindow,pktFlightSize,msRTT,mbpsBandwidth,mbpsMaxBW,pktSent,pktSentUnique,\
        pktSndLoss,pktSndDrop,pktRetrans,pktSndFilterExtra,byteSent,byteSentUnique,byteSndDrop,\
        byteAvailSndBuf,msSndBuf,mbpsSendRate,usPktSndPeriod,pktRecv,pktRecvUnique,pktRcvLoss,\
        pktRcvDrop,pktRcvRetrans,pktRcvBelated,pktRcvFilterExtra,pktRcvFilterSupply,\
        pktRcvFilterLoss,byteRecv,byteRecvUnique,byteRcvLoss,byteRcvDrop,byteAvailRcvBuf,msRcvBuf,\
        mbpsRecvRate,msRcvTsbPdDelay";
}
