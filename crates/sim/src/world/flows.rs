//! The cross traffic of a world.

use punctual_units::Instant;

use crate::agenda::Source;
use crate::error::WorldError;
use crate::ground::Ground;
use crate::ids::{TrafficId, number};
use crate::packet::{Cargo, IpPacket};
use crate::traffic::{CrossFlow, Traffic, TrafficConfig};

/// All cross traffic.
#[derive(Debug, Default)]
pub(super) struct Flows(Vec<CrossFlow>);

impl Flows {
    /// Adds cross traffic to the world with this seed.
    pub(super) fn add(
        &mut self,
        config: TrafficConfig,
        seed: u64,
        ground: &mut Ground,
    ) -> Result<TrafficId, WorldError> {
        config.check()?;
        let route = Some(ground.network.add_route(&config.links)?);
        let back = match config.traffic {
            Traffic::TcpLike { .. } | Traffic::Tcp(_) => {
                Some(ground.network.add_route(&config.back)?)
            }
            Traffic::Constant { .. } | Traffic::OnOff { .. } => None,
        };
        let index = self.0.len();
        let start = (Instant::ORIGIN + config.start).max(ground.now());
        self.0.push(CrossFlow::new(config, [route, back], seed, index, start));
        ground.time.set(Source::Traffic(index), Some(start));
        Ok(TrafficId(number(index)))
    }

    /// One flow.
    pub(super) fn get(&self, traffic: TrafficId) -> &CrossFlow {
        &self.0[traffic.0 as usize]
    }

    /// The timer of a flow has fired.
    pub(super) fn run(&mut self, index: usize, ground: &mut Ground) {
        self.0[index].handle_timeout(ground.now());
        self.drain(index, ground);
    }

    /// A packet or an answer of a flow is at the end of its route.
    pub(super) fn arrive(&mut self, packet: &IpPacket, ground: &mut Ground) {
        let Cargo::Traffic { traffic, number, back, .. } = packet.cargo else { return };
        let flow = &mut self.0[traffic as usize];
        if back {
            flow.handle_answer(ground.now(), number, packet.is_damaged());
        } else {
            flow.handle_packet(ground.now(), number, packet.is_damaged());
        }
        self.drain(traffic as usize, ground);
    }

    /// Sends the answers and the packets of a flow that are due.
    fn drain(&mut self, index: usize, ground: &mut Ground) {
        let flow = &mut self.0[index];
        let is_tcp = flow.is_tcp();
        let cargo = |number, back| Cargo::Traffic {
            traffic: crate::ids::number(index),
            number,
            back,
            is_tcp,
        };
        while let Some((number, size)) = flow.poll_answer(ground.now()) {
            let Some(route) = flow.back else { break };
            ground.enter(IpPacket::blank(cargo(number, true), route, size));
        }
        while let Some(number) = flow.poll_send(ground.now()) {
            ground.enter(IpPacket::blank(cargo(number, false), flow.route, flow.packet()));
        }
        ground.time.set(Source::Traffic(index), flow.poll_timeout());
    }
}
