//! Connections of a transfer: one, or with --reconnect as many as it takes.

use std::time::Duration;

use punctual::{CloseReason, Listener, PeerError, RejectReason, Socket, Transmission};
use punctual_uri::{Mode, SrtTarget, Uri};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::progress::Progress;
use super::retry::Retries;
use crate::args::StatsArgs;
use crate::endpoint::{SrtEnd, srt};
use crate::exit::Failure;
use crate::stats::StatsFile;
use crate::stop::Stop;

/// What is done with a connection.
pub(crate) trait Transfer: Sync {
    /// Carries the files; tells what was carried.
    fn carry(&self, socket: &Socket) -> impl Future<Output = Result<Progress, Failure>> + Send;

    /// Says what is to be said before the connection ends in the middle.
    fn give_up(&self, _socket: &Socket) {}

    /// A further hint for a call that was refused because one end sends messages and the other a
    /// stream of bytes.
    fn advice(&self) -> Option<&'static str> {
        None
    }
}

/// Makes connections, and works with each until one has done everything.
pub(crate) struct Sessions {
    uri: Uri,
    target: SrtTarget,
    listener: Option<Listener>,
    retries: Retries,
    stats: Option<StatsFile>,
    stop: Stop,
    /// The connection that was made last.
    socket: Option<Socket>,
}

impl Sessions {
    /// With what `uri` names, as `target` says.
    pub(crate) fn new(
        uri: Uri,
        target: SrtTarget,
        reconnect: bool,
        stats: &StatsArgs,
    ) -> Result<Self, Failure> {
        let stats = StatsFile::open(stats, false)?;
        let stop = Stop::on_signals(None);
        let retries = Retries::new(reconnect);
        Ok(Self { uri, target, listener: None, retries, stats, stop, socket: None })
    }

    /// Does `transfer` with a connection. If it fails, and that is wanted, with another one.
    pub(crate) async fn run(&mut self, transfer: &impl Transfer) -> Result<Progress, Failure> {
        loop {
            let next = Instant::now() + PAUSE;
            let stop = self.stop.clone();
            let done = self.run_once(transfer, &stop).await;
            self.leave(transfer, done.is_ok()).await;
            let failure = match done {
                Ok(progress) => return Ok(progress),
                Err(failure) => failure,
            };
            if stop.is_told() {
                return Err(failure.at(&self.uri));
            }
            let warning = self.retries.after(failure).map_err(|failure| failure.at(&self.uri))?;
            tracing::warn!("{warning}");
            stop.or(sleep_until(next)).await;
        }
    }

    /// Why the transfer is over when it was stopped.
    fn stopped(&self) -> Failure {
        Failure::runtime(match (&self.socket, self.target.mode) {
            (Some(_), _) => "stopped before all was there",
            (None, Mode::Listener) => "stopped before anybody called",
            (None, _) => "stopped before the call was answered",
        })
    }

    /// Takes leave of the other end, which should not have to wait until it gives up. What is
    /// buffered goes out only if the transfer is `done`.
    async fn leave(&mut self, transfer: &impl Transfer, done: bool) {
        let Some(socket) = self.socket.take() else {
            // A call that is dropped is taken back by what sends for its port.
            sleep(TAKING_BACK).await;
            return;
        };
        let farewell = async {
            if done {
                socket.close().await;
            } else {
                transfer.give_up(&socket);
                socket.abort().await;
            }
        };
        let _ = timeout(FAREWELL, farewell).await;
    }

    async fn run_once(
        &mut self,
        transfer: &impl Transfer,
        stop: &Stop,
    ) -> Result<Progress, Failure> {
        let Some(opened) = stop.or(self.open()).await else { return Err(self.stopped()) };
        let socket = match (opened, transfer.advice()) {
            (Err(failure), Some(advice)) if is_other_mode(&failure) => {
                return Err(failure.but(advice));
            }
            (opened, _) => opened?,
        };
        srt::announce(&socket);
        self.socket = Some(socket.clone());
        // A transfer that is stopped gets its last row of statistics, as one that ends by itself.
        let carried = stop.or(transfer.carry(&socket));
        let done = match &self.stats {
            Some(stats) => stats.observe(&SrtEnd::Socket(socket.clone()), carried).await,
            None => carried.await,
        };
        done.unwrap_or_else(|| Err(self.stopped()))
    }

    /// Calls, and if both ways to carry files are right, in the other one where the first is
    /// refused for that.
    async fn call(&mut self) -> Result<Socket, Failure> {
        let called = srt::call(&self.target, 0).await;
        if !self.target.config.either_file_mode() {
            return called;
        }
        match called {
            Err(failure) if is_other_mode(&failure) => {}
            called => return called,
        }
        tracing::info!("the other end carries a stream of bytes: calling again for that");
        let config = self.target.config.clone();
        self.target.config = config.with_transmission(Transmission::Stream);
        srt::call(&self.target, 0).await
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

/// Says that what comes cannot be written, and gives the sender time to hear of it. A sender on
/// libsrt looks for that when there is room for more, so what comes is read on.
pub(crate) async fn refuse_rest(socket: &Socket) {
    socket.tell_error(PeerError::FILE);
    let rest = async { while socket.recv().await.is_ok() {} };
    let _ = timeout(HEARING, rest).await;
}

/// Waits until everything that was sent has arrived, or the other end says that it is of no use.
pub(crate) async fn hand_over(socket: &Socket) -> Result<(), Failure> {
    let arrived = async {
        while socket.statistics().send_buffer_packets > 0 && socket.info().peer_error.is_none() {
            sleep(LOOK).await;
        }
    };
    tokio::select! {
        biased;
        () = arrived => Ok(()),
        reason = socket.closed() => match reason {
            CloseReason::Peer => Err(left()),
            reason => Err(reason.into()),
        },
    }
}

/// Whether the other end has closed the connection.
pub(crate) async fn has_left(socket: &Socket) -> bool {
    tokio::select! {
        biased;
        reason = socket.closed() => reason == CloseReason::Peer,
        () = std::future::ready(()) => false,
    }
}

/// The receiver has closed the connection in the middle.
pub(crate) fn left() -> Failure {
    Failure::runtime("the other end left before all had arrived")
}

/// The least time from one connection to the next, as in srt-xtransmit.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the end of a connection may take once there is nothing left to say.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long a call that is taken back may need to say so.
const TAKING_BACK: Duration = Duration::from_millis(20);

/// How long a sender may take until it has heard that its files cannot be written.
const HEARING: Duration = Duration::from_secs(2);

/// How often it is looked whether all has arrived.
const LOOK: Duration = Duration::from_millis(10);
