//! The values of `[quic]`: a transfer over the model of QUIC.

use std::time::Duration;

use punctual_netem::{LinkConfig, LinkProfile};
use punctual_quic_model::{AckPolicy, Control, LossDetection, Scenario, SenderConfig};
use punctual_rtt::{BuiltInRtt, TimerRule};

use super::setup::Given;
use crate::plan::PlanError;

/// A transfer over the model of QUIC, as `[quic]` of a plan describes it.
#[derive(Clone, Debug)]
pub struct QuicTransfer {
    /// The sending end.
    pub sender: SenderConfig,
    /// Bytes of the object.
    pub object: u64,
    /// When the path begins to swallow packets of more than this many bytes, after the handshake.
    pub mtu_drop: Option<(Duration, usize)>,
    /// The last packets of the object that are lost when they are sent for the first time.
    pub lost_tail: u64,
}

impl QuicTransfer {
    /// The transfer that a plan describes; `None` if it has no `[quic]`.
    pub(super) fn read(given: &Given<'_>) -> Result<Option<Self>, PlanError> {
        if !given.has_any("quic.") {
            return Ok(None);
        }
        let sender = sender(given)?;
        let object = given.count("quic.object")?.unwrap_or(1_000_000);
        if object == 0 || object > MOST_OBJECT {
            let message = format!("`object` must be 1 to {MOST_OBJECT} bytes");
            return Err(given.error("quic.object", message));
        }
        let mtu_drop = match given.text("quic.mtudrop").as_deref() {
            None | Some("none") => None,
            Some(_) => {
                let mtu = given.count("quic.mtuto")?.unwrap_or(1_394);
                let mtu = usize::try_from(mtu).ok().filter(|mtu| *mtu >= sender.base_mtu);
                let wrong = || {
                    let base = sender.base_mtu;
                    given.error("quic.mtuto", format!("`mtuto` must be at least {base} bytes"))
                };
                given
                    .time("quic.mtudrop")?
                    .map(|at| Ok((at, mtu.ok_or_else(wrong)?)))
                    .transpose()?
            }
        };
        let lost_tail = given.count("quic.losttail")?.unwrap_or(0);
        Ok(Some(Self { sender, object, mtu_drop, lost_tail }))
    }

    /// The scenario over these links: `up` is towards the receiver of the object.
    ///
    /// # Errors
    ///
    /// A link has events or a trace, which the model does not follow.
    pub(crate) fn scenario(
        &self,
        up: &LinkProfile,
        down: &LinkProfile,
        seed: u64,
        limit: Duration,
    ) -> Result<Scenario, String> {
        Ok(Scenario {
            sender: self.sender.clone(),
            object: self.object,
            // The model's client is the receiver, so that the object goes down.
            up: steady(down)?,
            down: steady(up)?,
            mtu_drop: self.mtu_drop,
            lost_tail: self.lost_tail,
            seed,
            limit,
        })
    }
}

fn steady(link: &LinkProfile) -> Result<LinkConfig, String> {
    if link.trace.is_some() || link.timeline != Default::default() {
        let message = "the backend `quic-model` has links without events, presets with events, \
                       and traces";
        return Err(message.to_owned());
    }
    Ok(link.config.clone())
}

fn sender(given: &Given<'_>) -> Result<SenderConfig, PlanError> {
    let detections = [LossDetection::Rfc9002, LossDetection::Picoquic2023];
    let detection = given
        .named("quic.detection", &detections.map(|it| (it.name(), it)))?
        .unwrap_or(detections[0]);
    let control = given.named("quic.control", &Control::ALL.map(|it| (it.name(), it)))?;
    let control = control.unwrap_or(Control::NewReno);
    let estimator = given.named("quic.estimator", &BuiltInRtt::ALL.map(|it| (it.name(), it)))?;
    let estimator = estimator.unwrap_or(BuiltInRtt::Rfc9002);
    let timer = given.named("quic.timer", &TIMERS)?.unwrap_or(TimerRule::FourVariances);
    let mut sender = match detection {
        LossDetection::Rfc9002 => SenderConfig { estimator, timer, control, ..Default::default() },
        LossDetection::Picoquic2023 => SenderConfig::picoquic_2023(control, estimator, timer),
    };
    match given.text("quic.acks").as_deref() {
        None => {}
        Some("retuned") => sender.acks = AckPolicy::RETUNED,
        Some("not-retuned") => sender = sender.without_retuned_acks(),
        Some(_) => {
            let packets = given
                .count("quic.acks")
                .ok()
                .flatten()
                .filter(|packets| (1..=1_000).contains(packets));
            let message = "`acks` must be `retuned`, `not-retuned`, or 1 to 1000 packets";
            let packets = packets.ok_or_else(|| given.error("quic.acks", message))?;
            let delay = given.time("quic.ackdelay")?.unwrap_or(Duration::from_millis(25));
            sender.acks = AckPolicy::Every { packets, delay };
        }
    }
    let sizes = [("full", false), ("base", true)];
    sender.probes_at_base_mtu = given.named("quic.probes", &sizes)?.unwrap_or(false);
    match given.text("quic.mtureset").as_deref() {
        None => {}
        Some("never") => sender.timeouts_reset_mtu = None,
        Some(_) => {
            let timeouts =
                given.count("quic.mtureset").ok().flatten().and_then(|it| u32::try_from(it).ok());
            let message = "`mtureset` must be `never` or a number of timeouts in a row";
            let timeouts = timeouts.filter(|timeouts| *timeouts > 0);
            let timeouts = timeouts.ok_or_else(|| given.error("quic.mtureset", message))?;
            sender.timeouts_reset_mtu = Some(timeouts);
        }
    }
    Ok(sender)
}

/// The formulas of the retransmission timer.
const TIMERS: [(&str, TimerRule); 4] = [
    ("4V", TimerRule::FourVariances),
    ("3V", TimerRule::ThreeVariances),
    ("max-lifetime", TimerRule::GreatestOfLifetime),
    ("max-epoch", TimerRule::GreatestOfEpoch),
];

/// Bytes of the largest object: the model keeps a record of each packet.
const MOST_OBJECT: u64 = 1_000_000_000;
