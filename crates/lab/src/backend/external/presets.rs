//! Pairs of programs that are built in.

use punctual_uri::did_you_mean;

use crate::plan::ExternalPrograms;

/// The command lines of both ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Programs {
    pub(super) sender: String,
    pub(super) receiver: String,
}

impl Programs {
    pub(super) fn new(written: Option<&ExternalPrograms>) -> Result<Self, String> {
        let nothing = ExternalPrograms::default();
        let written = written.unwrap_or(&nothing);
        let preset = written.preset.as_deref();
        let names = || PRESETS.iter().map(|(name, ..)| *name);
        let (_, sender, receiver) = PRESETS
            .iter()
            .find(|(name, ..)| *name == preset.unwrap_or("srt-live-transmit"))
            .ok_or_else(|| {
                let preset = preset.unwrap_or_default();
                let suggestion = did_you_mean(preset, names());
                let names = names().collect::<Vec<_>>().join(", ");
                format!("no preset `{preset}` of programs{suggestion} (there are {names})")
            })?;
        match (&written.sender, &written.receiver, preset) {
            (None, Some(_), None) => Err("[external] has no `sender`".to_owned()),
            (Some(_), None, None) => Err("[external] has no `receiver`".to_owned()),
            (own_sender, own_receiver, _) => Ok(Self {
                sender: own_sender.clone().unwrap_or_else(|| (*sender).to_owned()),
                receiver: own_receiver.clone().unwrap_or_else(|| (*receiver).to_owned()),
            }),
        }
    }

    /// Whether the sender writes statistics.
    pub(super) fn count(&self) -> bool {
        self.sender.contains("{stats}")
    }

    /// Whether the sender gets its stream from us.
    pub(super) fn are_fed(&self) -> bool {
        self.sender.contains("{feed}")
    }
}

/// Name, sender, receiver. FFmpeg writes no statistics: only arrivals are known. It would cut
/// messages into 1024 bytes without being told their length.
const PRESETS: &[(&str, &str, &str)] = &[
    (
        "srt-live-transmit",
        "srt-live-transmit -a:no -s:100 -pf:csv -statsout:{stats} -chunk:{payload} \
         udp://127.0.0.1:{feed} srt://127.0.0.1:{port}?mode=caller{query}",
        "srt-live-transmit -a:no -s:100 -pf:csv -statsout:{stats} -chunk:{payload} \
         srt://127.0.0.1:{port}?mode=listener{query} udp://127.0.0.1:{sink}",
    ),
    (
        "srt-xtransmit",
        "srt-xtransmit generate srt://127.0.0.1:{port}?mode=caller{query} \
         --sendrate {bitrate_bps}bps --msgsize {payload} --duration {duration_s}s \
         --enable-metrics --statsfile {stats} --statsfreq 100ms",
        "srt-xtransmit receive srt://127.0.0.1:{port}?mode=listener{query} \
         --msgsize {payload} --enable-metrics --statsfile {stats} --statsfreq 100ms",
    ),
    (
        "ffmpeg",
        "ffmpeg -hide_banner -loglevel error -f data -raw_packet_size {payload} \
         -i udp://127.0.0.1:{feed}?pkt_size={payload} -map 0 -c copy -f data srt://127.0.0.1:{port}?mode=caller&pkt_size={payload}{query_ffmpeg}",
        "ffmpeg -hide_banner -loglevel error -f data -raw_packet_size {payload} \
         -i srt://127.0.0.1:{port}?mode=listener&pkt_size={payload}{query_ffmpeg} \
         -map 0 -c copy -f data udp://127.0.0.1:{sink}?pkt_size={payload}",
    ),
    (
        "punctual",
        "punctual generate srt://127.0.0.1:{port}?mode=caller{query} --sendrate {bitrate_bps}bps \
         --msgsize {payload} --duration {duration_s}s --enable-metrics --statsfile {stats} \
         --statsfreq 100ms",
        "punctual receive srt://127.0.0.1:{port}?mode=listener{query} --enable-metrics \
         --statsfile {stats} --statsfreq 100ms",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_may_be_used_in_part_and_an_unknown_one_is_named() {
        let own = ExternalPrograms {
            sender: Some("mine {port}".to_owned()),
            ..ExternalPrograms::default()
        };
        assert!(Programs::new(Some(&own)).unwrap_err().contains("no `receiver`"));
        let preset = Some("srt-xtransmit".to_owned());
        let both = Programs::new(Some(&ExternalPrograms { preset, ..own })).unwrap();
        assert_eq!(both.sender, "mine {port}");
        assert!(both.receiver.starts_with("srt-xtransmit receive"));
        let wrong = ExternalPrograms {
            preset: Some("srt-xtransmitt".to_owned()),
            ..ExternalPrograms::default()
        };
        let error = Programs::new(Some(&wrong)).unwrap_err();
        assert!(error.contains("did you mean `srt-xtransmit`?"), "{error}");
        assert!(Programs::new(None).unwrap().are_fed());
    }
}
