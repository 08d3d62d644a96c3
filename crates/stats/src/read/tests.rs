use proptest::prelude::*;

use super::*;
use crate::{Sample, csv_header, csv_row};

/// srt-xtransmit's columns of statistics.
const XTRANSMIT: &str = "Timepoint,Time,SocketID,weight,pktFlowWindow,pktCongestionWindow,\
    pktFlightSize,msRTT,mbpsBandwidth,mbpsMaxBW,pktSent,pktSentUnique,pktSndLoss,pktSndDrop,\
    pktRetrans,byteSent,byteAvailSndBuf,byteSndDrop,mbpsSendRate,usPktSndPeriod,msSndBuf,pktRecv,\
    pktRecvUnique,pktRcvLoss,pktRcvDrop,pktRcvUndecrypt,pktRcvRetrans,pktRcvBelated,byteRecv,\
    byteAvailRcvBuf,byteRcvLoss,byteRcvDrop,mbpsRecvRate,msRcvBuf,msRcvTsbPdDelay,\
    pktReorderTolerance";

const METRICS_HEADER: &str = "Timepoint,iConn,usLatencyMin,usLatencyMax,usLatencyAvg,usJitter,\
    usDelayFactor,pktReceived,pktLost,pktReordered,pktReorderDist,pktChecksumError,pktLengthError";

fn error(text: &str) -> String {
    StatsTable::parse(text).unwrap_err().to_string()
}

#[test]
fn rows_that_are_written_are_read_back() {
    let statistics = punctual_proto::Statistics::default;
    let mut sample = Sample { total: statistics(), interval: statistics(), quic: None };
    sample.total.rtt = std::time::Duration::from_micros(20_125);
    sample.interval.packets_sent = 520;
    let rows: Vec<String> = (0..3)
        .map(|i| csv_row(&format!("2026-01-02T03:04:0{i}.500000+0000"), 7, &sample))
        .collect();
    let table = StatsTable::parse(&format!("{}\n{}\n", csv_header(), rows.join("\n"))).unwrap();
    assert_eq!((table.kind, table.warnings.len()), (TableKind::Statistics, 0));
    let rows = &table.connections[0];
    assert_eq!((rows.id.as_str(), rows.len()), ("7", 3));
    assert_eq!(rows.seconds, [0.0, 1.0, 2.0]);
    assert_eq!(rows.sum("pktSent"), Some(1560.0));
    assert_eq!(rows.points("msRTT").collect::<Vec<_>>()[2], (2.0, 20.125));
    assert_eq!(rows.column("nothing"), None);
}

#[test]
fn columns_of_srt_xtransmit_are_known() {
    let row = |second: u8| {
        let zeros = vec!["0"; XTRANSMIT.split(',').count() - 3].join(",");
        format!("2026-01-02T03:04:0{second}.5+0200,{second}000,9,{zeros}")
    };
    let text = format!("{XTRANSMIT}\n{}\n{}\n", row(1), row(2));
    let table = StatsTable::parse(&text).unwrap();
    assert_eq!(table.kind, TableKind::Statistics);
    assert_eq!(table.connections[0].last("pktRcvUndecrypt"), Some(0.0));
}

#[test]
fn metrics_have_empty_values_before_the_first_payload() {
    let text = format!(
        "{METRICS_HEADER}\n2026-01-02T03:04:05.1+0000,0,,,,0,,0,0,0,0,0,0\n\
         2026-01-02T03:04:06.1+0000,0,119000,121000,120000,50,2000,475,1,0,0,0,0\n"
    );
    let table = StatsTable::parse(&text).unwrap();
    assert_eq!(table.kind, TableKind::Metrics);
    let rows = &table.connections[0];
    assert_eq!(rows.points("usLatencyAvg").collect::<Vec<_>>(), [(1.0, 120_000.0)]);
    assert_eq!(rows.last("pktLost"), Some(1.0));
}

#[test]
fn connections_of_one_file_are_kept_apart_on_one_clock() {
    let table =
        StatsTable::parse("Time,SocketID,msRTT\n1000,5,20\n1500,6,30\n2000,5,21\n").unwrap();
    let seconds: Vec<_> =
        table.connections.iter().map(|rows| (rows.id.as_str(), &rows.seconds[..])).collect();
    assert_eq!(seconds, [("5", &[0.0, 1.0][..]), ("6", &[0.5][..])]);
    assert_eq!(table.start_us(), None);
}

#[test]
fn the_same_header_in_between_and_empty_lines_are_passed_over() {
    let table = StatsTable::parse("Time,msRTT\n0,1\n\nTime,msRTT\n10,2\n").unwrap();
    assert_eq!(table.connections[0].column("msRTT"), Some(&[Some(1.0), Some(2.0)][..]));
}

#[test]
fn a_last_line_that_is_cut_off_is_left_out_with_a_warning() {
    for end in ["20,3", "20", "20,"] {
        let table = StatsTable::parse(&format!("Time,msRTT\n0,1\n10,2\n{end}")).unwrap();
        assert_eq!(table.connections[0].len(), 2, "{end}");
        assert!(table.warnings[0].contains("line 4"), "{:?}", table.warnings);
    }
}

#[test]
fn lines_that_are_no_rows_are_left_out_and_counted() {
    let text = "starting, with \"srt\n12:00 connected\nTime,msRTT\n0,1\nlost, \"late, gone\n10,2\n\
                one more line\n20,3\n";
    let table = StatsTable::parse(text).unwrap();
    let expected = [Some(1.0), Some(2.0), Some(3.0)];
    assert_eq!(table.connections[0].column("msRTT"), Some(&expected[..]));
    let [warning] = &table.warnings[..] else { panic!("{:?}", table.warnings) };
    assert!(warning.starts_with("2 lines are no rows and were left out; the first: line 5: "));
}

#[test]
fn spreadsheets_files_are_read() {
    let text = "\u{feff}Time;msRTT;peer\r\n0;1,5;10.0.0.1:9\r\n10;2,25;10.0.0.1:9\r\n";
    let table = StatsTable::parse(text).unwrap();
    assert_eq!(table.connections[0].column("msRTT"), Some(&[Some(1.5), Some(2.25)][..]));
    assert_eq!(table.connections[0].peer, "10.0.0.1:9");
    let table = StatsTable::parse("Time\tmsRTT\n0\t1.5\n").unwrap();
    assert_eq!(table.connections[0].column("msRTT"), Some(&[Some(1.5)][..]));
}

#[test]
fn a_timepoint_of_unknown_form_leaves_the_column_of_time() {
    let text = "Timepoint,Time,msRTT\n2026-01-02T03:04:05Z,5,1\nyesterday,1005,2\n";
    let table = StatsTable::parse(text).unwrap();
    assert_eq!(table.connections[0].seconds, [0.0, 1.0]);
    assert_eq!(table.start_us(), None);
    assert!(table.warnings[0].starts_with("line 3: column Timepoint: `yesterday`"));
}

#[test]
fn values_that_are_not_finite_are_missing() {
    let table = StatsTable::parse("Time,msRTT,foo\n0,nan,x\n1,-nan(ind),y\n2,inf,z\n3,1e999,\n");
    let table = table.unwrap();
    assert_eq!(table.connections[0].column("msRTT"), Some(&[None; 4][..]));
    assert_eq!(table.connections[0].column("foo"), Some(&[None; 4][..]));
}

#[test]
fn faults_name_line_and_column() {
    assert_eq!(error("Time,msRTT\n0,1\n5,abc\n6,1\n"), "line 3: column msRTT: `abc` is no number");
    assert_eq!(error("Time,msRTT\n0,1,2\n5\n"), "line 2: 3 fields, where the header has 2");
    assert!(error("Timepoint,msRTT\nnow,1\n").starts_with("line 2: column Timepoint: `now` is no"));
    assert_eq!(error(""), "line 1: the file is empty");
    assert!(error("a,b\n1,2\n").contains("msRTT"));
    assert!(error("SocketID,msRTT\n1,2\n").contains("`Timepoint` or `Time`"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in ".{0,200}") {
        let _ = StatsTable::parse(&text);
        let _ = StatsTable::parse(&format!("Time,SocketID,msRTT,pktSent\n{text}\n"));
    }
}
