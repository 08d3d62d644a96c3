//! One stream of messages to several takers.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::route::batch::Batch;
use crate::route::room::{Place, Room};

/// Hands the messages of one end to others.
pub(super) struct Fanout {
    takers: Vec<Taker>,
    /// Whether there never are takers, so that messages are discarded.
    discards: bool,
    when_full: WhenFull,
}

/// The treatment of a taker for which as much waits as may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WhenFull {
    /// It misses messages and is told: a live source waits for nobody.
    Miss,
    /// It is cut off: the source waits for nobody, and no message of it is left out.
    CutOff {
        /// The bytes that may wait for it.
        bytes: u64,
    },
    /// The source waits for it, and it is cut off only if it takes nothing at all for
    /// [`PATIENCE`].
    WaitAmongOthers {
        /// The bytes that may wait for it.
        bytes: u64,
    },
    /// The source waits for it, since there is no other.
    Wait,
}

/// The end of a taker.
pub(super) struct Inbox {
    /// The messages for it.
    pub(super) batches: UnboundedReceiver<Batch>,
    /// Is told when it is cut off.
    pub(super) cut_off: CutOff,
}

/// Tells a taker that it is cut off, and why.
pub(super) struct CutOff(pub(super) oneshot::Receiver<String>);

struct Taker {
    name: String,
    batches: UnboundedSender<Batch>,
    room: Room,
    cut_off: oneshot::Sender<String>,
    /// Messages that the taker missed.
    missed: usize,
}

/// The result of handing messages to a taker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Handed {
    Over,
    Gone,
    TooSlow,
}

impl Fanout {
    /// A fan-out without takers.
    pub(super) fn to_nobody() -> Self {
        Self { takers: Vec::new(), discards: true, when_full: WhenFull::Miss }
    }

    /// A fan-out to takers of these names, with an inbox for each.
    pub(super) fn to(names: Vec<String>, when_full: WhenFull) -> (Self, Vec<Inbox>) {
        let mut inboxes = Vec::new();
        let takers = names.into_iter().map(|name| {
            let (batches, receiver) = unbounded_channel();
            let (cut_off, told) = oneshot::channel();
            inboxes.push(Inbox { batches: receiver, cut_off: CutOff(told) });
            let room = match when_full {
                WhenFull::Miss | WhenFull::Wait => Room::for_batches(QUEUE),
                WhenFull::CutOff { bytes } | WhenFull::WaitAmongOthers { bytes } => {
                    Room::for_bytes(bytes)
                }
            };
            Taker { name, batches, room, cut_off, missed: 0 }
        });
        let takers = takers.collect();
        (Self { takers, discards: false, when_full }, inboxes)
    }

    /// Hands messages over; `false` if no taker is left. Cancel safe if messages do not wait;
    /// otherwise a batch may have gone to some takers only.
    pub(super) async fn send(&mut self, batch: Batch) -> bool {
        let mut place = 0;
        while let Some(taker) = self.takers.get_mut(place) {
            match taker.hand(&batch, self.when_full).await {
                Handed::Over => place += 1,
                Handed::Gone => drop(self.takers.remove(place)),
                Handed::TooSlow => self.takers.remove(place).cut_off(),
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

impl CutOff {
    /// Completes with the reason when the taker is cut off; never if it is not.
    pub(super) async fn told(self) -> String {
        match self.0.await {
            Ok(reason) => reason,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Taker {
    async fn hand(&mut self, batch: &Batch, when_full: WhenFull) -> Handed {
        if self.batches.is_closed() {
            return Handed::Gone;
        }
        let place = match when_full {
            WhenFull::Miss | WhenFull::CutOff { .. } => self.room.try_take(batch),
            WhenFull::Wait => tokio::select! {
                place = self.room.take(batch) => Some(place),
                () = self.batches.closed() => return Handed::Gone,
            },
            WhenFull::WaitAmongOthers { .. } => self.wait_among_others(batch).await,
        };
        match place {
            Some(place) => match self.batches.send(batch.clone().with_place(place)) {
                Ok(()) => Handed::Over,
                Err(_) => Handed::Gone,
            },
            None if when_full == WhenFull::Miss => {
                self.miss(batch);
                Handed::Over
            }
            None => Handed::TooSlow,
        }
    }

    /// Waits for room for as long as some becomes free, and then for [`PATIENCE`].
    async fn wait_among_others(&self, batch: &Batch) -> Option<Place> {
        loop {
            let free = self.room.free();
            match timeout(PATIENCE, self.room.take(batch)).await {
                Ok(place) => return Some(place),
                Err(_) if self.room.free() > free => {}
                Err(_) => return None,
            }
        }
    }

    fn miss(&mut self, batch: &Batch) {
        if self.missed == 0 {
            tracing::warn!("{} is too slow: it misses messages", self.name);
        }
        self.missed += batch.len();
    }

    fn cut_off(mut self) {
        let (closed, _) = oneshot::channel();
        let _ = std::mem::replace(&mut self.cut_off, closed).send(TOO_SLOW.to_owned());
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        if self.missed > 0 {
            tracing::warn!("{} was too slow and missed {} messages", self.name, self.missed);
        }
    }
}

/// The number of batches that may wait for a taker of a live source, or for the only one.
const QUEUE: u32 = 64;

/// The reason for which a taker is cut off.
const TOO_SLOW: &str = "it is too slow, and the others do not wait for it any longer \
                        (--slow, --sink-buffer, --sink-spool)";

/// The time for which a taker among others may take nothing.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::time::Instant;

    use super::*;

    fn batch(number: u8) -> Batch {
        Batch::new(vec![Bytes::from(vec![number]).into()], None)
    }

    async fn taken(inbox: &mut Inbox) -> Vec<u8> {
        let batch = inbox.batches.recv().await.expect("a batch");
        batch.iter().flat_map(|message| message.payload.to_vec()).collect()
    }

    fn fanout(takers: usize, when_full: WhenFull) -> (Fanout, Vec<Inbox>) {
        Fanout::to((0..takers).map(|taker| taker.to_string()).collect(), when_full)
    }

    fn is_cut_off(inbox: &mut Inbox) -> bool {
        inbox.cut_off.0.try_recv().is_ok()
    }

    #[tokio::test]
    async fn a_slow_taker_of_a_live_stream_delays_no_other() {
        let (mut fanout, mut takers) = fanout(2, WhenFull::Miss);
        for number in 0..200 {
            assert!(fanout.send(batch(number)).await);
            assert_eq!(taken(&mut takers[1]).await, [number]);
        }
        assert_eq!(fanout.takers[0].missed, 200 - QUEUE as usize);
        assert_eq!(taken(&mut takers[0]).await, [0]);
    }

    #[tokio::test]
    async fn a_slow_taker_of_a_paced_stream_is_cut_off_and_delays_no_other() {
        let (mut fanout, mut takers) = fanout(2, WhenFull::CutOff { bytes: 100 });
        for number in 0..100 {
            assert!(fanout.send(batch(number)).await);
            assert_eq!(taken(&mut takers[1]).await, [number]);
        }
        assert!(!is_cut_off(&mut takers[0]));
        assert!(fanout.send(batch(100)).await);
        assert_eq!(taken(&mut takers[1]).await, [100]);
        assert!(is_cut_off(&mut takers[0]));
        drop(takers.remove(1));
        assert!(!fanout.send(batch(101)).await, "no taker is left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_waits_for_a_slow_taker_and_not_for_one_that_takes_nothing() {
        let (mut fanout, mut takers) = fanout(2, WhenFull::WaitAmongOthers { bytes: 10 });
        let start = Instant::now();
        let send = async {
            for number in 0..30 {
                assert!(fanout.send(batch(number)).await);
            }
        };
        let (slow, fast) = takers.split_at_mut(1);
        let take_slowly = async {
            for number in 0..12 {
                tokio::time::sleep(PATIENCE / 2).await;
                assert_eq!(taken(&mut slow[0]).await, [number]);
            }
        };
        let take_fast = async {
            for number in 0..30 {
                assert_eq!(taken(&mut fast[0]).await, [number]);
            }
        };
        tokio::join!(send, take_slowly, take_fast);
        assert_eq!(start.elapsed(), PATIENCE / 2 * 12 + PATIENCE);
        assert!(is_cut_off(&mut takers[0]) && !is_cut_off(&mut takers[1]));
    }

    #[tokio::test]
    async fn the_only_taker_misses_nothing() {
        let (mut fanout, mut takers) = fanout(1, WhenFull::Wait);
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
        let (mut fanout, mut takers) = fanout(2, WhenFull::CutOff { bytes: 100 });
        let abandoned = fanout.abandoned();
        drop(takers.remove(0));
        assert!(fanout.send(batch(1)).await);
        drop(takers);
        abandoned.await;
        assert!(!fanout.send(batch(2)).await);
        assert!(Fanout::to_nobody().send(batch(3)).await);
    }
}
