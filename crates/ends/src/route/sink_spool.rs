//! Messages for a slow destination, which wait in a temporary file so that the others do not wait.

use std::collections::VecDeque;
use std::fs::File;
use std::future::pending;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::BytesMut;
use punctual::{Outgoing, SendOptions};
use punctual_io::FileRing;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

use crate::route::batch::{Batch, Receipt};
use crate::route::fanout::{CutOff, CutOffReason, Inbox};
use crate::route::room::Room;

/// Stands between a fan-out and a destination: takes messages as fast as the file has room, and
/// hands them on as fast as the destination takes them.
pub struct SinkSpool {
    /// The destination, for the log.
    name: String,
    /// The room for messages in memory, which the destination takes next.
    room: Room,
    /// The oldest batch that was not handed on.
    next: Option<Batch>,
    /// The batches after it.
    waiting: WaitingInFile,
    /// The batch after those, for which the file has no room.
    held: Option<Batch>,
    /// Whether the log says that the destination is slow.
    is_noted: bool,
    member: SpoolMember,
}

/// The destinations of one source. The fastest of them sets its pace: while all have as much in
/// memory as they may have, none of them takes more into its file.
#[derive(Clone, Default)]
pub struct Members(Arc<watch::Sender<Fullness>>);

#[derive(Default)]
struct Fullness {
    all: usize,
    full: usize,
}

/// One of them.
struct SpoolMember {
    members: Members,
    is_full: bool,
}

/// Batches in a file that is written round and round.
struct WaitingInFile {
    /// `None` while a blocking task has it.
    ring: Option<FileRing>,
    batches: VecDeque<StoredBatch>,
}

/// A batch without its payloads.
struct StoredBatch {
    messages: Vec<(usize, SendOptions)>,
    receipt: Option<Receipt>,
}

impl SinkSpool {
    /// The inbox of the destination `name`, whose messages wait in `memory` bytes of memory and
    /// then in `size` bytes of a temporary file.
    ///
    /// # Errors
    ///
    /// There can be no temporary file.
    pub fn between(
        inbox: Inbox,
        name: String,
        memory: u64,
        size: u64,
        members: &Members,
    ) -> io::Result<Inbox> {
        let spool = Self::new(name, memory, tempfile::tempfile_in(folder())?, size, members);
        let (to, batches) = unbounded_channel();
        let (cut, told) = oneshot::channel();
        tokio::spawn(spool.run(inbox, to, cut));
        Ok(Inbox { batches, cut_off: CutOff(told) })
    }

    fn new(name: String, memory: u64, file: File, size: u64, members: &Members) -> Self {
        let ring = Some(FileRing::new(file, 0, size, 0));
        let waiting = WaitingInFile { ring, batches: VecDeque::new() };
        Self {
            name,
            room: Room::for_bytes(memory),
            next: None,
            waiting,
            held: None,
            is_noted: false,
            member: members.join(),
        }
    }

    async fn run(
        mut self,
        inbox: Inbox,
        to: UnboundedSender<Batch>,
        cut: oneshot::Sender<CutOffReason>,
    ) {
        let Inbox { batches: mut from, cut_off } = inbox;
        let result = tokio::select! {
            result = self.relay(&mut from, &to) => {
                result.map_err(|error| CutOffReason::Unreadable(error.to_string()))
            }
            reason = cut_off.reason() => Err(reason),
            () = to.closed() => Ok(()),
        };
        if let Err(reason) = result {
            // Told before the messages end, so that the destination does not take this for the end
            // of the stream.
            let _ = cut.send(reason);
            to.closed().await;
        }
    }

    /// Hands all messages on. Fails if the file cannot be read.
    async fn relay(
        &mut self,
        from: &mut UnboundedReceiver<Batch>,
        to: &UnboundedSender<Batch>,
    ) -> io::Result<()> {
        let mut is_open = true;
        loop {
            if self.next.is_none() {
                self.next = self.waiting.pop().await?.or_else(|| self.held.take());
            }
            if self.next.is_none() && !is_open {
                return Ok(());
            }
            self.member.set_full(self.next.is_some());
            let (next, room, member) = (&self.next, &self.room, &self.member);
            let place = async {
                match next {
                    Some(batch) => room.take(batch.bytes()).await,
                    None => pending().await,
                }
            };
            let batch = async {
                if next.is_some() {
                    member.another_has_room().await;
                }
                from.recv().await
            };
            tokio::select! {
                place = place => {
                    let handed = self.next.take().map(|batch| batch.with_place(place));
                    // The select in `run` notices a destination that is gone.
                    handed.into_iter().for_each(|batch| drop(to.send(batch)));
                }
                batch = batch, if is_open && self.held.is_none() => match batch {
                    Some(batch) => self.take_in(batch, to).await,
                    None => is_open = false,
                }
            }
        }
    }

    /// Takes in a new batch: while none waits, there may be room for it in memory.
    async fn take_in(&mut self, batch: Batch, to: &UnboundedSender<Batch>) {
        if self.next.is_none() {
            match self.room.try_take(batch.bytes()) {
                Some(place) => drop(to.send(batch.with_place(place))),
                None => self.next = Some(batch),
            }
            return;
        }
        if !self.waiting.has_room_for(&batch) {
            self.held = Some(batch);
        } else if let Err((batch, error)) = self.waiting.push(batch).await {
            tracing::warn!(
                "{}: its messages cannot wait in a temporary file, and the others wait for it: \
                 {error}",
                self.name
            );
            self.held = Some(batch);
        } else if !std::mem::replace(&mut self.is_noted, true) {
            tracing::info!("{} is slow: its messages wait in a temporary file", self.name);
        }
    }
}

impl Members {
    fn join(&self) -> SpoolMember {
        self.0.send_modify(|fullness| fullness.all += 1);
        SpoolMember { members: self.clone(), is_full: false }
    }
}

impl SpoolMember {
    /// Whether this one has as much in memory as it may have.
    fn set_full(&mut self, is_full: bool) {
        if self.is_full != is_full {
            self.is_full = is_full;
            self.members.0.send_modify(|fullness| match is_full {
                true => fullness.full += 1,
                false => fullness.full -= 1,
            });
        }
    }

    /// Completes when another one has room in memory.
    async fn another_has_room(&self) {
        let mut fullness = self.members.0.subscribe();
        // It cannot fail, since the sender is this one's.
        let _ = fullness.wait_for(|fullness| fullness.full < fullness.all).await;
    }
}

impl Drop for SpoolMember {
    fn drop(&mut self) {
        self.set_full(false);
        self.members.0.send_modify(|fullness| fullness.all -= 1);
    }
}

impl WaitingInFile {
    fn has_room_for(&self, batch: &Batch) -> bool {
        self.ring.as_ref().is_some_and(|ring| batch.bytes() <= ring.room())
    }

    /// Writes a batch for which there is room; returns it if that fails.
    async fn push(&mut self, batch: Batch) -> Result<(), (Batch, io::Error)> {
        let payloads: Vec<_> = batch.iter().map(|message| message.payload.clone()).collect();
        if let Err(error) = self.with_ring(move |ring| ring.append(&payloads)).await {
            return Err((batch, error));
        }
        let (messages, receipt) = batch.into_messages();
        let messages = messages.into_iter().map(|it| (it.payload.len(), it.options)).collect();
        self.batches.push_back(StoredBatch { messages, receipt });
        Ok(())
    }

    /// The oldest batch; `None` if there is none.
    async fn pop(&mut self) -> io::Result<Option<Batch>> {
        let Some(stored) = self.batches.pop_front() else { return Ok(None) };
        let len = stored.messages.iter().map(|(len, _)| len).sum();
        let take = move |ring: &mut FileRing| {
            let (mut bytes, begin) = (BytesMut::zeroed(len), ring.begin());
            ring.read_at(begin, &mut bytes)?;
            ring.free_up_to(begin + len as u64);
            Ok(bytes)
        };
        let mut all = self.with_ring(take).await?;
        let messages = stored.messages.into_iter().map(|(len, options)| {
            let payload = all.split_to(len).freeze();
            Outgoing { payload, options }
        });
        Ok(Some(Batch::new(messages.collect(), stored.receipt)))
    }

    /// Does this with the file, where it may block.
    async fn with_ring<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut FileRing) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let mut ring = self.ring.take().ok_or(io::ErrorKind::NotFound)?;
        let task = tokio::task::spawn_blocking(move || {
            let result = work(&mut ring);
            (ring, result)
        });
        let (ring, result) = task.await?;
        self.ring = Some(ring);
        result
    }
}

/// The folder of temporary files that may be large: `/tmp` is often in memory.
fn folder() -> PathBuf {
    let large = PathBuf::from("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && large.is_dir() {
        return large;
    }
    std::env::temp_dir()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::sync::mpsc::error::TryRecvError;

    use super::*;

    /// A batch of two messages of these bytes.
    fn batch(number: u8, len: usize) -> Batch {
        let payloads = [vec![number; len], vec![number; 1]];
        Batch::new(payloads.map(|payload| Bytes::from(payload).into()).to_vec(), None)
    }

    /// Another destination of the same source, which has room.
    fn with_another() -> (Members, SpoolMember) {
        let members = Members::default();
        let another = members.join();
        (members, another)
    }

    fn spool(memory: u64, size: u64, members: &Members) -> (UnboundedSender<Batch>, Inbox) {
        let (sender, batches) = unbounded_channel();
        let (_cut, told) = oneshot::channel();
        let inbox = Inbox { batches, cut_off: CutOff(told) };
        (sender, SinkSpool::between(inbox, "slow".into(), memory, size, members).expect("a file"))
    }

    #[tokio::test]
    async fn messages_wait_in_the_file_and_arrive_in_their_order() {
        // The file is written round five times.
        let (members, _another) = with_another();
        let (sender, mut inbox) = spool(100, 1_000, &members);
        for round in 0..10 {
            let numbers = 8 * round..8 * round + 8;
            for number in numbers.clone() {
                sender.send(batch(number, 60)).expect("the spool takes it");
            }
            for number in numbers {
                let batch = inbox.batches.recv().await.expect("a batch");
                let payloads: Vec<_> = batch.iter().map(|it| it.payload.to_vec()).collect();
                assert_eq!(payloads, [vec![number; 60], vec![number; 1]]);
            }
        }
        drop(sender);
        assert!(inbox.batches.recv().await.is_none(), "the end of the stream");
    }

    #[tokio::test]
    async fn the_end_comes_after_all_that_waits() {
        let (members, _another) = with_another();
        let (sender, mut inbox) = spool(100, 1_000, &members);
        for number in 0..8 {
            sender.send(batch(number, 60)).expect("the spool takes it");
        }
        drop(sender);
        let mut arrived = 0;
        while let Some(batch) = inbox.batches.recv().await {
            arrived += batch.len();
        }
        assert_eq!(arrived, 16);
    }

    #[tokio::test]
    async fn a_full_file_takes_no_more() {
        let (cut, told) = oneshot::channel();
        let (sender, batches) = unbounded_channel();
        let inbox = Inbox { batches, cut_off: CutOff(told) };
        let room = Room::for_batches(5);
        let (members, _another) = with_another();
        let mut inbox =
            SinkSpool::between(inbox, "slow".into(), 61, 122, &members).expect("a file");
        // One in memory, one that waits for its room, two in the file, and one for which there is
        // none.
        for number in 0..5 {
            let batch = batch(number, 60);
            let place = room.try_take(batch.bytes()).expect("room");
            sender.send(batch.with_place(place)).expect("the spool takes it");
        }
        // Three places become free, and the fifth one not before the destination takes more.
        let free = [room.take(batch(0, 0).bytes()).await, room.take(batch(0, 0).bytes()).await];
        let third = room.take(batch(0, 0).bytes()).await;
        assert!(room.free() <= 1, "{} are free beside three", room.free());
        drop((free, third));
        for _ in 0..5 {
            drop(inbox.batches.recv().await.expect("a batch"));
        }
        drop(cut);
    }

    #[tokio::test]
    async fn the_source_waits_for_the_fastest_of_its_destinations() {
        let (sender, batches) = unbounded_channel();
        let (_cut, told) = oneshot::channel();
        let inbox = Inbox { batches, cut_off: CutOff(told) };
        let members = Members::default();
        let mut inbox =
            SinkSpool::between(inbox, "alone".into(), 61, 1_000, &members).expect("a file");
        let room = Room::for_batches(5);
        for number in 0..5 {
            let batch = batch(number, 60);
            let place = room.try_take(batch.bytes()).expect("room");
            sender.send(batch.with_place(place)).expect("the spool takes it");
        }
        // One is in memory, and one waits for its room.
        drop(room.take(batch(0, 0).bytes()).await);
        assert_eq!(room.free(), 1, "the file is not used");
        let another = members.join();
        let free = [room.take(batch(0, 0).bytes()).await, room.take(batch(0, 0).bytes()).await];
        drop((another, free));
        for number in 0..5 {
            let batch = inbox.batches.recv().await.expect("a batch");
            assert_eq!(batch[0].payload[0], number);
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_loses_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("read-only");
        std::fs::write(&path, "").expect("a file");
        let file = File::open(path).expect("a file");
        let (members, _another) = with_another();
        let mut spool = SinkSpool::new("slow".into(), 61, file, 1_000, &members);
        let (sender, mut from) = unbounded_channel();
        let (to, mut inbox) = unbounded_channel();
        for number in 0..5 {
            sender.send(batch(number, 60)).expect("a receiver");
        }
        drop(sender);
        let relay = async { spool.relay(&mut from, &to).await.expect("nothing is read") };
        let read = async {
            for number in 0..5 {
                let batch: Batch = inbox.recv().await.expect("a batch");
                assert_eq!(batch[0].payload[0], number);
            }
        };
        tokio::join!(relay, read);
    }

    #[tokio::test]
    async fn a_destination_that_is_cut_off_is_told_before_the_stream_ends() {
        let (cut, told) = oneshot::channel();
        let (_sender, batches) = unbounded_channel();
        let inbox = Inbox { batches, cut_off: CutOff(told) };
        let Inbox { mut batches, cut_off } =
            SinkSpool::between(inbox, "slow".into(), 61, 1_000, &Members::default())
                .expect("a file");
        cut.send(CutOffReason::TooSlow).expect("the spool listens");
        assert_eq!(cut_off.reason().await, CutOffReason::TooSlow);
        let next = batches.try_recv();
        assert!(matches!(next, Err(TryRecvError::Empty)), "no end of the stream");
    }
}
