use std::fmt::{Display, Write};

use crate::both_ends::BothEnds;
use crate::recommend::{Algorithm, Buffer, Recommendation};
use crate::why::DEFAULT_BUFFER;

/// A recommendation as URIs that can be copied. Those of Punctual are for Punctual at both ends,
/// with another latency than the others where [`Recommendation::both_ends`] says so. Latency is in
/// milliseconds for Punctual and srt-live-transmit, and in microseconds for FFmpeg and OBS; the
/// bandwidth is in bytes a second.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Uris {
    /// For `punctual generate` and `punctual route`.
    pub punctual: String,
    /// For the listener, if it is Punctual.
    pub punctual_listener: String,
    /// For other programs; `None` over a carriage that they do not speak.
    pub others: Option<OtherPrograms>,
}

/// A recommendation as URIs of other programs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OtherPrograms {
    /// For srt-live-transmit as the sender.
    pub srt_live_transmit: String,
    /// For srt-live-transmit as the listener.
    pub srt_live_transmit_listener: String,
    /// For FFmpeg.
    pub ffmpeg: String,
    /// For the server field of OBS.
    pub obs: String,
}

impl Recommendation {
    /// URIs to call `address`, a host and port, with these settings. The scheme is `srt`, or
    /// `srt+quic`, which other programs do not speak. `extra` are more keys and values in the form
    /// of a URI, such as the stream ID. With a `mode` among them the two ends meet in a rendezvous,
    /// and the URI of the other one has `HERE` for this end's host.
    pub fn uris(&self, scheme: &str, address: &str, extra: &[(String, String)]) -> Uris {
        let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
        // In a rendezvous the other end names this one, which it has to fill in.
        let meets = extra.iter().any(|(key, _)| key == "rendezvous" || key == "mode");
        let own = extra.iter().find(|(key, _)| key == "port" || key == "localport");
        let own = own.map_or(port, |(_, own)| own);
        let listen = if meets { format!("HERE:{own}") } else { format!(":{port}") };
        let sender = |both_ends: Option<&BothEnds>| {
            let mut query = Query::new(scheme, address);
            if let Some(both_ends) = both_ends {
                query.add_all(&both_ends.need.deadline_keys(None));
            } else {
                query.add("latency", self.latency.as_millis());
            }
            self.add_sender(&mut query, both_ends.map_or(self.send_buffer, |it| it.send_buffer));
            query.add_unless("payloadsize", self.payload, 1_316);
            if both_ends.is_none() {
                query.add_unless("retransmitalgo", self.algorithm.number(), 1);
            }
            query.add_all(extra);
            query.0
        };
        let listener = |both_ends: Option<&BothEnds>| {
            let mut query = Query::new(scheme, &listen);
            let latency = both_ends.map_or(self.latency, |it| it.need.latency);
            query.add("latency", latency.as_millis());
            if meets {
                query.add("mode", "rendezvous");
                query.add_unless("port", port, own);
            }
            let buffer = both_ends.map_or(self.receive_buffer, |it| it.receive_buffer);
            if buffer.packets > DEFAULT_BUFFER {
                query.add("rcvbuf", buffer.bytes);
                query.add("fc", buffer.packets);
            }
            query.add_unless("lossmaxttl", self.reorder_tolerance, 0);
            query.0
        };
        let punctual = sender(self.both_ends.as_ref());
        let punctual_listener = listener(self.both_ends.as_ref());
        if scheme != "srt" {
            return Uris { punctual, punctual_listener, others: None };
        }
        let mut ffmpeg = Query::new(scheme, address);
        if !meets {
            ffmpeg.add("mode", "caller");
        }
        ffmpeg.add("latency", self.latency.as_micros());
        ffmpeg.add("pkt_size", self.payload);
        self.add_sender(&mut ffmpeg, self.send_buffer);
        ffmpeg.add_all(extra);
        let others = OtherPrograms {
            srt_live_transmit: sender(None),
            srt_live_transmit_listener: listener(None),
            obs: ffmpeg.0.clone(),
            ffmpeg: ffmpeg.0,
        };
        Uris { punctual, punctual_listener, others: Some(others) }
    }

    fn add_sender(&self, query: &mut Query, buffer: Buffer) {
        query.add("maxbw", self.max_bandwidth.as_bytes_per_sec());
        let Buffer { packets, bytes } = buffer;
        if packets > DEFAULT_BUFFER {
            query.add("sndbuf", bytes);
        }
    }
}

impl Algorithm {
    /// libsrt's number for it \[retransmitalgo\].
    pub fn number(self) -> u32 {
        match self {
            Self::Aggressive => 0,
            Self::Efficient => 1,
        }
    }
}

/// A URI that grows.
struct Query(String);

impl Query {
    fn new(scheme: &str, address: &str) -> Self {
        Self(format!("{scheme}://{address}"))
    }

    fn add(&mut self, key: &str, value: impl Display) {
        let separator = if self.0.contains('?') { '&' } else { '?' };
        let _ = write!(self.0, "{separator}{key}={value}");
    }

    fn add_unless<T: Display + Copy + PartialEq>(&mut self, key: &str, value: T, usual: T) {
        if value != usual {
            self.add(key, value);
        }
    }

    fn add_all(&mut self, extra: &[(impl AsRef<str>, String)]) {
        for (key, value) in extra {
            self.add(key.as_ref(), value);
        }
    }
}
