use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::arrival::{
    assert_arrived_up_to_the_end, assert_arrived_whole, wait_for_silence, wait_for_size,
};
use crate::{Clip, End, Folder, Process, Program, Role, emulator, wait_until_bound};

/// The clip's way from one program to another over some path.
#[derive(Debug)]
pub struct Passage {
    folder: Folder,
    sender: Program,
    sender_role: Role,
    receiver: Program,
    /// Bytes of the clip to wait for.
    part: usize,
}

impl Passage {
    /// A passage in the folder of the test of this name.
    pub fn new(test: &str, sender: Program, sender_role: Role, receiver: Program) -> Self {
        let part = Clip::get().bytes().len();
        Self { folder: Folder::of(test), sender, sender_role, receiver, part }
    }

    /// With the first five seconds of the clip alone, if the sender is fed.
    #[must_use]
    pub fn brief(self) -> Self {
        Self { part: Clip::get().beginning().len(), ..self }
    }

    /// The folder with what was received and all logs.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The command of the sender at this end.
    pub fn sender(&self, end: &End) -> Command {
        self.sender.sender(end, &self.reference())
    }

    /// The command of the receiver at this end, and whether it writes to its standard output.
    pub fn receiver(&self, end: &End) -> (Command, bool) {
        self.receiver.receiver(end, &self.received())
    }

    /// Starts the listener, then the path to it, then the caller; sends the clip and checks the
    /// stream that arrives. `started` sees both programs when they have started.
    ///
    /// # Panics
    ///
    /// If the stream does not arrive.
    pub fn run(
        &self,
        sender: Command,
        receiver: (Command, bool),
        start_path: impl FnOnce() -> Vec<Process>,
        started: impl FnOnce(&Process, &Process),
    ) {
        let start_sender = || Process::start("sender", sender, &self.folder);
        let start_receiver = || self.start_receiver(receiver);
        let (mut sending, mut receiving, _path) = if self.sender_role == Role::Listener {
            let sending = start_sender();
            let path = start_path();
            (sending, start_receiver(), path)
        } else {
            let receiving = start_receiver();
            let path = start_path();
            (start_sender(), receiving, path)
        };
        started(&sending, &receiving);
        if let Some(line) = self.sender.says_when_connected(self.sender_role, true) {
            sending.wait_for_line(line);
        }
        if let Some(line) = self.receiver.says_when_connected(self.sender_role.other(), false) {
            receiving.wait_for_line(line);
        }
        self.send_and_check(&mut sending);
    }

    fn start_receiver(&self, (command, to_stdout): (Command, bool)) -> Process {
        let received = self.received();
        let output = to_stdout.then_some(received.as_path());
        Process::start_with_output("receiver", command, &self.folder, output)
    }

    fn send_and_check(&self, sending: &mut Process) {
        let clip = Clip::get();
        let received = self.received();
        if self.sender.reads_standard_input() {
            let _feed = clip.feed(sending.stdin());
            wait_for_size(&received, self.part, clip.duration() + MARGIN);
            assert_arrived_whole(&received, &clip.bytes()[..self.part]);
        } else {
            sending.wait(clip.duration() + MARGIN);
            wait_for_silence(&received);
            let sent = fs::read(self.reference()).expect("FFmpeg wrote its stream");
            assert_arrived_up_to_the_end(&received, &sent);
        }
    }

    fn received(&self) -> PathBuf {
        self.folder.file("received.ts")
    }

    fn reference(&self) -> PathBuf {
        self.folder.file("reference.ts")
    }
}

/// Starts the link that the streams go over, from the port `from` to the port `to` where somebody
/// is about to listen: 40 ms RTT, and 2 % loss both ways.
pub fn start_link(from: u16, to: u16, mtu: u16, folder: &Folder) -> Process {
    wait_until_bound(to);
    let mtu = mtu.to_string();
    let command = emulator(from, to, &["--rtt", "40ms", "--loss", "2%", "--mtu", &mtu]);
    let link = Process::start("link", command, folder);
    wait_until_bound(from);
    link
}

/// The time by which a busy machine may take longer than the clip lasts.
const MARGIN: Duration = Duration::from_secs(15);
