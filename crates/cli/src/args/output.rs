//! Options for files that streams are written to.

use crate::endpoint::Existing;

/// Options for files that streams are written to.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Files that are written")]
pub(crate) struct OutputArgs {
    /// Replace a file that exists already, when the first bytes come. Without this and --append
    /// such a file is kept and the command does not start
    #[arg(long, conflicts_with = "append")]
    overwrite: bool,
    /// Write behind the end of a file that exists already
    #[arg(long)]
    append: bool,
}

impl OutputArgs {
    /// How a file is treated that exists already.
    pub(crate) fn existing(self) -> Existing {
        match (self.overwrite, self.append) {
            (true, _) => Existing::Overwrite,
            (false, true) => Existing::Append,
            (false, false) => Existing::Keep,
        }
    }
}
