//! Calls over loopback in one process, each from a UDP port of its own, that stay connected.

use clap::Args;
use punctual::{Listener, ListenerConfig, Port};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::Result;
use crate::probe::Usage;
use crate::send::{config, port_config};
use crate::traffic::Traffic;

/// Calls of one listener.
#[derive(Args, Clone, Debug)]
pub(crate) struct Calls {
    /// Their number.
    #[arg(long)]
    pub(crate) number: u32,
    /// SRT over QUIC, with a QUIC connection for each call.
    #[arg(long)]
    pub(crate) quic: bool,
    /// UDP port of the listener on 127.0.0.1.
    #[arg(long)]
    pub(crate) port: u16,
}

/// The cost of the calls, both ends together.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct CallsReport {
    pub(crate) cpu_seconds: f64,
    /// Bytes of resident memory.
    pub(crate) resident: u64,
}

impl Calls {
    /// The flags that say this.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--number={}", self.number), format!("--port={}", self.port)];
        flags.extend(self.quic.then(|| "--quic".to_owned()));
        flags
    }
}

/// Makes the calls and prints the report.
pub(crate) fn run(calls: &Calls) -> Result<()> {
    crate::runtime()?.block_on(async {
        let traffic = Traffic { quic: calls.quic, ..Traffic::new(calls.port, 0.0) };
        let listener = Listener::bind_with(ListenerConfig {
            port: port_config(&traffic, calls.port)?,
            connection: config(&traffic)?,
            ..ListenerConfig::default()
        })
        .await?;
        let me = std::process::id();
        // The first calls fill caches and pools.
        let mut sockets = call(&traffic, &listener, WARM_UP).await?;
        let before = Usage::of(me)?;
        sockets.extend(call(&traffic, &listener, calls.number).await?);
        let after = Usage::of(me)?;
        let report = CallsReport {
            cpu_seconds: (after.cpu - before.cpu).as_secs_f64(),
            resident: after.resident.saturating_sub(before.resident),
        };
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    })
}

/// Both ends of this number of new connections.
async fn call(
    traffic: &Traffic,
    listener: &Listener,
    number: u32,
) -> Result<Vec<punctual::Socket>> {
    let mut sockets = Vec::new();
    let mut calls = JoinSet::new();
    for made in 0..number {
        let (port, config) = (port_config(traffic, 0)?, config(traffic)?);
        let remote = (std::net::Ipv4Addr::LOCALHOST, traffic.port).into();
        calls.spawn(async move { Port::bind(port).await?.connect(remote, config).await });
        if made >= AT_ONCE {
            sockets.push(listener.accept().await?);
        }
    }
    for _ in 0..number.min(AT_ONCE) {
        sockets.push(listener.accept().await?);
    }
    while let Some(socket) = calls.join_next().await {
        sockets.push(socket??);
    }
    Ok(sockets)
}

const WARM_UP: u32 = 50;
/// Calls under way at the same time; a QUIC listener answers more with Retry.
const AT_ONCE: u32 = 16;
