//! Options for files that streams are written to.

use punctual_ends::Existing;

/// Options for files that streams are written to.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Files that are written")]
pub(crate) struct OutputArgs {
    /// Replace a file that exists when the first bytes come. Without --overwrite and --append such
    /// a file is kept, and the command does not start
    #[arg(long, conflicts_with = "append")]
    overwrite: bool,
    /// Append to a file that exists
    #[arg(long)]
    append: bool,
}

impl OutputArgs {
    /// The treatment of a file that exists already.
    pub(crate) fn existing(self) -> Existing {
        match (self.overwrite, self.append) {
            (true, _) => Existing::Overwrite,
            (false, true) => Existing::Append,
            (false, false) => Existing::Keep,
        }
    }
}
