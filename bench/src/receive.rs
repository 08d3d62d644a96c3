//! Our receiving process: a listener that accepts all streams and checks what they deliver.

use std::fs;

use punctual::{Error, Instant, Listener, ListenerConfig, Message, Socket, now};
use tokio::task::JoinSet;

use crate::Result;
use crate::send::{config, port_config};
use crate::traffic::{ReceiveReport, Stamp, TraceRecord, Traffic};

/// Listens, prints `ready`, accepts all streams, reads until all are closed, prints the report.
pub(crate) fn run(traffic: &Traffic) -> Result<()> {
    crate::runtime()?.block_on(async {
        let listener = Listener::bind_with(ListenerConfig {
            port: port_config(traffic, traffic.port)?,
            connection: config(traffic)?,
            shards: 1,
            ..ListenerConfig::default()
        })
        .await?;
        println!("ready");
        let mut readers = JoinSet::new();
        for _ in 0..traffic.streams {
            let socket = listener.accept().await?;
            readers.spawn(Reader::new(traffic).read(socket));
        }
        if traffic.strangers {
            tokio::spawn(take_strangers(listener));
        }
        let mut sum = ReceiveReport::default();
        while let Some(reader) = readers.join_next().await {
            let reader = reader??;
            let report = reader.report;
            sum.received += report.received;
            sum.out_of_order += report.out_of_order;
            sum.delay_max_us = sum.delay_max_us.max(report.delay_max_us);
            sum.delay_last_us = sum.delay_last_us.max(report.delay_last_us);
            if let (Some(path), Some(trace)) = (&traffic.trace, reader.trace) {
                fs::write(path, trace)?;
            }
        }
        println!("{}", serde_json::to_string(&sum)?);
        Ok(())
    })
}

/// Takes whoever calls, and reads what comes, until the end of the process.
async fn take_strangers(listener: Listener) {
    while let Ok(socket) = listener.accept().await {
        tokio::spawn(async move { while socket.recv().await.is_ok() {} });
    }
}

/// Reads one stream.
struct Reader {
    payload: usize,
    next: u32,
    report: ReceiveReport,
    trace: Option<Vec<u8>>,
}

impl Reader {
    fn new(traffic: &Traffic) -> Self {
        Self {
            payload: traffic.payload,
            next: 0,
            report: ReceiveReport::default(),
            trace: traffic.trace.is_some().then(Vec::new),
        }
    }

    /// Until the peer closes.
    async fn read(mut self, socket: Socket) -> Result<Self> {
        let mut messages = Vec::new();
        loop {
            match socket.recv_many(&mut messages, MESSAGES_AT_ONCE).await {
                Ok(_) => {}
                Err(Error::Closed(_)) => return Ok(self),
                Err(error) => return Err(error.into()),
            }
            for message in messages.drain(..) {
                self.record(&message, now())?;
            }
        }
    }

    fn record(&mut self, message: &Message, delivered: Instant) -> Result<()> {
        let size = message.payload.len();
        let stamp = Stamp::read(&message.payload)
            .filter(|_| size == self.payload)
            .ok_or_else(|| format!("a message that was never sent: {size} bytes"))?;
        let report = &mut self.report;
        report.received += 1;
        report.out_of_order += u64::from(stamp.number != self.next);
        self.next = stamp.number + 1;
        report.delay_last_us = delivered.as_nanos().saturating_sub(stamp.sent_ns) / 1_000;
        report.delay_max_us = report.delay_max_us.max(report.delay_last_us);
        if let Some(trace) = &mut self.trace {
            let delivered_ns = delivered.as_nanos();
            let late_ns = delivered_ns.cast_signed() - message.due.as_nanos().cast_signed();
            let record = TraceRecord { sent_ns: stamp.sent_ns, delivered_ns, late_ns };
            trace.extend(record.to_bytes());
        }
        Ok(())
    }
}

const MESSAGES_AT_ONCE: usize = 256;
