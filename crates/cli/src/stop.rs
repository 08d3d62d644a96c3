//! The end in good order: on Ctrl-C, on SIGTERM, or after a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::exit::{Failure, INTERRUPTED};

/// Tells all parts of a command when it is time to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    told: watch::Receiver<bool>,
    teller: Arc<watch::Sender<bool>>,
    by_signal: Arc<AtomicBool>,
}

impl Stop {
    /// Ends on Ctrl-C and SIGTERM, and after `duration` if there is one. A second signal ends the
    /// program at once.
    pub(crate) fn on_signals(duration: Option<Duration>) -> Self {
        let (teller, told) = watch::channel(false);
        let teller = Arc::new(teller);
        let alone = Arc::clone(&teller);
        let by_signal = Arc::new(AtomicBool::new(false));
        let signalled = Arc::clone(&by_signal);
        // Made here, so that a signal that comes before the task runs counts as well.
        let mut signals = Signals::new();
        tokio::spawn(async move {
            tokio::select! {
                () = signals.next() => {
                    signalled.store(true, Ordering::Relaxed);
                    tracing::info!("stopping; a second Ctrl-C ends at once");
                }
                () = after(duration) => tracing::debug!("the time is over"),
                // No part is left that could be told.
                () = alone.closed() => return,
            }
            alone.send_replace(true);
            signals.next().await;
            std::process::exit(INTERRUPTED.into());
        });
        Self { told, teller, by_signal }
    }

    /// Tells all parts that it is time to end.
    pub(crate) fn tell(&self) {
        self.teller.send_replace(true);
    }

    /// Completes when it is time to end.
    pub(crate) async fn told(&self) {
        // An error would mean that the sender is gone, but `self` holds it.
        let _ = self.told.clone().wait_for(|told| *told).await;
    }

    /// Whether it is time to end.
    pub(crate) fn is_told(&self) -> bool {
        *self.told.borrow()
    }

    /// Whether a signal has ended the command: somebody wants it to end.
    pub(crate) fn is_by_signal(&self) -> bool {
        self.by_signal.load(Ordering::Relaxed)
    }

    /// The end of a stream, whose failure is only logged if a signal has ended the command: what
    /// was on its way is then lost by intention.
    pub(crate) fn judge(&self, ended: Result<(), Failure>) -> Result<(), Failure> {
        match ended {
            Err(failure) if self.is_by_signal() => {
                tracing::warn!("{failure}");
                Ok(())
            }
            ended => ended,
        }
    }

    /// The result of `work`, or `None` if it is time to end first.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = work => Some(result),
            () = self.told() => None,
        }
    }
}

async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// Ctrl-C and SIGTERM, from the time at which this is made.
struct Signals {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
}

impl Signals {
    fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
            Self { signals: kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect() }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Completes on the next signal; never if the system gives no signals.
    async fn next(&mut self) {
        #[cfg(unix)]
        std::future::poll_fn(|context| {
            let came = self.signals.iter_mut().any(|it| it.poll_recv(context).is_ready());
            if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
