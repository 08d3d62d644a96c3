//! The relay as its callers know it: who publishes and views, and what the relay may not do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::judge::Got;

/// The common knowledge of all callers.
pub(crate) struct Ledger {
    keep_viewers: Duration,
    state: Mutex<State>,
}

struct State {
    streams: Vec<Presence>,
    totals: Totals,
    /// Broken promises, and when they were noticed.
    faults: Vec<(Instant, String)>,
}

/// A stream as its callers know it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presence {
    /// Since when its publisher is connected.
    pub(crate) since: Option<Instant>,
    /// When the publisher left that was connected last.
    left: Option<Instant>,
    /// The viewers that are connected.
    pub(crate) viewers: u32,
    /// The most continuity errors of one viewer.
    pub(crate) errors: u64,
}

/// Numbers of all callers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    /// Calls.
    pub(crate) calls: u64,
    /// Calls that the relay admitted.
    pub(crate) admitted: u64,
    /// Calls that it refused, since nobody published the stream.
    pub(crate) refused: u64,
    /// Calls that got no answer in time.
    pub(crate) unanswered: u64,
    /// Viewers whose publisher stayed away for too long.
    pub(crate) outlasted: u64,
    /// The messages of all viewers.
    pub(crate) got: Got,
}

impl Ledger {
    /// A ledger of this number of streams, whose viewers stay connected without a publisher for
    /// `keep_viewers`.
    pub(crate) fn new(streams: u16, keep_viewers: Duration) -> Self {
        let streams = vec![Presence::default(); streams.into()];
        let state = State { streams, totals: Totals::default(), faults: Vec::new() };
        Self { keep_viewers, state: Mutex::new(state) }
    }

    /// Somebody calls.
    pub(crate) fn calls(&self) {
        self.lock().totals.calls += 1;
    }

    /// The relay admitted the publisher of a stream.
    pub(crate) fn publishes(&self, stream: u16) {
        let mut state = self.lock();
        state.totals.admitted += 1;
        state.stream(stream).since = Some(Instant::now());
    }

    /// The publisher of a stream is about to leave, or is gone.
    pub(crate) fn leaves(&self, stream: u16) {
        let mut state = self.lock();
        let presence = state.stream(stream);
        if presence.since.take().is_some() {
            presence.left = Some(Instant::now());
        }
    }

    /// The relay admitted a viewer.
    pub(crate) fn views(&self, stream: u16) {
        let mut state = self.lock();
        state.totals.admitted += 1;
        state.stream(stream).viewers += 1;
    }

    /// A viewer has left, with what it got.
    pub(crate) fn unviews(&self, stream: u16, got: Got) {
        let mut state = self.lock();
        state.totals.got += got;
        let presence = state.stream(stream);
        presence.viewers -= 1;
        presence.errors = presence.errors.max(got.continuity_errors);
        if got.clock_errors + got.foreign > 0 && got.continuity_errors == 0 {
            state.fault(format!("a viewer of stream {stream} got {got:?}"));
        }
    }

    /// The relay refused a viewer that called at `called`, since nobody publishes.
    pub(crate) fn refused(&self, stream: u16, called: Instant) {
        let mut state = self.lock();
        state.totals.refused += 1;
        if let Some(since) = state.stream(stream).since
            && called > since + SETTLED
        {
            state.fault(format!("a viewer was told that nobody publishes stream {stream}"));
        }
    }

    /// A call got no answer in time.
    pub(crate) fn unanswered(&self) {
        self.lock().totals.unanswered += 1;
    }

    /// The relay has ended the connection of a viewer, or it broke.
    pub(crate) fn cut(&self, stream: u16, why: &str) {
        let mut state = self.lock();
        let presence = *state.stream(stream);
        let is_published = presence.since.is_some_and(|since| since.elapsed() > SETTLED);
        let is_kept = presence.left.is_some_and(|left| left.elapsed() < self.keep_viewers);
        if is_published || is_kept {
            let text = format!("a viewer of stream {stream} was cut: {why}; {presence:?}");
            state.fault(text);
        } else {
            state.totals.outlasted += 1;
        }
    }

    /// A viewer has got nothing since `latest`.
    pub(crate) fn silent(&self, stream: u16, latest: Instant) {
        let mut state = self.lock();
        let since = state.stream(stream).since;
        if since.is_some_and(|since| since.max(latest).elapsed() > LONGEST_SILENCE) {
            let silence = latest.elapsed();
            state.fault(format!("a viewer of stream {stream} got nothing for {silence:?}"));
        }
    }

    /// A promise was broken.
    pub(crate) fn fault(&self, text: String) {
        self.lock().fault(text);
    }

    pub(crate) fn totals(&self) -> Totals {
        self.lock().totals
    }

    pub(crate) fn streams(&self) -> Vec<Presence> {
        self.lock().streams.clone()
    }

    /// Broken promises, and when they were noticed.
    pub(crate) fn faults(&self) -> Vec<(Instant, String)> {
        self.lock().faults.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fault(&mut self, text: String) {
        println!("{text}");
        self.faults.push((Instant::now(), text));
    }

    fn stream(&mut self, number: u16) -> &mut Presence {
        &mut self.streams[usize::from(number)]
    }
}

/// A publisher that was admitted this long ago is known to the relay, however late its thread was.
const SETTLED: Duration = Duration::from_secs(1);

/// A viewer gets something this long after its publisher came, or after its call: a handshake, both
/// latencies, and a random access point.
const LONGEST_SILENCE: Duration = Duration::from_secs(8);
