//! `punctual file`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use punctual_units::parse_bytes_in;
use punctual_uri::Uri;

use crate::args::StatsArgs;

/// Send files and folders over SRT, or receive them
///
/// Two Punctual ends tell each other what is there already: an interrupted transfer goes on where
/// it was, files that are the same are not sent again, and every file's SHA-256 is compared before
/// it gets its name. With srt-xtransmit files go in its segments; with srt-file-transmit one file
/// goes as a stream of bytes (--protocol stream). Those know neither: a file that was interrupted
/// is sent again from its start.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FileArgs {
    #[command(subcommand)]
    pub(crate) command: FileCommand,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum FileCommand {
    Send(FileSendArgs),
    Receive(FileReceiveArgs),
}

/// Send a file, or all files below a folder
///
/// A folder's files keep their places below it. What cannot be read is named, the rest is sent, and
/// the exit code is 1. Links to files are sent as files; links to folders are not followed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FileSendArgs {
    /// The file or folder
    #[arg(value_name = "SRC")]
    pub(crate) src: PathBuf,
    /// Where it goes to: srt://host:port, or srt://:port to wait for a call. transtype=file need
    /// not be said
    #[arg(value_name = "DST", value_parser = file_uri)]
    pub(crate) dst: Uri,
    /// How files travel [default: between Punctual ends what both know, else segments; stream if
    /// the URI says messageapi=0]
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<Protocol>,
    /// Bytes of a message at most
    #[arg(long, value_name = "BYTES", default_value = "1456000", value_parser = segment)]
    pub(crate) segment: usize,
    /// Print the names of the files, and send nothing
    #[arg(long)]
    pub(crate) printout: bool,
    /// Connect, or wait for a caller, again until all is there; at most once a second
    #[arg(long)]
    pub(crate) reconnect: bool,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

/// Receive files into a folder
///
/// A file is called `.NAME.part` until it is whole. Nothing is written outside of the folder,
/// whatever the sender says, and links in it are not followed. The command ends when the sender has
/// sent everything.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FileReceiveArgs {
    /// Where files come from: srt://:port to wait for a call, or srt://host:port. transtype=file
    /// need not be said
    #[arg(value_name = "SRC", value_parser = file_uri)]
    pub(crate) src: Uri,
    /// The folder that they go to; it is made if there is none
    #[arg(value_name = "DIR")]
    pub(crate) dst: PathBuf,
    /// How files travel [default: as the sender sends them]
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<Protocol>,
    /// Replace files that are there; otherwise they are kept, and those of the same name refused
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// The file's name, for a stream of bytes [default: what the caller's stream ID says]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Connect, or wait for a caller, again until all is there; at most once a second
    #[arg(long)]
    pub(crate) reconnect: bool,
    /// As srt-xtransmit has it; here a message may be as large as the receive buffer
    #[arg(long = "segment", value_name = "BYTES", hide = true, value_parser = segment)]
    _segment: Option<usize>,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

/// How files travel.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Protocol {
    /// srt-xtransmit's, with every peer: files from their start, without checksums
    Segments,
    /// srt-file-transmit's: one file as a stream of bytes, its name as stream ID
    Stream,
}

/// A URI whose connection is for files, in messages, unless it says otherwise.
fn file_uri(text: &str) -> Result<Uri, punctual_uri::UriError> {
    Uri::parse_with(text, &[("transtype", "file"), ("messageapi", "1")])
}

fn segment(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes_in(text, 1).map_err(|error| error.to_string())?;
    usize::try_from(bytes)
        .ok()
        .filter(|size| (LEAST_SEGMENT..=LARGEST_SEGMENT).contains(size))
        .ok_or_else(|| format!("`{text}` is no size of a segment; it must be 8 kB to 32 MB"))
}

/// A segment must hold the longest path.
const LEAST_SEGMENT: usize = 8_000;

/// What fits a file's buffers.
const LARGEST_SEGMENT: usize = 32_000_000;

const EXAMPLES: &str = "\
Examples:
  Send a folder; run again after an interruption, it goes on where it was:
      punctual file receive 'srt://:4200' incoming
      punctual file send recordings 'srt://host:4200'

  Keep trying until all is there, encrypted:
      punctual file receive 'srt://:4200?passphrase-file=secret' incoming --reconnect
      punctual file send recordings 'srt://host:4200?passphrase-file=secret' --reconnect

  With srt-xtransmit:
      srt-xtransmit file receive 'srt://:4200' incoming/
      punctual file send recordings 'srt://host:4200'

  With srt-file-transmit:
      srt-file-transmit 'srt://:4200' file://incoming/
      punctual file send clip.ts 'srt://host:4200' --protocol stream";
