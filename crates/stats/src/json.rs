//! Rows of statistics as JSON.

use punctual_proto::Statistics;
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::fields::{FIELDS, Field, Sample, Value};

/// libsrt's JSON: an object for each group of statistics, in one line, without a line end. The
/// group `latency` is an addition to it: the negotiated delays of both receive buffers, in
/// milliseconds. So is the group `quic` of a connection over QUIC.
pub fn json_row(now: &str, id: u32, sample: &Sample) -> String {
    text(&JsonRow { now, id, sample })
}

/// A row as srt-xtransmit's JSON has it where groups may be: the whole, and each link of a group
/// with its socket ID, weight, peer's address and sample; `None` for a connection that belongs to
/// no group. The names are those of the CSV. In one line, without a line end.
pub fn json_group_row(
    now: &str,
    id: u32,
    whole: &Sample,
    links: Option<&[(u32, u16, String, Sample)]>,
) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct GroupRow<'a> {
        conn_stats: LinkRow<'a>,
        links_stats: Option<Vec<LinkRow<'a>>>,
    }
    let links_stats = links.map(|links| {
        let rows = links.iter().map(|(id, weight, peer, sample)| {
            let (id, weight) = (*id, *weight);
            LinkRow { now, id, weight, peer, sample }
        });
        rows.collect()
    });
    let conn_stats = LinkRow { now, id, weight: 0, peer: "", sample: whole };
    text(&GroupRow { conn_stats, links_stats })
}

fn text(row: &impl Serialize) -> String {
    serde_json::to_string(row).expect("names are text, and values are numbers")
}

/// A row of [`json_row`].
struct JsonRow<'a> {
    now: &'a str,
    id: u32,
    sample: &'a Sample,
}

impl Serialize for JsonRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { now, id, sample } = self;
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("sid", id)?;
        row.serialize_entry("timepoint", now)?;
        for fields in FIELDS.chunk_by(|one, next| one.json.0 == next.json.0) {
            match fields[0].json.0 {
                "" => put_fields(&mut row, fields, sample)?,
                name => row.serialize_entry(name, &JsonGroup { fields, sample })?,
            }
        }
        row.serialize_entry("latency", &JsonDelays::of(&sample.total))?;
        if let Some(quic) = &sample.quic {
            row.serialize_entry("quic", quic)?;
        }
        row.end()
    }
}

/// The statistics of one group in libsrt's JSON.
struct JsonGroup<'a> {
    fields: &'a [Field],
    sample: &'a Sample,
}

impl Serialize for JsonGroup<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut group = serializer.serialize_map(Some(self.fields.len()))?;
        put_fields(&mut group, self.fields, self.sample)?;
        group.end()
    }
}

fn put_fields<M: SerializeMap>(
    map: &mut M,
    fields: &[Field],
    sample: &Sample,
) -> Result<(), M::Error> {
    fields.iter().try_for_each(|Field { json: (_, name), value, .. }| {
        map.serialize_entry(name, &value(sample))
    })
}

/// The delays of the receive buffers at this end and at the other one, in milliseconds.
#[derive(Serialize)]
struct JsonDelays {
    here: u128,
    there: u128,
}

impl JsonDelays {
    fn of(total: &Statistics) -> Self {
        let (here, there) = (total.receive_latency, total.peer_latency);
        Self { here: here.as_millis(), there: there.as_millis() }
    }
}

/// A connection or a link in [`json_group_row`].
struct LinkRow<'a> {
    now: &'a str,
    id: u32,
    weight: u16,
    peer: &'a str,
    sample: &'a Sample,
}

impl Serialize for LinkRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { now, id, weight, peer, sample } = self;
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("Timepoint", now)?;
        row.serialize_entry("SocketID", id)?;
        row.serialize_entry("weight", weight)?;
        for Field { csv, value, .. } in FIELDS {
            row.serialize_entry(csv, &value(sample))?;
        }
        row.serialize_entry("peer", peer)?;
        if let Some(quic) = &sample.quic {
            row.serialize_entry("quic", quic)?;
        }
        row.end()
    }
}

impl Serialize for Value {
    /// Writes a measure with the digits of its [`Display`](std::fmt::Display) form, which are fewer
    /// than JSON would take.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(count) => count.serialize(serializer),
            Self::Unknown => serializer.serialize_none(),
            Self::Real(_) => {
                let digits = RawValue::from_string(self.to_string());
                digits.map_err(S::Error::custom)?.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::tests::sample;

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
    fn a_round_trip_that_was_not_measured_has_no_value() {
        let mut unknown = sample();
        unknown.total.rtt = std::time::Duration::ZERO;
        let row = json_row("now", 7, &unknown);
        assert!(row.contains("\"link\":{\"rtt\":null,\"bandwidth\":0"), "{row}");
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

    #[test]
    fn a_row_of_a_connection_over_quic_has_its_statistics() {
        let quic = Some(crate::quic::tests::statistics());
        let over_quic = Sample { quic, ..sample() };
        let row = json_row("now", 7, &over_quic);
        assert!(row.contains(",\"quic\":{\"peer\":\"[::1]:443\","), "{row}");
        let links = [(8, 50, "[::1]:9".to_owned(), over_quic)];
        let group = json_group_row("now", 7, &sample(), Some(&links));
        assert_eq!(group.matches("\"quic\":{").count(), 1, "{group}");
    }

    /// The text is what earlier versions wrote, byte for byte: scripts that read it by its text go
    /// on working.
    #[test]
    fn rows_are_written_as_ever() {
        let row = json_row("2026-01-02T03:04:05.000006+0000", 7, &sample());
        assert_eq!(row, ROW);
        let links = [(8, 50, "[::1]:9".to_owned(), sample()), (9, 0, String::new(), sample())];
        let group = json_group_row("now", 7, &sample(), Some(&links));
        assert_eq!(group, GROUP_ROW.replace('#', LINK));
    }

    const ROW: &str = "{\"sid\":7,\"timepoint\":\"2026-01-02T03:04:05.000006+0000\",\"time\":2000,\
        \"window\":{\"flow\":0,\"congestion\":0,\"flight\":0},\"link\":{\"rtt\":20.125,\
        \"bandwidth\":0,\"maxBandwidth\":1000},\"send\":{\"packets\":520,\
        \"packetsUnique\":0,\"packetsLost\":0,\"packetsDropped\":0,\
        \"packetsRetransmitted\":0,\"packetsFilterExtra\":0,\"bytes\":0,\"bytesUnique\":0,\
        \"bytesDropped\":0,\"byteAvailBuf\":0,\"msBuf\":0,\"mbitRate\":0,\"sendPeriod\":0},\
        \"recv\":{\"packets\":0,\"packetsUnique\":0,\"packetsLost\":0,\"packetsDropped\":0,\
        \"packetsRetransmitted\":0,\"packetsBelated\":0,\"packetsFilterExtra\":0,\
        \"packetsFilterSupply\":0,\"packetsFilterLoss\":0,\"bytes\":680000,\
        \"bytesUnique\":0,\"bytesLost\":0,\"bytesDropped\":0,\"byteAvailBuf\":0,\"msBuf\":0,\
        \"mbitRate\":5.44,\"msTsbPdDelay\":120,\"packetsUndecrypted\":3},\
        \"latency\":{\"here\":120,\"there\":250}}";

    const GROUP_ROW: &str = "{\"ConnStats\":{\"Timepoint\":\"now\",\"SocketID\":7,\"weight\":0#,\"peer\":\"\"},\
        \"LinksStats\":[{\"Timepoint\":\"now\",\"SocketID\":8,\"weight\":50#,\
        \"peer\":\"[::1]:9\"},{\"Timepoint\":\"now\",\"SocketID\":9,\"weight\":0#,\
        \"peer\":\"\"}]}";

    /// Everything of a link but its IDs.
    const LINK: &str = ",\"Time\":2000,\"pktFlowWindow\":0,\"pktCongestionWindow\":0,\"pktFlightSize\":0,\
        \"msRTT\":20.125,\"mbpsBandwidth\":0,\"mbpsMaxBW\":1000,\"pktSent\":520,\
        \"pktSentUnique\":0,\"pktSndLoss\":0,\"pktSndDrop\":0,\"pktRetrans\":0,\
        \"pktSndFilterExtra\":0,\"byteSent\":0,\"byteSentUnique\":0,\"byteSndDrop\":0,\
        \"byteAvailSndBuf\":0,\"msSndBuf\":0,\"mbpsSendRate\":0,\"usPktSndPeriod\":0,\
        \"pktRecv\":0,\"pktRecvUnique\":0,\"pktRcvLoss\":0,\"pktRcvDrop\":0,\
        \"pktRcvRetrans\":0,\"pktRcvBelated\":0,\"pktRcvFilterExtra\":0,\
        \"pktRcvFilterSupply\":0,\"pktRcvFilterLoss\":0,\"byteRecv\":680000,\
        \"byteRecvUnique\":0,\"byteRcvLoss\":0,\"byteRcvDrop\":0,\"byteAvailRcvBuf\":0,\
        \"msRcvBuf\":0,\"mbpsRecvRate\":5.44,\"msRcvTsbPdDelay\":120,\"pktRcvUndecrypt\":3";
}
