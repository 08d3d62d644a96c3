//! The connections of a transfer: one, or with --reconnect one after the other.

use std::time::Duration;

use punctual::{Listener, RejectReason, Socket, Transmission};
use punctual_ends::{SrtEnd, StatsEnd, Tries, srt};
use punctual_uri::{Mode, SrtTarget, Uri};
use tokio::time::{sleep, timeout};

use super::progress::ShownProgress;
use crate::args::StatsArgs;
use crate::exit::Failure;
use crate::stats::StatsFiles;
use crate::stop::{self, Stop};

/// The work that is done over a connection.
pub(crate) trait Transfer: Sync {
    /// Carries the files over the connection; returns its progress at the end.
    fn carry(&self, socket: &Socket)
    -> impl Future<Output = Result<ShownProgress, Failure>> + Send;

    /// Tells the other end that this one ends the connection in the middle.
    fn abandon(&self, _socket: &Socket) {}

    /// A further hint for a call that was refused because one end sends messages and the other a
    /// stream of bytes.
    fn advice(&self) -> Option<&'static str> {
        None
    }
}

/// Makes one connection after the other until one has carried everything.
pub(crate) struct Sessions {
    uri: Uri,
    target: SrtTarget,
    listener: Option<Listener>,
    tries: Tries,
    calls: srt::Calls,
    stats: Option<StatsFiles>,
    stop: Stop,
    /// The last connection.
    socket: Option<Socket>,
}

impl Sessions {
    /// Sessions with the end that `uri` names, whose meaning is `target`.
    ///
    /// # Errors
    ///
    /// The file for statistics cannot be written.
    pub(crate) fn new(
        uri: Uri,
        target: SrtTarget,
        reconnect: bool,
        stats: &StatsArgs,
    ) -> Result<Self, Failure> {
        let stats = StatsFiles::open(stats, false)?;
        let stop = stop::on_signals(None);
        let tries = Tries::new(reconnect);
        let calls = srt::Calls::default();
        Ok(Self { uri, target, listener: None, tries, calls, stats, stop, socket: None })
    }

    /// Does `transfer` over a connection; with --reconnect over another one if that fails.
    pub(crate) async fn run(&mut self, transfer: &impl Transfer) -> Result<ShownProgress, Failure> {
        loop {
            let stop = self.stop.clone();
            stop.or(self.tries.begin(self.target.mode != Mode::Listener)).await;
            let done = self.run_once(transfer, &stop).await;
            self.leave(transfer, done.is_ok()).await;
            let failure = match done {
                Ok(progress) => return Ok(progress),
                Err(failure) => failure.at(&self.uri),
            };
            if stop.is_told() {
                return Err(failure);
            }
            self.tries.failed(failure)?;
        }
    }

    /// The failure of a transfer that was stopped.
    fn stopped(&self) -> Failure {
        Failure::runtime(match (&self.socket, self.target.mode) {
            (Some(_), _) => "stopped before everything had arrived",
            (None, Mode::Listener) => "stopped before anybody called",
            (None, _) => "stopped before the call was answered",
        })
    }

    /// Closes the connection, so that the other end need not wait for its idle timeout. Packets in
    /// the send buffer are still sent if the transfer is `done`, and discarded otherwise.
    async fn leave(&mut self, transfer: &impl Transfer, done: bool) {
        let Some(socket) = self.socket.take() else {
            // The port's driver withdraws a call that is dropped, and needs the time to send that.
            sleep(WITHDRAWAL).await;
            return;
        };
        let close = async {
            if done {
                socket.close().await;
            } else {
                transfer.abandon(&socket);
                socket.abort().await;
            }
        };
        let _ = timeout(CLOSING, close).await;
    }

    async fn run_once(
        &mut self,
        transfer: &impl Transfer,
        stop: &Stop,
    ) -> Result<ShownProgress, Failure> {
        let Some(opened) = stop.or(self.open()).await else { return Err(self.stopped()) };
        let socket = match (opened, transfer.advice()) {
            (Err(failure), Some(advice)) if is_other_mode(&failure) => {
                return Err(failure.with_advice(advice));
            }
            (opened, _) => opened?,
        };
        srt::announce(&socket);
        self.socket = Some(socket.clone());
        // A transfer that is stopped gets its last row of statistics too.
        let carried = stop.or(transfer.carry(&socket));
        let done = match &self.stats {
            Some(stats) => {
                let end = StatsEnd::new(SrtEnd::Socket(socket.clone()), std::sync::Arc::default());
                stats.observe(&end, carried).await
            }
            None => carried.await,
        };
        done.unwrap_or_else(|| Err(self.stopped()))
    }

    /// Calls in message mode. If the other end refuses that mode, and the options allow either one,
    /// it calls again in stream mode.
    async fn call(&mut self) -> Result<Socket, Failure> {
        let called = self.calls.call(&self.target, 0).await;
        if !self.target.config.either_file_mode() {
            return called;
        }
        match called {
            Err(failure) if is_other_mode(&failure) => {}
            called => return called,
        }
        tracing::info!("the other end uses a stream of bytes; calling again in that mode");
        let config = self.target.config.clone();
        self.target.config = config.with_transmission(Transmission::Stream);
        self.calls.call(&self.target, 0).await
    }

    async fn open(&mut self) -> Result<Socket, Failure> {
        if self.target.mode != Mode::Listener {
            return self.call().await;
        }
        let listener = match &mut self.listener {
            Some(listener) => listener,
            none => none.insert(srt::listen(&self.target, 0, Some(1)).await?),
        };
        match self.target.listen_timeout {
            None => Ok(listener.accept().await?),
            Some(limit) => match timeout(limit, listener.accept()).await {
                Ok(accepted) => Ok(accepted?),
                Err(_) => Err(Failure::nobody_called(limit)),
            },
        }
    }
}

/// Whether a call failed because one end sends messages, and the other a stream of bytes.
fn is_other_mode(failure: &Failure) -> bool {
    failure.refusal() == Some(RejectReason::MESSAGE_API)
}

/// How long the close of a connection may take.
const CLOSING: Duration = Duration::from_millis(500);

/// How long the withdrawal of a call may take.
const WITHDRAWAL: Duration = Duration::from_millis(20);
