//! `quic://host:port?…`: messages over QUIC without SRT.

use punctual::quic::Protocol;

use crate::error::ValueError;
use crate::key::{Effect, Key, switch};

/// The values of the keys of `quic://` alone.
#[derive(Default)]
pub(crate) struct MessageKeys {
    pub(crate) listen: Option<bool>,
    pub(crate) carry: Option<Protocol>,
}

/// The keys of `quic://` alone.
pub(crate) const MESSAGE_KEYS: &[Key<MessageKeys>] = &[
    Key::new(
        "carry",
        &[],
        "datagrams, streams or stream; default datagrams, and any at a listener",
        "how messages travel: in datagrams that may be lost, each on a stream of its own, or all \
         in order on one stream",
        Effect::Set(|keys, value| {
            keys.carry = Some(match value {
                "datagrams" => Protocol::Datagrams,
                "streams" => Protocol::Streams,
                "stream" => Protocol::Stream,
                _ => {
                    let wrong = "it must be datagrams, streams or stream";
                    return Err(ValueError(wrong.to_owned()));
                }
            });
            Ok(())
        }),
    ),
    Key::new(
        "listen",
        &[],
        "switch; default on without a host, else off",
        "wait for a connection instead of making one",
        Effect::Set(|keys, value| {
            keys.listen = Some(switch(value)?);
            Ok(())
        }),
    ),
];

#[cfg(test)]
mod tests {
    use punctual::Carriage;
    use punctual::quic::CongestionControl;

    use crate::{QuicTarget, Target, Uri};

    fn parsed(rest: &str) -> QuicTarget {
        match format!("quic://{rest}").parse::<Uri>().unwrap().target {
            Target::Quic(target) => *target,
            other => panic!("{other:?}"),
        }
    }

    fn error(rest: &str) -> String {
        format!("quic://{rest}").parse::<Uri>().unwrap_err().to_string()
    }

    fn congestion(target: &QuicTarget) -> CongestionControl {
        match &target.port_config.carriage {
            Carriage::Quic(config) => config.transport.congestion,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_host_it_listens_and_with_one_it_calls() {
        assert!(parsed(":443").listen && parsed("10.0.0.7:443?listen=1").listen);
        let caller = parsed("host:443?insecure=1&carry=stream");
        assert!(!caller.listen);
        assert!(caller.warnings[0].contains("not verified"));
    }

    #[test]
    fn the_rate_is_limited_by_bbr_unless_the_uri_says_otherwise() {
        assert_eq!(congestion(&parsed(":443")), CongestionControl::Bbr);
        assert_eq!(congestion(&parsed("h:443?insecure=1&quiccc=none")), CongestionControl::None);
    }

    #[test]
    fn errors_say_what_would_be_right() {
        assert!(error("host:443?insecure=1&carry=files").contains("datagrams, streams or stream"));
        assert!(error("host:443?insecure=1&cary=stream").contains("did you mean `carry`?"));
        assert!(error("host:443?latency=1").contains("unknown key `latency`"));
        assert!(error(":443?listen=0").contains("`quic://host:443`"));
        assert!(error("host?insecure=1").contains("the port is missing"));
    }
}
