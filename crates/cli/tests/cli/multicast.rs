//! Multicast over the loopback interface: for all senders, and for some (source-specific).
#![cfg(target_os = "linux")]

use std::fs;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::program::{Folder, Program, free_port, run};

/// The bytes that arrive at `group` with these keys while a file is sent to it through `adapter`,
/// which is `lo` or an address of it.
fn received(name: &str, group: &str, adapter: &str, keys: &str) -> Option<Vec<u8>> {
    let folder = Folder::new(name);
    let [file, copy] = ["in.bin", "out.bin"].map(|name| folder.file(name));
    fs::write(&file, contents()).expect("it is written");
    let port = free_port();
    let source = format!("udp://@{group}:{port}?adapter=lo{keys}");
    let receiver = Program::start(&["route", &source, &copy, "--duration", "1500ms"]);
    wait_for_member(group);
    let to = format!("udp://{group}:{port}?adapter={adapter}&ttl=1&loop=1");
    let sent = run(&["route", &file, &to, "--pace", "4Mbps"], b"");
    if sent.stderr.contains("unreachable") {
        println!("skipped: no multicast to {group} through lo on this machine");
        return None;
    }
    assert_eq!(sent.code, Some(0), "{}", sent.stderr);
    let ended = receiver.end();
    let copy = fs::read(copy).unwrap_or_default();
    // A source of which nothing arrives is not there.
    let code = if copy.is_empty() { 4 } else { 0 };
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    Some(copy)
}

/// Waits until a socket of this machine has joined `group`, of which the program says nothing. It
/// gives up on machines without such groups.
fn wait_for_member(group: &str) {
    let (list, number) = match group.trim_matches(['[', ']']).parse().expect("an address") {
        // The system prints the four bytes as a number of its own order.
        IpAddr::V4(group) => {
            ("/proc/net/igmp", format!("{:08X}", u32::from_ne_bytes(group.octets())))
        }
        IpAddr::V6(group) => ("/proc/net/igmp6", format!("{:032x}", u128::from(group))),
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    let joined = || fs::read_to_string(list).is_ok_and(|members| members.contains(&number));
    while !joined() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn contents() -> Vec<u8> {
    (0..50_u8).flat_map(|number| [number; 1_316]).collect()
}

#[test]
fn a_group_is_received_for_all_senders_or_for_its_source() {
    for (number, (group, adapter, source, other)) in [
        ("232.43.211.234", "127.0.0.1", "127.0.0.1", "192.0.2.1"),
        ("[ff31::4321:1234]", "lo", "::1", "2001:db8::1"),
    ]
    .into_iter()
    .enumerate()
    {
        let run =
            |name: &str, keys: &str| received(&format!("{name}-{number}"), group, adapter, keys);
        let Some(all) = run("multicast-all", "") else { continue };
        assert!(all == contents(), "{group}: {} bytes", all.len());
        let from_source = run("multicast-source", &format!("&source={source}")).unwrap();
        assert!(from_source == contents(), "{group} from {source}: {} bytes", from_source.len());
        let from_other = run("multicast-other", &format!("&source={other}")).unwrap();
        assert!(from_other.is_empty(), "{group} from {other}: {} bytes", from_other.len());
    }
}

#[test]
fn sources_of_the_other_family_are_refused() {
    for (uri, expected) in [
        ("udp://@232.1.1.1:5?source=2001:db8::1", "an IPv4 group has IPv4 sources"),
        ("udp://@[ff3e::1]:5?source=10.0.0.1&adapter=lo", "an IPv6 group has IPv6 sources"),
    ] {
        let ended = run(&["route", uri, "-"], b"");
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}
