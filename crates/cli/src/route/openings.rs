//! The number of destinations that are open, which the source waits for.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The number of destinations that were opened or are gone for good. Clones count together.
#[derive(Clone)]
pub(super) struct Openings {
    counts: watch::Sender<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    all: usize,
    opened: usize,
    gone: usize,
}

/// One destination's part in it, which reports once that the destination is open. If it is dropped
/// before, the destination is gone.
pub(super) struct Opening {
    counts: Option<watch::Sender<Counts>>,
}

impl Openings {
    /// The openings of `all` destinations, before the first is open.
    pub(super) fn new(all: usize) -> Self {
        Self { counts: watch::Sender::new(Counts { all, ..Counts::default() }) }
    }

    /// A destination's part.
    pub(super) fn opening(&self) -> Opening {
        Opening { counts: Some(self.counts.clone()) }
    }

    /// Waits until a source may begin. A source that can wait begins when every destination was
    /// opened or is gone. A live source begins when the first one was opened, or after a second;
    /// its messages until then are lost.
    pub(super) async fn begin(&self, is_live: bool) {
        let mut counts = self.counts.subscribe();
        let ready = counts.wait_for(|counts| match is_live {
            true => counts.opened > 0 || counts.gone == counts.all,
            false => counts.opened + counts.gone == counts.all,
        });
        if is_live {
            let _ = timeout(PATIENCE, ready).await;
        } else {
            let _ = ready.await;
        }
    }
}

impl Opening {
    /// Reports that the destination is open.
    pub(super) fn done(&mut self) {
        if let Some(counts) = self.counts.take() {
            counts.send_modify(|counts| counts.opened += 1);
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(counts) = self.counts.take() {
            counts.send_modify(|counts| counts.gone += 1);
        }
    }
}

/// The time for which a live source waits for the first destination.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_waits_for_every_destination_and_not_for_one_that_is_gone() {
        let openings = Openings::new(3);
        let [mut one, mut two, three] = [(); 3].map(|()| openings.opening());
        let begin = openings.begin(false);
        tokio::pin!(begin);
        one.done();
        one.done();
        drop(three);
        assert!(timeout(Duration::from_secs(3_600), &mut begin).await.is_err());
        two.done();
        begin.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_live_source_begins_with_the_first_destination() {
        let openings = Openings::new(2);
        let [mut one, _two] = [(); 2].map(|()| openings.opening());
        let start = Instant::now();
        tokio::join!(openings.begin(true), async { one.done() });
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_live_source_does_not_wait_for_long() {
        let openings = Openings::new(1);
        let _one = openings.opening();
        let start = Instant::now();
        openings.begin(true).await;
        assert_eq!(start.elapsed(), PATIENCE);
    }
}
