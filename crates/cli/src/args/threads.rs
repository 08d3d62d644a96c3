//! The threads that carry streams.

use std::num::NonZeroUsize;

/// The threads that carry streams.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct ThreadArgs {
    /// The number of threads that carry streams. Waking another thread for each batch of packets
    /// costs more than it gains, until one core is too slow [default: 1 for one stream; one for
    /// each core for several]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl ThreadArgs {
    /// The number of threads for this many streams at once; `None` for one for each core.
    pub(crate) fn number(self, streams: usize) -> Option<NonZeroUsize> {
        self.threads.or((streams <= 1).then_some(NonZeroUsize::MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stream_has_one_thread_and_several_have_all_cores() {
        let default = ThreadArgs { threads: None };
        assert_eq!(default.number(1), NonZeroUsize::new(1));
        assert_eq!(default.number(2), None);
        let four = ThreadArgs { threads: NonZeroUsize::new(4) };
        assert_eq!(four.number(1), NonZeroUsize::new(4));
    }
}
