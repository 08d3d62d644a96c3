//! Options for streams that outlive their connections.

use std::path::PathBuf;

use crate::args::value;

/// Options for streams that outlive their connections.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Streams that are resumed (transtype=stream, with --reconnect)")]
pub(crate) struct SpoolArgs {
    /// Keep up to this many bytes that the receiver has not confirmed in memory. When it is full
    /// and there is no --spool, a source that can wait waits, and messages of UDP and of a live
    /// stream are discarded and counted
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "reconnect",
          value_parser = value::buffer_size)]
    pub(crate) spool_memory: u64,
    /// Keep the bytes that the receiver has not confirmed in this file as well, so that the stream
    /// goes on after this process was killed and is started again. A source that is a file is then
    /// read on from its place. The file is removed when the whole stream is confirmed
    #[arg(long, value_name = "FILE", requires = "reconnect", conflicts_with = "repeat")]
    pub(crate) spool: Option<PathBuf>,
    /// The size of a new --spool file, which is written round and round
    #[arg(long, value_name = "SIZE", default_value = "4GiB", requires = "spool",
          value_parser = value::buffer_size)]
    pub(crate) spool_size: u64,
}
