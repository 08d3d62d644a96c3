//! The thread that writes to one place for all others, and the border to it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::queue::{Job, Kind, Piece, TextQueue};

/// A place that is written to. Its methods may block, and are called by the writer's thread alone.
pub(super) trait WritePlace: Send + 'static {
    /// Writes a piece, before which `left_out` pieces were left out.
    fn write(&mut self, piece: &Piece, left_out: u64) -> io::Result<()>;

    /// Tells that pieces were left out, because there was no room for them.
    fn tell(&mut self, left_out: u64) -> io::Result<()>;

    /// A piece could not be written, and is left out; further ones are only counted.
    fn failed(&mut self, _error: &io::Error) {}

    /// Shows the live line, in place of the one before.
    fn show(&mut self, _line: String) -> io::Result<()> {
        Ok(())
    }

    /// Opens the place anew.
    fn reopen(&mut self) {}
}

/// The border to a thread that writes to one place. No call here waits for that place, so threads
/// that carry streams may make them.
#[derive(Clone)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<TextQueue>,
    /// There is work, or some of it is done.
    changed: Condvar,
}

impl Writer {
    /// Starts the thread. Without one, because the system gives none, everything is left out.
    pub(super) fn start(place: impl WritePlace) -> Self {
        let writer = Self(Arc::default());
        let shared = Arc::clone(&writer.0);
        let started =
            thread::Builder::new().name("writer".into()).spawn(move || shared.work(place));
        if let Err(error) = started {
            writer.0.lock().result_failed(error);
        }
        writer
    }

    /// A writer whose place could not be opened: everything is left out, and results fail.
    pub(super) fn without_place(error: io::Error) -> Self {
        let writer = Self(Arc::default());
        writer.0.lock().result_failed(error);
        writer
    }

    /// Writes a piece as soon as possible; a message or a row is left out without room. Returns
    /// whether the piece is the first that is left out.
    pub(super) fn write(&self, piece: Piece) -> bool {
        self.change(|queue| queue.add(piece))
    }

    /// Shows this live line.
    pub(super) fn show(&self, line: String) {
        self.change(|queue| queue.show(line));
    }

    /// Opens the place anew.
    pub(super) fn reopen(&self) {
        self.change(TextQueue::reopen);
    }

    /// The reason for which a result could not be written, once.
    pub(super) fn take_problem(&self) -> Option<io::Error> {
        self.0.lock().take_problem()
    }

    /// The pieces that were left out, or wait, and of which nothing was told.
    pub(super) fn untold(&self) -> u64 {
        self.0.lock().untold()
    }

    /// Waits until everything is written, but not beyond the instant that `limit` gives.
    pub(super) fn wait_until_done(&self, limit: impl Fn() -> Option<Instant>) {
        self.wait(TextQueue::is_done, limit);
    }

    /// Waits until all results are written, but not beyond the instant that `limit` gives.
    pub(super) fn wait_for_results(&self, limit: impl Fn() -> Option<Instant>) {
        self.wait(TextQueue::has_no_results, limit);
    }

    fn wait(&self, is_over: impl Fn(&TextQueue) -> bool, limit: impl Fn() -> Option<Instant>) {
        let mut queue = self.0.lock();
        while !is_over(&queue) && limit().is_none_or(|limit| Instant::now() < limit) {
            let waited = self.0.changed.wait_timeout(queue, LOOK);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut TextQueue) -> T) -> T {
        let changed = change(&mut self.0.lock());
        self.0.changed.notify_all();
        changed
    }
}

impl Shared {
    fn work(&self, mut place: impl WritePlace) {
        loop {
            match self.next() {
                Job::Reopen => place.reopen(),
                Job::Write(piece, left_out) => match place.write(&piece, left_out) {
                    Ok(()) => self.lock().written(),
                    Err(error) if piece.kind == Kind::Result => self.lock().result_failed(error),
                    Err(error) => self.fail(&mut place, &error, 1),
                },
                Job::Tell(left_out) => {
                    if let Err(error) = place.tell(left_out) {
                        self.fail(&mut place, &error, left_out);
                    }
                }
                // The next one follows soon.
                Job::Show(line) => drop(place.show(line)),
            }
        }
    }

    fn fail(&self, place: &mut impl WritePlace, error: &io::Error, count: u64) {
        if self.lock().failed(count) {
            place.failed(error);
        }
    }

    /// Waits for the next job.
    fn next(&self) -> Job {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.take() {
                return job;
            }
            // Somebody may wait for the end of the job before.
            self.changed.notify_all();
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, TextQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often a wait looks whether it has a limit by now.
const LOOK: Duration = Duration::from_millis(20);
