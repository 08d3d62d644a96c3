//! Wireshark's dissector reads the captures of simulated worlds.

#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;
use std::time::Duration;

use interop::{Folder, Tool, have_all};
use punctual_netem::{LinkConfig, Loss};
use punctual_proto::Config;
use punctual_sim::{
    End, HostConfig, RateSchedule, StreamConfig, Traffic, TrafficConfig, Transport, World,
};
use punctual_units::Bitrate;

/// SRT with losses, bare UDP, and a TCP-like flow beside them.
#[test]
fn tshark_finds_nothing_wrong_in_the_capture_of_a_world() {
    if !have_all(&[Tool::Tshark]) {
        return;
    }
    let folder = Folder::of("tshark_finds_nothing_wrong_in_the_capture_of_a_world");
    let file = folder.file("world.pcapng");
    fs::write(&file, captured_world()).expect("the capture can be written");
    let dissect = |filter: &str, field: &str| -> Vec<String> {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&file).args(["-d", "udp.port==9000,srt"]);
        // A heuristic would take the flow for UDT, SRT's ancestor.
        tshark.args(["--disable-protocol", "udt"]);
        for checked in ["ip", "udp", "tcp"] {
            tshark.args(["-o", &format!("{checked}.check_checksum:TRUE")]);
        }
        tshark.args(["-Y", filter, "-T", "fields", "-e", field]);
        let output = tshark.output().expect("tshark is installed");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{tshark:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    };
    // Heuristics take bare messages for one thing or another.
    let wrong = "(srt && _ws.malformed) || ip.checksum.status == 0 || udp.checksum.status == 0";
    assert_eq!(dissect(wrong, "frame.number"), [""; 0], "malformed, or with a wrong checksum");
    assert_eq!(dissect("udp.port == 9000 && !srt", "frame.number"), [""; 0], "not SRT");
    let kinds = dissect("srt.iscontrol == 1", "srt.type");
    for kind in ["0x0000", "0x0002", "0x0003", "0x0006"] {
        assert!(kinds.iter().any(|found| found == kind), "no {kind}: handshake, ACK, NAK, ACKACK");
    }
    assert!(dissect("srt.msg.rexmit == 1", "frame.number").len() > 10, "retransmissions");
    assert!(dissect("tcp.port == 5001", "frame.number").len() > 100, "the TCP-like flow");
    // A message of the bare stream each millisecond, to the nanosecond.
    let times = dissect("udp.port == 20001", "frame.time_epoch");
    assert!(times.iter().any(|time| time.contains("1.500000000")), "{:?}", times.first());
}

fn captured_world() -> Vec<u8> {
    let mut world = World::new(1);
    let (from, to) = (world.add_host(HostConfig::default()), world.add_host(HostConfig::default()));
    let link = LinkConfig::default().with_delay(Duration::from_millis(20));
    let there = world.add_link(link.clone().with_loss(Loss::Random(0.03)).expect("a share"));
    let back = world.add_link(link);
    world.set_route(from, to, &[there]).expect("a route");
    world.set_route(to, from, &[back]).expect("a route");
    world.capture(there);
    world.capture(back);
    let config = Config::default();
    let srt = Transport::Srt { sender: config.clone(), receiver: config, caller: End::Sender };
    for transport in [srt, Transport::Udp] {
        let stream = StreamConfig {
            transport,
            rate: RateSchedule::constant(Bitrate::from_mbps(10)),
            payload: 1_250,
            start: Duration::ZERO,
            duration: Duration::from_secs(2),
            from,
            to,
            series: None,
        };
        world.add_stream(stream).expect("a stream");
    }
    let traffic = TrafficConfig {
        traffic: Traffic::TcpLike { max_window: 50_000 },
        packet: 1_500,
        links: vec![there],
        back: vec![back],
        start: Duration::ZERO,
        duration: Duration::from_secs(1),
    };
    world.add_traffic(traffic).expect("traffic");
    world.run_for(Duration::from_secs(3));
    world.capture_of_all()
}
