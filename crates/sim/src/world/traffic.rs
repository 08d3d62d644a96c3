use punctual_units::Instant;

use super::{TrafficId, World, number};
use crate::agenda::Source;
use crate::error::WorldError;
use crate::packet::{Cargo, IpPacket};
use crate::traffic::{Flow, Progress, Traffic, TrafficConfig, TrafficStatistics};

impl World {
    /// Adds cross traffic.
    ///
    /// # Errors
    ///
    /// It must go over 1 to 255 links, and TCP back over as many; packets have at least 40 bytes,
    /// packets of [`Traffic::Tcp`] 53; rates are less than 1 Tb/s, bursts and pauses last longer
    /// than zero.
    pub fn add_traffic(&mut self, config: TrafficConfig) -> Result<TrafficId, WorldError> {
        config.check()?;
        let route = Some(self.add_route(&config.links)?);
        let back = match config.traffic {
            Traffic::TcpLike { .. } | Traffic::Tcp(_) => Some(self.add_route(&config.back)?),
            Traffic::Constant { .. } | Traffic::OnOff { .. } => None,
        };
        let index = self.traffic.len();
        let start = (Instant::ORIGIN + config.start).max(self.now);
        self.traffic.push(Flow::new(config, [route, back], self.seed, index, start));
        self.agenda.set(Source::Traffic(index), Some(start));
        Ok(TrafficId(number(index)))
    }

    /// The totals of cross traffic so far.
    pub fn traffic_statistics(&self, traffic: TrafficId) -> TrafficStatistics {
        self.traffic[traffic.0 as usize].statistics()
    }

    /// The bytes of a TCP flow that have arrived in order, over time; `None` for other traffic.
    pub fn traffic_progress(&self, traffic: TrafficId) -> Option<&Progress> {
        self.traffic[traffic.0 as usize].progress()
    }

    pub(super) fn run_traffic(&mut self, index: usize) {
        self.traffic[index].handle_timeout(self.now);
        self.drain_traffic(index);
    }

    /// A packet of cross traffic at the end of its route.
    pub(super) fn arrive_traffic(&mut self, index: u32, number: u64, back: bool, damaged: bool) {
        let flow = &mut self.traffic[index as usize];
        if back {
            flow.handle_answer(self.now, number, damaged);
        } else {
            flow.handle_packet(self.now, number, damaged);
        }
        self.drain_traffic(index as usize);
    }

    /// Sends the answers and the packets of a flow that are due.
    fn drain_traffic(&mut self, index: usize) {
        let traffic = number(index);
        while let Some((number, size)) = self.traffic[index].poll_answer(self.now) {
            let Some(route) = self.traffic[index].back else { break };
            let cargo = Cargo::Traffic { traffic, number, back: true };
            self.enter(IpPacket::blank(cargo, route, size));
        }
        while let Some(number) = self.traffic[index].poll_send(self.now) {
            let flow = &self.traffic[index];
            let cargo = Cargo::Traffic { traffic, number, back: false };
            let packet = IpPacket::blank(cargo, flow.route, flow.packet());
            self.enter(packet);
        }
        let next = self.traffic[index].poll_timeout();
        self.agenda.set(Source::Traffic(index), next);
    }
}
