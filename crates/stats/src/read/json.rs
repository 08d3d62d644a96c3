//! Statistics as JSON: objects one after the other, with names and layout of libsrt's tools, or
//! srt-xtransmit's with a group's links. They become records as the CSV has them.

use serde_json::{Map, Value};

use crate::FIELDS;
use crate::read::ReadStatsError;

/// The contents of a JSON file, under the names of the CSV.
pub(super) struct Records {
    /// Every name that any object has, in the order in which they first appear.
    pub(super) names: csv::StringRecord,
    /// The line that an object begins in, and a value for each name, empty where it has none.
    pub(super) records: Vec<(u64, csv::StringRecord)>,
    /// Faults that did not keep the file from being read.
    pub(super) warnings: Vec<String>,
}

/// An object's names and values.
type Fields = Vec<(String, String)>;

impl Records {
    pub(super) fn read(text: &str) -> Result<Self, ReadStatsError> {
        let mut names: Vec<String> = Vec::new();
        let mut warnings = Vec::new();
        let mut objects: Vec<(u64, Fields)> = Vec::new();
        let (mut rest, mut line) = (text, 1);
        loop {
            // Objects may be in a list, or follow each other with or without commas.
            let between = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']');
            let start = rest.find(|c: char| !between(c)).unwrap_or(rest.len());
            line += line_ends(&rest[..start]);
            rest = &rest[start..];
            if rest.is_empty() {
                break;
            }
            let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            match stream.next() {
                Some(Ok(Value::Object(object))) => {
                    objects.extend(fields(object).into_iter().map(|fields| (line, fields)));
                }
                Some(Err(error)) if error.is_eof() => {
                    let warning = format!("line {line}: the last object has no end; left out");
                    warnings.push(warning);
                    break;
                }
                Some(Err(error)) => {
                    let what = format!("this is no JSON: {error}");
                    return Err(ReadStatsError::at(line, what));
                }
                Some(Ok(_)) | None => {
                    let what = "there is something else than an object of statistics";
                    return Err(ReadStatsError::at(line, what.to_owned()));
                }
            }
            let end = stream.byte_offset();
            line += line_ends(&rest[..end]);
            rest = &rest[end..];
        }
        for (name, _) in objects.iter().flat_map(|(_, fields)| fields) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        let record = |fields: Fields| -> csv::StringRecord {
            let value = |name: &String| fields.iter().find(|(known, _)| known == name);
            names.iter().map(|name| value(name).map_or("", |(_, value)| value)).collect()
        };
        let records = objects.into_iter().map(|(line, fields)| (line, record(fields))).collect();
        Ok(Self { names: names.into(), records, warnings })
    }
}

/// The connections in an object: one, or a group and its links.
fn fields(object: Map<String, Value>) -> Vec<Fields> {
    if !object.contains_key("ConnStats") {
        return vec![flat(object)];
    }
    let links = match object.get("LinksStats") {
        Some(Value::Array(links)) => links.clone(),
        _ => Vec::new(),
    };
    let whole = object.get("ConnStats").cloned();
    let objects = whole.into_iter().chain(links).filter_map(|value| match value {
        Value::Object(object) => Some(flat(object)),
        _ => None,
    });
    objects.collect()
}

/// The fields of an object and of those in it, under the names of the CSV.
fn flat(object: Map<String, Value>) -> Fields {
    let mut fields = Vec::new();
    for (name, value) in object {
        match value {
            Value::Object(group) => {
                fields.extend(
                    group.into_iter().map(|(inner, value)| (csv_name(&name, &inner), text(&value))),
                );
            }
            value => fields.push((csv_name("", &name), text(&value))),
        }
    }
    fields
}

fn csv_name(group: &str, name: &str) -> String {
    let known = FIELDS.iter().find(|field| field.json == (group, name));
    match (known, group, name) {
        (Some(field), ..) => field.csv.to_owned(),
        (None, "", "sid") => "SocketID".to_owned(),
        (None, "", "timepoint") => "Timepoint".to_owned(),
        (None, "", _) => name.to_owned(),
        (None, ..) => format!("{group}.{name}"),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn line_ends(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::read::{StatsTable, TableKind};
    use crate::{Sample, csv_header_with_weight, csv_row, csv_row_with_weight, json_group_row};

    fn sample(packets: u64) -> Sample {
        let statistics = punctual_proto::Statistics::default;
        let mut sample = Sample { total: statistics(), interval: statistics(), quic: None };
        sample.total.elapsed = Duration::from_secs(1);
        sample.total.rtt = Duration::from_micros(20_125);
        sample.interval.packets_sent = packets;
        sample.interval.packets_received = packets + 3;
        sample
    }

    const NOW: [&str; 2] = ["2026-01-02T03:04:05.5+0000", "2026-01-02T03:04:06.5+0000"];

    #[test]
    fn json_gives_what_the_csv_gives() {
        let csv: String = NOW.map(|now| csv_row(now, 7, &sample(48)) + "\n").concat();
        let json: String = NOW.map(|now| crate::json_row(now, 7, &sample(48)) + "\n").concat();
        let csv = StatsTable::parse(&format!("{}\n{csv}", crate::csv_header())).unwrap();
        let read = StatsTable::parse(&json).unwrap();
        assert_eq!((read.kind, read.warnings.len()), (TableKind::Statistics, 0));
        let (ours, theirs) = (&read.connections[0], &csv.connections[0]);
        assert_eq!((&ours.id, &ours.timepoints_us), (&theirs.id, &theirs.timepoints_us));
        assert_eq!(ours.seconds, [0.0, 1.0]);
        for field in crate::FIELDS {
            assert_eq!(ours.column(field.csv), theirs.column(field.csv), "{}", field.csv);
        }
    }

    #[test]
    fn the_json_of_a_group_gives_it_and_its_links() {
        let links = [
            (8, 50, "10.0.0.1:4200".to_owned(), sample(20)),
            (9, 0, "10.0.0.2:4200".to_owned(), sample(28)),
        ];
        let json: String =
            NOW.map(|now| json_group_row(now, 7, &sample(48), Some(&links))).join("\n");
        let read = StatsTable::parse(&json).unwrap();
        let link = csv_row_with_weight(NOW[0], 8, 50, "10.0.0.1:4200", &links[0].3);
        let csv = StatsTable::parse(&format!("{}\n{link}\n", csv_header_with_weight())).unwrap();
        let ids: Vec<&str> = read.connections.iter().map(|rows| rows.id.as_str()).collect();
        assert_eq!(ids, ["7", "8", "9"]);
        let peers: Vec<&str> = read.connections.iter().map(|rows| rows.peer.as_str()).collect();
        assert_eq!(peers, ["", "10.0.0.1:4200", "10.0.0.2:4200"]);
        assert_eq!(csv.connections[0].peer, "10.0.0.1:4200");
        let sums: Vec<_> = read.connections.iter().map(|rows| rows.sum("pktSent")).collect();
        assert_eq!(sums, [Some(96.0), Some(40.0), Some(56.0)]);
        assert_eq!(read.connections[1].last("weight"), csv.connections[0].last("weight"));
    }

    #[test]
    fn objects_in_a_list_or_over_several_lines_are_read() {
        let one = "{\n \"sid\": 7,\n \"time\": 1000,\n \"link\": {\n \"rtt\": 20.5 } }";
        for text in [format!("[{one},\n{one}]"), format!("{one},\n{one},\n"), one.repeat(2)] {
            let read = StatsTable::parse(&text).unwrap();
            assert_eq!(read.connections[0].column("msRTT"), Some(&[Some(20.5); 2][..]), "{text}");
        }
    }

    #[test]
    fn an_object_without_its_end_is_left_out_with_a_warning() {
        let whole = "{\"sid\":7,\"time\":1000,\"link\":{\"rtt\":20.5}}\n";
        let read = StatsTable::parse(&format!("{whole}{}", &whole[..20])).unwrap();
        assert_eq!(read.connections[0].len(), 1);
        assert_eq!(read.warnings, ["line 2: the last object has no end; left out"]);
    }

    #[test]
    fn a_fault_in_json_is_reported_with_its_line() {
        let error = |text: &str| StatsTable::parse(text).unwrap_err().to_string();
        let whole = "{\"sid\":7,\"time\":1000,\"link\":{\"rtt\":20.5}}\n";
        assert!(error(&format!("{whole}{{\"sid\" 7}}")).starts_with("line 2: this is no JSON"));
        assert!(error("[1, 2]").contains("something else than an object"));
        assert!(error("{\"a\":1}").contains("neither of statistics"));
        let high = whole.replace("20.5", "\"high\"");
        assert_eq!(error(&high), "line 1: column msRTT: `high` is no number");
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused_without_a_panic(text in "[\\[{][\\[\\]{}\",:a-z0-9 ]{0,80}") {
            let _ = StatsTable::parse(&text);
        }
    }
}
