//! Connections of a transfer: one, or with --reconnect as many as it takes.

use std::time::Duration;

use punctual::{CloseReason, Listener, PeerError, Socket};
use punctual_uri::{Mode, SrtTarget, Uri};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::progress::Progress;
use crate::args::StatsArgs;
use crate::endpoint::{SrtEnd, srt};
use crate::exit::Failure;
use crate::stats::StatsFile;
use crate::stop::Stop;

/// What is done with a connection.
pub(crate) trait Transfer: Sync {
    /// Carries the files; tells what was carried.
    fn carry(&self, socket: &Socket) -> impl Future<Output = Result<Progress, Failure>> + Send;
}

/// Makes connections, and works with each until one has done everything.
pub(crate) struct Sessions {
    uri: Uri,
    target: SrtTarget,
    listener: Option<Listener>,
    reconnect: bool,
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
        Ok(Self { uri, target, listener: None, reconnect, stats, stop, socket: None })
    }

    /// Does `transfer` with a connection. If it fails, and that is wanted, with another one.
    pub(crate) async fn run(&mut self, transfer: &impl Transfer) -> Result<Progress, Failure> {
        loop {
            let next = Instant::now() + PAUSE;
            let stop = self.stop.clone();
            let done = match stop.or(self.run_once(transfer)).await {
                Some(done) => done,
                None => Err(Failure::runtime("stopped before all was there")),
            };
            // The other end should not have to wait until it gives up.
            if let Some(socket) = self.socket.take() {
                let _ = timeout(FAREWELL, socket.close()).await;
            }
            match done {
                Err(failure) if self.reconnect && !failure.is_usage() && !stop.is_told() => {
                    tracing::warn!("{failure}; trying again");
                    stop.or(sleep_until(next)).await;
                }
                done => return done.map_err(|failure| failure.at(&self.uri)),
            }
        }
    }

    async fn run_once(&mut self, transfer: &impl Transfer) -> Result<Progress, Failure> {
        let socket = self.open().await?;
        srt::announce(&socket);
        self.socket = Some(socket.clone());
        match &self.stats {
            Some(stats) => {
                stats.observe(&SrtEnd::Socket(socket.clone()), transfer.carry(&socket)).await
            }
            None => transfer.carry(&socket).await,
        }
    }

    async fn open(&mut self) -> Result<Socket, Failure> {
        if self.target.mode != Mode::Listener {
            return srt::call(&self.target, 0).await;
        }
        let listener = match &mut self.listener {
            Some(listener) => listener,
            none => none.insert(srt::listen(&self.target, 0).await?),
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
            CloseReason::Peer => {
                Err(Failure::runtime("the other end left before all had arrived"))
            }
            reason => Err(reason.into()),
        },
    }
}

/// The least time from one connection to the next, as in srt-xtransmit.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the end of a connection may take once there is nothing left to say.
const FAREWELL: Duration = Duration::from_millis(500);

/// How long a sender may take until it has heard that its files cannot be written.
const HEARING: Duration = Duration::from_secs(2);

/// How often it is looked whether all has arrived.
const LOOK: Duration = Duration::from_millis(10);
