//! `punctual file`: files and folders over SRT.

mod message;
mod path;
mod progress;
mod receive;
mod retry;
mod send;
mod session;
mod source;
mod store;
mod stream;

use punctual::{PeerError, Socket, Transmission};
use punctual_uri::{Mode, SrtTarget, Target, Uri};

use crate::args::{FileArgs, FileCommand, FileReceiveArgs, FileSendArgs, Protocol};
use crate::exit::Failure;
use crate::print::print;
use crate::warnings;
use progress::Progress;
use session::{Sessions, Transfer, hand_over};
use source::Listing;
use store::Store;

/// Runs the command until all files are there.
pub(crate) async fn run(args: Box<FileArgs>, quiet: bool) -> Result<(), Failure> {
    match args.command {
        FileCommand::Send(args) => send(args, quiet).await,
        FileCommand::Receive(args) => receive(args, quiet).await,
    }
}

async fn send(args: FileSendArgs, quiet: bool) -> Result<(), Failure> {
    let listing = Listing::of(&args.src)?;
    if args.printout {
        let names = listing.files.iter().map(|file| format!("{}\n", file.name));
        print(names.collect::<String>())?;
        listing.problems.iter().for_each(|problem| tracing::error!("{problem}"));
        return complete(listing.problems.len() as u64);
    }
    let mut target = srt_target(&args.dst, args.protocol)?;
    if target.config.transmission() == Transmission::Stream {
        name_stream(&mut target, &listing)?;
    } else if args.protocol.is_none() && listing.files.len() == 1 {
        // Whoever calls for the one file may have it as a stream.
        target.config = target.config.with_either_file_mode(target.mode == Mode::Listener);
    }
    let mut sessions = Sessions::new(args.dst.clone(), target, args.reconnect, &args.stats)?;
    let progress = sessions.run(&Sending { args, listing, quiet }).await?;
    tracing::info!("sent {}", progress.summary());
    complete(progress.problems())
}

/// Sending, with one connection or several.
struct Sending {
    args: FileSendArgs,
    listing: Listing,
    quiet: bool,
}

impl Transfer for Sending {
    async fn carry(&self, socket: &Socket) -> Result<Progress, Failure> {
        let carried = self.send(socket).await;
        match (carried, socket.info().peer_error) {
            (_, Some(error)) => {
                Err(Failure::runtime(format!("{error}; it tells why")).unwritable())
            }
            (Err(_), None) if session::has_left(socket).await => Err(session::left()),
            (carried, None) => carried,
        }
    }

    fn give_up(&self, socket: &Socket) {
        // The end of a stream is the end of its file. This says that it is not.
        if is_stream(socket) {
            socket.tell_error(PeerError::FILE);
        }
    }

    fn advice(&self) -> Option<&'static str> {
        Some(match self.args.protocol {
            Some(Protocol::Stream) => "the other end takes messages: leave --protocol stream out",
            _ => "srt-file-transmit takes one file as a stream of bytes: --protocol stream",
        })
    }
}

/// Whether a connection carries one file as a stream of bytes.
fn is_stream(socket: &Socket) -> bool {
    socket.info().transmission == Transmission::Stream
}

impl Sending {
    async fn send(&self, socket: &Socket) -> Result<Progress, Failure> {
        let Self { args, listing, .. } = self;
        let progress = Progress::of_sender(listing.size(), socket, self.quiet);
        listing.problems.iter().for_each(|problem| progress.problem(problem));
        match listing.files.as_slice() {
            [file] if is_stream(socket) => stream::send(socket, file, &progress).await?,
            _ => {
                let plain = args.protocol == Some(Protocol::Segments);
                send::send(socket, listing, args.segment, plain, &progress).await?;
            }
        }
        hand_over(socket).await?;
        Ok(progress)
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
    if args.name.is_some() && args.protocol == Some(Protocol::Segments) {
        return Err(Failure::usage("--name belongs to --protocol stream"));
    }
    let store = Store::open(&args.dst, args.overwrite)?;
    let mut sessions = Sessions::new(args.src.clone(), target, args.reconnect, &args.stats)?;
    let progress = sessions.run(&Receiving { args, store, quiet }).await?;
    tracing::info!("received {}", progress.summary());
    complete(progress.problems())
}

/// Receiving, with one connection or several.
struct Receiving {
    args: FileReceiveArgs,
    store: Store,
    quiet: bool,
}

impl Transfer for Receiving {
    async fn carry(&self, socket: &Socket) -> Result<Progress, Failure> {
        let Self { args, store, .. } = self;
        let progress = Progress::of_receiver(self.quiet);
        if is_stream(socket) {
            stream::receive(socket, store, args.name.as_deref(), &progress).await?;
        } else {
            if let Some(name) = &args.name {
                tracing::warn!("--name {name}: the sender gives its files their names itself");
            }
            let plain = args.protocol == Some(Protocol::Segments);
            receive::receive(socket, store, plain, &progress).await?;
        }
        Ok(progress)
    }
}

/// A transfer that ran to its end is done only if every file is there.
fn complete(problems: u64) -> Result<(), Failure> {
    match problems {
        0 => Ok(()),
        1 => Err(Failure::runtime("1 file is not there")),
        count => Err(Failure::runtime(format!("{count} files are not there"))),
    }
}

/// Where and how `uri` says to connect, for this protocol.
fn srt_target(uri: &Uri, protocol: Option<Protocol>) -> Result<SrtTarget, Failure> {
    let Target::Srt(target) = &uri.target else {
        return Err(Failure::usage(format!("`{uri}`: files go over SRT: `srt://host:4200`")));
    };
    warnings::of(uri);
    let mut target = (**target).clone();
    if target.group.is_some() || target.config.group_connect() {
        return Err(Failure::usage(format!("`{uri}`: a group carries live streams, no files")));
    }
    match (target.config.transmission(), protocol) {
        (Transmission::Live, _) => {
            return Err(Failure::usage(format!("`{uri}`: files need transtype=file")));
        }
        (Transmission::Stream, Some(Protocol::Segments)) => {
            return Err(Failure::usage(format!("`{uri}`: segments are messages (messageapi=1)")));
        }
        (_, Some(Protocol::Stream)) => {
            target.config = target.config.with_transmission(Transmission::Stream);
        }
        _ => {}
    }
    Ok(target)
}

/// A stream is one file. Where nothing else is said, a caller's stream ID is the file's name.
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
