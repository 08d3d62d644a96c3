//! The handshakes of callers in a turn of the driver.

use punctual_io::Datagram;

/// Handshakes that belong to no connection yet. Datagrams of connections are handled first.
///
/// The answer to an induction costs more than its reception: a call of the system for each caller.
/// While a flood of them comes faster than both can be done, most are dropped unread, so that the
/// socket is emptied and no datagram of a connection is lost in it. Callers repeat their requests.
#[derive(Debug)]
pub(crate) struct Handshakes {
    came: Vec<Datagram>,
    /// The inductions that are answered while the socket is not emptied.
    at_once: usize,
    /// Inductions that were answered since the socket was empty.
    answered: usize,
    dropped: u64,
}

impl Handshakes {
    /// For a socket with a receive buffer of this size, in bytes.
    pub(crate) fn new(receive_buffer: usize) -> Self {
        let at_once = receive_buffer / DATAGRAM / 4;
        Self { came: Vec::new(), at_once, answered: 0, dropped: 0 }
    }

    /// The total of dropped inductions.
    pub(crate) const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes the handshakes out of the datagrams that came.
    pub(crate) fn collect(&mut self, came: &mut Vec<Datagram>) {
        self.came.extend(came.extract_if(.., |datagram| is_new_handshake(datagram)));
    }

    /// Passes the handshakes to `take`, of the inductions only a few if the socket was not
    /// `emptied` for the time of many answers.
    pub(crate) fn serve(&mut self, emptied: bool, mut take: impl FnMut(Datagram)) {
        let mut left = match emptied {
            true => usize::MAX,
            false => self.at_once.saturating_sub(self.answered).max(ANSWERED_BEHIND),
        };
        for datagram in self.came.drain(..) {
            if is_induction(&datagram) {
                if left == 0 {
                    self.dropped += 1;
                    continue;
                }
                left -= 1;
                self.answered += 1;
            }
            take(datagram);
        }
        if emptied {
            self.answered = 0;
        }
    }
}

/// The inductions that are answered of each batch of a flood that cannot be answered: enough for
/// callers to come in after a few repetitions.
const ANSWERED_BEHIND: usize = 2;
/// The room that Linux takes for a small datagram, in bytes. While as many inductions are answered
/// as fit into a quarter of the buffer, what comes meanwhile finds room in the rest.
const DATAGRAM: usize = 768;

/// Whether a datagram is a handshake of a caller without a connection: its destination socket ID is
/// 0 (draft section 3).
fn is_new_handshake(datagram: &Datagram) -> bool {
    datagram.payload.get(12..16).is_some_and(|socket| socket == [0; 4])
}

/// Whether a handshake is the first request of a caller (draft sections 3.2 and 3.2.1).
fn is_induction(handshake: &Datagram) -> bool {
    let payload = &handshake.payload;
    payload.starts_with(&[0x80, 0]) && payload.get(36..40).is_some_and(|kind| kind == [0, 0, 0, 1])
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use bytes::Bytes;
    use punctual_units::Instant;

    use super::*;

    /// The content of a datagram of the model.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    enum Content {
        Induction,
        Conclusion,
        Data,
    }

    fn datagram(content: Content) -> Datagram {
        let mut payload = [0; 64];
        match content {
            Content::Induction => (payload[0], payload[39]) = (0x80, 1),
            Content::Conclusion => {
                payload[0] = 0x80;
                payload[36..40].fill(0xFF);
            }
            Content::Data => payload[15] = 9,
        }
        Datagram {
            from: SocketAddr::from(([192, 0, 2, 1], 5_000)),
            to: None,
            arrived: Instant::ORIGIN,
            payload: Bytes::copy_from_slice(&payload),
        }
    }

    /// Datagrams that a model of a flooded port treats in a second.
    #[derive(Debug, Default)]
    struct Treated {
        data: u64,
        lost: u64,
        answered: u64,
        dropped: u64,
    }

    /// A second of a port that receives inductions and, each millisecond, a packet of a stream.
    /// Times are in nanoseconds: one datagram costs `RECEIVE`, an answer costs `ANSWER` more. The
    /// socket holds `ROOM` datagrams.
    fn flooded(inductions: u64, obeys_the_rule: bool) -> Treated {
        let (mut now, mut came, mut treated) = (0, 0, Treated::default());
        let (mut socket, mut handshakes) = (Vec::new(), Handshakes::new(ROOM * DATAGRAM));
        let gap = SECOND / inductions;
        while now < SECOND {
            for at in (came..now / gap).map(|number| number * gap) {
                let streams = at / MILLISECOND != (at + gap) / MILLISECOND;
                let contents = [Content::Induction, Content::Data];
                for &content in &contents[..1 + usize::from(streams)] {
                    if socket.len() < ROOM {
                        socket.push(content);
                    } else {
                        treated.lost += u64::from(content == Content::Data);
                    }
                }
            }
            came = now / gap;
            let batch = socket.len().min(BATCH);
            let emptied = socket.len() < BATCH;
            let mut datagrams: Vec<_> = socket.drain(..batch).map(datagram).collect();
            handshakes.collect(&mut datagrams);
            treated.data += datagrams.len() as u64;
            let mut answers = 0;
            handshakes.serve(emptied || !obeys_the_rule, |_| answers += 1);
            treated.answered += answers;
            now += RECEIVE * (batch as u64).max(1) + ANSWER * answers;
        }
        treated.dropped = handshakes.dropped();
        treated
    }

    #[test]
    fn a_flood_of_inductions_that_can_be_received_costs_a_stream_nothing() {
        let unlimited = flooded(400_000, false);
        assert!(unlimited.lost > 200, "the flood is too large for answers: {unlimited:?}");
        let limited = flooded(400_000, true);
        assert_eq!(limited.lost, 0, "{limited:?}");
        assert!(limited.data >= 998, "{limited:?}");
        assert!(limited.answered > 50_000, "the rest of the time is for answers: {limited:?}");
    }

    #[test]
    fn all_inductions_are_answered_while_there_is_time() {
        let Treated { data, lost, answered, dropped } = flooded(150_000, true);
        assert!(data >= 998 && answered > 149_900, "{data} {answered}");
        assert_eq!((lost, dropped), (0, 0));
    }

    #[test]
    fn callers_that_call_all_at_once_are_answered_at_once() {
        let mut handshakes = Handshakes::new(ROOM * DATAGRAM);
        for burst in 0..3 {
            for batch in (0..ROOM / 4).step_by(BATCH) {
                let mut came = vec![datagram(Content::Induction); BATCH];
                handshakes.collect(&mut came);
                let emptied = batch + BATCH >= ROOM / 4;
                handshakes.serve(emptied, drop);
                assert_eq!(handshakes.dropped(), 0, "burst {burst}");
            }
        }
    }

    #[test]
    fn inductions_are_the_only_handshakes_that_are_dropped() {
        let mut handshakes = Handshakes::new(0);
        let contents = [Content::Induction, Content::Conclusion, Content::Data];
        let mut came: Vec<_> = contents.into_iter().cycle().take(30).map(datagram).collect();
        handshakes.collect(&mut came);
        assert_eq!(came, vec![datagram(Content::Data); 10], "data is no handshake");
        let mut taken = Vec::new();
        handshakes.serve(false, |datagram| taken.push(datagram));
        assert_eq!(handshakes.dropped(), 8);
        let inductions = taken.iter().filter(|datagram| is_induction(datagram)).count();
        assert_eq!((taken.len(), inductions), (12, ANSWERED_BEHIND));
        handshakes.serve(false, |_| panic!("all were handled"));
    }

    const SECOND: u64 = 1_000_000_000;
    const MILLISECOND: u64 = 1_000_000;
    /// As measured on one core: a quarter of the time of a flooded port goes into receiving, and
    /// half into sending.
    const RECEIVE: u64 = 1_600;
    const ANSWER: u64 = 2_600;
    const BATCH: usize = 32;
    const ROOM: usize = 5_000;
}
