//! `punctual file`: files and folders over SRT. The protocol is that of `punctual_file`.

mod progress;
mod session;

use punctual::{Bitrate, Config, CongestionAlgorithm, Socket, Transmission};
use punctual_file::message::Language;
use punctual_file::{Listing, ReceiveFormat, SendFormat, Store};
use punctual_uri::{Mode, SrtTarget, Target, Uri};

use crate::args::{FileArgs, FileCommand, FileProtocol, FileReceiveArgs, FileSendArgs};
use crate::exit::Failure;
use crate::output::print;
use crate::{uris, written};
use progress::ShownProgress;
use session::{Sessions, Transfer};

/// Runs the command until all files are there.
pub(crate) async fn run(args: Box<FileArgs>, quiet: bool) -> Result<(), Failure> {
    match args.command {
        FileCommand::Send(args) => send(args, quiet).await,
        FileCommand::Receive(args) => receive(args, quiet).await,
    }
}

async fn send(args: FileSendArgs, quiet: bool) -> Result<(), Failure> {
    written::note(&args.src);
    let listing = Listing::of(&args.src).map_err(failure)?;
    if args.printout {
        let names = listing.files.iter().map(|file| format!("{}\n", file.name));
        print(names.collect::<String>())?;
        listing.problems.iter().for_each(|problem| tracing::error!("{problem}"));
        return complete(listing.problems.len() as u64);
    }
    let mut target = srt_target(&args.dst, args.protocol)?;
    if let Some(rate) = args.targetrate {
        target.config = limited(target.config, rate)?;
    }
    if target.config.transmission() == Transmission::Stream {
        name_stream(&mut target, &listing)?;
    } else if args.protocol.is_none() && listing.files.len() == 1 {
        // A caller that asks for a stream of bytes may have the one file so.
        target.config = target.config.with_either_file_mode(target.mode == Mode::Listener);
    }
    let mut sessions = Sessions::new(args.dst.clone(), target, args.reconnect, &args.stats)?;
    let progress = sessions.run(&FileSending { args, listing, quiet }).await?;
    tracing::info!("sent {}", progress.summary());
    complete(progress.problems())
}

/// Sends over one connection after the other.
struct FileSending {
    args: FileSendArgs,
    listing: Listing,
    quiet: bool,
}

impl Transfer for FileSending {
    async fn carry(&self, socket: &Socket) -> Result<ShownProgress, Failure> {
        let Self { args, listing, quiet } = self;
        let progress = ShownProgress::of_sender(listing.size(), socket, *quiet);
        let format = SendFormat { segment: args.segment, language: language(args.protocol) };
        punctual_file::send(socket, listing, format, &progress).await.map_err(failure)?;
        Ok(progress)
    }

    fn abandon(&self, socket: &Socket) {
        punctual_file::abandon(socket);
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self.args.protocol {
            Some(FileProtocol::Stream) => {
                "the other end takes messages: leave --protocol stream out"
            }
            _ => "srt-file-transmit takes one file as a stream of bytes: --protocol stream",
        })
    }
}

async fn receive(args: FileReceiveArgs, quiet: bool) -> Result<(), Failure> {
    let mut target = srt_target(&args.src, args.protocol)?;
    // srt-xtransmit does not ask for order, without which its segments make no file.
    target.config = target.config.with_overtaking(false);
    if args.protocol.is_none() && target.config.transmission() == Transmission::Messages {
        // The sender decides.
        target.config = target.config.with_either_file_mode(true);
    }
    if args.name.is_some() && args.protocol == Some(FileProtocol::Segments) {
        return Err(Failure::usage("--name belongs to --protocol stream"));
    }
    let store = Store::open(&args.dst).map_err(failure)?;
    let store = if args.overwrite { store.replacing() } else { store };
    let mut sessions = Sessions::new(args.src.clone(), target, args.reconnect, &args.stats)?;
    let format = ReceiveFormat { language: language(args.protocol), name: args.name };
    let receiving = FileReceiving { format, store, quiet, reconnects: args.reconnect };
    let progress = sessions.run(&receiving).await?;
    tracing::info!("received {}", progress.summary());
    complete(progress.problems())
}

/// Receives over one connection after the other.
struct FileReceiving {
    format: ReceiveFormat,
    store: Store,
    quiet: bool,
    reconnects: bool,
}

impl Transfer for FileReceiving {
    async fn carry(&self, socket: &Socket) -> Result<ShownProgress, Failure> {
        let progress = ShownProgress::of_receiver(self.quiet);
        punctual_file::receive(socket, &self.store, &self.format, &progress)
            .await
            .map_err(failure)?;
        // Anybody may call: the sender of the files may still come.
        match self.reconnects && progress.files() == 0 {
            true => Err(Failure::runtime("the sender had no files")),
            false => Ok(progress),
        }
    }
}

fn failure(error: punctual_file::Error) -> Failure {
    match error {
        punctual_file::Error::Connection(error) => error.into(),
        error if error.is_unwritable() => Failure::runtime(error.to_string()).unwritable(),
        error => Failure::runtime(error.to_string()),
    }
}

/// The language of messages that an option allows.
fn language(protocol: Option<FileProtocol>) -> Language {
    match protocol {
        Some(FileProtocol::Segments) => Language::Segments,
        Some(FileProtocol::Stream) | None => Language::Punctual,
    }
}

/// The result of a transfer that ran to its end: a failure unless every file is there.
fn complete(problems: u64) -> Result<(), Failure> {
    match problems {
        0 => Ok(()),
        1 => Err(Failure::runtime("1 file was not transferred")),
        count => Err(Failure::runtime(format!("{count} files were not transferred"))),
    }
}

/// The options of a sender with this target rate, which only control by delay knows.
fn limited(config: Config, rate: Bitrate) -> Result<Config, Failure> {
    let config = match config.congestion_algorithm() {
        CongestionAlgorithm::File => {
            return Err(Failure::usage(
                "--targetrate needs control by delay: leave ratecontrol=file out",
            ));
        }
        CongestionAlgorithm::Auto => config.with_congestion_algorithm(CongestionAlgorithm::Delay),
        CongestionAlgorithm::Delay | CongestionAlgorithm::Custom(_) => config,
    };
    Ok(config.with_target_rate(rate))
}

/// The connection that `uri` asks for, with this protocol.
fn srt_target(uri: &Uri, protocol: Option<FileProtocol>) -> Result<SrtTarget, Failure> {
    let Target::Srt(target) = &uri.target else {
        return Err(Failure::usage(format!("`{uri}`: files need SRT, such as `srt://host:4200`")));
    };
    uris::warn_of(uri);
    let mut target = (**target).clone();
    if target.group.is_some() || target.config.group_connect() {
        return Err(Failure::usage(format!("`{uri}`: a group carries live streams only")));
    }
    match (target.config.transmission(), protocol) {
        (Transmission::Live, _) => {
            return Err(Failure::usage(format!("`{uri}`: files need transtype=file")));
        }
        (Transmission::Stream, Some(FileProtocol::Segments)) => {
            return Err(Failure::usage(format!("`{uri}`: segments are messages (messageapi=1)")));
        }
        (_, Some(FileProtocol::Stream)) => {
            target.config = target.config.with_transmission(Transmission::Stream);
        }
        _ => {}
    }
    Ok(target)
}

/// Names the one file that a stream carries by the caller's stream ID, unless the URI has one.
fn name_stream(target: &mut SrtTarget, listing: &Listing) -> Result<(), Failure> {
    let [file] = listing.files.as_slice() else {
        return Err(Failure::usage("a stream of bytes carries one file; a folder needs messages"));
    };
    if target.mode != Mode::Listener && target.config.stream_id().is_empty() {
        let config = target.config.clone().with_stream_id(file.name.name());
        target.config = config.map_err(|error| Failure::usage(error.to_string()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_rate_is_that_of_control_by_delay() {
        let rate = Bitrate::from_mbps(20);
        let config = limited(Config::file(), rate).expect("a rate");
        assert_eq!(config.target_rate(), rate);
        assert_eq!(*config.congestion_algorithm(), CongestionAlgorithm::Delay);
        let file = Config::file().with_congestion_algorithm(CongestionAlgorithm::File);
        let refused = limited(file, rate).expect_err("FileCC has no target rate");
        assert!(refused.is_usage() && refused.to_string().contains("leave ratecontrol=file out"));
    }
}
