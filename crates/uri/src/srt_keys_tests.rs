use punctual::{
    BufferSize, CryptoMode, KeyLength, MaxBandwidth, PortConfig, RetransmitAlgorithm,
    RetransmitBandwidth,
};

use super::*;
use crate::parts::Parts;
use crate::query::apply_query;

fn apply(query: &str) -> Result<SrtKeys, String> {
    let rest = format!("host:4200?{query}");
    let parts = Parts::parse(&rest, &rest).unwrap();
    let mut keys = SrtKeys::default();
    match apply_query(&SRT_KEYS, &parts, &mut keys) {
        Ok(()) => Ok(keys),
        Err(error) => Err(error.problem.to_string()),
    }
}

fn config(query: &str) -> Config {
    apply(query).unwrap().config
}

/// A key, a valid value, and wrong values with the text that the message must contain.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// A case for every key that has an effect.
const CASES: &[Case] = &[
    ("mode", "caller", &[("calller", "caller, listener or rendezvous")]),
    ("rendezvous", "1", &[("2", "switch")]),
    ("adapter", "10.0.0.1", &[]),
    ("port", "5000", &[("0", "1 to 65535"), ("65536", "1 to 65535")]),
    ("bind", "10.0.0.1:5000", &[("::1:5000", "brackets"), ("a:b", "not a port")]),
    (
        "latency",
        "200ms",
        &[
            ("66s", "0 to 65535 ms"),
            ("200mss", "did you mean `ms`"),
            (
                "200sec",
                "200 s is too long: it must be 0 to 65535 ms; did you mean `latency=200ms`?",
            ),
        ],
    ),
    ("tsbpddelay", "120000", &[("66s", "0 to 65535 ms"), ("-1", "never negative")]),
    ("rcvlatency", "200", &[("120000", "did you mean `rcvlatency=120ms`")]),
    ("peerlatency", "0.2s", &[("-1", "never negative")]),
    ("streamid", "#!::r=live/a,m=publish", &[]),
    ("transtype", "stream", &[("fast", "live, file or stream")]),
    ("congestion", "file", &[("bbr", "live or file")]),
    ("messageapi", "1", &[("0", "transtype=file"), ("2", "switch")]),
    ("framing", "off", &[("2", "switch")]),
    ("conntimeo", "500ms", &[("0", "1 to 3600000 ms"), ("2h", "1 to 3600000 ms")]),
    ("peeridletimeo", "10s", &[("0", "1 to 86400000 ms")]),
    ("timeout", "5000000", &[("0", "1 to 3600000 ms"), ("5x", "unknown unit")]),
    ("listen_timeout", "-1", &[("0", "at least 1 ms"), ("5x", "unknown unit")]),
    ("linger", "5", &[("5x", "unknown unit")]),
    ("maxbw", "10Mbps", &[("-2", "never negative"), ("10MBps", "unknown unit")]),
    ("inputbw", "625000", &[("x", "bit rate")]),
    ("mininputbw", "1Mbps", &[("x", "bit rate")]),
    ("oheadbw", "30%", &[("4", "5 to 100 percent"), ("101", "5 to 100 percent"), ("x", "whole")]),
    ("maxrexmitbw", "-1", &[("x", "bit rate")]),
    ("payloadsize", "1456", &[("1457", "1 to 1456 bytes"), ("0", "1 to 1456 bytes")]),
    ("mss", "1400", &[("75", "76 to 1500 bytes"), ("1501", "76 to 1500 bytes")]),
    ("fc", "25600", &[("31", "32 to 1048576 packets"), ("1.5", "not a whole number")]),
    ("sndbuf", "12MB", &[("lots", "bytes")]),
    ("rcvbuf", "auto", &[("lots", "bytes")]),
    ("tsbpdmode", "0", &[("2", "switch")]),
    ("tlpktdrop", "no", &[("2", "switch")]),
    ("snddropdelay", "-1", &[("x", "duration")]),
    ("nakreport", "off", &[("2", "switch")]),
    ("lossmaxttl", "40", &[("1000001", "0 to 1000000 packets"), ("x", "whole number")]),
    ("retransmitalgo", "0", &[("2", "0 (aggressive), 1 (efficient), deadline, or auto")]),
    ("losstarget", "0.0001%", &[("20%", "a share up to 10%"), ("x", "share")]),
    (
        "packetfilter",
        "fec,cols:10,rows:-5,layout:even,arq:never",
        &[("fec,cols:1", "cols:2 to"), ("xor", "like fec,cols:10"), ("fec,arq:no", "arq:always")],
    ),
    ("ratecontrol", "delay", &[("bbr", "auto, delay or file")]),
    ("targetrate", "20Mbps", &[("-1", "never negative"), ("x", "bit rate")]),
    ("minrate", "1Mbps", &[("x", "bit rate")]),
    ("queuetarget", "20ms", &[("2s", "0 to 1000 ms"), ("x", "duration")]),
    ("playout", "500ms", &[("66s", "0 to 65535 ms"), ("-1", "never negative")]),
    ("drifttracer", "false", &[("2", "switch")]),
    ("pathupdate", "no", &[("2", "switch")]),
    ("passphrase", "0123456789", &[("012345678", "10 to 80 bytes")]),
    (
        "passphrase-file",
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/passphrase"),
        &[
            ("/nonexistent", "cannot be read"),
            ("/dev/null", "it is empty"),
            (concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "10 to 80 bytes"),
        ],
    ),
    ("passphrase-env", "CARGO_MANIFEST_DIR", &[("PUNCTUAL_NOT_SET", "it is not set")]),
    ("pbkeylen", "24", &[("20", "0, 16, 24 or 32"), ("x", "0, 16, 24 or 32")]),
    ("enforcedencryption", "no", &[("2", "switch")]),
    ("cryptomode", "gcm", &[("3", "0 (auto), 1 (ctr) or 2 (gcm)")]),
    ("kmrefreshrate", "1000", &[("2", "3 to 1073741824 packets"), ("x", "whole number")]),
    ("kmpreannounce", "0", &[("536870913", "1 to 536870912 packets"), ("x", "whole number")]),
    ("minversion", "1.3.0", &[("1.3", "1.3.0"), ("1.3.256", "1.3.0")]),
    ("grouptype", "backup", &[("main", "broadcast, backup or balance")]),
    ("weight", "50", &[("-1", "0 to 65535"), ("65536", "0 to 65535")]),
    ("groupconnect", "1", &[("maybe", "")]),
    ("groupminstabletimeo", "80ms", &[("10", "60 to 65535 ms")]),
    ("udp_sndbuf", "1MiB", &[("0", "1 byte to 1 GiB")]),
    ("udp_rcvbuf", "1MiB", &[("2GiB", "1 byte to 1 GiB")]),
    ("ipttl", "32", &[("0", "1 to 255"), ("256", "1 to 255")]),
    ("iptos", "0xB8", &[("256", "0 to 255")]),
    ("ipv6only", "1", &[("2", "switch")]),
    ("bindtodevice", "lo", &[]),
];

#[test]
fn every_key_takes_a_valid_value_and_explains_a_wrong_one() {
    for (key, good, bad) in CASES {
        apply(&format!("{key}={good}")).unwrap_or_else(|error| panic!("{key}={good}: {error}"));
        for (value, expected) in *bad {
            let error = apply(&format!("{key}={value}")).unwrap_err();
            let shown = if *key == "passphrase" { "…" } else { value };
            assert!(error.starts_with(&format!("{key}={shown}: ")), "{error}");
            assert!(error.contains(expected), "`{expected}` is not in: {error}");
        }
    }
}

#[test]
fn every_key_with_an_effect_has_a_case() {
    let set = SRT_KEYS.iter().filter(|key| key.works());
    let names: Vec<&str> = set.map(|key| key.name).collect();
    assert_eq!(names, CASES.iter().map(|(key, ..)| *key).collect::<Vec<_>>());
}

#[test]
fn no_two_keys_have_the_same_name() {
    let mut names: Vec<&str> =
        SRT_KEYS.iter().flat_map(|key| key.aliases.iter().copied().chain([key.name])).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn the_error_of_a_misspelt_key_names_the_nearest_one() {
    for key in SRT_KEYS.iter().filter(|key| key.name.len() > 3) {
        let misspelt = format!("{}x", key.name);
        let error = apply(&format!("{misspelt}=1")).unwrap_err();
        assert!(error.contains(&format!("unknown key `{misspelt}`")), "{error}");
        assert!(error.contains(&format!("did you mean `{}`", key.name)), "{error}");
    }
    let error = apply("latncy=120").unwrap_err();
    assert_eq!(
        error,
        "unknown key `latncy`; did you mean `latency`? (`punctual help uri` lists all keys)"
    );
}

#[test]
fn values_reach_the_config() {
    assert_eq!(config("latency=200").receive_latency(), Duration::from_millis(200));
    assert_eq!(config("latency=200").peer_latency(), Duration::from_millis(200));
    assert_eq!(config("rcvlatency=1s").receive_latency(), Duration::from_secs(1));
    assert_eq!(config("peerlatency=80ms").peer_latency(), Duration::from_millis(80));
    assert_eq!(config("latency=200&rcvlatency=300").peer_latency(), Duration::from_millis(200));
    assert_eq!(config("streamid=a%20b").stream_id(), "a b");
    assert_eq!(config("linger=2").linger(), Duration::from_secs(2));
    assert_eq!(config("maxbw=-1").max_bandwidth(), MaxBandwidth::Unlimited);
    assert_eq!(config("maxbw=0").max_bandwidth(), MaxBandwidth::Relative);
    let ten = MaxBandwidth::Absolute(Bitrate::from_mbps(10));
    assert_eq!(config("maxbw=10Mbps").max_bandwidth(), ten);
    assert_eq!(config("maxbw=1250000").max_bandwidth(), ten);
    assert_eq!(config("inputbw=625000").input_bandwidth(), Bitrate::from_mbps(5));
    assert_eq!(config("oheadbw=30%").overhead_bandwidth(), 30);
    let limit = |value: &str| config(&format!("maxrexmitbw={value}")).max_retransmit_bandwidth();
    assert_eq!(limit("1Mbps"), RetransmitBandwidth::Absolute(Bitrate::from_mbps(1)));
    assert_eq!(limit("-1"), RetransmitBandwidth::Unlimited);
    assert_eq!(limit("unlimited"), RetransmitBandwidth::Unlimited);
    assert_eq!(limit("auto"), RetransmitBandwidth::Auto);
    assert_eq!(config("sndbuf=147200").send_buffer(), BufferSize::Packets(100));
    assert_eq!(config("rcvbuf=auto").receive_buffer(), BufferSize::Auto);
    assert_eq!(config("snddropdelay=-1").send_drop_delay(), None);
    assert_eq!(config("lossmaxttl=40").reorder_tolerance(), 40);
    assert_eq!(config("minversion=1.3.0").min_version(), 0x01_03_00);
    assert_eq!(config("minversion=0x010401").min_version(), 0x01_04_01);
    assert_eq!(
        *config("retransmitalgo=aggressive").retransmit_algorithm(),
        RetransmitAlgorithm::Aggressive
    );
    let deadline = config("retransmitalgo=deadline&losstarget=0.01%");
    assert_eq!(*deadline.retransmit_algorithm(), RetransmitAlgorithm::Deadline);
    assert_eq!(deadline.loss_target().to_bits(), 1e-4_f64.to_bits());
    assert!(!config("tlpktdrop=0").too_late_drop());
    let secret = config("passphrase=correct%20horse&pbkeylen=32&cryptomode=2&kmrefreshrate=100");
    let expected = Config::default()
        .with_passphrase("correct horse")
        .and_then(|config| config.with_key_refresh_rate(100))
        .unwrap()
        .with_key_length(Some(KeyLength::Aes256))
        .with_crypto_mode(CryptoMode::Gcm);
    assert_eq!(secret, expected);
    let file = concat!("passphrase-file=", env!("CARGO_MANIFEST_DIR"), "/tests/passphrase");
    assert_eq!(config(file), config("passphrase=correct horse"), "the line end is not part of it");
    assert!(apply(&format!("passphrase=0123456789&{file}")).is_err(), "one or the other");
    let marked = std::env::temp_dir().join(format!("punctual-passphrase-{}", std::process::id()));
    std::fs::write(&marked, "\u{FEFF}correct horse\r\n").unwrap();
    let file = format!("passphrase-file={}", marked.display());
    assert_eq!(config(&file), config("passphrase=correct horse"), "the mark is not part of it");
    std::fs::remove_file(marked).unwrap();
    assert_eq!(config("kmrefreshrate=0&kmpreannounce=0&pbkeylen=0"), Config::default());
    assert_eq!(config("packetfilter=fec,cols:10").packet_filter(), "fec,cols:10");
    let port = apply("ipttl=32&iptos=0xB8&ipv6only=1&udp_rcvbuf=1MiB").unwrap().port_config;
    assert_eq!((port.ttl, port.tos, port.ipv6_only), (Some(32), Some(184), Some(true)));
    assert_eq!(port.receive_buffer, Some(1 << 20));
}

#[test]
fn names_of_other_programs_are_accepted() {
    assert_eq!(config("pkt_size=188").payload_size(), 188);
    assert_eq!(config("payload_size=188").payload_size(), 188);
    assert_eq!(config("connect_timeout=500").connect_timeout(), Duration::from_millis(500));
    assert_eq!(config("ffs=8192").flow_window(), 8_192);
    assert_eq!(config("key-length=32").key_length(), Some(KeyLength::Aes256));
    assert!(!config("tsbpd=0").tsbpd());
    assert_eq!(apply("recv_buffer_size=65536").unwrap().port_config.receive_buffer, Some(65_536));
}

#[test]
fn a_latency_that_looks_like_microseconds_causes_a_warning() {
    assert!(apply("latency=7999").unwrap().warnings.is_empty());
    let keys = apply("latency=20000").unwrap();
    assert!(keys.warnings[0].contains("20 seconds"), "{}", keys.warnings[0]);
    assert!(keys.warnings[0].contains("latency=20ms"), "{}", keys.warnings[0]);
    assert!(apply("latency=20000ms").unwrap().warnings.is_empty());
    let error = apply("latency=120000").unwrap_err();
    assert!(error.contains("did you mean `latency=120ms`"), "{error}");
    let error = apply("latency=125500").unwrap_err();
    assert!(error.contains("did you mean `latency=125500us`"), "{error}");
    let keys = apply("snddropdelay=20000").unwrap();
    assert!(keys.warnings[0].contains("snddropdelay=20ms"), "{}", keys.warnings[0]);
}

#[test]
fn keys_of_ffmpeg_are_in_microseconds() {
    let micros = Duration::from_micros;
    assert_eq!(config("tsbpddelay=250000").receive_latency(), micros(250_000));
    assert_eq!(config("tsbpddelay=250000").peer_latency(), micros(250_000));
    assert_eq!(config("tsbpddelay=250ms").receive_latency(), micros(250_000));
    assert_eq!(config("timeout=5000000").connect_timeout(), Duration::from_secs(5));
    assert_eq!(config("timeout=5000000").peer_idle_timeout(), Duration::from_secs(5));
    assert_eq!(config("timeout=-1"), Config::default());
    assert_eq!(apply("listen_timeout=5000000").unwrap().listen_timeout, Some(micros(5_000_000)));
    assert_eq!(apply("listen_timeout=-1").unwrap().listen_timeout, None);
    for (query, expected) in
        [("tsbpddelay=120", "tsbpddelay=120ms"), ("timeout=3000", "timeout=3000ms")]
    {
        let warnings = apply(query).unwrap().warnings;
        assert!(warnings[0].contains(expected), "{warnings:?}");
    }
    assert!(apply("tsbpddelay=120us").unwrap().warnings.is_empty());
    for key in ["maxbw", "inputbw", "mininputbw"] {
        let warnings = apply(&format!("{key}=5")).unwrap().warnings;
        assert!(warnings[0].contains(&format!("`{key}=5Mbps`")), "{warnings:?}");
        for value in ["0", "625000", "5Mbps"] {
            assert!(apply(&format!("{key}={value}")).unwrap().warnings.is_empty(), "{key}={value}");
        }
    }
}

#[test]
fn keys_that_are_not_needed_here_are_ignored() {
    let query = "blocking=1&sndsyn=0&rcvtimeo=-1&reuseaddr=1&sender=1&poll-timeout=-1\
                 &wait-for-connection=false&auto-reconnect=true";
    assert_eq!(apply(query).unwrap().config, Config::default());
    assert_eq!(config("minversion=66304").min_version(), 0x01_03_00);
}

#[test]
fn a_key_given_twice_is_an_error_under_any_of_its_names() {
    assert!(apply("latency=120&latency=200").unwrap_err().contains("`latency` is given twice"));
    let error = apply("payloadsize=1316&pkt_size=1316").unwrap_err();
    assert!(error.contains("`payloadsize` is given twice (`pkt_size` is another name"), "{error}");
}

#[test]
fn every_option_of_a_connection_is_a_key_and_its_default_changes_nothing() {
    for option in CONNECTION_OPTIONS {
        let info = option.info;
        let key = SRT_KEYS.iter().find(|key| key.name == info.name);
        let key = key.unwrap_or_else(|| panic!("`{}` is not a key of URIs", info.name));
        assert_eq!((key.value, key.unit, key.about), (info.range.text(), info.unit, info.effect));
        // `none` is not written as text; `latency` sets two options with different defaults.
        if info.default != "none" && info.name != "latency" {
            let given = config(&format!("{}={}", info.name, info.default));
            assert_eq!(given, Config::default(), "{}={}", info.name, info.default);
        }
    }
}

#[test]
fn every_option_of_a_udp_port_is_a_key_and_its_default_changes_nothing() {
    for option in PORT_OPTIONS {
        let info = option.info;
        let key = SRT_KEYS.iter().find(|key| key.name == info.name);
        let key = key.unwrap_or_else(|| panic!("`{}` is not a key of URIs", info.name));
        assert_eq!((key.value, key.unit, key.about), (info.range.text(), info.unit, info.effect));
        // A default that the system chooses cannot be written.
        if !["none", "the system's"].contains(&info.default) {
            let given = apply(&format!("{}={}", info.name, info.default)).unwrap().port_config;
            assert_eq!(option.get(&given), option.get(&PortConfig::default()), "{}", info.name);
        }
    }
}
