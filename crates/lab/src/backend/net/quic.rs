//! Runs over QUIC with real sockets.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use punctual::quic::{
    ClientTls, CongestionControl, Identity, Protocol, QuicConfig, SRT_PROTOCOLS, ServerTls,
    TransportConfig, Trust,
};
use punctual::{Carriage as PortCarriage, PortConfig, now};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::bare_quic::{End, Happened};
use super::{GRACE, arrived, watch, watched};
use crate::backend::quic::control;
use crate::backend::real::{LOOPBACK, SharedArrivals, emulator, of_the_links, send, since};
use crate::numbers::number;
use crate::outcome::Outcome;
use crate::run::{MessageCarriage, Setup};

/// The ports of the listener and of the caller: over QUIC if SRT travels so.
pub(super) fn ports(setup: &Setup) -> Result<[PortConfig; 2], String> {
    if setup.transport.observed != MessageCarriage::SrtOverQuic {
        return Ok([(); 2].map(|()| PortConfig { local: Some(LOOPBACK), ..Default::default() }));
    }
    let transport = transport(setup, CongestionControl::None);
    let (server, client) = tls(SRT_PROTOCOLS)?;
    let (server, client) = (Some(server), Some(client));
    let listening = QuicConfig { server, transport, ..QuicConfig::default() };
    let calling = QuicConfig { client, transport, ..QuicConfig::default() };
    Ok([listening, calling].map(|config| PortConfig {
        local: Some(LOOPBACK),
        carriage: PortCarriage::Quic(Arc::new(config)),
        ..PortConfig::default()
    }))
}

/// The options of QUIC connections; congestion control by default is `default`.
fn transport(setup: &Setup, default: CongestionControl) -> TransportConfig {
    let congestion = setup.transport.congestion.map_or(default, control);
    TransportConfig { congestion, ..TransportConfig::default() }
}

/// A certificate that the listener makes, and the trust of a caller that pins it.
fn tls(protocols: &[Protocol]) -> Result<(ServerTls, ClientTls), String> {
    let wrong = |error: &dyn std::error::Error| format!("a certificate: {error}");
    let identity = Identity::self_signed(&["localhost"]).map_err(|error| wrong(&error))?;
    let trust = Trust::Pinned(identity.hash().ok_or("a certificate: it has none")?);
    Ok((ServerTls::new(identity, protocols), ClientTls::new(trust, protocols)))
}

/// Runs a stream of bare datagrams.
pub(super) async fn run(setup: &Setup) -> Result<Outcome, String> {
    let wrong = |error: io::Error| error.to_string();
    let transport = transport(setup, CongestionControl::Bbr);
    let (server, client) = tls(&[Protocol::Datagrams])?;
    let listener = End::listen(&server, transport).await.map_err(wrong)?;
    let emulator = emulator(setup, listener.local_addr().map_err(wrong)?).await?;
    let measured = SharedArrivals::default();
    let meter = measured.clone();
    let (_nothing, to_send) = mpsc::channel(1);
    let receiving = tokio::spawn(listener.run(to_send, move |happened| {
        if let Happened::Arrived(message) = happened {
            meter.submit(&message, now());
        }
    }));
    let start = now();
    let sender = End::call(emulator.local_addr(), &client, transport).await.map_err(wrong)?;
    let (outgoing, to_send) = mpsc::channel::<Bytes>(WAITING);
    let (connected, is_connected) = oneshot::channel();
    let mut connected = Some(connected);
    let sending = tokio::spawn(sender.run(to_send, move |happened| {
        if let (Happened::Connected, Some(connected)) = (happened, connected.take()) {
            let _ = connected.send(());
        }
    }));
    let is_connected = timeout(GRACE, is_connected).await;
    if is_connected.map_err(|_| "the listener accepted nobody".to_owned())?.is_err() {
        // The end has dropped its sender, and says why it could not go on.
        let ended = sending.await.map_err(|error| error.to_string())?.map_err(wrong);
        return Err(ended.err().unwrap_or_else(|| "the call has ended".to_owned()));
    }
    let connected = since(start);
    let watching = setup.series.map(|period| watch(period, Default::default, measured.clone()));
    let queue = &outgoing;
    let sent = send(setup, now(), |payload| async move { queue.send(payload).await.is_ok() });
    let sent = sent.await?;
    tokio::time::sleep(setup.path.up.config.delay + GRACE).await;
    drop(outgoing);
    let dropped = sending.await.map_err(|error| error.to_string())?.map_err(wrong)?;
    receiving.abort();
    let mut outcome = Outcome { status: Outcome::OK.to_owned(), ..Outcome::default() };
    outcome.set("messagesSent", number(sent));
    outcome.set("byteMessagesSent", number(sent * setup.payload as u64));
    outcome.set("msConnected", connected.as_secs_f64() * 1e3);
    outcome.set("quicDatagramsDropped", number(dropped));
    arrived(&mut outcome, &measured);
    of_the_links(&mut outcome, &emulator.stop().await);
    watched(&mut outcome, setup, watching).await?;
    Ok(outcome)
}

/// Messages that wait for the task that sends them.
const WAITING: usize = 64;
