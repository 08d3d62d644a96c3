//! An open end of a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::{Group, Listener, Socket};
use punctual_uri::{Limits, TcpTarget};
use tokio::net::TcpStream;

use crate::end::byte_writer::ByteWriter;
use crate::end::bytes::{ByteReader, ByteStream};
use crate::end::limited::LimitedStream;
use crate::end::packets::PacketStream;
use crate::end::reader::Input;
use crate::end::writer::Output;
use crate::end::{
    EndLog, MessageTraffic, Observed, Reader, ResumedStream, Role, SrtEnd, SrtWriter, Writer, srt,
};
use crate::stop::Stop;

/// An open end: one connection to a peer, one UDP socket, one file.
pub struct Connection {
    /// Its number in reports: the socket ID of SRT, or a number from 1 up.
    pub id: u64,
    /// The source of messages.
    pub reader: Reader,
    /// The destination of messages.
    pub writer: Writer,
    /// The SRT connection or group, if it is one.
    pub socket: Option<SrtEnd>,
    /// The listener that accepts further links of a group while this connection exists.
    pub(crate) _listener: Option<Arc<Listener>>,
    /// The limits of what is written to it.
    pub limits: Limits,
    /// The messages that it has carried.
    pub traffic: Arc<MessageTraffic>,
    /// The log for its end.
    pub log: Arc<EndLog>,
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

    /// The end of an SRT connection that the caller has opened, with the log of its end.
    pub fn of_socket(socket: Socket, log: &Arc<EndLog>) -> Self {
        Self::srt(socket, None, log)
    }

    /// The end of a group that called, with the log of its end.
    pub fn of_group(group: Group, log: &Arc<EndLog>) -> Self {
        log.connected(|| tracing::info!("connected with a group"));
        Self::group(group, log)
    }

    pub(crate) fn srt(socket: Socket, resumed: Option<&ResumedStream>, log: &Arc<EndLog>) -> Self {
        log.connected(|| srt::announce(&socket));
        let reader = match resumed.and_then(|stream| stream.reader(socket.clone())) {
            Some(reader) => Reader(Input::Resumed(reader)),
            None => Reader::srt(socket.clone()),
        };
        let mut connection =
            Self::new(reader, Writer::srt(SrtWriter::to_socket(socket.clone())), log);
        connection.id = socket.info().socket_id.value().into();
        connection.socket = Some(SrtEnd::Socket(socket));
        connection
    }

    pub(crate) fn group(group: Group, log: &Arc<EndLog>) -> Self {
        let reader = Reader(Input::Group(group.clone()));
        let mut connection =
            Self::new(reader, Writer::srt(SrtWriter::to_group(group.clone())), log);
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
        stop: &Stop,
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
        let reader = ByteReader::new(read, message_size).with_read_size(size);
        let writer = ByteWriter::new(Box::new(write)).with_write_size(size).with_stop(stop.clone());
        let reader = Reader(Input::Bytes(reader));
        let connection = Self::new(reader, Writer(Output::Bytes(writer)), log);
        match role {
            Role::Source => connection,
            Role::Destination => Self { limits, ..connection },
        }
    }

    /// Completes when the peer of SRT is gone, although messages that it has sent may still be
    /// waiting; never for another end.
    pub fn peer_gone(&self) -> impl Future<Output = ()> + use<> {
        let end = self.socket.clone();
        async move {
            match end {
                Some(end) => end.closed().await,
                None => std::future::pending().await,
            }
        }
    }

    /// The parts of it that others may see while it carries a stream.
    pub fn observed(&self) -> Observed {
        Observed {
            id: self.id,
            socket: self.socket.clone(),
            traffic: Arc::clone(&self.traffic),
            log: Arc::clone(&self.log),
        }
    }
}
