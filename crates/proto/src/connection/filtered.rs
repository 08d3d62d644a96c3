use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{DataHeader, MsgNo};

use super::established::{Established, open};

impl Established {
    /// Takes in a data packet through the filter, which sees it as it came. Whether it may have
    /// moved a timer, or calls for an answer. Kept out of the way of those that have none.
    #[inline(never)]
    pub(super) fn handle_filtered(
        &mut self,
        now: Instant,
        heard_before: Instant,
        header: &DataHeader,
        payload: Bytes,
    ) -> bool {
        let rtt = self.rtt.estimate();
        let Some(filtering) = &mut self.filter else { return false };
        let findings = &mut filtering.findings;
        // Of a packet that may lead astray the filter hears when it is believed.
        if header.msgno == MsgNo::CONTROL || !self.receiver.is_far_ahead(header.seq) {
            filtering.filter.handle(header, &payload, findings);
        }
        filtering.ignored += u64::from(std::mem::take(&mut findings.odd));
        let mut moved = !findings.rebuilt.is_empty() || !findings.lost.is_empty();
        // The packet comes before those that it rebuilt: then the gap that they fill is known.
        if header.msgno == MsgNo::CONTROL {
            self.receiver.handle_filter_packet(payload.len());
        } else {
            let size = payload.len();
            moved |= match open(self.crypt.as_deref(), header, payload) {
                Ok(payload) => self.receiver.handle_data(now, heard_before, header, payload, rtt),
                Err(why) => self.receiver.refuse(now, header, size, why),
            };
        }
        for (header, payload) in findings.rebuilt.drain(..) {
            let size = payload.len();
            match open(self.crypt.as_deref(), &header, payload) {
                Ok(payload) => self.receiver.handle_rebuilt(now, &header, payload, rtt),
                Err(why) => self.receiver.refuse_rebuilt(now, &header, size, why),
            }
        }
        for (first, last) in findings.lost.drain(..) {
            self.receiver.handle_filter_loss(now, first, last, rtt);
        }
        moved
    }
}
