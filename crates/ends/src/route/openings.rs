//! The destinations that are not open yet, which the source waits for.

use std::fmt;
use std::time::Duration;

use punctual_units::{DisplayDuration, one_line};
use punctual_uri::{Target, Uri};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::end::is_live;

/// The destinations that were opened or are gone for good, and the absent ones. Clones count
/// together.
#[derive(Clone, Default)]
pub struct Openings {
    state: watch::Sender<State>,
}

#[derive(Clone, Debug, Default)]
struct State {
    opened: usize,
    /// The names of the destinations that are neither open nor gone.
    absent: Vec<String>,
}

/// One destination's part in it, which reports once that the destination is open. If it is dropped
/// before, the destination is gone.
pub struct DestinationOpening {
    name: Option<String>,
    state: watch::Sender<State>,
}

/// The time for which a source waits for its destinations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DestinationWait {
    /// It waits for the first destination, for a second at most: it does not wait for the others.
    Live,
    /// It waits for the first destination, and from then on for this time for the others.
    Others(Duration),
}

impl Openings {
    /// A destination's part.
    pub fn opening(&self, name: impl fmt::Display) -> DestinationOpening {
        let name = one_line(&name.to_string()).into_owned();
        self.state.send_modify(|state| state.absent.push(name.clone()));
        DestinationOpening { name: Some(name), state: self.state.clone() }
    }

    /// Waits until `source` may begin, and says what it waits for if that takes time.
    ///
    /// A live source begins when the first destination was opened, or after a second; its messages
    /// until then are lost. Any other source begins when the first one was opened and the others
    /// have had the time of `wait`; if all are gone, it begins as well.
    pub(super) async fn begin(&self, source: impl fmt::Display, wait: DestinationWait) {
        let mut state = self.state.subscribe();
        let mut first = state.clone();
        let first = first.wait_for(|state| state.opened > 0 || state.absent.is_empty());
        tokio::pin!(first);
        let DestinationWait::Others(others) = wait else {
            let _ = timeout(A_SECOND, first).await;
            return;
        };
        if timeout(A_SECOND, &mut first).await.is_err() {
            tracing::info!("{source} is not read yet: waiting for {}", state.borrow().names());
            let _ = first.await;
        }
        let all = async move { state.wait_for(|state| state.absent.is_empty()).await.map(drop) };
        tokio::pin!(all);
        if timeout(others.min(A_SECOND), &mut all).await.is_ok() {
            return;
        }
        let names = || self.state.borrow().names();
        let more = others.saturating_sub(A_SECOND);
        if !more.is_zero() {
            let time = DisplayDuration(more);
            tracing::info!("{source} is not read yet: waiting up to {time:#} for {}", names());
            if timeout(more, all).await.is_ok() {
                return;
            }
        }
        tracing::warn!("{source} begins without {}", names());
    }
}

impl DestinationWait {
    /// The wait of the source that `uri` names. A program that writes to a pipe, or sends,
    /// has to wait meanwhile; a file loses nothing.
    pub(super) fn of(uri: &Uri) -> Self {
        match &uri.target {
            Target::File(_) => Self::Others(FOR_A_FILE),
            _ if is_live(uri) => Self::Live,
            _ => Self::Others(A_SECOND),
        }
    }
}

impl DestinationOpening {
    /// Reports that the destination is open.
    pub(super) fn done(&mut self) {
        self.end(true);
    }

    fn end(&mut self, opened: bool) {
        let Some(name) = self.name.take() else { return };
        self.state.send_modify(|state| {
            state.opened += usize::from(opened);
            if let Some(place) = state.absent.iter().position(|absent| *absent == name) {
                state.absent.remove(place);
            }
        });
    }
}

impl Drop for DestinationOpening {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl State {
    /// The names of the destinations that are absent.
    fn names(&self) -> String {
        self.absent.join(" and ")
    }
}

/// The time for which a live source waits for the first destination, and a pipe for the others;
/// a longer wait is said.
const A_SECOND: Duration = Duration::from_secs(1);

/// The time for which a file waits for the other destinations: longer than a call takes that nobody
/// answers, 3 s by default.
const FOR_A_FILE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const A_FILE: DestinationWait = DestinationWait::Others(FOR_A_FILE);
    const A_PIPE: DestinationWait = DestinationWait::Others(A_SECOND);

    fn openings() -> (Openings, [DestinationOpening; 3]) {
        let openings = Openings::default();
        let parts = ["a", "b", "c"].map(|name| openings.opening(name));
        (openings, parts)
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_can_wait_begins_when_every_destination_is_open_or_gone() {
        for wait in [A_FILE, A_PIPE] {
            let (openings, [mut one, mut two, three]) = openings();
            let start = Instant::now();
            one.done();
            one.done();
            let rest = async {
                tokio::time::sleep(A_SECOND / 2).await;
                drop(three);
                two.done();
            };
            tokio::join!(openings.begin("in", wait), rest);
            assert_eq!(start.elapsed(), A_SECOND / 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_absent_destination_keeps_no_source_from_the_others() {
        for (wait, time) in [(A_FILE, FOR_A_FILE), (A_PIPE, A_SECOND)] {
            let (openings, [mut one, _two, _three]) = openings();
            let start = Instant::now();
            one.done();
            openings.begin("in", wait).await;
            assert_eq!(start.elapsed().as_secs(), time.as_secs());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_can_wait_is_not_read_for_nobody() {
        for wait in [A_FILE, A_PIPE] {
            let (openings, parts) = openings();
            let begin = openings.begin("in", wait);
            tokio::pin!(begin);
            assert!(timeout(Duration::from_secs(3_600), &mut begin).await.is_err());
            drop(parts);
            begin.await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_live_source_begins_with_the_first_destination() {
        let (openings, [mut one, _two, _three]) = openings();
        let start = Instant::now();
        tokio::join!(openings.begin("in", DestinationWait::Live), async { one.done() });
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_live_source_does_not_wait_for_long() {
        let (openings, _parts) = openings();
        let start = Instant::now();
        openings.begin("in", DestinationWait::Live).await;
        assert_eq!(start.elapsed(), A_SECOND);
    }

    #[test]
    fn a_file_is_more_patient_than_a_pipe_and_a_live_source_less() {
        let of = |uri: &str| DestinationWait::of(&uri.parse().expect("a URI"));
        assert_eq!((of("in.ts"), of("-")), (A_FILE, A_PIPE));
        assert_eq!((of("tcp://:1"), of("srt://:1?transtype=stream")), (A_PIPE, A_PIPE));
        assert_eq!(
            (of("udp://:1"), of("srt://:1")),
            (DestinationWait::Live, DestinationWait::Live)
        );
    }
}
