//! An open end of a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::{Group, Listener, Socket};
use punctual_uri::{Limits, TcpTarget};
use tokio::net::TcpStream;

use crate::endpoint::byte_writer::ByteWriter;
use crate::endpoint::bytes::{ByteReader, ByteStream};
use crate::endpoint::limited::LimitedStream;
use crate::endpoint::packets::PacketStream;
use crate::endpoint::{
    EndLog, Reader, ResumedStream, Role, SrtEnd, StatsEnd, Traffic, Writer, srt,
};

/// An open end: one connection to a peer, one UDP socket, one file.
pub(crate) struct Connection {
    /// Its number in reports: the socket ID of SRT, or a number from 1 up.
    pub(crate) id: u64,
    /// The source of messages.
    pub(crate) reader: Reader,
    /// The destination of messages.
    pub(crate) writer: Writer,
    /// The SRT connection or group, if it is one.
    pub(crate) socket: Option<SrtEnd>,
    /// The listener that accepts further links of a group while this connection exists.
    pub(crate) _listener: Option<Arc<Listener>>,
    /// The limits of what is written to it.
    pub(crate) limits: Limits,
    /// The messages that it has carried.
    pub(crate) traffic: Arc<Traffic>,
    /// The log for its end.
    pub(crate) log: Arc<EndLog>,
}

impl Connection {
    pub(crate) fn new(reader: Reader, writer: Writer, log: &Arc<EndLog>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        let (traffic, log) = (Arc::default(), Arc::clone(log));
        let (mut reader, mut writer) = (reader, writer);
        reader.count_in(&traffic);
        writer.count_in(&traffic);
        let limits = Limits::default();
        Self { id, reader, writer, socket: None, _listener: None, limits, traffic, log }
    }

    pub(crate) fn srt(socket: Socket, resumed: Option<&ResumedStream>, log: &Arc<EndLog>) -> Self {
        log.connected(|| srt::announce(&socket));
        let reader = match resumed.and_then(|stream| stream.reader(socket.clone())) {
            Some(reader) => Reader::Resumed(reader),
            None => Reader::srt(socket.clone()),
        };
        let mut connection = Self::new(reader, Writer::srt(socket.clone()), log);
        connection.id = socket.info().socket_id.value().into();
        connection.socket = Some(SrtEnd::Socket(socket));
        connection
    }

    pub(crate) fn group(group: Group, log: &Arc<EndLog>) -> Self {
        let reader = Reader::Group(group.clone());
        let mut connection = Self::new(reader, Writer::group(group.clone()), log);
        connection.id = group.id().into();
        connection.socket = Some(SrtEnd::Group(group));
        connection
    }

    /// Limits apply to what is read at a source, and to what is written at a destination. With the
    /// name in `packets_of` a transport stream is read in whole packets.
    pub(crate) fn tcp(
        stream: TcpStream,
        role: Role,
        target: &TcpTarget,
        message_size: usize,
        packets_of: Option<String>,
        log: &Arc<EndLog>,
    ) -> Self {
        let (read, write) = stream.into_split();
        let (limits, size) = (target.limits, target.limits.io_size);
        let read: ByteStream = match role {
            Role::Source => LimitedStream::within(&limits, Box::new(read)),
            Role::Destination => Box::new(read),
        };
        let read = match packets_of {
            Some(name) => Box::new(PacketStream::new(read, name)),
            None => read,
        };
        let reader = Reader::Bytes(ByteReader::new(read, message_size).with_read_size(size));
        let writer = Writer::Bytes(ByteWriter::new(Box::new(write)).with_write_size(size));
        let connection = Self::new(reader, writer, log);
        match role {
            Role::Source => connection,
            Role::Destination => Self { limits, ..connection },
        }
    }

    /// Completes when the peer of SRT is gone, although messages that it has sent may still be
    /// waiting; never for another end.
    pub(crate) fn peer_gone(&self) -> impl Future<Output = ()> + use<> {
        let end = self.socket.clone();
        async move {
            match end {
                Some(end) => end.closed().await,
                None => std::future::pending().await,
            }
        }
    }

    /// The end whose statistics this connection has; `None` for files, pipes, TCP and UDP.
    pub(crate) fn stats_end(&self) -> Option<StatsEnd> {
        Some(StatsEnd::new(self.socket.clone()?, Arc::clone(&self.traffic)))
    }
}
