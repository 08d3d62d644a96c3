//! The statistics of an SRT connection as libsrt's tools write them: one row a period, in CSV or
//! JSON, with libsrt's names; and [`read`], which reads such files.

#![forbid(unsafe_code)]

mod fields;
pub mod read;

use std::fmt::Write as _;

pub use fields::{FIELDS, Field, Sample, Value};

/// The header of libsrt's CSV, and after it the columns that its tools leave out. `Time` really
/// stands there twice.
pub fn csv_header() -> String {
    let mut header = "Timepoint,Time,SocketID".to_owned();
    for field in FIELDS {
        let _ = write!(header, ",{}", field.csv);
    }
    header
}

/// A row under [`csv_header`], without a line end: of the time `now`, for the socket `id`.
pub fn csv_row(now: &str, id: u32, sample: &Sample) -> String {
    let mut row = format!("{now},{},{id}", sample.total.elapsed.as_millis());
    for field in FIELDS {
        let _ = write!(row, ",{}", (field.value)(sample));
    }
    row
}

/// [`csv_header`] with srt-xtransmit's column for the weight of a link in its group, and at the end
/// ours for the peer's address.
pub fn csv_header_with_weight() -> String {
    csv_header().replacen("SocketID", "SocketID,weight", 1) + ",peer"
}

/// A row under [`csv_header_with_weight`]; `peer` is an address, or empty for a group.
pub fn csv_row_with_weight(now: &str, id: u32, weight: u16, peer: &str, sample: &Sample) -> String {
    let row = csv_row(now, id, sample);
    let head = format!("{now},{},{id}", sample.total.elapsed.as_millis());
    format!("{head},{weight}{},{peer}", &row[head.len()..])
}

/// libsrt's JSON: an object for each group, in one line, without a line end. Ours is the group
/// `latency`, the delays of both receiving buffers as they were negotiated, in milliseconds.
pub fn json_row(now: &str, id: u32, sample: &Sample) -> String {
    let mut row = format!("{{\"sid\":{id},\"timepoint\":\"{now}\"");
    let mut open = "";
    for Field { json: (group, name), value, .. } in FIELDS {
        if *group == open {
            row += ",";
        } else {
            row += if open.is_empty() { "," } else { "}," };
            let _ = write!(row, "\"{group}\":{{");
            open = group;
        }
        let _ = write!(row, "\"{name}\":{}", value(sample));
    }
    let (here, there) = (sample.total.receive_latency, sample.total.peer_latency);
    let _ = write!(
        row,
        "}},\"latency\":{{\"here\":{},\"there\":{}}}}}",
        here.as_millis(),
        there.as_millis()
    );
    row
}

/// A row as srt-xtransmit's JSON has it where groups may be: the whole, and each link of a group
/// with its socket, weight and peer's address; `None` for a connection of its own. The names are
/// those of the CSV. In one line, without a line end.
pub fn json_group_row(
    now: &str,
    id: u32,
    whole: &Sample,
    links: Option<&[(u32, u16, String, Sample)]>,
) -> String {
    let mut row = "{\"ConnStats\":".to_owned();
    push_object(&mut row, now, (id, 0, ""), whole);
    row += ",\"LinksStats\":";
    let Some(links) = links else { return row + "null}" };
    for (index, (id, weight, peer, sample)) in links.iter().enumerate() {
        row += if index == 0 { "[" } else { "," };
        push_object(&mut row, now, (*id, *weight, peer), sample);
    }
    row + if links.is_empty() { "[]}" } else { "]}" }
}

fn push_object(row: &mut String, now: &str, (id, weight, peer): (u32, u16, &str), sample: &Sample) {
    let _ = write!(row, "{{\"Timepoint\":\"{now}\",\"SocketID\":{id},\"weight\":{weight}");
    for Field { csv, value, .. } in FIELDS {
        let _ = write!(row, ",\"{csv}\":{}", value(sample));
    }
    // An address has nothing that JSON would not take as it is.
    let _ = write!(row, ",\"peer\":\"{peer}\"}}");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_proto::Statistics;
    use punctual_units::Bitrate;

    use super::*;

    fn sample() -> Sample {
        let mut total = Statistics::default();
        total.elapsed = Duration::from_millis(2_000);
        total.rtt = Duration::from_micros(20_125);
        total.max_bandwidth = Bitrate::from_mbps(1_000);
        total.packets_sent = 1_000;
        total.bytes_received = 1_360_000;
        total.packets_undecrypted = 5;
        total.receive_latency = Duration::from_millis(120);
        total.peer_latency = Duration::from_millis(250);
        let mut before = Statistics::default();
        before.elapsed = Duration::from_millis(1_000);
        before.packets_sent = 480;
        before.bytes_received = 680_000;
        before.packets_undecrypted = 2;
        Sample { interval: total.since(&before), total }
    }

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
    fn a_weight_stands_behind_the_socket_id() {
        assert!(csv_header_with_weight().starts_with("Timepoint,Time,SocketID,weight,Time,"));
        let row = csv_row_with_weight("now", 7, 50, "[::1]:9", &sample());
        assert!(row.ends_with(",[::1]:9") && csv_header_with_weight().ends_with(",peer"));
        assert!(row.starts_with("now,2000,7,50,2000,0,"), "{row}");
        let columns = |row: &str| row.split(',').count();
        assert_eq!(columns(&csv_header_with_weight()), columns(&row));
    }

    #[test]
    fn the_json_has_libsrts_layout() {
        let row = json_row("2026-01-02T03:04:05.000006+0000", 7, &sample());
        assert_eq!(row.lines().count(), 1);
        assert!(row.starts_with(
            "{\"sid\":7,\"timepoint\":\"2026-01-02T03:04:05.000006+0000\",\"time\":2000,\
             \"window\":{\"flow\":0,\"congestion\":0,\"flight\":0},\
             \"link\":{\"rtt\":20.125,\"bandwidth\":0,\"maxBandwidth\":1000},\
             \"send\":{\"packets\":520,"
        ));
        let parsed: serde_json::Value = serde_json::from_str(&row).unwrap();
        assert_eq!(parsed["send"]["packets"], 520);
        assert_eq!(parsed["recv"]["mbitRate"], 5.44);
        assert_eq!(parsed["recv"]["msTsbPdDelay"], 120);
        assert_eq!(parsed["recv"]["packetsUndecrypted"], 3);
        assert_eq!(parsed["recv"].as_object().unwrap().len(), 18);
        assert_eq!(parsed["latency"], serde_json::json!({ "here": 120, "there": 250 }));
    }

    #[test]
    fn the_json_of_a_group_tells_of_its_links() {
        let parse = |row: String| serde_json::from_str::<serde_json::Value>(&row).unwrap();
        let alone = parse(json_group_row("now", 7, &sample(), None));
        assert!(alone["LinksStats"].is_null());
        assert_eq!(alone["ConnStats"]["pktSent"], 520);
        let ended = parse(json_group_row("now", 7, &sample(), Some(&[])));
        assert_eq!(ended["LinksStats"], serde_json::json!([]));
        let links = [(8, 50, "[::1]:9".to_owned(), sample()), (9, 0, String::new(), sample())];
        let group = parse(json_group_row("now", 7, &sample(), Some(&links)));
        assert_eq!(group["ConnStats"]["SocketID"], 7);
        let links = group["LinksStats"].as_array().unwrap();
        assert_eq!(links.len(), 2);
        assert_eq!((&links[0]["SocketID"], &links[0]["weight"]), (&8.into(), &50.into()));
        assert_eq!(links[0]["peer"], "[::1]:9");
        assert_eq!(links[1]["msRTT"], 20.125);
        assert_eq!(links[1]["Timepoint"], "now");
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
