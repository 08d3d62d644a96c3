//! Arguments that both programs have.

pub mod value;

use clap::ArgAction;

/// Options for messages on standard error.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Messages")]
pub struct LogArgs {
    /// Print more messages: -v for debug messages, -vv for traces
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print errors only, and no live line
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// The lowest level of messages to print: error, warn, info, debug, trace (also fatal and note,
    /// as in the SRT tools), or a filter as in RUST_LOG
    #[arg(long, global = true, value_name = "LEVEL", alias = "ll")]
    pub loglevel: Option<String>,
    /// An option of srt-xtransmit's; signals are always handled here
    #[arg(long = "handle-sigint", global = true, hide = true)]
    pub _handle_sigint: bool,
}
