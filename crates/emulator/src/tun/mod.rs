//! Two network namespaces joined by a bad link: any program, any protocol over IP, the kernel's own
//! TCP included.

mod command;
mod error;
mod forward;
mod init;
mod namespace;
mod netlink;
mod side;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use punctual_io::now;
use punctual_netem::LinkProfile;
use punctual_units::Instant;

use crate::realtime::run_before_others;
use crate::report::{DirectionReport, TunReport};
use forward::{Forwarder, ForwarderOrder, bell, ring};
use namespace::Namespace;

pub use command::{Helper, Running, SideCommand};
pub use error::TunError;
pub use init::init;
pub use side::Side;

/// The links of a [`TunEmulator`].
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// The link from the left side to the right. Default perfect.
    pub up: LinkProfile,
    /// The link from the right side to the left. Default perfect.
    pub down: LinkProfile,
    /// The seed of the links' decisions; the link back has the next number. Default 1.
    pub seed: u64,
    /// Bytes of the largest IP packet that the devices take, 68 to 65,535. Default 1500; with less
    /// than 1280 there is no IPv6.
    pub mtu: u16,
}

impl Default for TunConfig {
    fn default() -> Self {
        Self { up: LinkProfile::default(), down: LinkProfile::default(), seed: 1, mtu: 1_500 }
    }
}

/// Two network namespaces, left and right, joined by a [`Link`](punctual_netem::Link) each way, in
/// real time.
///
/// Each side has a device `punctual0` with the addresses of [`Side::ipv4`] and [`Side::ipv6`], a
/// route for everything through it, and its own loopback device. There is no other network, and no
/// process except the ones that are started there ([`spawn`](Self::spawn)) or that
/// [enter](Self::enter).
///
/// The kernel cuts the data of programs into packets of the MTU, with complete checksums, as on a
/// network device without offloads. The links count whole IP packets.
///
/// It works in a separate thread, which runs in real time where the system lets it. When the
/// emulator is dropped, or its process ends in any way, devices and namespaces end with it, and so
/// do the processes that were started there.
///
/// Timelines and traces begin when the emulator starts; [`restart`](Self::restart) begins them
/// anew.
#[derive(Debug)]
pub struct TunEmulator {
    namespaces: [Namespace; 2],
    start: Instant,
    /// Ends the thread when it is gone.
    orders: Option<Sender<ForwarderOrder>>,
    bell: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl TunEmulator {
    /// Makes the two sides and begins to carry packets between them.
    ///
    /// # Errors
    ///
    /// The process lacks the privileges (root, or CAP_SYS_ADMIN and CAP_NET_ADMIN), or the system
    /// the TUN devices.
    pub fn start(config: TunConfig) -> Result<Self, TunError> {
        let (left, left_device) = Namespace::create(Side::Left, config.mtu)?;
        let (right, right_device) = Namespace::create(Side::Right, config.mtu)?;
        let (orders, received) = channel();
        let bell = bell().map_err(TunError::SetUp)?;
        let devices = [left_device, right_device];
        let forwarder = Forwarder::new(config, devices, received, Arc::clone(&bell));
        let thread = thread::Builder::new().name("emulator".to_owned()).spawn(move || {
            run_before_others();
            forwarder.run();
        });
        Ok(Self {
            namespaces: [left, right],
            start: now(),
            orders: Some(orders),
            bell,
            thread: Some(thread.map_err(TunError::Thread)?),
        })
    }

    /// Starts a command on one side.
    ///
    /// # Errors
    ///
    /// The helper cannot be started, or the thread that is to wait for it.
    pub fn spawn(&self, side: Side, command: SideCommand) -> io::Result<Running> {
        command.spawn(side, self.namespace(side))
    }

    /// Moves the calling thread, for the rest of its life, into the network namespace of one side:
    /// the sockets that it opens from now on are there.
    ///
    /// # Errors
    ///
    /// The process has lost its privileges.
    pub fn enter(&self, side: Side) -> io::Result<()> {
        self.namespace(side).entrance()?.enter()
    }

    /// Restarts the links, timelines and statistics included. Packets under way are lost.
    pub fn restart(&mut self) {
        self.start = now();
        self.tell(ForwarderOrder::Restart);
    }

    /// The totals so far.
    pub fn report(&self) -> TunReport {
        let (answer, answered) = sync_channel(1);
        self.tell(ForwarderOrder::Report(answer));
        // Nobody answers only if the thread has failed, and has said so.
        let [up, down] = answered.recv().unwrap_or_default();
        let count = |mut report: DirectionReport, side: Side| {
            report.overruns = self.namespace(side).overruns();
            report
        };
        TunReport {
            elapsed: now() - self.start,
            up: count(up, Side::Left),
            down: count(down, Side::Right),
        }
    }

    /// Ends it, and returns its totals. Packets in the links are lost.
    pub fn stop(self) -> TunReport {
        self.report()
    }

    fn namespace(&self, side: Side) -> &Namespace {
        &self.namespaces[side.place()]
    }

    fn tell(&self, order: ForwarderOrder) {
        if let Some(orders) = &self.orders {
            // As above.
            let _ = orders.send(order);
            ring(&self.bell);
        }
    }
}

impl Drop for TunEmulator {
    /// Waits until the thread has ended, and the devices with it.
    fn drop(&mut self) {
        self.orders = None;
        ring(&self.bell);
        if let Some(thread) = self.thread.take() {
            // A panic has been told on standard error.
            let _ = thread.join();
        }
    }
}

/// Whether this process may make the two sides, and the system can; the error says what to do.
///
/// # Errors
///
/// As [`TunEmulator::start`].
pub fn check_tun() -> Result<(), TunError> {
    Namespace::create(Side::Left, 1_500).map(|_| ())
}
