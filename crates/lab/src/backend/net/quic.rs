//! Runs over QUIC with real sockets.

use std::sync::Arc;

use punctual::quic::{
    ClientTls, CongestionControl, Identity, MESSAGE_PROTOCOLS, Protocol, QuicConfig,
    QuicConnection, QuicListener, SRT_PROTOCOLS, ServerTls, TransportConfig, Trust,
};
use punctual::{Carriage as PortCarriage, PortConfig, now};
use tokio::time::timeout;

use super::{GRACE, arrived, watch, watched};
use crate::backend::Outcome;
use crate::backend::quic::control;
use crate::backend::real::{LOOPBACK, Measured, emulator, of_the_links, send, since};
use crate::numbers::number;
use crate::run::{Carriage, Setup};

/// The ports of the listener and of the caller: over QUIC, with a certificate that the listener
/// makes and the caller pins.
pub(super) fn ports(setup: &Setup) -> Result<[PortConfig; 2], String> {
    let (protocols, congestion): (&[Protocol], _) = match setup.transport.observed {
        Carriage::SrtOverQuic => (SRT_PROTOCOLS, CongestionControl::None),
        Carriage::Quic => (MESSAGE_PROTOCOLS, CongestionControl::Bbr),
        Carriage::Srt | Carriage::Udp => {
            return Ok([(); 2].map(|()| PortConfig { local: Some(LOOPBACK), ..Default::default() }));
        }
    };
    let congestion = setup.transport.congestion.map_or(congestion, control);
    let transport = TransportConfig { congestion, ..TransportConfig::default() };
    let wrong = |error: &dyn std::error::Error| format!("a certificate: {error}");
    let identity = Identity::self_signed(&["localhost"]).map_err(|error| wrong(&error))?;
    let trust = Trust::Pinned(identity.hash().ok_or("a certificate: it has none")?);
    let server = Some(ServerTls::new(identity, protocols));
    // A caller without SRT offers one protocol, which says how messages travel.
    let client = Some(ClientTls::new(
        trust,
        match setup.transport.observed {
            Carriage::Quic => &[Protocol::Datagrams],
            _ => protocols,
        },
    ));
    let listening = QuicConfig { server, transport, ..QuicConfig::default() };
    let calling = QuicConfig { client, transport, ..QuicConfig::default() };
    Ok([listening, calling].map(|config| PortConfig {
        local: Some(LOOPBACK),
        carriage: PortCarriage::Quic(Arc::new(config)),
        ..PortConfig::default()
    }))
}

/// Runs a stream of bare datagrams.
pub(super) async fn run(setup: &Setup) -> Result<Outcome, String> {
    let wrong = |error: punctual::Error| error.to_string();
    let [listening, calling] = ports(setup)?;
    let listener = QuicListener::bind(listening).await.map_err(wrong)?;
    let emulator = emulator(setup, listener.local_addr()).await?;
    let accepting = tokio::spawn(async move { listener.accept().await });
    let start = now();
    let sender = QuicConnection::connect(calling, emulator.local_addr()).await.map_err(wrong)?;
    let connected = since(start);
    let receiver = timeout(GRACE, accepting).await;
    let receiver = receiver.map_err(|_| "the listener accepted nobody".to_owned())?;
    let receiver = receiver.map_err(|error| error.to_string())?.map_err(wrong)?;
    let measured = Measured::default();
    let meter = measured.clone();
    let receiving = tokio::spawn(async move {
        while let Ok(message) = receiver.recv().await {
            meter.submit(&message, now());
        }
    });
    let watching = setup.series.map(|period| watch(period, Default::default, measured.clone()));
    let socket = &sender;
    let sent = send(setup, now(), |payload| async move { socket.send(payload).await.is_ok() });
    let sent = sent.await?;
    let dropped = sender.info().map(|info| info.datagrams_dropped);
    tokio::time::sleep(setup.path.up.config.delay + GRACE).await;
    receiving.abort();
    let mut outcome = Outcome { status: Outcome::OK.to_owned(), ..Outcome::default() };
    outcome.set("messagesSent", number(sent));
    outcome.set("byteMessagesSent", number(sent * setup.payload as u64));
    outcome.set("msConnected", connected.as_secs_f64() * 1e3);
    if let Some(dropped) = dropped {
        outcome.set("quicDatagramsDropped", number(dropped));
    }
    arrived(&mut outcome, &measured);
    of_the_links(&mut outcome, &emulator.stop().await);
    watched(&mut outcome, setup, watching).await?;
    Ok(outcome)
}
