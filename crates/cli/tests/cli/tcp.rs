//! TCP at either end of a route: limits, local addresses, connections that come back.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::program::{Folder, Program, free_port, run};

fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).expect("the route listens")
}

#[test]
fn a_tcp_source_ends_at_its_size_and_at_its_idle_time() {
    let folder = Folder::new("tcp-limits");
    for (key, expected) in
        [("maxsize=1000", 1_000), ("maxidle=300ms", 5_000), ("maxtime=1s", 5_000)]
    {
        let (port, copy) = (free_port(), folder.file(key));
        let listen = format!("tcp://127.0.0.1:{port}?listen&iosize=700&{key}");
        let mut route = Program::start(&["route", &listen, &copy]);
        route.wait_for("listening");
        let mut client = connect(port);
        client.write_all(&[7; 5_000]).unwrap();
        let ended = route.end();
        assert_eq!(ended.code, Some(0), "{key}: {}", ended.stderr);
        assert_eq!(fs::read(copy).unwrap(), vec![7; expected], "{key}");
        drop(client);
    }
}

#[test]
fn a_tcp_destination_ends_at_its_size_and_the_others_go_on() {
    let folder = Folder::new("tcp-sink");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let call = format!("tcp://{}?maxsize=3000&iosize=1000", listener.local_addr().unwrap());
    let copy = folder.file("copy");
    let receive = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let ended = run(&["route", "-", &call, &copy], &[7; 50_000]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(receive.join().unwrap(), [7; 3_000]);
    assert_eq!(fs::read(copy).unwrap(), [7; 50_000]);
}

#[test]
fn an_interface_or_an_address_is_where_a_connection_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    for key in ["adapter=127.0.0.2", "adapter=lo"] {
        if key == "adapter=lo" && !cfg!(target_os = "linux") {
            continue;
        }
        let port = free_port();
        let route = Program::start(&["route", &format!("tcp://{to}?{key}&port={port}"), "-"]);
        let (mut stream, from) = listener.accept().unwrap();
        assert_eq!(from.port(), port);
        assert_eq!(
            from.ip().to_string(),
            if key.ends_with('2') { "127.0.0.2" } else { "127.0.0.1" }
        );
        stream.write_all(b"hello").unwrap();
        drop(stream);
        assert_eq!(route.end().stdout, b"hello");
    }
    for (uri, code, expected) in [
        (format!("tcp://{to}?adapter=nowhere0"), 1, "no interface of that name"),
        (format!("tcp://{to}?adapter=::1"), 2, "another IP version"),
        ("tcp://127.0.0.1:1?listen&adapter=127.0.0.2".to_owned(), 2, "has one address"),
    ] {
        let ended = run(&["route", &uri, "-"], b"");
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn with_reconnect_a_tcp_destination_is_called_again_after_it_was_lost() {
    let (source, listener) = (free_port(), TcpListener::bind("127.0.0.1:0").unwrap());
    let input = format!("udp://127.0.0.1:{source}");
    let call = format!("tcp://{}", listener.local_addr().unwrap());
    let route = Program::start(&["route", &input, &call, "--reconnect"]);
    let _generator = Program::start(&["generate", &input, "--sendrate", "1Mbps"]);
    for _ in 0..3 {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 5_000]).unwrap();
    }
    route.interrupt();
    let ended = route.end();
    assert!(ended.stderr.contains("waiting for it to come back"), "{}", ended.stderr);
}

#[test]
fn with_reconnect_a_tcp_source_listens_for_the_next_connection() {
    let (port, output) = (free_port(), UdpSocket::bind("127.0.0.1:0").unwrap());
    output.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let listen = format!("tcp://127.0.0.1:{port}?listen");
    let sink = format!("udp://{}", output.local_addr().unwrap());
    let mut route = Program::start(&["route", &listen, &sink, "--reconnect"]);
    route.wait_for("listening");
    for number in 0..3_u8 {
        let mut client = connect(port);
        client.write_all(&[number; 1_316]).unwrap();
        drop(client);
        let mut datagram = [9; 2_000];
        assert_eq!(output.recv(&mut datagram).unwrap(), 1_316);
        assert_eq!(datagram[..1_316], [number; 1_316]);
    }
    route.interrupt();
    let ended = route.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
