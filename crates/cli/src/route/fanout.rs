//! One stream of messages to several takers.

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::route::batch::Batch;

/// Hands the messages of one end to others.
pub(super) struct Fanout {
    takers: Vec<Taker>,
    /// Whether there never are takers, so that messages are discarded.
    discards: bool,
    /// Whether messages wait for slow takers. Otherwise a slow taker misses some and delays no
    /// other.
    waits: bool,
}

struct Taker {
    name: String,
    batches: Sender<Batch>,
    /// Messages that the taker missed.
    missed: usize,
}

impl Fanout {
    /// A fan-out without takers.
    pub(super) fn to_nobody() -> Self {
        Self { takers: Vec::new(), discards: true, waits: false }
    }

    /// A fan-out to takers of these names, with a receiver for each. Messages of a live source with
    /// several takers do not wait for slow ones.
    pub(super) fn to(names: Vec<String>, is_live: bool) -> (Self, Vec<Receiver<Batch>>) {
        let waits = names.len() == 1 || !is_live;
        let mut receivers = Vec::new();
        let takers = names.into_iter().map(|name| {
            let (batches, receiver) = channel(QUEUE);
            receivers.push(receiver);
            Taker { name, batches, missed: 0 }
        });
        let takers = takers.collect();
        (Self { takers, discards: false, waits }, receivers)
    }

    /// Hands messages over; `false` if no taker is left. Cancel safe if messages do not wait;
    /// otherwise a batch may have gone to some takers only.
    pub(super) async fn send(&mut self, batch: Batch) -> bool {
        let mut place = 0;
        while let Some(taker) = self.takers.get_mut(place) {
            let is_gone = match self.waits {
                true => taker.batches.send(batch.clone()).await.is_err(),
                false => taker.offer(&batch),
            };
            if is_gone {
                self.takers.remove(place);
            } else {
                place += 1;
            }
        }
        self.discards || !self.takers.is_empty()
    }

    /// Completes when no taker is left; never if there was none from the start.
    pub(super) fn abandoned(&self) -> impl Future<Output = ()> + use<> {
        let takers: Vec<_> = self.takers.iter().map(|taker| taker.batches.clone()).collect();
        let discards = self.discards;
        async move {
            for taker in &takers {
                taker.closed().await;
            }
            if discards {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Taker {
    /// Hands messages over if there is room; returns whether the taker is gone.
    fn offer(&mut self, batch: &Batch) -> bool {
        match self.batches.try_send(batch.clone()) {
            Ok(()) => false,
            Err(TrySendError::Full(_)) => {
                if self.missed == 0 {
                    tracing::warn!("{} is too slow: it misses messages", self.name);
                }
                self.missed += batch.len();
                false
            }
            Err(TrySendError::Closed(_)) => true,
        }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        if self.missed > 0 {
            tracing::warn!("{} was too slow and missed {} messages", self.name, self.missed);
        }
    }
}

/// The number of batches that may wait for a taker.
const QUEUE: usize = 64;

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn batch(number: u8) -> Batch {
        Batch::new(vec![Bytes::from(vec![number]).into()], None)
    }

    async fn taken(taker: &mut Receiver<Batch>) -> Vec<u8> {
        let batch = taker.recv().await.expect("a batch");
        batch.iter().flat_map(|message| message.payload.to_vec()).collect()
    }

    fn fanout(takers: usize, is_live: bool) -> (Fanout, Vec<Receiver<Batch>>) {
        Fanout::to((0..takers).map(|taker| taker.to_string()).collect(), is_live)
    }

    #[tokio::test]
    async fn a_slow_taker_of_a_live_stream_delays_no_other() {
        let (mut fanout, mut takers) = fanout(2, true);
        for number in 0..200 {
            assert!(fanout.send(batch(number)).await);
            assert_eq!(taken(&mut takers[1]).await, [number]);
        }
        assert_eq!(fanout.takers[0].missed, 200 - QUEUE);
        assert_eq!(taken(&mut takers[0]).await, [0]);
    }

    #[tokio::test]
    async fn the_only_taker_misses_nothing() {
        let (mut fanout, mut takers) = fanout(1, true);
        let send = async {
            for number in 0..200 {
                assert!(fanout.send(batch(number)).await);
            }
        };
        let receive = async {
            for number in 0..200 {
                assert_eq!(taken(&mut takers[0]).await, [number]);
            }
        };
        tokio::join!(send, receive);
    }

    #[tokio::test]
    async fn the_stream_goes_on_until_the_last_taker_is_gone() {
        let (mut fanout, mut takers) = fanout(2, false);
        let abandoned = fanout.abandoned();
        drop(takers.remove(0));
        assert!(fanout.send(batch(1)).await);
        drop(takers);
        abandoned.await;
        assert!(!fanout.send(batch(2)).await);
        assert!(Fanout::to_nobody().send(batch(3)).await);
    }
}
