//! `punctual demo`.

use std::path::PathBuf;

/// Compare SRT with bare UDP on a bad mobile link, in under a minute
///
/// Sends a 12-second MPEG-TS clip with picture and sound over an emulated mobile link twice at the
/// same time: over bare UDP and over SRT, with the same losses from the same seed. Checks both
/// transport streams at the other end, and shows the loss, the delay and the jitter of each.
/// Nothing needs to be configured, and everything happens on this machine. Both received files are
/// kept and can be played.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// The folder for the received files, which replace those of an earlier demonstration
    #[arg(long, value_name = "FOLDER", default_value = "punctual-demo")]
    pub(crate) output: PathBuf,
    /// The seed of the link's losses: the same seed gives the same losses
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,
}

const EXAMPLES: &str = "\
Examples:
  punctual demo
  punctual demo --seed 7 --output /tmp/demo      other losses, another folder";
