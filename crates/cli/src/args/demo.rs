//! `punctual demo`.

use std::path::PathBuf;

/// See what SRT does on a bad mobile link, in under a minute
///
/// Sends a 12-second MPEG-TS clip with picture and sound over an emulated mobile link twice at
/// once: over bare UDP and over SRT, with the same losses drawn from the same seed. Checks both
/// transport streams at the far end, and shows what each lost, its delay and its jitter. Nothing to
/// configure; everything happens on this machine. Both received files are kept, to be played.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Where the received files go
    #[arg(long, value_name = "FOLDER", default_value = "punctual-demo")]
    pub(crate) output: PathBuf,
    /// Which losses the link draws; the same seed draws the same
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  punctual demo
  punctual demo --seed 7 --output /tmp/demo      other losses, another folder";
