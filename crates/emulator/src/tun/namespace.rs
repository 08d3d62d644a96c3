//! A network namespace with one TUN device, which nothing but open file descriptors keeps alive.

use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::tun::netlink::Netlink;
use crate::tun::{Side, TunError};

/// A network namespace, as the emulator sees it from outside.
///
/// It has no name anywhere in the file system: when the last descriptor of it is closed and the
/// last process in it has ended, it is gone, and its device with it, however that came about.
#[derive(Debug)]
pub(super) struct Namespace {
    handle: File,
    netlink: Netlink,
    device: u32,
}

impl Namespace {
    /// Makes the namespace of one side, and opens its device.
    pub(super) fn create(side: Side, mtu: u16) -> Result<(Self, SyncDevice), TunError> {
        // A thread that has changed its namespace is good for nothing else.
        let thread = thread::Builder::new().name(format!("namespace-{side}"));
        let made = thread.spawn(move || set_up(side, mtu)).map_err(TunError::Thread)?;
        made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The descriptor by which other threads can enter it.
    pub(super) fn entrance(&self) -> io::Result<Entrance> {
        Ok(Entrance(self.handle.try_clone()?))
    }

    /// Packets that its programs sent faster than the emulator read them.
    pub(super) fn overruns(&self) -> u64 {
        self.netlink.dropped(self.device).unwrap_or_else(|error| {
            tracing::debug!("the statistics of a device cannot be read: {error}");
            0
        })
    }
}

/// A way into a namespace.
pub(super) struct Entrance(File);

impl Entrance {
    /// Moves the calling thread, for the rest of its life, into the namespace.
    pub(super) fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }
}

/// Puts the calling thread into a new namespace, and sets that up.
fn set_up(side: Side, mtu: u16) -> Result<(Namespace, SyncDevice), TunError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|error| TunError::namespace(error.into()))?;
    let device = DeviceBuilder::new().name(DEVICE).enable(false).build_sync();
    let device = device.map_err(TunError::device)?;
    let set_up = || {
        device.set_nonblocking(true)?;
        let handle = File::open("/proc/thread-self/ns/net")?;
        let (index, netlink) = (device.if_index()?, Netlink::open()?);
        keep_quiet();
        netlink.set_sizes(index, mtu.into(), QUEUE)?;
        netlink.switch_on(LOOPBACK)?;
        netlink.switch_on(index)?;
        netlink.add_address(index, side.ipv4().into(), 24)?;
        netlink.add_default_route(index, Ipv4Addr::UNSPECIFIED.into())?;
        // A kernel may have no IPv6, nor does a device that takes less than 1280 bytes.
        let ipv6 = netlink.add_address(index, side.ipv6().into(), 64);
        match ipv6.and_then(|()| netlink.add_default_route(index, NO_IPV6)) {
            Ok(()) => {}
            Err(error) => tracing::warn!("no IPv6 on the {side} side: {error}"),
        }
        Ok(Namespace { handle, netlink, device: index })
    };
    let namespace = set_up().map_err(TunError::SetUp)?;
    Ok((namespace, device))
}

/// Keeps the kernel from sending packets by itself: nobody else is on such a link, and they would
/// be counted and lost among those of the programs.
fn keep_quiet() {
    // Neither an automatic address (which is announced) nor a search for routers.
    for (setting, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0")] {
        let path = format!("/proc/sys/net/ipv6/conf/{DEVICE}/{setting}");
        if let Err(error) = fs::write(&path, value) {
            tracing::debug!("{path}: {error}");
        }
    }
}

const NO_IPV6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// The device's name in each namespace.
const DEVICE: &str = "punctual0";

/// The number of the loopback device in any namespace.
const LOOPBACK: u32 = 1;

/// Packets that may wait to be read from the device. Linux gives TUN devices 500, which a burst of
/// TCP overruns within a scheduler's time slice.
const QUEUE: u32 = 10_000;
