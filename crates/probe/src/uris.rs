use std::fmt::{Display, Write};
use std::time::Duration;

use crate::both_ends::BothEnds;
use crate::model::{Need, Needs};
use crate::recommend::{Buffer, Recommendation};
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

impl Uris {
    /// The URIs to copy, a line each. `latency` is that of other programs.
    pub fn text(&self, latency: Duration) -> String {
        let mut text = "\nURIs to copy\n".to_owned();
        let mut row = |name: &str, value: &str| {
            let _ = writeln!(text, "  {name:<21} {value}");
        };
        // A shell would interpret the `&`.
        let quoted = |uri: &str| format!("'{uri}'");
        row("Punctual both ends", &quoted(&self.punctual));
        row("  listening", &quoted(&self.punctual_listener));
        if let Some(others) = &self.others {
            row("srt-live-transmit", &quoted(&others.srt_live_transmit));
            row("  listening", &quoted(&others.srt_live_transmit_listener));
            row("FFmpeg", &quoted(&others.ffmpeg));
            row("OBS, server", &others.obs);
            let micros = latency.as_micros();
            row("", &format!("FFmpeg and OBS count the latency in microseconds: {micros}"));
        }
        text
    }
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

/// URIs to call `address` with the settings of `chosen`; the parameters are those of
/// [`Recommendation::uris`].
pub(crate) fn uris(
    chosen: &Recommendation,
    scheme: &str,
    address: &str,
    extra: &[(String, String)],
) -> Uris {
    let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
    // In a rendezvous the other end names this one, which it has to fill in.
    let meets = extra.iter().any(|(key, _)| key == "rendezvous" || key == "mode");
    let own = extra.iter().find(|(key, _)| key == "port" || key == "localport");
    let own = own.map_or(port, |(_, own)| own);
    let listen = if meets { format!("HERE:{own}") } else { format!(":{port}") };
    let sender = |both_ends: Option<&BothEnds>| {
        let mut query = Query::new(scheme, address);
        if let Some(both_ends) = both_ends {
            query.add_all(&both_ends.need.deadline_keys());
        } else {
            query.add("latency", chosen.latency.as_millis());
        }
        add_sender(chosen, &mut query, both_ends.map_or(chosen.send_buffer, |it| it.send_buffer));
        query.add_unless("payloadsize", chosen.payload, 1_316);
        if both_ends.is_none() {
            query.add_unless("retransmitalgo", chosen.algorithm.number(), 1);
        }
        query.add_all(extra);
        query.0
    };
    let listener = |both_ends: Option<&BothEnds>| {
        let mut query = Query::new(scheme, &listen);
        let latency = both_ends.map_or(chosen.latency, |it| it.need.latency);
        query.add("latency", latency.as_millis());
        if meets {
            query.add("mode", "rendezvous");
            query.add_unless("port", port, own);
        }
        let buffer = both_ends.map_or(chosen.receive_buffer, |it| it.receive_buffer);
        if buffer.packets > DEFAULT_BUFFER {
            query.add("rcvbuf", buffer.bytes);
            query.add("fc", buffer.packets);
        }
        query.add_unless("lossmaxttl", chosen.reorder_tolerance, 0);
        query.0
    };
    let punctual = sender(chosen.both_ends.as_ref());
    let punctual_listener = listener(chosen.both_ends.as_ref());
    if scheme != "srt" {
        return Uris { punctual, punctual_listener, others: None };
    }
    let mut ffmpeg = Query::new(scheme, address);
    if !meets {
        ffmpeg.add("mode", "caller");
    }
    ffmpeg.add("latency", chosen.latency.as_micros());
    ffmpeg.add("pkt_size", chosen.payload);
    add_sender(chosen, &mut ffmpeg, chosen.send_buffer);
    ffmpeg.add_all(extra);
    let others = OtherPrograms {
        srt_live_transmit: sender(None),
        srt_live_transmit_listener: listener(None),
        obs: ffmpeg.0.clone(),
        ffmpeg: ffmpeg.0,
    };
    Uris { punctual, punctual_listener, others: Some(others) }
}

/// URIs to call `address`, a host and port: for two Punctual ends the least latency of `needs`, for
/// other programs that of `efficient`, libsrt's default algorithm. `None` if no latency is enough.
pub fn uris_of_needs(needs: &Needs, address: &str) -> Option<Uris> {
    let port = address.rsplit_once(':').map_or(address, |(_, port)| port);
    let listener = |need: &Need| {
        let mut query = Query::new("srt", &format!(":{port}"));
        query.add("latency", need.latency.as_millis());
        query.0
    };
    let both_ends = needs.deadline.first()?;
    let mut punctual = Query::new("srt", address);
    punctual.add_all(&both_ends.deadline_keys());
    let others = needs.efficient.as_ref().map(|need| {
        let mut srt_live_transmit = Query::new("srt", address);
        srt_live_transmit.add("latency", need.latency.as_millis());
        let mut ffmpeg = Query::new("srt", address);
        ffmpeg.add("mode", "caller");
        ffmpeg.add("latency", need.latency.as_micros());
        OtherPrograms {
            srt_live_transmit: srt_live_transmit.0,
            srt_live_transmit_listener: listener(need),
            obs: ffmpeg.0.clone(),
            ffmpeg: ffmpeg.0,
        }
    });
    Some(Uris { punctual: punctual.0, punctual_listener: listener(both_ends), others })
}

fn add_sender(chosen: &Recommendation, query: &mut Query, buffer: Buffer) {
    query.add("maxbw", chosen.max_bandwidth.as_bytes_per_sec());
    let Buffer { packets, bytes } = buffer;
    if packets > DEFAULT_BUFFER {
        query.add("sndbuf", bytes);
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
