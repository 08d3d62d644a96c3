//! Wake-ups of threads and tasks at the end of a driver's turn.

use std::task::Waker;

/// The wake-ups that a driver owes when it has told all [watchers](crate::Watcher) of the changes
/// of a turn. A thread that is woken at the first change of many takes the processor from the
/// driver, finds one socket, and sleeps again before the next change; so it is woken once, after
/// the last.
///
/// When this is dropped, all are woken.
#[derive(Debug, Default)]
pub struct Wakes(Vec<Waker>);

impl Wakes {
    /// Adds a wake-up, unless it is there already.
    pub fn add(&mut self, waker: Waker) {
        if !self.0.iter().any(|it| it.will_wake(&waker)) {
            self.0.push(waker);
        }
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_is_woken_once_and_at_the_end() {
        let counters = [Arc::new(Counter::default()), Arc::new(Counter::default())];
        let counts = || counters.each_ref().map(|it| it.0.load(Ordering::Relaxed));
        let mut wakes = Wakes::default();
        for _ in 0..3 {
            counters.iter().for_each(|it| wakes.add(Waker::from(Arc::clone(it))));
        }
        assert_eq!(counts(), [0, 0]);
        drop(wakes);
        assert_eq!(counts(), [1, 1]);
    }
}
