use std::fmt::{Display, Write};

use crate::recommend::{Algorithm, Buffer, Recommendation};
use crate::why::DEFAULT_BUFFER;

/// A recommendation as URIs that can be copied. Latency is in milliseconds for Punctual and
/// srt-live-transmit, and in microseconds for FFmpeg and OBS; the bandwidth is in bytes a second.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Uris {
    /// For `punctual generate` and `punctual route`.
    pub punctual: String,
    /// For the listener, if it is Punctual.
    pub punctual_listener: String,
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
    /// URIs to call `address`, a host and port, with these settings. `extra` are more keys and
    /// values, as they stand in a URI: the stream ID, say. With a `mode` among them the two ends
    /// meet in a rendezvous, and the URI of the other one has `HERE` for this end's host.
    pub fn uris(&self, address: &str, extra: &[(String, String)]) -> Uris {
        let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
        // In a rendezvous the other end names this one, which it has to fill in.
        let meets = extra.iter().any(|(key, _)| key == "rendezvous" || key == "mode");
        let own = extra.iter().find(|(key, _)| key == "port" || key == "localport");
        let own = own.map_or(port, |(_, own)| own);
        let listen = if meets { format!("HERE:{own}") } else { format!(":{port}") };
        let mut sender = Query::new(address);
        sender.add("latency", self.latency.as_millis());
        self.add_sender(&mut sender);
        sender.add_unless("payloadsize", self.payload, 1_316);
        sender.add_unless("retransmitalgo", self.algorithm.number(), 1);
        sender.add_all(extra);
        let mut listener = Query::new(&listen);
        listener.add("latency", self.latency.as_millis());
        if meets {
            listener.add("mode", "rendezvous");
            listener.add_unless("port", port, own);
        }
        if self.receive_buffer.packets > DEFAULT_BUFFER {
            listener.add("rcvbuf", self.receive_buffer.bytes);
            listener.add("fc", self.receive_buffer.packets);
        }
        listener.add_unless("lossmaxttl", self.reorder_tolerance, 0);
        let mut ffmpeg = Query::new(address);
        if !meets {
            ffmpeg.add("mode", "caller");
        }
        ffmpeg.add("latency", self.latency.as_micros());
        ffmpeg.add("pkt_size", self.payload);
        self.add_sender(&mut ffmpeg);
        ffmpeg.add_all(extra);
        Uris {
            punctual: sender.0.clone(),
            srt_live_transmit: sender.0,
            srt_live_transmit_listener: listener.0.clone(),
            punctual_listener: listener.0,
            obs: ffmpeg.0.clone(),
            ffmpeg: ffmpeg.0,
        }
    }

    fn add_sender(&self, query: &mut Query) {
        query.add("maxbw", self.max_bandwidth.as_bytes_per_sec());
        let Buffer { packets, bytes } = self.send_buffer;
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
    fn new(address: &str) -> Self {
        Self(format!("srt://{address}"))
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

    fn add_all(&mut self, extra: &[(String, String)]) {
        for (key, value) in extra {
            self.add(key, value);
        }
    }
}
