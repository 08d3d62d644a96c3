//! The decision whether a transfer that failed is tried again.

use crate::exit::Failure;

/// The number of connections in a row after which a transfer fails for good, if each of them ended
/// because the files cannot be written.
const UNWRITABLE: u32 = 3;

/// The tries of one transfer.
#[derive(Debug)]
pub(crate) struct Retries {
    /// Whether --reconnect asks for other tries.
    wanted: bool,
    /// The number of tries in a row that have ended because the files cannot be written.
    unwritable: u32,
}

impl Retries {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted, unwritable: 0 }
    }

    /// Decides after a failure: `Ok` with a warning if the transfer is tried again, or else the
    /// failure with which the command ends.
    pub(crate) fn after(&mut self, failure: Failure) -> Result<String, Failure> {
        if !self.wanted || failure.is_usage() {
            return Err(failure);
        }
        self.unwritable = if failure.is_unwritable() { self.unwritable + 1 } else { 0 };
        if self.unwritable >= UNWRITABLE {
            return Err(failure
                .but(&format!("given up after {UNWRITABLE} tries: make room and run it again")));
        }
        Ok(format!("{failure}; trying again"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_without_reconnect_or_of_usage_is_final() {
        assert!(Retries::new(false).after(Failure::runtime("it broke")).is_err());
        assert!(Retries::new(true).after(Failure::usage("it is wrong")).is_err());
    }

    #[test]
    fn a_broken_connection_is_tried_again_for_ever() {
        let mut retries = Retries::new(true);
        for _ in 0..1_000 {
            let warning = retries.after(Failure::runtime("it broke")).expect("another try");
            assert_eq!(warning, "it broke; trying again");
        }
    }

    #[test]
    fn a_full_disk_is_tried_three_times() {
        let full = || Failure::runtime("disk full").unwritable();
        let mut retries = Retries::new(true);
        // A connection that ends otherwise has had room to write.
        for failure in [full(), full(), Failure::runtime("it broke"), full(), full()] {
            assert!(retries.after(failure).is_ok());
        }
        let end = retries.after(full()).expect_err("the third in a row").to_string();
        assert!(end.starts_with("disk full (given up after 3 tries"), "{end}");
    }
}
