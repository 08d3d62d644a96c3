//! UDP at the ends of a route: ports that another program has, datagrams of any size, loops.

use std::fs;
use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

use crate::program::{Folder, Program, free_port, run};

/// A transport stream.
pub(crate) fn clip() -> Vec<u8> {
    fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts")).expect("it is there")
}

/// Sends `bytes` to `port` in datagrams of this size.
pub(crate) fn send_datagrams(bytes: &[u8], size: usize, port: u16) {
    // Old datagrams are left out when the route begins.
    sleep(Duration::from_millis(500));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    for datagram in bytes.chunks(size) {
        socket.send_to(datagram, ("127.0.0.1", port)).expect("it is sent");
        sleep(Duration::from_micros(300));
    }
}

/// Sends datagrams of this size through a route to a listener of SRT with these keys, and gives the
/// bytes that it records and the messages of the route.
fn through_srt(name: &str, bytes: &[u8], size: usize, keys: &str) -> (Vec<u8>, String) {
    let folder = Folder::new(name);
    let (copy, udp, srt) = (folder.file("out.bin"), free_port(), free_port());
    let mut receiver =
        Program::start(&["route", &format!("srt://127.0.0.1:{srt}?{keys}&mode=listener"), &copy]);
    receiver.wait_for("listening");
    let (from, to) = (format!("udp://127.0.0.1:{udp}"), format!("srt://127.0.0.1:{srt}"));
    let mut route = Program::start(&["route", &from, &to]);
    route.wait_for("connected");
    send_datagrams(bytes, size, udp);
    sleep(Duration::from_millis(500));
    route.interrupt();
    let ended = route.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(receiver.end().code, Some(0));
    (fs::read(copy).unwrap_or_default(), ended.stderr)
}

#[test]
fn a_transport_stream_in_datagrams_of_1472_bytes_arrives_whole() {
    let clip = &clip()[..188 * 400];
    let (copy, messages) = through_srt("datagrams-1472", clip, 1_472, "latency=200ms");
    assert!(copy == clip, "{} of {} bytes\n{messages}", copy.len(), clip.len());
    assert!(!messages.contains("not sent"), "{messages}");
}

#[test]
fn timestamps_and_parity_of_a_transport_stream_in_datagrams_are_taken_off() {
    let clip = &clip()[..188 * 700];
    for (before, after, what) in [(4, 0, "its timestamps"), (0, 16, "its 16 bytes of parity")] {
        let wrap = |packet: &[u8]| [&vec![9; before][..], packet, &vec![8; after]].concat();
        let stream: Vec<u8> = clip.chunks(188).flat_map(wrap).collect();
        let size = 7 * (188 + before + after);
        let (copy, messages) = through_srt("datagrams-wrapped", &stream, size, "latency=200ms");
        assert!(copy == clip, "{} of {} bytes\n{messages}", copy.len(), clip.len());
        assert!(messages.contains(&format!("sent without {what}")), "{messages}");
    }
}

#[test]
fn datagrams_that_are_too_long_are_counted_and_told_once_with_the_remedy() {
    let text = "no transport stream, ".repeat(10_000);
    let (copy, messages) = through_srt("datagrams-long", text.as_bytes(), 1_472, "latency=200ms");
    let sent = text.len() / 1_472;
    assert_eq!(messages.matches("WARN").count(), 2, "the first and the 16th: {messages}");
    assert!(messages.contains("`pkt_size=1456`"), "{messages}");
    assert!(messages.contains(&format!("not sent {sent} messages")), "{messages}");
    assert_eq!(copy.len(), text.len() % 1_472, "the last one is short enough");
}

#[test]
fn bytes_of_a_file_are_cut_to_the_small_packets_of_a_peer() {
    let folder = Folder::new("datagrams-mss");
    let (file, copy, port) = (folder.file("in.bin"), folder.file("out.bin"), free_port());
    let bytes: Vec<u8> = (0..50_000_u32).flat_map(u32::to_be_bytes).collect();
    fs::write(&file, &bytes).unwrap();
    let listener = format!("srt://127.0.0.1:{port}?mode=listener&mss=400&latency=200ms");
    let mut receiver = Program::start(&["route", &listener, &copy]);
    receiver.wait_for("listening");
    let to = format!("srt://127.0.0.1:{port}");
    let sent = run(&["route", &file, &to, "--pace", "4Mbps"], b"");
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    assert!(!sent.stderr.contains("not sent"), "{}", sent.stderr);
    assert_eq!(receiver.end().code, Some(0));
    assert!(fs::read(copy).unwrap() == bytes, "{}", sent.stderr);
}

#[test]
fn a_port_of_another_program_is_not_shared_unless_both_ask() {
    let port = free_port();
    let uri = format!("udp://127.0.0.1:{port}");
    let mut first = Program::start(&["route", &uri, "/dev/null"]);
    interop::wait_until_bound(port);
    for taken in [uri.clone(), format!("udp://:{port}"), format!("{uri}?reuse=1")] {
        let second = run(&["receive", &taken], b"");
        assert_eq!(second.code, Some(1), "{}", second.stderr);
        let owner = format!("it belongs to punctual (process {})", first.id());
        assert!(second.stderr.contains(&owner), "{}", second.stderr);
        assert!(second.stderr.contains("`reuse=1`"), "{}", second.stderr);
    }
    let relay = run(&["emulate", &format!("127.0.0.1:{port}"), "127.0.0.1:9"], b"");
    assert!(relay.code == Some(1) && relay.stderr.contains("belongs to"), "{}", relay.stderr);
    let listener = run(&["receive", &format!("srt://127.0.0.1:{port}?mode=listener")], b"");
    assert!(listener.code == Some(1) && listener.stderr.contains("belongs to"), "{listener:?}");
    first.interrupt();
    assert_eq!(first.end().code, Some(0));

    let shared = format!("{uri}?reuse=1");
    first = Program::start(&["route", &shared, "/dev/null"]);
    interop::wait_until_bound(port);
    let second = run(&["receive", &shared, "--duration", "300ms"], b"");
    assert!(!second.stderr.contains("cannot bind"), "{}", second.stderr);
    drop(first);
}

#[test]
fn an_end_that_would_feed_itself_is_refused() {
    for args in [
        &["route", "udp://127.0.0.1:5000", "udp://127.0.0.1:5000"][..],
        &["route", "udp://:5000", "out.ts", "udp://localhost:5000"],
        &["emulate", ":5000", "127.0.0.1:5000"],
        &["emulate", ":5000", "localhost:5000"],
        &["emulate", "127.0.0.1:5000", "127.0.0.1:5000"],
        &["emulate", "[::1]:5000", "[::1]:5000"],
        &["emulate", "[::]:5000", "127.0.0.1:5000"],
    ] {
        let ended = run(args, b"");
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("are the same port"), "{args:?}: {}", ended.stderr);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_adapter_may_be_the_name_of_an_interface() {
    for (listener, caller) in [("adapter=lo", ""), ("", "adapter=lo"), ("adapter=127.0.0.1", "")] {
        let port = free_port();
        let from = format!("srt://:{port}?mode=listener&{listener}");
        let mut receiver = Program::start(&["receive", &from]);
        receiver.wait_for("listening");
        let to = format!("srt://127.0.0.1:{port}?mode=caller&{caller}");
        let sent = run(&["generate", &to, "--num", "3"], b"");
        assert_eq!(sent.code, Some(0), "{from}, {to}: {}", sent.stderr);
        assert_eq!(receiver.end().code, Some(0));
    }
    let missing = run(&["generate", "srt://127.0.0.1:9?mode=caller&adapter=nosuch0"], b"");
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("no interface of that name"), "{}", missing.stderr);
}

/// An RTP packet with this number and seven packets of `stream`.
fn rtp_packet(number: u16, stream: &[u8]) -> Vec<u8> {
    let start = usize::from(number) * 1_316;
    let header = [&[0x80, 33][..], &number.to_be_bytes(), &[0; 4], &[1, 2, 3, 4]].concat();
    [&header[..], &stream[start..start + 1_316]].concat()
}

#[test]
fn rtp_is_put_in_order_and_its_losses_are_counted() {
    let (folder, port, clip) = (Folder::new("rtp-order"), free_port(), clip());
    let copy = folder.file("out.ts");
    let route = Program::start(&["route", &format!("rtp://127.0.0.1:{port}"), &copy]);
    interop::wait_until_bound(port);
    sleep(Duration::from_millis(300));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in [0, 1, 3, 2, 4, 6, 6, 7, 8] {
        socket.send_to(&rtp_packet(number, &clip), ("127.0.0.1", port)).unwrap();
    }
    sleep(Duration::from_millis(500));
    route.interrupt();
    let ended = route.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("lost 1, came twice or too late 1"), "{}", ended.stderr);
    let expected = [&clip[..5 * 1_316], &clip[6 * 1_316..9 * 1_316]].concat();
    assert!(fs::read(copy).unwrap() == expected, "{}", ended.stderr);
}

#[test]
fn a_transport_stream_goes_through_rtp_unchanged() {
    let (folder, port, clip) = (Folder::new("rtp-whole"), free_port(), &clip()[..188 * 700]);
    let (file, copy) = (folder.file("in.ts"), folder.file("out.ts"));
    fs::write(&file, clip).unwrap();
    let route = Program::start(&["route", &format!("rtp://127.0.0.1:{port}"), &copy]);
    interop::wait_until_bound(port);
    sleep(Duration::from_millis(300));
    let sent = run(&["route", &file, &format!("rtp://127.0.0.1:{port}")], b"");
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    sleep(Duration::from_millis(300));
    route.interrupt();
    let ended = route.end();
    assert!(ended.stderr.contains("lost 0"), "{}", ended.stderr);
    assert!(fs::read(copy).unwrap() == clip, "{}", ended.stderr);
    let text = run(&["route", "-", &format!("rtp://127.0.0.1:{port}")], b"no transport stream");
    assert!(text.stderr.contains("`udp://` carries any"), "{}", text.stderr);
    assert!(text.stderr.contains("none of the 1 messages could be sent"), "{}", text.stderr);
    assert_eq!(text.code, Some(1), "{}", text.stderr);
}

#[test]
fn rtp_at_a_udp_end_is_told_with_the_remedy() {
    let (port, clip) = (free_port(), clip());
    let mut route = Program::start(&["route", &format!("udp://127.0.0.1:{port}"), "/dev/null"]);
    interop::wait_until_bound(port);
    sleep(Duration::from_millis(300));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for number in 0..5 {
        socket.send_to(&rtp_packet(number, &clip), ("127.0.0.1", port)).unwrap();
    }
    route.wait_for(&format!("`rtp://127.0.0.1:{port}` takes them off"));
    route.interrupt();
    let ended = route.end();
    assert_eq!(ended.stderr.matches("takes them off").count(), 1, "{}", ended.stderr);
}

#[test]
fn a_recording_in_any_form_goes_to_the_network_in_whole_packets() {
    let (folder, clip) = (Folder::new("forms"), &clip()[..188 * 700]);
    let with_stamps: Vec<u8> =
        clip.chunks(188).flat_map(|packet| [&[9; 4], packet].concat()).collect();
    let with_parity: Vec<u8> =
        clip.chunks(188).flat_map(|packet| [packet, &[8; 16]].concat()).collect();
    let tail = "100 of them after the last one";
    for (name, bytes, expected, told) in [
        ("mid.ts", clip[100..].to_vec(), &clip[188..], "88 bytes that are no whole"),
        ("junk.ts", [&[0; 100], clip].concat(), clip, "100 bytes that are no whole"),
        ("cut.ts", clip[..188 * 600 + 100].to_vec(), &clip[..188 * 600], tail),
        ("stamps.m2ts", with_stamps, clip, "192 bytes a packet"),
        ("parity.ts", with_parity, clip, "204 bytes a packet"),
    ] {
        for from in [folder.file(name), "-".to_owned()] {
            let (copy, port) = (folder.file("copy.ts"), free_port());
            let _ = fs::remove_file(&copy);
            let to = format!("srt://127.0.0.1:{port}");
            let mut receiver = Program::start(&["route", &format!("{to}?mode=listener"), &copy]);
            receiver.wait_for("listening");
            fs::write(folder.file(name), &bytes).unwrap();
            let args = ["route", &from, &to, "--pace", "8Mbps"];
            let args = if from == "-" { &args[..] } else { &args[..3] };
            let sent = run(args, if from == "-" { &bytes } else { b"" });
            assert_eq!(sent.code, Some(0), "{}", sent.stderr);
            assert!(sent.stderr.contains(told), "{from} {name}: {}", sent.stderr);
            assert!(!sent.stderr.contains("not MPEG-TS"), "{}", sent.stderr);
            receiver.end();
            let copy = fs::read(copy).unwrap();
            assert!(copy == expected, "{from} {name}: {} of {}", copy.len(), expected.len());
        }
    }
}
