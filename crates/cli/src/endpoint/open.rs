//! Opening the end of a stream: calling, listening, binding, opening files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::BytesMut;
use punctual::{Listener, Socket};
use tokio::fs::File;
use tokio::net::{TcpListener, TcpStream};

use crate::endpoint::reader::LastPeer;
use crate::endpoint::{ByteReader, Connection, Reader, Traffic, Writer, srt, tcp, udp};
use crate::exit::Failure;
use crate::uri::{Mode, SrtTarget, Target, TcpTarget, UdpTarget, Uri};

/// What a command does with an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// It reads, and may answer.
    Source,
    /// It writes, and may read answers.
    Destination,
}

/// Opens one connection after another to what a URI names; a listener stays between them.
pub(crate) struct Opener {
    uri: Uri,
    role: Role,
    message_size: usize,
    listener: AnyListener,
}

enum AnyListener {
    None,
    Srt(Listener),
    Tcp(TcpListener),
}

impl Opener {
    /// For messages of at most `message_size` bytes.
    pub(crate) fn new(uri: &Uri, role: Role, message_size: usize) -> Self {
        for warning in uri.warnings() {
            tracing::warn!("{uri}: {warning}");
        }
        Self { uri: uri.clone(), role, message_size, listener: AnyListener::None }
    }

    /// What is opened.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Whether opening is a call or the like, not waiting for callers.
    pub(crate) fn calls(&self) -> bool {
        match &self.uri.target {
            Target::Srt(target) => target.mode == Mode::Caller,
            Target::Tcp(target) => !target.listen,
            Target::File(_) | Target::Stdio | Target::Udp(_) => true,
        }
    }

    /// Calls, or waits for the next caller, or opens what needs no peer.
    pub(crate) async fn open(&mut self) -> Result<Connection, Failure> {
        let Self { uri, role, message_size, listener } = self;
        let opened = match &uri.target {
            Target::File(_) | Target::Stdio => open_bytes(uri, *role, *message_size).await,
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
        Self { id, reader, writer, socket: None, traffic: Arc::new(Traffic::default()) }
    }

    fn srt(socket: Socket) -> Self {
        srt::announce(&socket);
        let reader = Reader::Srt { socket: socket.clone(), messages: Vec::new() };
        let mut connection = Self::new(reader, Writer::Srt(socket.clone()));
        connection.id = socket.info().socket_id.value().into();
        connection.socket = Some(socket);
        connection
    }

    fn tcp(stream: TcpStream, message_size: usize) -> Self {
        let (read, write) = stream.into_split();
        Self::new(
            Reader::Bytes(ByteReader::new(read, message_size)),
            Writer::Bytes(Box::new(write)),
        )
    }
}

async fn open_srt(
    target: &SrtTarget,
    message_size: usize,
    listener: &mut AnyListener,
) -> Result<Connection, Failure> {
    if target.mode == Mode::Caller {
        return Ok(Connection::srt(srt::call(target, message_size).await?));
    }
    if !matches!(listener, AnyListener::Srt(_)) {
        *listener = AnyListener::Srt(srt::listen(target, message_size).await?);
    }
    let AnyListener::Srt(listener) = listener else { unreachable!("it was set just now") };
    Ok(Connection::srt(listener.accept().await?))
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

async fn open_bytes(uri: &Uri, role: Role, message_size: usize) -> Result<Connection, Failure> {
    let reader = |reader| Connection::new(Reader::Bytes(reader), Writer::None);
    let writer = |writer| Connection::new(Reader::None, Writer::Bytes(writer));
    Ok(match (&uri.target, role) {
        (Target::File(path), Role::Source) => {
            reader(ByteReader::new(File::open(path).await?, message_size))
        }
        (Target::File(path), Role::Destination) => writer(Box::new(File::create(path).await?)),
        (_, Role::Source) => reader(ByteReader::new(tokio::io::stdin(), message_size)),
        (_, Role::Destination) => writer(Box::new(tokio::io::stdout())),
    })
}
