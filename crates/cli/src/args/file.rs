//! `punctual file`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use punctual::Bitrate;
use punctual_units::parse_bytes_in;
use punctual_uri::{Target, Uri};

use crate::args::{StatsArgs, value};

/// Send files and folders over SRT, or receive them
///
/// Two Punctual ends compare the files that are there already: an interrupted transfer goes on
/// where it was, a file that is the same is not sent again, and each file's SHA-256 is checked
/// before the file gets its name. With srt-xtransmit files are sent in its segments, and with
/// srt-file-transmit one file as a stream of bytes (--protocol stream); both send a file that was
/// interrupted again from its start.
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
/// The files of a folder keep their paths below it. A file that cannot be read is named, the rest
/// is sent, and the exit code is 1. Links to files are sent as files; links to folders are not
/// followed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FileSendArgs {
    /// The file or folder
    #[arg(value_name = "SRC")]
    pub(crate) src: PathBuf,
    /// The other end: srt://host:port, or srt://:port to wait for a call. transtype=file is implied
    #[arg(value_name = "DST", value_parser = file_uri)]
    pub(crate) dst: Uri,
    /// The protocol for files [default: Punctual's with another Punctual, else segments; stream if
    /// the URI has messageapi=0]
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<FileProtocol>,
    /// The most bytes in a message
    #[arg(long, value_name = "BYTES", default_value = "1456000", value_parser = segment)]
    pub(crate) segment: usize,
    /// Print the names of the files, and send nothing
    #[arg(long)]
    pub(crate) printout: bool,
    /// Send at this rate at most, such as 20Mbps, headers and retransmissions included; losses do
    /// not lower it (control by delay, with any other end). The URI has policy and minrate for
    /// links that are shared [default: the rate of the link]
    #[arg(long, value_name = "RATE", value_parser = value::rate)]
    pub(crate) targetrate: Option<Bitrate>,
    /// Connect again, or wait for another caller, until everything has arrived; at most once a
    /// second
    #[arg(long)]
    pub(crate) reconnect: bool,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

/// Receive files into a folder
///
/// A file is called `.NAME.part` until it is complete. Nothing is written outside of the folder,
/// whatever paths the sender sends, and links in it are not followed. The command ends when the
/// sender has sent everything.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct FileReceiveArgs {
    /// The other end: srt://:port to wait for a call, or srt://host:port. transtype=file is implied
    #[arg(value_name = "SRC", value_parser = file_uri)]
    pub(crate) src: Uri,
    /// The folder for the files; it is made if there is none
    #[arg(value_name = "DIR")]
    pub(crate) dst: PathBuf,
    /// The protocol for files [default: the sender's]
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<FileProtocol>,
    /// Replace files that exist. Without this they are kept, and new files of the same name are
    /// refused
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// The name of the file that comes as a stream of bytes [default: the caller's stream ID]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Connect again, or wait for another caller, until everything has arrived; at most once a
    /// second
    #[arg(long)]
    pub(crate) reconnect: bool,
    /// An option of srt-xtransmit's; here a message may be as large as the receive buffer
    #[arg(long = "segment", value_name = "BYTES", hide = true, value_parser = segment)]
    _segment: Option<usize>,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

/// The protocol for files.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum FileProtocol {
    /// The one of srt-xtransmit, with every peer: files from their start, without checksums
    Segments,
    /// The one of srt-file-transmit: one file as a stream of bytes, with its name as stream ID
    Stream,
}

/// A URI whose connection carries files in messages, unless its keys ask for something else.
fn file_uri(text: &str) -> Result<Uri, String> {
    let uri = Uri::parse_with(text, &[("transtype", "file"), ("messageapi", "1")]);
    match uri {
        Ok(Uri { target: Target::File(_), .. }) => Err(format!(
            "`{text}` is a file, and here is the place of the other end, like `srt://host:4200`: \
             `file send FILE URI`, `file receive URI FOLDER`"
        )),
        uri => uri.map_err(|error| error.to_string()),
    }
}

fn segment(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes_in(text, 1).map_err(|error| error.to_string())?;
    usize::try_from(bytes)
        .ok()
        .filter(|size| (LEAST_SEGMENT..=LARGEST_SEGMENT).contains(size))
        .ok_or_else(|| format!("`{text}` is not the size of a segment; it must be 8 kB to 32 MB"))
}

/// A segment must hold the longest path.
const LEAST_SEGMENT: usize = 8_000;

/// The largest message that the buffers of a connection for files hold.
const LARGEST_SEGMENT: usize = 32_000_000;

const EXAMPLES: &str = "\
Examples:
  Send a folder; after an interruption the same command goes on where it was:
      punctual file receive 'srt://:4200' incoming
      punctual file send recordings 'srt://host:4200'

  Send with encryption, and try again until everything has arrived:
      punctual file receive 'srt://:4200?passphrase-file=secret' incoming --reconnect
      punctual file send recordings 'srt://host:4200?passphrase-file=secret' --reconnect

  Leave room for others on a link of 50 Mb/s:
      punctual file send recordings 'srt://host:4200' --targetrate 20Mbps

  With srt-xtransmit:
      srt-xtransmit file receive 'srt://:4200' incoming/
      punctual file send recordings 'srt://host:4200'

  With srt-file-transmit:
      srt-file-transmit 'srt://:4200' file://incoming/
      punctual file send clip.ts 'srt://host:4200' --protocol stream";
