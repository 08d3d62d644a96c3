use std::sync::{Condvar, Mutex, PoisonError};

/// Lets only some of the tests that run at a time do work that needs a processor in time.
#[derive(Debug)]
pub struct Turns {
    free: Mutex<usize>,
    returned: Condvar,
}

/// A test's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    turns: &'a Turns,
    load: usize,
}

impl Turns {
    /// Turns for tests whose loads together are at most `most`.
    pub const fn new(most: usize) -> Self {
        Self { free: Mutex::new(most), returned: Condvar::new() }
    }

    /// Waits for a turn of a test with this load, which is at most that of all.
    pub fn take(&self, load: usize) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.returned.wait_while(free, |free| *free < load);
        *free.unwrap_or_else(PoisonError::into_inner) -= load;
        Turn { turns: self, load }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.turns.free.lock().unwrap_or_else(PoisonError::into_inner) += self.load;
        self.turns.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn loads_together_are_at_most_the_most_and_each_gets_a_turn() {
        let turns = Turns::new(4);
        let (present, most, served) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for load in [1, 2, 1, 4, 2, 1, 3, 2] {
                let (turns, present, most, served) = (&turns, &present, &most, &served);
                scope.spawn(move || {
                    let _turn = turns.take(load);
                    let now = present.fetch_add(load, Ordering::SeqCst) + load;
                    most.fetch_max(now, Ordering::SeqCst);
                    thread::yield_now();
                    present.fetch_sub(load, Ordering::SeqCst);
                    served.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        assert!(most.into_inner() <= 4);
        assert_eq!(served.into_inner(), 8);
    }
}
