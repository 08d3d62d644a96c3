use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A relay between a caller and a listener that writes every datagram to a capture file, and loses
/// some data packets so that there is something to repair. It needs no privilege, unlike a capture
/// on an interface, and misses nothing.
///
/// It takes one caller. Datagrams that it loses are in the capture: the sender did send them.
#[derive(Debug)]
pub struct Tap {
    port: u16,
    cut: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Tap {
    /// Relays between a new port and the listener at `listener_port`, both on this machine; the
    /// capture goes to `path`. Loses every `lose_every`th data packet, counted each way.
    ///
    /// # Panics
    ///
    /// If the sockets or the file cannot be made.
    pub fn start(listener_port: u16, lose_every: u32, path: &Path) -> Self {
        let lose = move |count: u32, _: &[u8]| count.is_multiple_of(lose_every);
        Self::start_losing(listener_port, path, lose)
    }

    /// As `start`, but loses the data packets for which `lose` says so. It gets the packet's number
    /// in its direction, from 1, and the packet.
    ///
    /// # Panics
    ///
    /// If the sockets or the file cannot be made.
    pub fn start_losing(
        listener_port: u16,
        path: &Path,
        lose: impl Fn(u32, &[u8]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let bind = |address| UdpSocket::bind(address).expect("a UDP socket can be bound");
        let front = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let back = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener_port);
        back.connect(listener).expect("a UDP socket can be connected");
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(LOOK_UP)).expect("a time limit can be set");
        }
        let port = front.local_addr().expect("a bound socket has an address").port();
        let capture = Arc::new(Mutex::new(Capture::create(path)));
        let cut = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));

        let caller = Arc::new(Mutex::new(None));
        let forward =
            Forward { capture, cut: cut.clone(), stop: stop.clone(), lose: Arc::new(lose) };
        let backward = forward.clone();
        let sockets = (front.try_clone(), back.try_clone());
        let (front_out, back_out) =
            (sockets.0.expect("sockets can be shared"), sockets.1.expect("sockets can be shared"));
        let known = caller.clone();
        let threads = vec![
            thread::spawn(move || {
                forward.run(&front, |from, datagram, keep| {
                    let SocketAddr::V4(from) = from else { return };
                    *known.lock().expect("no thread panics with it") = Some(from);
                    forward.record(from, listener, datagram);
                    if keep {
                        let _ = back_out.send(datagram);
                    }
                });
            }),
            thread::spawn(move || {
                backward.run(&back, |_, datagram, keep| {
                    let Some(to) = *caller.lock().expect("no thread panics with it") else {
                        return;
                    };
                    backward.record(listener, to, datagram);
                    if keep {
                        let _ = front_out.send_to(datagram, to);
                    }
                });
            }),
        ];
        Self { port, cut, stop, threads }
    }

    /// The port that callers call.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on loses everything, or only its usual share.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// Ends the relay and completes the capture.
    ///
    /// # Panics
    ///
    /// If one of its threads did.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("relaying does not panic");
        }
    }
}

/// Whether a data packet is lost, by its number in its direction and its bytes.
type Lose = dyn Fn(u32, &[u8]) -> bool + Send + Sync;

/// One direction of the relay.
#[derive(Clone)]
struct Forward {
    capture: Arc<Mutex<Capture>>,
    cut: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    lose: Arc<Lose>,
}

impl Forward {
    /// Hands on each datagram with its source and whether it is to be kept.
    fn run(&self, socket: &UdpSocket, mut relay: impl FnMut(SocketAddr, &[u8], bool)) {
        let mut buffer = [0; 2_048];
        let mut data_packets = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            let datagram = &buffer[..length];
            let is_data = datagram.first().is_some_and(|byte| byte & 0x80 == 0);
            data_packets += u32::from(is_data);
            let lost = is_data && (self.lose)(data_packets, datagram);
            relay(from, datagram, !lost && !self.cut.load(Ordering::Relaxed));
        }
    }

    fn record(&self, from: SocketAddrV4, to: SocketAddrV4, datagram: &[u8]) {
        self.capture.lock().expect("no thread panics with it").write(from, to, datagram);
    }
}

/// A capture file in the classic pcap format, of IPv4 packets without a link layer.
struct Capture(BufWriter<File>);

impl Capture {
    fn create(path: &Path) -> Self {
        let mut file = BufWriter::new(File::create(path).expect("the capture can be made"));
        let mut header = Vec::new();
        header.extend(0xA1B2_C3D4_u32.to_le_bytes()); // microseconds
        header.extend([2, 0, 4, 0]); // version 2.4
        header.extend([0; 8]); // time zone, accuracy
        header.extend(65_535_u32.to_le_bytes());
        header.extend(228_u32.to_le_bytes()); // LINKTYPE_IPV4
        file.write_all(&header).expect("the capture can be written");
        Self(file)
    }

    fn write(&mut self, from: SocketAddrV4, to: SocketAddrV4, datagram: &[u8]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
        let size = u16::try_from(datagram.len()).expect("a datagram is short");
        let packet_size = size + 28;
        let mut record = Vec::new();
        let seconds = u32::try_from(now.as_secs()).expect("it is before 2106");
        record.extend(seconds.to_le_bytes());
        record.extend(now.subsec_micros().to_le_bytes());
        record.extend(u32::from(packet_size).to_le_bytes());
        record.extend(u32::from(packet_size).to_le_bytes());
        // IPv4: version and header length, TTL 64, UDP; checksums of zero mean "not computed".
        record.extend([0x45, 0]);
        record.extend(packet_size.to_be_bytes());
        record.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        record.extend(from.ip().octets());
        record.extend(to.ip().octets());
        record.extend(from.port().to_be_bytes());
        record.extend(to.port().to_be_bytes());
        record.extend((size + 8).to_be_bytes());
        record.extend([0, 0]);
        record.extend(datagram);
        self.0.write_all(&record).expect("the capture can be written");
    }
}

/// The period at which a quiet relay checks whether it has to stop.
const LOOK_UP: Duration = Duration::from_millis(50);
