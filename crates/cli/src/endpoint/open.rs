//! Opening the end of a stream: calling, listening, binding, opening files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use punctual::{Accepted, Group, Listener, Socket};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::args::Pace;
use crate::endpoint::bytes::{ByteReader, ByteStream};
use crate::endpoint::cut::starts_like_transport_stream;
use crate::endpoint::paced::{Clock, PacedReader};
use crate::endpoint::reader::LastPeer;
use crate::endpoint::{Connection, Reader, SrtEnd, Writer, group, srt, tcp, udp};
use crate::exit::Failure;
use punctual_uri::{Mode, SrtTarget, Target, TcpTarget, UdpTarget, Uri};

/// What a command does with an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// It reads, and may answer.
    Source,
    /// It writes, and may read answers.
    Destination,
}

/// How fast files and pipes are read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacing {
    /// The pace; `None` for that of the clock in a file of MPEG-TS, and no other.
    pub(crate) pace: Option<Pace>,
    /// Read a file over and over.
    pub(crate) repeat: bool,
}

/// Opens one connection after another to what a URI names; a listener stays between them.
pub(crate) struct Opener {
    uri: Uri,
    /// All links of a group, that of `uri` included; empty for an end that is none.
    links: Vec<Uri>,
    role: Role,
    message_size: usize,
    pacing: Pacing,
    listener: AnyListener,
}

enum AnyListener {
    None,
    Srt(Arc<Listener>),
    Tcp(TcpListener),
}

impl Opener {
    /// For messages of at most `message_size` bytes.
    pub(crate) fn new(uri: &Uri, role: Role, message_size: usize) -> Self {
        for warning in uri.warnings() {
            tracing::warn!("{uri}: {warning}");
        }
        let pacing = Pacing { pace: Some(Pace::None), repeat: false };
        let (uri, links) = (uri.clone(), Vec::new());
        Self { uri, links, role, message_size, pacing, listener: AnyListener::None }
    }

    /// An opener for each end that `uris` name: one for all the links of a group.
    pub(crate) fn each<'a>(
        uris: impl Iterator<Item = &'a Uri>,
        role: Role,
        message_size: usize,
    ) -> Result<Vec<Self>, Failure> {
        let bundles = group::bundle(uris)?.into_iter();
        Ok(bundles
            .map(|links| Self::new(&links[0], role, message_size).with_links(links))
            .collect())
    }

    fn with_links(self, links: Vec<Uri>) -> Self {
        match &self.uri.target {
            Target::Srt(target) if group::is_grouped(target) => Self { links, ..self },
            _ => self,
        }
    }

    /// The same, reading files and pipes at a pace.
    pub(crate) fn with_pacing(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// Whether it opens groups.
    pub(crate) fn is_grouped(&self) -> bool {
        !self.links.is_empty()
    }

    /// What is opened.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether opening is a call or the like, not waiting for callers.
    pub(crate) fn calls(&self) -> bool {
        match &self.uri.target {
            Target::Srt(target) => target.mode != Mode::Listener,
            Target::Tcp(target) => !target.listen,
            Target::File(_) | Target::Stdio | Target::Udp(_) => true,
        }
    }

    /// Calls, or waits for the next caller, or opens what needs no peer.
    pub(crate) async fn open(&mut self) -> Result<Connection, Failure> {
        let Self { uri, links, role, message_size, pacing, listener } = self;
        let opened = match &uri.target {
            Target::File(_) | Target::Stdio => match role {
                Role::Source => open_input(uri, *message_size, *pacing).await,
                Role::Destination => open_output(uri).await,
            },
            Target::Srt(target) if !links.is_empty() => {
                open_group(target, links, *message_size, listener).await
            }
            Target::Srt(target) => open_srt(target, *message_size, listener).await,
            Target::Tcp(target) => open_tcp(target, *message_size, listener).await,
            Target::Udp(target) => open_udp(target, *role).await,
        };
        opened.map_err(|failure| failure.at(&self.uri))
    }

    /// Takes no more callers.
    pub(crate) fn close_listener(&mut self) {
        self.listener = AnyListener::None;
    }
}

impl Connection {
    fn new(reader: Reader, writer: Writer) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { id, reader, writer, socket: None, _listener: None, traffic: Arc::default() }
    }

    fn srt(socket: Socket) -> Self {
        srt::announce(&socket);
        let reader = Reader::Srt { socket: socket.clone(), messages: Vec::new() };
        let mut connection = Self::new(reader, Writer::Srt(socket.clone()));
        connection.id = socket.info().socket_id.value().into();
        connection.socket = Some(SrtEnd::Socket(socket));
        connection
    }

    fn group(group: Group) -> Self {
        let reader = Reader::Group(group.clone());
        let mut connection = Self::new(reader, Writer::Group(group.clone()));
        connection.id = group.id().into();
        connection.socket = Some(SrtEnd::Group(group));
        connection
    }

    fn tcp(stream: TcpStream, message_size: usize) -> Self {
        let (read, write) = stream.into_split();
        Self::new(
            Reader::Bytes(ByteReader::new(Box::new(read), message_size)),
            Writer::Bytes(Box::new(write)),
        )
    }
}

async fn open_srt(
    target: &SrtTarget,
    message_size: usize,
    listener: &mut AnyListener,
) -> Result<Connection, Failure> {
    if target.mode != Mode::Listener {
        return Ok(Connection::srt(srt::call(target, message_size).await?));
    }
    if !matches!(listener, AnyListener::Srt(_)) {
        *listener = AnyListener::Srt(Arc::new(srt::listen(target, message_size).await?));
    }
    let AnyListener::Srt(listener) = listener else { unreachable!("it was set just now") };
    let Some(limit) = target.listen_timeout else {
        return Ok(Connection::srt(listener.accept().await?));
    };
    match tokio::time::timeout(limit, listener.accept()).await {
        Ok(accepted) => Ok(Connection::srt(accepted?)),
        Err(_) => Err(Failure::nobody_called(limit)),
    }
}

async fn open_group(
    target: &SrtTarget,
    links: &[Uri],
    message_size: usize,
    listener: &mut AnyListener,
) -> Result<Connection, Failure> {
    if let Some(kind) = target.group {
        return Ok(Connection::group(group::call(kind, links, message_size).await?));
    }
    if !matches!(listener, AnyListener::Srt(_)) {
        *listener = AnyListener::Srt(Arc::new(group::listen(links, message_size).await?));
    }
    let AnyListener::Srt(listener) = listener else { unreachable!("it was set just now") };
    let accepted = listener.accept_any().await?;
    group::announce(&accepted);
    Ok(match accepted {
        Accepted::Group(group) => {
            let listener = Some(Arc::clone(listener));
            Connection { _listener: listener, ..Connection::group(group) }
        }
        Accepted::Socket(socket) => Connection::srt(socket),
    })
}

async fn open_tcp(
    target: &TcpTarget,
    message_size: usize,
    listener: &mut AnyListener,
) -> Result<Connection, Failure> {
    if !target.listen {
        return Ok(Connection::tcp(tcp::connect(target).await?, message_size));
    }
    if !matches!(listener, AnyListener::Tcp(_)) {
        *listener = AnyListener::Tcp(tcp::listen(target).await?);
    }
    let AnyListener::Tcp(listener) = listener else { unreachable!("it was set just now") };
    Ok(Connection::tcp(tcp::accept(listener, target).await?, message_size))
}

async fn open_udp(target: &UdpTarget, role: Role) -> Result<Connection, Failure> {
    let last_peer = LastPeer::default();
    let socket = match role {
        Role::Destination if target.host.is_empty() => {
            return Err(Failure::usage("the host to send to is missing: `udp://host:1234`"));
        }
        Role::Destination => Arc::new(udp::send_to(target).await?),
        Role::Source => Arc::new(udp::receive_at(target).await?),
    };
    let writer = match role {
        Role::Destination => Writer::Udp(Arc::clone(&socket)),
        Role::Source => Writer::UdpAnswer(Arc::clone(&socket), Arc::clone(&last_peer)),
    };
    Ok(Connection::new(Reader::Udp { socket, last_peer, buffer: BytesMut::new() }, writer))
}

async fn open_input(uri: &Uri, message_size: usize, pacing: Pacing) -> Result<Connection, Failure> {
    let (stream, path, is_ts): (ByteStream, _, _) = match &uri.target {
        Target::File(path) => {
            let mut start = [0; TS_EVIDENCE];
            let read = File::open(path).await?.read(&mut start).await?;
            let is_ts = starts_like_transport_stream(&start[..read]);
            (Box::new(File::open(path).await?), Some(path), is_ts)
        }
        _ => (Box::new(tokio::io::stdin()), None, false),
    };
    let clock = match pacing.pace {
        Some(Pace::Pcr) => Some(Clock::pcr(message_size)),
        Some(Pace::Rate(rate)) => Some(Clock::rate(rate, message_size)),
        None if is_ts => Some(Clock::pcr(message_size)),
        None | Some(Pace::None) => None,
    };
    let reader = match clock {
        Some(clock) => {
            let again = path.filter(|_| pacing.repeat).cloned();
            Reader::Paced(Box::new(PacedReader::new(stream, clock, again)?))
        }
        None if pacing.repeat => {
            return Err(Failure::usage("--loop needs a file with a pace: MPEG-TS, or --pace RATE"));
        }
        None => Reader::Bytes(ByteReader::new(stream, message_size)),
    };
    Ok(Connection::new(reader, Writer::None))
}

async fn open_output(uri: &Uri) -> Result<Connection, Failure> {
    let writer = match &uri.target {
        Target::File(path) => Writer::Bytes(Box::new(File::create(path).await?)),
        _ => Writer::Bytes(Box::new(tokio::io::stdout())),
    };
    Ok(Connection::new(Reader::None, writer))
}

/// Bytes at the start of a file that show whether it is MPEG-TS: those up to its third packet.
const TS_EVIDENCE: usize = 2 * 188 + 1;
