//! The statistics of the QUIC connection that carries an SRT connection, as JSON and as CSV.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// The statistics of a QUIC connection. Counts are totals since it was opened; several SRT
/// connections may share it. The names of the fields are those in JSON and CSV.
#[derive(Clone, Debug, Serialize)]
#[expect(non_snake_case, reason = "they are named as libsrt's columns are")]
pub struct QuicStatistics {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The application protocol (ALPN).
    pub protocol: &'static str,
    /// The largest UDP payload on the path, bytes.
    pub byteMTU: u16,
    /// The largest datagram of the application, bytes.
    pub byteMaxDatagram: usize,
    /// QUIC's smoothed round-trip time, milliseconds.
    #[serde(rename = "msRTT", serialize_with = "milliseconds")]
    pub rtt: Duration,
    /// The congestion window, bytes; `null`, or nothing in CSV, without QUIC's congestion control.
    pub byteCongestionWindow: Option<u64>,
    /// QUIC packets sent.
    pub pktSent: u64,
    /// QUIC packets declared lost.
    pub pktLost: u64,
    /// Datagrams sent.
    pub dgramSent: u64,
    /// Datagrams dropped before they were sent.
    pub dgramSndDrop: u64,
    /// Packets that were too long for a datagram and were sent on a stream.
    pub msgSent: u64,
    /// Falls of the MTU.
    pub mtuFalls: u64,
}

/// Three decimals, as CSV has them.
fn milliseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}

/// The header of the CSV.
pub fn quic_csv_header() -> &'static str {
    "Timepoint,SocketID,peer,protocol,byteMTU,byteMaxDatagram,msRTT,byteCongestionWindow,pktSent,\
     pktLost,dgramSent,dgramSndDrop,msgSent,mtuFalls"
}

/// A row under [`quic_csv_header`], without a line end, for the SRT socket `id` at the time `now`.
pub fn quic_csv_row(now: &str, id: u32, statistics: &QuicStatistics) -> String {
    let QuicStatistics {
        peer,
        protocol,
        byteMTU,
        byteMaxDatagram,
        rtt,
        byteCongestionWindow,
        pktSent,
        pktLost,
        dgramSent,
        dgramSndDrop,
        msgSent,
        mtuFalls,
    } = statistics;
    let rtt = rtt.as_secs_f64() * 1e3;
    let window = byteCongestionWindow.map_or_else(String::new, |window| window.to_string());
    format!(
        "{now},{id},{peer},{protocol},{byteMTU},{byteMaxDatagram},{rtt:.3},{window},{pktSent},\
         {pktLost},{dgramSent},{dgramSndDrop},{msgSent},{mtuFalls}"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn statistics() -> QuicStatistics {
        QuicStatistics {
            peer: "[::1]:443".parse().unwrap(),
            protocol: "punctual-srt",
            byteMTU: 1_452,
            byteMaxDatagram: 1_414,
            rtt: Duration::from_nanos(20_125_400),
            byteCongestionWindow: None,
            pktSent: 10,
            pktLost: 2,
            dgramSent: 8,
            dgramSndDrop: 1,
            msgSent: 3,
            mtuFalls: 0,
        }
    }

    #[test]
    fn the_csv_has_a_value_for_each_column() {
        let row = quic_csv_row("now", 7, &statistics());
        assert_eq!(row, "now,7,[::1]:443,punctual-srt,1452,1414,20.125,,10,2,8,1,3,0");
        assert_eq!(row.split(',').count(), quic_csv_header().split(',').count());
    }

    #[test]
    fn json_and_csv_have_the_same_names_in_the_same_order() {
        let json = serde_json::to_string(&statistics()).unwrap();
        let names: Vec<&str> = json.split('"').filter(|part| part.len() > 1).collect();
        let columns: Vec<&str> = quic_csv_header().split(',').skip(2).collect();
        let positions: Vec<_> =
            columns.iter().map(|column| names.iter().position(|name| name == column)).collect();
        assert!(positions.iter().all(Option::is_some), "{json}");
        assert!(positions.is_sorted(), "{json}");
        assert!(json.contains("\"msRTT\":20.125,\"byteCongestionWindow\":null,"), "{json}");
    }
}
