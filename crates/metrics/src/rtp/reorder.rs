use std::collections::VecDeque;

/// Puts packets in the order of their numbers, each of which waits at most until a time of its own
/// for those before it. `T` is a point in time, `P` a packet.
///
/// Packets that come twice, or after others were let past them, are left out. Numbers that jump, as
/// those of a sender that was started again, begin a new stream at the second packet in a row.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T, P> {
    /// The number of the next packet; `None` before the first one.
    next: Option<u16>,
    /// Packets from `next` on. The first place is empty, if there are any.
    waiting: VecDeque<Option<(T, P)>>,
    /// The number that would confirm a jump.
    expected: Option<u16>,
    lost: u64,
    late: u64,
}

impl<T: Copy + Ord, P> ReorderBuffer<T, P> {
    /// No packet has come.
    pub const fn new() -> Self {
        Self { next: None, waiting: VecDeque::new(), expected: None, lost: 0, late: 0 }
    }

    /// Takes in a packet, which may wait `until` then, and hands over those whose turn it is.
    pub fn push(&mut self, number: u16, until: T, packet: P, mut take: impl FnMut(P)) {
        let next = *self.next.get_or_insert(number);
        let ahead = usize::from(number.wrapping_sub(next));
        if ahead < MOST_WAITING {
            self.expected = None;
            self.wait(ahead, until, packet);
            self.take_ready(&mut take);
        } else if usize::from(next.wrapping_sub(number)) <= MOST_LATE {
            self.late += 1;
        } else if self.expected == Some(number) {
            self.restart(&mut take);
            self.lost += 1;
            self.next = Some(number.wrapping_add(1));
            take(packet);
        } else {
            self.expected = Some(number.wrapping_add(1));
        }
    }

    /// Gives up packets for which others wait no longer at `now`, and hands these over.
    pub fn expire(&mut self, now: T, mut take: impl FnMut(P)) {
        while self.deadline().is_some_and(|until| until <= now) {
            self.give_up_first();
            self.take_ready(&mut take);
        }
    }

    /// The time at which to call [`expire`](Self::expire); `None` if no packet waits.
    pub fn deadline(&self) -> Option<T> {
        self.waiting.iter().flatten().map(|(until, _)| *until).min()
    }

    /// Hands over all that waits, and begins a new stream with the next packet.
    pub fn restart(&mut self, mut take: impl FnMut(P)) {
        while !self.waiting.is_empty() {
            self.give_up_first();
            self.take_ready(&mut take);
        }
        (self.next, self.expected) = (None, None);
    }

    /// Packets that did not come, or came too late.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets that came twice or too late, and were left out.
    pub const fn late(&self) -> u64 {
        self.late
    }

    fn wait(&mut self, ahead: usize, until: T, packet: P) {
        while self.waiting.len() <= ahead {
            self.waiting.push_back(None);
        }
        match &mut self.waiting[ahead] {
            Some(_) => self.late += 1,
            place => *place = Some((until, packet)),
        }
    }

    /// Gives up the packets before the first one that waits.
    fn give_up_first(&mut self) {
        while let Some(None) = self.waiting.front() {
            self.lost += 1;
            self.advance();
        }
    }

    fn take_ready(&mut self, take: &mut impl FnMut(P)) {
        while let Some(Some(_)) = self.waiting.front() {
            if let Some((_, packet)) = self.advance() {
                take(packet);
            }
        }
    }

    fn advance(&mut self) -> Option<(T, P)> {
        self.next = self.next.map(|next| next.wrapping_add(1));
        self.waiting.pop_front().flatten()
    }
}

impl<T: Copy + Ord, P> Default for ReorderBuffer<T, P> {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of packets within which others may be missing: at 1316 bytes 0.1 s of 100 Mb/s.
const MOST_WAITING: usize = 1_024;

/// The number of packets by which one may be late (RFC 3550 appendix A.1: MAX_MISORDER).
const MOST_LATE: usize = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The order in which packets come out, each of which waits for ten ticks; one comes in a tick.
    fn order(numbers: &[u16]) -> (Vec<u16>, u64, u64) {
        let (mut reorder, mut out) = (ReorderBuffer::default(), Vec::new());
        for (now, &number) in (0..).zip(numbers) {
            reorder.expire(now, |packet| out.push(packet));
            reorder.push(number, now + 10, number, |packet| out.push(packet));
        }
        reorder.restart(|packet| out.push(packet));
        (out, reorder.lost(), reorder.late())
    }

    #[test]
    fn packets_come_out_in_the_order_of_their_numbers() {
        assert_eq!(order(&[5, 6, 7]), (vec![5, 6, 7], 0, 0));
        assert_eq!(order(&[5, 7, 6, 8]), (vec![5, 6, 7, 8], 0, 0));
        assert_eq!(order(&[65_534, 1, 0, 65_535, 2]), (vec![65_534, 65_535, 0, 1, 2], 0, 0));
        assert_eq!(order(&[5, 5, 6, 5]), (vec![5, 6], 0, 2));
    }

    #[test]
    fn a_packet_is_waited_for_until_a_time_and_then_lost() {
        let mut reorder = ReorderBuffer::default();
        let mut out = Vec::new();
        for number in [1, 3, 4, 6] {
            reorder.push(number, u32::from(number) + 10, number, |packet| out.push(packet));
        }
        assert_eq!((&out, reorder.deadline()), (&vec![1], Some(13)));
        reorder.expire(12, |packet| out.push(packet));
        assert_eq!(out, [1]);
        reorder.expire(13, |packet| out.push(packet));
        assert_eq!((&out, reorder.lost(), reorder.deadline()), (&vec![1, 3, 4], 1, Some(16)));
        reorder.push(2, 20, 2, |packet| out.push(packet));
        reorder.expire(16, |packet| out.push(packet));
        assert_eq!((out, reorder.lost(), reorder.late()), (vec![1, 3, 4, 6], 2, 1));
    }

    #[test]
    fn a_sender_that_was_started_again_begins_a_new_stream() {
        assert_eq!(order(&[5, 6, 40_000, 40_001, 40_002]), (vec![5, 6, 40_001, 40_002], 1, 0));
        assert_eq!(order(&[5, 6, 40_000, 7, 8]), (vec![5, 6, 7, 8], 0, 0), "a stray packet");
    }

    proptest! {
        #[test]
        fn every_packet_comes_out_once_and_what_waits_is_bounded(
            numbers in proptest::collection::vec(prop_oneof![0_u16..300, any::<u16>()], 0..500),
        ) {
            let mut reorder = ReorderBuffer::default();
            let mut out = 0_u64;
            for (now, number) in (0..).zip(&numbers) {
                reorder.push(*number, now + 50, (), |()| out += 1);
                reorder.expire(now, |()| out += 1);
                prop_assert!(reorder.waiting.len() <= MOST_WAITING);
            }
            reorder.restart(|()| out += 1);
            prop_assert!(out + reorder.late() <= numbers.len() as u64);
        }
    }
}
