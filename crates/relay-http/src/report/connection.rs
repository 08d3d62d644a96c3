//! A connection, with its statistics under libsrt's names.

use std::borrow::Cow;

use punctual_proto::Statistics;
use punctual_stats::{FIELDS, QuicStatistics, Sample, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::Timestamp;

/// A connection of the relay: a caller's or the relay's own.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConnectionReport {
    /// The ID for the API: a UUID, never given twice.
    pub id: String,
    /// The part that the other end plays.
    pub role: ConnectionRole,
    /// `srt`, `srt+quic`, `http`, `player` or `hls`.
    pub protocol: String,
    /// The stream's name.
    pub stream: String,
    /// The user's name, if the caller told one.
    pub user: Option<String>,
    /// The other end's address; of a group those of its links, with ` + ` between them.
    pub address: String,
    /// The stream ID as it came, with secrets masked.
    pub stream_id: String,
    /// The time of the handshake.
    pub opened_at: Timestamp,
    /// The latency that each end asked for, and the result; `null` without SRT.
    pub latency: Option<LatencyReport>,
    /// The cipher and the key's length, such as `AES-128-CTR`; `null` without encryption.
    pub encryption: Option<String>,
    /// The version of SRT that the other end told, such as `1.5.3`.
    pub peer_version: Option<String>,
    /// The bytes of the stream that went over it, without headers and retransmissions.
    pub bytes: u64,
    /// Jumps to a later random access point because this viewer was too slow.
    pub skips: u64,
    /// The statistics; `null` without SRT.
    pub statistics: Option<SrtStatistics>,
    /// The links, if it is a group: one stream over several connections.
    pub group: Option<GroupReport>,
}

/// The links of a group.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct GroupReport {
    /// `broadcast`, `backup` or `balance`.
    pub kind: String,
    /// The links, and those that have ended and did not come back.
    pub links: Vec<LinkReport>,
}

/// A link of a group. Numbers are those of the stream's direction, since the link joined.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct LinkReport {
    /// The other end's address.
    pub address: String,
    /// The state.
    pub state: LinkState,
    /// The weight: a backup group uses the link with the highest one.
    pub weight: u16,
    /// The round-trip time; `null` until it was measured.
    pub rtt_ms: Option<f64>,
    /// SRT packets, retransmissions included.
    pub packets: u64,
    /// Packets that the link lost.
    pub packets_lost: u64,
    /// Retransmissions.
    pub packets_retransmitted: u64,
}

/// The state of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// It is being called.
    Connecting,
    /// It sends only keepalives.
    Standby,
    /// It carries the stream until it is known to be stable.
    TakingOver,
    /// It carries the stream, and the other end answers.
    Active,
    /// It carries the stream, but the other end is silent.
    WithoutAnswers,
    /// It answers again and is watched.
    Recovering,
    /// It has ended.
    Lost,
}

/// The part of the other end of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionRole {
    /// It called and sends a stream.
    Publisher,
    /// It called and gets a stream.
    Viewer,
    /// The relay called it and gets a stream.
    Pull,
    /// The relay called it and sends a stream.
    Forward,
}

impl ConnectionRole {
    /// Whether the stream comes to the relay.
    pub fn is_inbound(self) -> bool {
        matches!(self, Self::Publisher | Self::Pull)
    }
}

/// Wishes for the latency of a connection, and the result.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub struct LatencyReport {
    /// The wish of the relay.
    pub relay_ms: u32,
    /// The wish of the other end.
    pub peer_ms: u32,
    /// The result.
    pub agreed_ms: u32,
}

/// The statistics of an SRT connection under the names of libsrt's columns (`pktRecv`, `msRTT`, …).
/// Counters count since the handshake; `mbpsSendRate` and `mbpsRecvRate` are those of the last
/// second.
#[derive(Clone, Debug)]
pub struct SrtStatistics {
    /// The statistics since the handshake.
    pub total: Statistics,
    /// The statistics of the last second.
    pub last_second: Statistics,
    /// The statistics of the QUIC connection below; `None` over UDP.
    pub quic: Option<QuicStatistics>,
}

impl Serialize for SrtStatistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sample = |interval: &Statistics| Sample {
            total: self.total.clone(),
            interval: interval.clone(),
            quic: None,
        };
        let (all, last) = (sample(&self.total), sample(&self.last_second));
        let mut map = serializer.serialize_map(None)?;
        for field in FIELDS {
            let of_last_second = ["mbpsSendRate", "mbpsRecvRate"].contains(&field.csv);
            let value = (field.value)(if of_last_second { &last } else { &all });
            match value {
                Value::Whole(count) => map.serialize_entry(field.csv, &count)?,
                Value::Real(measure) => map.serialize_entry(field.csv, &measure)?,
                Value::Unknown => map.serialize_entry(field.csv, &())?,
            }
        }
        if let Some(quic) = &self.quic {
            map.serialize_entry("quic", quic)?;
        }
        map.end()
    }
}

impl utoipa::PartialSchema for SrtStatistics {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder};
        use utoipa::openapi::{Object, Type};
        let number = Object::with_type(Type::Number);
        let object = FIELDS
            .iter()
            .fold(ObjectBuilder::new(), |object, field| object.property(field.csv, number.clone()));
        object
            .additional_properties(Some(AdditionalProperties::FreeForm(true)))
            .description(Some(
                "The statistics of an SRT connection under the names of libsrt's columns. A value \
                 that was not measured yet is null.",
            ))
            .into()
    }
}

impl ToSchema for SrtStatistics {
    fn name() -> Cow<'static, str> {
        "SrtStatistics".into()
    }
}
