//! The callers that a command accepts at an end that listens.

use std::path::PathBuf;
use std::sync::Arc;

use punctual_ends::{AllowedStreamIds, Opener};

use crate::exit::Failure;
use crate::hangup;

/// The callers that a command accepts at an end that listens.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CallerArgs {
    /// Accept only callers whose stream ID this file allows, at each end where SRT listens. The
    /// file has one pattern a line: `*` matches any text, `?` one character, `#` begins a comment.
    /// A pattern is compared with the whole stream ID and with the resource in it. SIGHUP makes the
    /// command read the file again
    #[arg(long, value_name = "FILE")]
    allow_streamids: Option<PathBuf>,
}

impl CallerArgs {
    /// Reads the file of stream IDs, if there is one, and lets each of `openers` that listens check
    /// its callers by it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or no end listens.
    pub(crate) fn admit(&self, openers: Vec<Opener>) -> Result<Vec<Opener>, Failure> {
        let Some(path) = &self.allow_streamids else { return Ok(openers) };
        if !openers.iter().any(Opener::listens_for_srt) {
            let failure = "--allow-streamids needs an end that listens, such as srt://:4200";
            return Err(Failure::usage(failure));
        }
        let allowed = Arc::new(AllowedStreamIds::read(path)?);
        let weak = Arc::downgrade(&allowed);
        // As long as an end is left that uses them.
        hangup::means(move || weak.upgrade().map(|allowed| allowed.read_again()).is_some());
        let admit = |opener: Opener| opener.with_stream_ids(Arc::clone(&allowed));
        Ok(openers.into_iter().map(admit).collect())
    }
}
