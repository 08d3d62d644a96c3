//! The congestion control of a QUIC connection.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};

/// The congestion control of a QUIC connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CongestionControl {
    /// No limit of QUIC's own: the rate is that of the application. Right for SRT, which paces its
    /// packets and limits its rate (`maxbw`, `inputbw`, `oheadbw`): a second control below it would
    /// delay packets that SRT has already paced.
    #[default]
    None,
    /// CUBIC (RFC 9438).
    Cubic,
    /// `NewReno` (RFC 9002, section 7).
    NewReno,
    /// BBR, version 1.
    Bbr,
}

impl CongestionControl {
    pub(crate) fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(CountingFactory(match self {
            Self::None => Arc::new(Unlimited),
            Self::Cubic => Arc::new(CubicConfig::default()),
            Self::NewReno => Arc::new(NewRenoConfig::default()),
            Self::Bbr => Arc::new(BbrConfig::default()),
        }))
    }
}

/// Bytes of the packets that the peer has acknowledged.
pub(crate) fn acknowledged(connection: &quinn_proto::Connection) -> u64 {
    let state = connection.congestion_state().clone_box().into_any();
    state.downcast::<Counting>().map_or(0, |counting| counting.acknowledged)
}

/// The window that quinn reports; `None` if there is no limit.
pub(crate) fn window(reported: u64) -> Option<u64> {
    (reported < WINDOW).then_some(reported)
}

#[derive(Clone)]
struct CountingFactory(Arc<dyn ControllerFactory + Send + Sync>);

impl ControllerFactory for CountingFactory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Counting { inner: self.0.clone().build(now, mtu), acknowledged: 0 })
    }
}

/// A controller that counts the acknowledged bytes, which quinn's statistics lack.
struct Counting {
    inner: Box<dyn Controller>,
    acknowledged: u64,
}

impl Controller for Counting {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.acknowledged += bytes;
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        self.inner.on_congestion_event(now, sent, persistent, lost);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), acknowledged: self.acknowledged })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A controller that never limits. Above 4 GiB of window quinn does not pace either.
#[derive(Clone, Copy, Debug)]
struct Unlimited;

const WINDOW: u64 = 1 << 40;

impl ControllerFactory for Unlimited {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

impl Controller for Unlimited {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
