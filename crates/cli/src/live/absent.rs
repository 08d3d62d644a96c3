//! Ends without a connection, which the live line names.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The names of ends without a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Absences {
    names: Arc<Mutex<Vec<String>>>,
}

/// One end without a connection, until this is dropped.
#[derive(Debug)]
pub(crate) struct Absence {
    absences: Absences,
    name: String,
}

impl Absences {
    /// Adds the end of this name.
    pub(super) fn add(&self, name: String) -> Absence {
        self.lock().push(name.clone());
        Absence { absences: self.clone(), name }
    }

    /// Adds the end of this name, which will not come back.
    pub(super) fn add_for_good(&self, name: String) {
        self.lock().push(name);
    }

    /// The names of the ends without a connection; `None` if all have one.
    pub(super) fn describe(&self) -> Option<String> {
        let names = self.lock();
        let (first, more) = names.split_first()?;
        Some(match more.len() {
            0 => format!("absent: {first}"),
            more => format!("absent: {first} and {more} more"),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Absence {
    fn drop(&mut self) {
        let mut names = self.absences.lock();
        if let Some(place) = names.iter().position(|name| *name == self.name) {
            names.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_named_for_as_long_as_it_is_absent() {
        let absences = Absences::default();
        assert_eq!(absences.describe(), None);
        let one = absences.add("srt://a:1".into());
        assert_eq!(absences.describe().unwrap(), "absent: srt://a:1");
        let two = absences.add("srt://b:2".into());
        assert_eq!(absences.describe().unwrap(), "absent: srt://a:1 and 1 more");
        drop(one);
        assert_eq!(absences.describe().unwrap(), "absent: srt://b:2");
        drop(two);
        assert_eq!(absences.describe(), None);
        absences.add_for_good("srt://c:3".into());
        assert_eq!(absences.describe().unwrap(), "absent: srt://c:3");
    }
}
