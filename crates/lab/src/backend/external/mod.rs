//! Other people's programs at both ends, and the emulator between them, in real time.

mod command;
mod options;
mod presets;
mod process;
mod table;

use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual::now;
use tokio::net::UdpSocket;

use crate::backend::Backend;
use crate::backend::net::{arrived, receive_datagrams};
use crate::backend::real::{LOOPBACK, SharedArrivals, emulator, of_the_links, runtime, send};
use crate::numbers::number;
use crate::outcome::Outcome;
use crate::plan::ExternalPrograms;
use crate::run::{RunSpec, RunTransport, Setup};

use command::ProgramPlaces;
use presets::Programs;
use process::Process;

/// Runs two command lines through the emulator, and reads the statistics that they write.
#[derive(Clone, Debug)]
pub struct External {
    programs: Programs,
}

impl External {
    /// The programs that a plan names; `srt-live-transmit` at both ends if it names none.
    ///
    /// # Errors
    ///
    /// A preset that there is not, or a command for one end only.
    pub fn new(written: Option<&ExternalPrograms>) -> Result<Self, String> {
        Ok(Self { programs: Programs::new(written)? })
    }
}

impl Backend for External {
    fn name(&self) -> &'static str {
        "external"
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, String> {
        let setup = &spec.setup;
        super::quic_model::refuse(spec)?;
        super::tcp::refuse(spec)?;
        let is_srt = setup.transport == RunTransport::default();
        if !is_srt || setup.streams > 1 || setup.traffic.is_some() {
            return Err("`external` runs one SRT stream, without cross traffic".to_owned());
        }
        if setup.ramp.is_some() && !self.programs.are_fed() {
            return Err("these programs make their own stream, which has no ramp".to_owned());
        }
        let folder = RunFolder::new()?;
        runtime()?.block_on(run(&self.programs, setup, folder.0.as_path()))
    }
}

async fn run(programs: &Programs, setup: &Setup, folder: &Path) -> Result<Outcome, String> {
    let wrong = |error: std::io::Error| error.to_string();
    let sink = UdpSocket::bind(LOOPBACK).await.map_err(wrong)?;
    let (listening, feed) = (free_port()?, free_port()?);
    let emulator = emulator(setup, SocketAddr::new(LOOPBACK.ip(), listening)).await?;
    let places = |end: &str, port: u16| ProgramPlaces {
        port,
        feed,
        sink: sink.local_addr().map_or(0, |address| address.port()),
        stats: folder.join(format!("{end}.csv")),
    };
    let receiver_places = places("receiver", listening);
    let sender_places = places("sender", emulator.local_addr().port());
    let receiver_words = command::words(&programs.receiver, setup, 1, &receiver_places)?;
    let sender_words = command::words(&programs.sender, setup, 0, &sender_places)?;

    let measured = SharedArrivals::default();
    let receiving = receive_datagrams(sink, measured.clone());
    let mut receiver = Process::start("receiver", &receiver_words, folder)?;
    receiver.until_bound(listening).await?;
    let mut sender = Process::start("sender", &sender_words, folder)?;
    let sent = if programs.are_fed() {
        sender.until_bound(feed).await?;
        tokio::time::sleep(CONNECTING).await;
        feed_it(setup, feed).await?
    } else {
        let most = setup.duration + CONNECTING + GRACE;
        sender.until_end(most).await;
        0
    };
    let latency = setup.sender.peer_latency().max(setup.receiver.receive_latency());
    tokio::time::sleep(latency + SETTLING).await;
    let problem = sender.problem().or_else(|| receiver.problem());
    sender.stop().await;
    tokio::time::sleep(SETTLING).await;
    receiver.stop().await;
    receiving.abort();
    if let Some(problem) = problem {
        return Err(problem);
    }

    let mut outcome = Outcome { status: Outcome::OK.to_owned(), ..Outcome::default() };
    if programs.are_fed() {
        outcome.set("messagesSent", number(sent));
        outcome.set("byteMessagesSent", number(sent * setup.payload as u64));
        arrived(&mut outcome, &measured);
    }
    for (end, places) in [("sender", &sender_places), ("receiver", &receiver_places)] {
        if places.stats.exists() {
            outcome.extend(table::read(end, &places.stats)?);
        }
    }
    of_the_links(&mut outcome, &emulator.stop().await);
    if let Some(status) = failure(programs, &outcome) {
        status.clone_into(&mut outcome.status);
    }
    Ok(outcome)
}

/// Why a run is invalid, though its programs reported no error.
fn failure(programs: &Programs, outcome: &Outcome) -> Option<&'static str> {
    if programs.count() && !outcome.numbers.contains_key("sender.pktSent") {
        return Some("no statistics: the programs did not connect");
    }
    let arrived = outcome.numbers.get("messagesReceived");
    (arrived == Some(&0.0)).then_some("nothing arrived: the programs did not connect")
}

/// Gives the sending program its stream.
async fn feed_it(setup: &Setup, port: u16) -> Result<u64, String> {
    let wrong = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind(LOOPBACK).await.map_err(wrong)?;
    socket.connect((LOOPBACK.ip(), port)).await.map_err(wrong)?;
    let socket = &socket;
    send(setup, now(), |payload| async move {
        let _ = socket.send(&payload).await;
        true
    })
    .await
}

/// A port that nobody has at present.
fn free_port() -> Result<u16, String> {
    let bound = StdSocket::bind(LOOPBACK).and_then(|socket| socket.local_addr());
    bound.map(|address| address.port()).map_err(|error| error.to_string())
}

/// A folder for what programs write, which goes when the run has ended.
struct RunFolder(PathBuf);

impl RunFolder {
    fn new() -> Result<Self, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-lab-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // Files that cannot be removed are in the system's folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Time for programs to call each other.
const CONNECTING: Duration = Duration::from_secs(1);

/// Time for the last messages to arrive, and for statistics to be written.
const SETTLING: Duration = Duration::from_millis(700);

/// A program may run for this much longer than its stream.
const GRACE: Duration = Duration::from_secs(10);

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
