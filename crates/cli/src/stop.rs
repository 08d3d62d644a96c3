//! Ending in good order: on Ctrl-C, on SIGTERM, or after a time.

use std::time::Duration;

use tokio::sync::watch;

use crate::exit::INTERRUPTED;

/// Told to everyone who works when it is time to end.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    told: watch::Receiver<bool>,
}

impl Stop {
    /// Ends on Ctrl-C and SIGTERM, and after `duration` if there is one. A second signal ends the
    /// program at once.
    pub(crate) fn on_signals(duration: Option<Duration>) -> Self {
        let (teller, told) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! {
                () = signal() => tracing::info!("stopping; once more to end at once"),
                () = after(duration) => tracing::debug!("the time is over"),
                // Nobody is left who could be told.
                () = teller.closed() => return,
            }
            let _ = teller.send(true);
            signal().await;
            std::process::exit(INTERRUPTED.into());
        });
        Self { told }
    }

    /// Completes when it is time to end.
    pub(crate) async fn told(&self) {
        // An error means that the teller is gone, which it never is before it has told.
        let _ = self.told.clone().wait_for(|told| *told).await;
    }

    /// Whether it is time to end.
    pub(crate) fn is_told(&self) -> bool {
        *self.told.borrow()
    }

    /// What `work` gives, or `None` if it is time to end first.
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

/// Completes on Ctrl-C or SIGTERM; never where signals cannot be had.
async fn signal() {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => std::future::pending().await,
        };
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
