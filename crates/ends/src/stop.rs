//! The end of a stream in good order, from outside.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep};

use crate::Failure;

/// Tells all parts of a stream when it is time to end. Clones tell and hear the same.
#[derive(Clone, Debug)]
pub struct Stop {
    told: watch::Receiver<Told>,
    teller: Arc<watch::Sender<Told>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    at: Option<Instant>,
    is_interrupted: bool,
}

impl Default for Stop {
    fn default() -> Self {
        let (teller, told) = watch::channel(Told::default());
        Self { told, teller: Arc::new(teller) }
    }
}

impl Stop {
    /// Tells all parts that it is time to end: what has begun is completed.
    pub fn tell(&self) {
        self.teller.send_if_modified(|told| {
            let is_new = told.at.is_none();
            told.at.get_or_insert_with(Instant::now);
            is_new
        });
    }

    /// Tells all parts that somebody ends the stream before its time, as [`tell`](Self::tell) does:
    /// messages on their way are then lost by intention, and nobody is waited for without end.
    pub fn interrupt(&self) {
        self.teller.send_modify(|told| {
            told.at.get_or_insert_with(Instant::now);
            told.is_interrupted = true;
        });
    }

    /// Completes when it is time to end.
    pub async fn told(&self) {
        // An error would mean that the sender is gone, but `self` holds it.
        let _ = self.told.clone().wait_for(|told| told.at.is_some()).await;
    }

    /// The time at which it became time to end.
    pub fn told_at(&self) -> Option<Instant> {
        self.told.borrow().at
    }

    /// Whether it is time to end.
    pub fn is_told(&self) -> bool {
        self.told_at().is_some()
    }

    /// Whether somebody ended the stream before its time.
    pub fn is_interrupted(&self) -> bool {
        self.told.borrow().is_interrupted
    }

    /// Completes when somebody has ended the stream before its time, and `time` has passed since.
    pub async fn interrupted_for(&self, time: Duration) {
        let _ = self.told.clone().wait_for(|told| told.is_interrupted).await;
        sleep(time).await;
    }

    /// The result of `work`, or `None` if it is time to end first.
    pub async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = work => Some(result),
            () = self.told() => None,
        }
    }

    /// The end of a stream, whose failure is only logged if somebody ended it before its time.
    ///
    /// # Errors
    ///
    /// That of `ended` otherwise.
    pub fn judge(&self, ended: Result<(), Failure>) -> Result<(), Failure> {
        match ended {
            Err(failure) if self.is_interrupted() => {
                tracing::warn!("{failure}");
                Ok(())
            }
            ended => ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_clones_hear_the_end_and_the_time_of_the_first_telling_stays() {
        let stop = Stop::default();
        assert!(stop.or(async { 7 }).await == Some(7) && !stop.is_told());
        let start = Instant::now();
        stop.clone().tell();
        sleep(Duration::from_secs(1)).await;
        stop.tell();
        assert_eq!(stop.told_at(), Some(start));
        assert!(stop.or(std::future::pending::<()>()).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_counts_unless_somebody_ended_the_stream_before_its_time() {
        let stop = Stop::default();
        stop.tell();
        assert!(stop.judge(Err(Failure::runtime("it is lost"))).is_err());
        stop.interrupt();
        assert!(stop.judge(Err(Failure::runtime("it is lost"))).is_ok());
        let start = Instant::now();
        stop.interrupted_for(Duration::from_secs(2)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(2));
    }
}
