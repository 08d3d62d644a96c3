use punctual_proto::{ConnectionId, Statistics};
use punctual_units::Instant;

use super::{StreamId, World};
use crate::agenda::Source;
use crate::stream::bond::{Bond, last_of, state_of};
use crate::stream::{End, LinkOutcome, StreamOutcome, StreamSample};

impl World {
    /// The outcome of a stream so far.
    pub fn outcome(&self, stream: StreamId) -> StreamOutcome {
        let [sender, receiver] = self.both_ends(stream.0 as usize);
        let stream = &self.streams[stream.0 as usize];
        StreamOutcome {
            messages_sent: stream.sending.sent(),
            bytes_sent: stream.sending.sent() * stream.config.payload as u64,
            messages_refused: stream.sending.refused(),
            behind: stream.sending.behind(self.now),
            messages_received: stream.receiving.messages,
            bytes_received: stream.receiving.bytes,
            sender,
            receiver,
            links: stream.bond.as_ref().map(|bond| self.links_of(bond)).unwrap_or_default(),
            switches: stream.bond.as_ref().map_or(0, |it| it.end(End::Sender).group().switches()),
            metrics: stream.receiving.report(),
            latency_us: stream.receiving.latency_us.clone(),
            integrity: stream.receiving.integrity,
            series: stream.series.clone(),
            closed: stream.closed.clone(),
            connected_at: stream.sending.begun().map(|at| at - Instant::ORIGIN),
        }
    }

    pub(super) fn sample_stream(&mut self, index: usize) {
        let [sender, receiver] = self.both_ends(index);
        let stream = &mut self.streams[index];
        let (metrics, late_max) = stream.receiving.end_period();
        stream.series.push(StreamSample {
            at: self.now - stream.start(),
            messages_sent: stream.sending.sent(),
            messages_refused: stream.sending.refused(),
            sender,
            receiver,
            metrics,
            late_max,
        });
        let next = stream.config.series.map(|period| self.now + period);
        self.agenda.set(Source::StreamSample(index), next);
    }

    /// The statistics of the sending and the receiving end.
    fn both_ends(&self, index: usize) -> [Statistics; 2] {
        let stream = &self.streams[index];
        [(End::Sender, stream.from), (End::Receiver, stream.to)].map(|(end, host)| {
            if let Some(bond) = &stream.bond {
                return bond.end(end).group().statistics(self.hosts[host].clock.local(self.now));
            }
            let id = stream.connection(end);
            id.and_then(|id| self.statistics_of(host, id)).unwrap_or_default()
        })
    }

    fn links_of(&self, bond: &Bond) -> Vec<LinkOutcome> {
        let links = bond.links.iter().enumerate();
        let links = links.map(|(link, it)| {
            let [sender, receiver] = [End::Sender, End::Receiver].map(|end| {
                let last = last_of(bond.end(end), link);
                last.and_then(|(_, it)| self.statistics_of(it.host, it.id)).unwrap_or_default()
            });
            let state = state_of(bond.end(End::Sender), link);
            LinkOutcome { state, calls: it.calls, sender, receiver }
        });
        links.collect()
    }

    fn statistics_of(&self, host: usize, id: ConnectionId) -> Option<Statistics> {
        let host = &self.hosts[host];
        host.machine.statistics(host.clock.local(self.now), id)
    }
}
