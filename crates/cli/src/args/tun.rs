//! The options of `punctual emulate --tun`.

#![cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "two sides need Linux"))]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::args::value;

/// Two network namespaces instead of a relay.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Two sides instead of a relay (Linux, root)")]
pub(crate) struct TunArgs {
    /// Make two sides, left (10.73.0.1, fd73::1) and right (10.73.0.2, fd73::2), joined by the
    /// link: network namespaces with a TUN device each
    #[arg(long, conflicts_with_all = ["listen", "target"])]
    pub(crate) tun: bool,
    /// Run this command by the shell on the left side; $PUNCTUAL_PEER is the right side's address
    #[arg(long, value_name = "COMMAND", requires = "tun", conflicts_with = "listen")]
    pub(crate) left: Option<OsString>,
    /// Run this command by the shell on the right side; $PUNCTUAL_PEER is the left side's address
    #[arg(long, value_name = "COMMAND", requires = "tun", conflicts_with = "listen")]
    pub(crate) right: Option<OsString>,
    /// The command whose end is the end of the run, if none fails before. A command that still runs
    /// then gets SIGTERM, and SIGKILL after 2 s
    #[arg(long, value_name = "WHO", requires = "tun", default_value = "left", value_enum)]
    until: Until,
    /// Start the left command this time after the right one, so that a server on the right listens
    /// when it is called. The time of the links begins with the left command
    #[arg(long, value_name = "TIME", requires = "tun", default_value = "500ms",
          value_parser = value::milliseconds)]
    pub(crate) left_after: Duration,
    /// Add the output of the left command to a file
    #[arg(long, value_name = "FILE", requires = "left")]
    pub(crate) left_log: Option<PathBuf>,
    /// Add the output of the right command to a file
    #[arg(long, value_name = "FILE", requires = "right")]
    pub(crate) right_log: Option<PathBuf>,
    /// The largest IP packet of the devices, in bytes; less than 1280 allows no IPv6
    #[arg(long, value_name = "BYTES", requires = "tun", default_value = "1500",
          value_parser = clap::value_parser!(u16).range(68..))]
    pub(crate) device_mtu: u16,
}

/// The command whose end is the end of the run.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Until {
    /// The left command; the right one if there is no left one
    Left,
    /// The right command; the left one if there is no right one
    Right,
    /// Whichever ends first
    First,
    /// Both
    Both,
}

impl TunArgs {
    /// The command whose end is the end of the run. If there is only one, it is that one.
    pub(crate) fn until(&self) -> Until {
        match (&self.left, &self.right) {
            (Some(_), Some(_)) => self.until,
            _ => Until::First,
        }
    }
}
