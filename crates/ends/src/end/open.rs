//! Opens the end of a stream: calls, listens, binds, opens files.

use std::sync::Arc;
use std::time::Duration;

use punctual::{Accepted, Listener};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::end::admission::AcceptedCallers;
use crate::end::byte_writer::ByteWriter;
use crate::end::datagrams::{DatagramReader, DatagramWriter};
use crate::end::interfaces::{self, Interfaces};
use crate::end::plain_packets::PlainPackets;
use crate::end::reader::Input;
use crate::end::recording::{Existing, Recording};
use crate::end::rtp::{RtpReader, RtpWriter};
use crate::end::writer::Output;
use crate::end::{
    Connection, EndLog, FilePace, Pacing, Reader, ResumedStream, Writer, group, input, srt, tcp,
    udp,
};
use crate::failure::Failure;
use crate::stop::Stop;
use crate::stream_ids::AllowedStreamIds;
use crate::tries::Tries;
use punctual_uri::{Limits, Mode, SrtTarget, Target, TcpTarget, UdpTarget, Uri};

/// The direction in which a command uses an end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It reads, and may answer.
    Source,
    /// It writes, and may read answers.
    Destination,
}

/// Opens one connection after another to the end that a URI names; a listener stays between them.
pub struct Opener {
    uri: Uri,
    /// All links of a group, with `uri` itself; empty for an end that is not a group.
    links: Vec<Uri>,
    role: Role,
    message_size: usize,
    gathering: Gathering,
    pacing: Pacing,
    output: WrittenFile,
    admission: AcceptedCallers,
    waiting: WaitingListener,
    calls: srt::Calls,
    /// The stream that this source goes on with over each connection.
    resumed: Option<ResumedStream>,
    /// The bytes of a file that are skipped, because they were read before.
    skip: u64,
    tries: Tries,
    stop: Stop,
    log: Arc<EndLog>,
}

/// The times for which work may gather.
#[derive(Clone, Copy, Debug, Default)]
struct Gathering {
    /// The time for all work at this end.
    coalesce: Duration,
    /// The least time for datagrams of a UDP source.
    datagrams: Duration,
}

/// The treatment of what is written.
#[derive(Clone, Default)]
struct WrittenFile {
    /// A file that is there already.
    existing: Existing,
    /// Whether a file that cannot be written is tried again.
    retries: bool,
    /// Whether it comes from a stream of bytes, which has no messages.
    is_bytes: bool,
}

/// The listener of an end that waits for callers.
#[derive(Default)]
struct WaitingListener {
    listener: AnyListener,
    /// The interfaces that the listener is bound to.
    interfaces: Option<Interfaces>,
}

#[derive(Default)]
enum AnyListener {
    #[default]
    None,
    Srt(Arc<Listener>),
    Tcp(TcpListener),
}

impl Opener {
    /// An opener for messages of at most `message_size` bytes.
    pub fn new(uri: &Uri, role: Role, message_size: usize) -> Self {
        let pacing = Pacing { pace: Some(FilePace::None), ..Pacing::default() };
        Self {
            uri: uri.clone(),
            links: Vec::new(),
            role,
            message_size,
            gathering: Gathering::default(),
            pacing,
            output: WrittenFile::default(),
            admission: AcceptedCallers::default(),
            waiting: WaitingListener::default(),
            calls: srt::Calls::default(),
            resumed: None,
            skip: 0,
            tries: Tries::new(false),
            stop: Stop::default(),
            log: Arc::new(EndLog::new(uri, calls(uri))),
        }
    }

    /// An opener for each end that `uris` name. The links of a group are one end.
    pub fn each<'a>(
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

    /// The same, where work gathers for this time.
    pub fn with_coalesce(mut self, coalesce: Duration) -> Self {
        self.gathering.coalesce = coalesce;
        for uri in std::iter::once(&mut self.uri).chain(&mut self.links) {
            if let Target::Srt(target) = &mut uri.target {
                target.port_config.coalesce = coalesce;
            }
        }
        self
    }

    /// The same, where datagrams of a UDP source gather for this time. Each keeps its arrival time.
    pub fn with_gather(mut self, gather: Duration) -> Self {
        self.gathering.datagrams = gather;
        self
    }

    /// The same, where the stream of bytes that this end sends is resumed.
    pub fn with_resume(mut self) -> Self {
        if let Target::Srt(target) = &mut self.uri.target {
            target.config = target.config.clone().with_resume(true);
        }
        self
    }

    /// The same, where `stream` goes on over each connection of this source.
    pub fn with_resumed(self, stream: ResumedStream) -> Self {
        Self { resumed: Some(stream), ..self.with_resume() }
    }

    /// The same, where the first `bytes` bytes of a file were read before.
    pub fn with_skip(self, bytes: u64) -> Self {
        Self { skip: bytes, ..self }
    }

    /// The same, for messages from `source`, which may be a stream of bytes.
    pub fn with_source(self, source: &Uri) -> Self {
        let is_bytes = matches!(source.target, Target::File(_) | Target::Stdio | Target::Tcp(_));
        Self { output: WrittenFile { is_bytes, ..self.output }, ..self }
    }

    /// The same, with a pace for files and pipes.
    pub fn with_pacing(self, pacing: Pacing) -> Self {
        Self { pacing, ..self }
    }

    /// The same, with one UDP port for all its calls: connections of one port leave in common
    /// batches, which costs far less than a port for each.
    pub fn with_shared_port(self) -> Self {
        Self { calls: srt::Calls::from_one_port(), ..self }
    }

    /// The same, with this treatment of a file that exists.
    pub fn with_existing(self, existing: Existing) -> Self {
        Self { output: WrittenFile { existing, ..self.output }, ..self }
    }

    /// The same, of a stream that `stop` ends.
    pub fn with_stop(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    /// The same; if `retries`, a file that cannot be written is tried again until it is time to
    /// stop.
    pub fn with_retries(self, retries: bool) -> Self {
        Self { output: WrittenFile { retries, ..self.output }, ..self }
    }

    /// The same, for callers with these stream IDs only.
    pub fn with_stream_ids(self, allowed: Arc<AllowedStreamIds>) -> Self {
        Self { admission: self.admission.with_stream_ids(allowed), ..self }
    }

    /// The same, for no more callers than there are free places. The user of this must take a place
    /// for each connection before it opens another.
    pub fn with_places(self, places: Arc<Semaphore>) -> Self {
        Self { admission: self.admission.with_places(places), ..self }
    }

    /// The same, for `count` connections of a listener at the same time instead of one.
    pub fn with_max_callers(self, count: usize) -> Self {
        let tries = self.tries.for_connections(count);
        Self { admission: self.admission.with_max_callers(count), tries, ..self }
    }

    /// The same; if `reconnect`, it tries again for as long as it cannot be opened.
    pub fn with_reconnect(self, reconnect: bool) -> Self {
        Self { tries: self.tries.repeated(reconnect), ..self }
    }

    /// Whether it opens groups.
    pub fn is_grouped(&self) -> bool {
        !self.links.is_empty()
    }

    /// The end that is opened.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The log of its connections.
    pub const fn log(&self) -> &Arc<EndLog> {
        &self.log
    }

    /// Whether its stream goes on over each connection.
    pub const fn is_resumed(&self) -> bool {
        self.resumed.is_some()
    }

    /// Whether this end waits for callers of SRT.
    pub fn listens_for_srt(&self) -> bool {
        matches!(&self.uri.target, Target::Srt(target) if target.mode == Mode::Listener)
    }

    /// Begins to listen, if this end waits for callers and does not listen yet.
    ///
    /// # Errors
    ///
    /// The failure after which there is no other try.
    pub async fn listen(&mut self) -> Result<(), Failure> {
        loop {
            self.tries.begin(false).await;
            match self.listen_once().await {
                Ok(()) => return Ok(()),
                Err(failure) => self.tries.failed(failure)?,
            }
        }
    }

    async fn listen_once(&mut self) -> Result<(), Failure> {
        self.watched_interfaces().await;
        let Self { uri, links, message_size, waiting, admission, .. } = self;
        let listener = &mut waiting.listener;
        let listened = match &uri.target {
            Target::Srt(target) if target.mode == Mode::Listener => {
                let most = admission.max_callers();
                listen_srt(target, links, *message_size, listener, most).await.map(|_| ())
            }
            Target::Tcp(target) if target.listen => listen_tcp(target, listener).await.map(|_| ()),
            _ => Ok(()),
        };
        listened.map_err(|failure| failure.at(&self.uri))
    }

    /// Calls, or waits for the next caller, or opens an end that needs no peer.
    ///
    /// # Errors
    ///
    /// The failure after which there is no other try.
    pub async fn open(&mut self) -> Result<Connection, Failure> {
        loop {
            self.tries.begin(calls(&self.uri)).await;
            let opened = match self.watched_interfaces().await {
                None => self.open_once().await,
                Some(interfaces) => {
                    let removed = tokio::select! {
                        opened = self.open_once() => Ok(opened),
                        removed = interfaces.removed() => Err(removed),
                    };
                    removed.unwrap_or_else(|removed| {
                        self.waiting.listener = AnyListener::None;
                        Err(removed.at(&self.uri))
                    })
                }
            };
            match opened {
                Ok(connection) => {
                    self.tries.succeeded();
                    return Ok(connection);
                }
                Err(failure) => self.tries.failed(failure)?,
            }
        }
    }

    /// The interfaces of an end that waits for callers: without them nobody can call. They are as
    /// they were when the listener was bound, if there is one already.
    async fn watched_interfaces(&mut self) -> Option<Interfaces> {
        if calls(&self.uri) {
            return None;
        }
        if matches!(self.waiting.listener, AnyListener::None) {
            let uris = self.links.iter().chain([&self.uri]);
            self.waiting.interfaces =
                Interfaces::of(uris.flat_map(interfaces::names).collect()).await;
        }
        self.waiting.interfaces.clone()
    }

    /// The failure of an end that was never open until it was time to end; `None` if it was open
    /// once, or somebody ended the stream before its time.
    pub fn never_opened(&mut self) -> Option<Failure> {
        let Self { tries, uri, stop, .. } = self;
        let nobody = || Failure::nobody(calls(uri)).at(&*uri);
        tries.never_succeeded(nobody).filter(|_| !stop.is_interrupted())
    }

    async fn open_once(&mut self) -> Result<Connection, Failure> {
        let (size, log, turn) = (self.message_size, &self.log, self.tries.count() - 1);
        let opened = match &self.uri.target {
            Target::File(_) | Target::Stdio => match self.role {
                Role::Source => {
                    let Self { uri, pacing, skip, .. } = self;
                    let coalesce = self.gathering.coalesce;
                    input::open(uri, size, *pacing, coalesce, *skip, log).await
                }
                Role::Destination => open_output(&self.uri, &self.output, &self.stop, log),
            },
            Target::Srt(target) if target.mode == Mode::Listener => {
                let Self { links, waiting, admission, resumed, .. } = self;
                let listener = &mut waiting.listener;
                accept_srt(target, links, size, listener, admission, resumed.as_ref(), log).await
            }
            Target::Srt(target) => {
                let Self { links, calls, resumed, .. } = self;
                match target.group {
                    Some(kind) => group::call(kind, links, size, turn)
                        .await
                        .map(|group| Connection::group(group, log)),
                    None => calls
                        .call(target, size)
                        .await
                        .map(|socket| Connection::srt(socket, resumed.as_ref(), log)),
                }
            }
            Target::Tcp(target) => {
                let wants_packets = self.pacing.to_network;
                let listener = &mut self.waiting.listener;
                let packets_of = wants_packets.then(|| self.uri.to_string());
                let stream = open_tcp(target, listener, log).await;
                stream.map(|stream| {
                    let role = self.role;
                    Connection::tcp(stream, role, target, size, packets_of, &self.stop, log)
                })
            }
            Target::Udp(target) => {
                let gather = self.gathering.coalesce.max(self.gathering.datagrams);
                let wants_packets = self.pacing.to_network;
                open_udp(&self.uri, target, self.role, wants_packets, turn, gather, log).await
            }
        };
        let mut opened = opened.map_err(|failure| failure.at(&self.uri))?;
        if self.output.is_bytes {
            opened.writer.cut_anywhere();
        }
        Ok(opened)
    }

    /// Refuses all further callers.
    pub fn refuse_callers(&self) {
        if let AnyListener::Srt(listener) = &self.waiting.listener {
            listener.limit_callers(Some(0));
        }
    }

    /// Stops listening.
    pub fn close_listener(&mut self) {
        self.waiting.listener = AnyListener::None;
    }
}

async fn listen_srt<'a>(
    target: &SrtTarget,
    links: &[Uri],
    message_size: usize,
    listener: &'a mut AnyListener,
    max_callers: Option<usize>,
) -> Result<&'a Arc<Listener>, Failure> {
    if !matches!(listener, AnyListener::Srt(_)) {
        *listener = AnyListener::Srt(Arc::new(match links.is_empty() {
            true => srt::listen(target, message_size, max_callers).await?,
            false => group::listen(links, message_size).await?,
        }));
    }
    let AnyListener::Srt(listener) = listener else { unreachable!("it was set just now") };
    Ok(listener)
}

async fn accept_srt(
    target: &SrtTarget,
    links: &[Uri],
    message_size: usize,
    listener: &mut AnyListener,
    admission: &AcceptedCallers,
    resumed: Option<&ResumedStream>,
    log: &Arc<EndLog>,
) -> Result<Connection, Failure> {
    let most = admission.max_callers();
    let listener = listen_srt(target, links, message_size, listener, most).await?;
    let accept = admission.accept(listener, log);
    let accepted = match target.listen_timeout {
        None => accept.await?,
        Some(limit) => match tokio::time::timeout(limit, accept).await {
            Ok(accepted) => accepted?,
            Err(_) => return Err(Failure::nobody_called(limit)),
        },
    };
    Ok(match accepted {
        Accepted::Group(group) => {
            log.connected(|| group::announce(&group, target));
            let listener = Some(Arc::clone(listener));
            Connection { _listener: listener, ..Connection::group(group, log) }
        }
        Accepted::Socket(socket) => Connection::srt(socket, resumed, log),
    })
}

async fn listen_tcp<'a>(
    target: &TcpTarget,
    listener: &'a mut AnyListener,
) -> Result<&'a TcpListener, Failure> {
    if !matches!(listener, AnyListener::Tcp(_)) {
        *listener = AnyListener::Tcp(tcp::listen(target).await?);
    }
    let AnyListener::Tcp(listener) = listener else { unreachable!("it was set just now") };
    Ok(listener)
}

async fn open_tcp(
    target: &TcpTarget,
    listener: &mut AnyListener,
    log: &EndLog,
) -> Result<TcpStream, Failure> {
    match target.listen {
        true => tcp::accept(listen_tcp(target, listener).await?, target, log).await,
        false => tcp::connect(target).await,
    }
}

async fn open_udp(
    uri: &Uri,
    target: &UdpTarget,
    role: Role,
    wants_packets: bool,
    turn: usize,
    gather: Duration,
    log: &Arc<EndLog>,
) -> Result<Connection, Failure> {
    let (socket, answers) = match role {
        Role::Destination if target.host.is_empty() => {
            return Err(Failure::usage("the host to send to is missing: `udp://host:1234`"));
        }
        Role::Destination => (Arc::new(udp::send_to(target, turn).await?), false),
        Role::Source => (Arc::new(udp::receive_at(target, !gather.is_zero()).await?), true),
    };
    let reader = DatagramReader::new(Arc::clone(&socket), gather)?;
    let reader = match answers {
        true => reader.watching(Interfaces::of(interfaces::names(uri)).await),
        false => reader,
    };
    let writer = match answers {
        true => DatagramWriter::to_last_sender(socket, reader.last_sender()),
        false => DatagramWriter::to_peer(socket),
    };
    let name = uri.to_string();
    let packets = wants_packets.then(|| PlainPackets::new(name.clone()));
    if target.rtp {
        let writer = Output::Rtp(RtpWriter::new(writer, name.clone()));
        let reader = Input::Rtp(Box::new(RtpReader::new(reader, packets, name)?));
        return Ok(Connection::new(Reader(reader), Writer(writer), log));
    }
    let reader = reader.of_packets(packets);
    let reader = if answers { reader.warning_of_rtp(name) } else { reader };
    let (reader, writer) = (Input::Udp(Box::new(reader)), Output::Udp(writer));
    Ok(Connection::new(Reader(reader), Writer(writer), log))
}

fn open_output(
    uri: &Uri,
    output: &WrittenFile,
    stop: &Stop,
    log: &Arc<EndLog>,
) -> Result<Connection, Failure> {
    let (writer, limits) = match &uri.target {
        Target::File(target) if target.grows => {
            return Err(Failure::usage("`grow=wait` is for a file that is read"));
        }
        Target::File(target) => {
            let recording = Recording::new(&target.path, output.existing)?;
            let recording = recording.with_stop(stop.clone()).with_retries(output.retries);
            (Output::File(recording), target.limits)
        }
        _ => {
            let writer = ByteWriter::new(Box::new(tokio::io::stdout())).with_stop(stop.clone());
            (Output::Bytes(writer), Limits::default())
        }
    };
    Ok(Connection { limits, ..Connection::new(Reader(Input::None), Writer(writer), log) })
}

/// Whether the end that `uri` names opens a connection by itself instead of waiting for callers.
fn calls(uri: &Uri) -> bool {
    match &uri.target {
        Target::Srt(target) => target.mode != Mode::Listener,
        Target::Tcp(target) => !target.listen,
        Target::File(_) | Target::Stdio | Target::Udp(_) => true,
    }
}
