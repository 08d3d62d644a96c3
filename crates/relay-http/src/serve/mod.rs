//! HTTP on a port: connections in bounded number, with time limits, over TCP or TLS.

mod certificate;
mod limited;
mod places;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::ServiceExt as _;

pub use self::certificate::{Certificate, CertificateError};
use self::limited::Limited;
pub(crate) use self::places::HeldPlace;
use self::places::Places;
use crate::guard::PeerAddress;

/// The limits of a port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most connections at once.
    pub connections: usize,
    /// The most connections at once from one address, except from loopback, where proxies call.
    pub per_address: usize,
    /// The time for a TLS handshake, and for the head of a request, the wait for it included.
    pub head_timeout: Duration,
    /// The time after which a client that takes no bytes is given up.
    pub write_timeout: Duration,
    /// The time that requests have to finish once the port is to close.
    pub grace: Duration,
}

impl Default for Limits {
    /// 1,024 connections, 256 from one address; 30 s for a head, 10 s without taking a byte, and
    /// 2 s at the end.
    fn default() -> Self {
        Self {
            connections: 1_024,
            per_address: 256,
            head_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(10),
            grace: Duration::from_secs(2),
        }
    }
}

/// Serves a port until `stop` is ready and its requests have ended or took too long to end.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    certificate: Option<Certificate>,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let places = Places::new(limits.connections, limits.per_address);
    let (stopping, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = &mut stop => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Such as no free file descriptor: the port stays open for when there is one.
                tracing::warn!("an HTTP connection is not accepted: {error}");
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(place) = places.take(peer.ip()) else { continue };
        let serving = Serving {
            router: router.clone(),
            certificate: certificate.clone(),
            limits,
            stopped: stopped.clone(),
            place: place.into(),
        };
        connections.spawn(async move {
            if let Err(error) = serving.connection(stream, peer).await {
                tracing::debug!("the HTTP connection from {peer} ended: {error}");
            }
        });
    }
    let _ = stopping.send(true);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(limits.grace, all).await;
}

/// The parts of a connection's task.
struct Serving {
    router: Router,
    certificate: Option<Certificate>,
    limits: Limits,
    stopped: watch::Receiver<bool>,
    place: HeldPlace,
}

impl Serving {
    async fn connection(self, stream: TcpStream, peer: SocketAddr) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let stream = Limited::new(stream, self.limits.write_timeout);
        match &self.certificate {
            None => self.http(stream, peer).await,
            Some(certificate) => {
                let handshake = certificate.acceptor().accept(stream);
                let stream = timeout(self.limits.head_timeout, handshake).await??;
                self.http(stream, peer).await
            }
        }
    }

    async fn http(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
    ) -> io::Result<()> {
        let (router, place) = (self.router, self.place);
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(PeerAddress(peer.ip().to_canonical()));
            request.extensions_mut().insert(place.clone());
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.head_timeout)
            .max_buf_size(MOST_HEAD)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(connection);
        loop {
            tokio::select! {
                ended = &mut connection => return ended.map_err(io::Error::other),
                _ = self.stopped.changed() => connection.as_mut().graceful_shutdown(),
            }
            // Once it is to stop, only its end is of interest.
            if *self.stopped.borrow() {
                return connection.await.map_err(io::Error::other);
            }
        }
    }
}

/// The most bytes of a request's head.
const MOST_HEAD: usize = 32 << 10;
