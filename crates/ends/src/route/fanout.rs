//! One stream of messages to several consumers.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::route::batch::Batch;
use crate::route::room::{BatchPlace, Room};

/// Hands the messages of one end to others.
pub struct Fanout {
    consumers: Vec<Consumer>,
    /// Whether there never are consumers, so that messages are discarded.
    discards: bool,
    when_full: WhenFull,
}

/// The treatment of a consumer for which as much waits as may wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WhenFull {
    /// It misses messages, and a warning says so: a live source does not wait.
    Miss,
    /// It is cut off: the source does not wait, and none of its messages is left out.
    CutOff {
        /// The bytes that may wait for it.
        bytes: u64,
    },
    /// The source waits for it, and it is cut off only if it takes nothing at all for
    /// 10 s.
    WaitAmongOthers {
        /// The bytes that may wait for it.
        bytes: u64,
    },
    /// The source waits for it, since there is no other.
    Wait,
}

/// The end of a consumer.
pub struct Inbox {
    /// The messages for it.
    pub batches: UnboundedReceiver<Batch>,
    /// Reports that it is cut off.
    pub cut_off: CutOff,
}

/// Tells a consumer that it is cut off, and why.
pub struct CutOff(pub(super) oneshot::Receiver<CutOffReason>);

/// The reason for which a consumer is cut off.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CutOffReason {
    /// As much waits for it as may wait, and nobody waits for it any longer.
    TooSlow,
    /// Its messages cannot be read back from a temporary file, for this reason.
    Unreadable(String),
}

impl fmt::Display for CutOffReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSlow => {
                f.write_str("it is too slow, and the others do not wait for it any longer")
            }
            Self::Unreadable(error) => {
                write!(f, "its messages cannot be read back from a temporary file: {error}")
            }
        }
    }
}

struct Consumer {
    name: String,
    batches: UnboundedSender<Batch>,
    room: Room,
    cut_off: oneshot::Sender<CutOffReason>,
    /// Messages that the consumer missed.
    missed: usize,
}

/// The result of handing messages to a consumer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum HandOver {
    Done,
    Gone,
    TooSlow,
}

impl Fanout {
    /// A fan-out without consumers.
    pub fn to_nobody() -> Self {
        Self { consumers: Vec::new(), discards: true, when_full: WhenFull::Miss }
    }

    /// A fan-out to consumers of these names, with an inbox for each.
    pub fn to(names: Vec<String>, when_full: WhenFull) -> (Self, Vec<Inbox>) {
        let mut inboxes = Vec::new();
        let consumers = names.into_iter().map(|name| {
            let (batches, receiver) = unbounded_channel();
            let (cut_off, told) = oneshot::channel();
            inboxes.push(Inbox { batches: receiver, cut_off: CutOff(told) });
            let room = match when_full {
                WhenFull::Miss | WhenFull::Wait => Room::for_batches(QUEUE),
                WhenFull::CutOff { bytes } | WhenFull::WaitAmongOthers { bytes } => {
                    Room::for_bytes(bytes)
                }
            };
            Consumer { name, batches, room, cut_off, missed: 0 }
        });
        let consumers = consumers.collect();
        (Self { consumers, discards: false, when_full }, inboxes)
    }

    /// Hands messages over; `false` if no consumer is left. Cancel safe if messages do not wait;
    /// otherwise a batch may have gone to some consumers only.
    pub async fn send(&mut self, batch: Batch) -> bool {
        let mut place = 0;
        while let Some(consumer) = self.consumers.get_mut(place) {
            match consumer.hand(&batch, self.when_full).await {
                HandOver::Done => place += 1,
                HandOver::Gone => drop(self.consumers.remove(place)),
                HandOver::TooSlow => self.consumers.remove(place).cut_off(),
            }
        }
        self.discards || !self.consumers.is_empty()
    }

    /// Completes when no consumer is left; never if there was none from the start.
    pub fn abandoned(&self) -> impl Future<Output = ()> + use<> {
        let consumers: Vec<_> =
            self.consumers.iter().map(|consumer| consumer.batches.clone()).collect();
        let discards = self.discards;
        async move {
            for consumer in &consumers {
                consumer.closed().await;
            }
            if discards {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl CutOff {
    /// Completes with the reason when the consumer is cut off; never if it is not.
    pub async fn reason(self) -> CutOffReason {
        match self.0.await {
            Ok(reason) => reason,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Consumer {
    async fn hand(&mut self, batch: &Batch, when_full: WhenFull) -> HandOver {
        if self.batches.is_closed() {
            return HandOver::Gone;
        }
        let place = match when_full {
            WhenFull::Miss | WhenFull::CutOff { .. } => self.room.try_take(batch.bytes()),
            WhenFull::Wait => tokio::select! {
                place = self.room.take(batch.bytes()) => Some(place),
                () = self.batches.closed() => return HandOver::Gone,
            },
            WhenFull::WaitAmongOthers { .. } => self.wait_among_others(batch).await,
        };
        match place {
            Some(place) => match self.batches.send(batch.clone().with_place(place)) {
                Ok(()) => HandOver::Done,
                Err(_) => HandOver::Gone,
            },
            None if when_full == WhenFull::Miss => {
                self.miss(batch);
                HandOver::Done
            }
            None => HandOver::TooSlow,
        }
    }

    /// Waits for room for as long as some becomes free, and then for [`STALL_LIMIT`].
    async fn wait_among_others(&self, batch: &Batch) -> Option<BatchPlace> {
        loop {
            let free = self.room.free();
            match timeout(STALL_LIMIT, self.room.take(batch.bytes())).await {
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
        let _ = std::mem::replace(&mut self.cut_off, closed).send(CutOffReason::TooSlow);
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        if self.missed > 0 {
            tracing::warn!("{} was too slow and missed {} messages", self.name, self.missed);
        }
    }
}

/// The number of batches that may wait for a consumer of a live source, or for the only one.
const QUEUE: u32 = 64;

/// The time for which a consumer among others may take nothing.
const STALL_LIMIT: Duration = Duration::from_secs(10);

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

    fn fanout(consumers: usize, when_full: WhenFull) -> (Fanout, Vec<Inbox>) {
        Fanout::to((0..consumers).map(|consumer| consumer.to_string()).collect(), when_full)
    }

    fn is_cut_off(inbox: &mut Inbox) -> bool {
        inbox.cut_off.0.try_recv().is_ok()
    }

    #[tokio::test]
    async fn a_slow_taker_of_a_live_stream_delays_no_other() {
        let (mut fanout, mut consumers) = fanout(2, WhenFull::Miss);
        for number in 0..200 {
            assert!(fanout.send(batch(number)).await);
            assert_eq!(taken(&mut consumers[1]).await, [number]);
        }
        assert_eq!(fanout.consumers[0].missed, 200 - QUEUE as usize);
        assert_eq!(taken(&mut consumers[0]).await, [0]);
    }

    #[tokio::test]
    async fn a_slow_taker_of_a_paced_stream_is_cut_off_and_delays_no_other() {
        let (mut fanout, mut consumers) = fanout(2, WhenFull::CutOff { bytes: 100 });
        for number in 0..100 {
            assert!(fanout.send(batch(number)).await);
            assert_eq!(taken(&mut consumers[1]).await, [number]);
        }
        assert!(!is_cut_off(&mut consumers[0]));
        assert!(fanout.send(batch(100)).await);
        assert_eq!(taken(&mut consumers[1]).await, [100]);
        assert!(is_cut_off(&mut consumers[0]));
        drop(consumers.remove(1));
        assert!(!fanout.send(batch(101)).await, "no consumer is left");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_waits_for_a_slow_taker_and_not_for_one_that_takes_nothing() {
        let (mut fanout, mut consumers) = fanout(2, WhenFull::WaitAmongOthers { bytes: 10 });
        let start = Instant::now();
        let send = async {
            for number in 0..30 {
                assert!(fanout.send(batch(number)).await);
            }
        };
        let (slow, fast) = consumers.split_at_mut(1);
        let take_slowly = async {
            for number in 0..12 {
                tokio::time::sleep(STALL_LIMIT / 2).await;
                assert_eq!(taken(&mut slow[0]).await, [number]);
            }
        };
        let take_fast = async {
            for number in 0..30 {
                assert_eq!(taken(&mut fast[0]).await, [number]);
            }
        };
        tokio::join!(send, take_slowly, take_fast);
        assert_eq!(start.elapsed(), STALL_LIMIT / 2 * 12 + STALL_LIMIT);
        assert!(is_cut_off(&mut consumers[0]) && !is_cut_off(&mut consumers[1]));
    }

    #[tokio::test]
    async fn the_only_taker_misses_nothing() {
        let (mut fanout, mut consumers) = fanout(1, WhenFull::Wait);
        let send = async {
            for number in 0..200 {
                assert!(fanout.send(batch(number)).await);
            }
        };
        let receive = async {
            for number in 0..200 {
                assert_eq!(taken(&mut consumers[0]).await, [number]);
            }
        };
        tokio::join!(send, receive);
    }

    #[tokio::test]
    async fn the_stream_goes_on_until_the_last_taker_is_gone() {
        let (mut fanout, mut consumers) = fanout(2, WhenFull::CutOff { bytes: 100 });
        let abandoned = fanout.abandoned();
        drop(consumers.remove(0));
        assert!(fanout.send(batch(1)).await);
        drop(consumers);
        abandoned.await;
        assert!(!fanout.send(batch(2)).await);
        assert!(Fanout::to_nobody().send(batch(3)).await);
    }
}
