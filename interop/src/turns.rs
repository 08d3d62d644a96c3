use std::sync::{Condvar, Mutex, PoisonError};

/// Lets only some of the tests that run at a time do what keeps a processor busy.
#[derive(Debug)]
pub struct Turns {
    free: Mutex<usize>,
    returned: Condvar,
}

/// A test's turn, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a>(&'a Turns);

impl Turns {
    /// `most` tests at a time.
    pub const fn new(most: usize) -> Self {
        Self { free: Mutex::new(most), returned: Condvar::new() }
    }

    /// Waits for a turn.
    pub fn take(&self) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let none = |free: &mut usize| *free == 0;
        let free = self.returned.wait_while(free, none);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.returned.notify_one();
    }
}
