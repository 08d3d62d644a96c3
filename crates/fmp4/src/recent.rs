use std::sync::Arc;

use crate::{Fragment, Init, Output};

/// The start of a player that comes now: the initialization segment, and the fragments from the
/// newest key frame on.
#[derive(Clone, Debug, Default)]
pub struct Recent {
    init: Option<Arc<Init>>,
    fragments: Vec<Fragment>,
    size: usize,
}

impl Recent {
    /// The most bytes that are kept: ten seconds of 25 Mb/s. With longer distances of key frames a
    /// player waits for the next.
    pub const MOST_BYTES: usize = 32 << 20;

    /// Takes in the next piece of the output.
    pub fn push(&mut self, output: &Output) {
        match output {
            Output::Init(init) => {
                self.init = Some(Arc::new(init.clone()));
                self.clear();
            }
            Output::Fragment(fragment) => self.push_fragment(fragment),
            Output::Unplayable(_) => *self = Self::default(),
        }
    }

    fn push_fragment(&mut self, fragment: &Fragment) {
        let is_too_much = self.size + fragment.bytes.len() > Self::MOST_BYTES;
        if fragment.is_key || is_too_much {
            self.clear();
        }
        let follows_a_key = fragment.is_key || !self.fragments.is_empty();
        if follows_a_key && !fragment.is_leading {
            self.size += fragment.bytes.len();
            self.fragments.push(fragment.clone());
        }
    }

    /// The initialization segment in force.
    pub fn init(&self) -> Option<&Arc<Init>> {
        self.init.as_ref()
    }

    /// The fragments from the newest key frame on. Of a stream without picture each is one, so
    /// it is the latest alone.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    fn clear(&mut self) {
        self.fragments.clear();
        self.size = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{init, picture};

    #[test]
    fn a_player_starts_at_the_newest_key_frame_without_leading_pictures() {
        let mut recent = Recent::default();
        recent.push(&init());
        recent.push(&picture(0, false, false));
        assert!(recent.fragments().is_empty());
        for (at, is_key, is_leading) in [
            (1, true, false),
            (2, false, false),
            (3, true, false),
            (4, false, true),
            (5, false, false),
        ] {
            recent.push(&picture(at, is_key, is_leading));
        }
        let starts: Vec<_> = recent.fragments().iter().map(|it| it.start.as_millis()).collect();
        assert_eq!(starts, [3, 5]);
        recent.push(&init());
        assert!(recent.fragments().is_empty() && recent.init().is_some());
        recent.push(&Output::Unplayable(vec!["AC-3"]));
        assert!(recent.init().is_none());
    }
}
