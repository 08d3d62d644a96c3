//! The times of a driver's turns.

use std::time::Duration;

use punctual_units::Instant;

use crate::bursts::{Bursts, Call};
use crate::deliveries::{Deliveries, GROUP};
use crate::turn_size::TurnSize;

/// Decides when the driver of a port wakes up. It wakes up when something is due; under load, work
/// that is due at nearly the same time is done in one turn, so that load makes batches larger, and
/// the cost of a packet smaller, instead of turns more frequent.
///
/// Turns for which the driver would have to wake up are delayed when there are more than 2,500 of
/// them a second. A stream of 10 Mb/s has a thousand packets a second, so it is on time. Turns that
/// calls of the application cause run in a task that is awake already; they are delayed only beyond
/// 10,000 a second, since a wake-up costs more than several such turns. Messages of faster streams
/// are delivered [together](Deliveries). A [high load](TurnSize) has more turns.
///
/// Another thread than the driver's sends a single message by itself: to wake the driver for it
/// would take longer than to send it. The driver sends the messages of a [burst](Bursts). It waits
/// for the [length](BURST) of a usual one: woken at once, it would send one or two messages,
/// compete with the other calls for the lock of the port, and wake up once more for the messages
/// that they have submitted. Of a long burst, the thread sends each full batch by itself, which
/// costs less than to hand it over.
///
/// Turns at a lower rate happen at their exact time: a quiet driver saves up a few turns for a
/// burst.
///
/// A port with [`coalesce`](crate::PortConfig::coalesce) wakes up at most once in that time, at
/// multiples of it, so that it wakes up together with other tasks that do the same.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Limits the rate of turns for which the driver wakes up.
    wake_ups: Limit,
    /// Limits the rate of turns that calls of the application cause, and of calls that send a
    /// single message by themselves.
    calls: Limit,
    bursts: Bursts,
    deliveries: Deliveries,
    size: TurnSize,
    /// The next turn, unless a datagram causes an earlier one; `None` for never.
    next: Option<Instant>,
    /// The turn that sends the messages of a burst, if that is earlier.
    burst: Option<Instant>,
    /// The instant to which the alarm is set.
    alarm: Option<Instant>,
    /// Whether the UDP socket takes no more datagrams for now.
    blocked: bool,
}

/// The next work of a driver.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Work {
    pub(crate) due: Instant,
    /// Whether it is the delivery of a message.
    pub(crate) is_delivery: bool,
}

/// Limits the rate of turns.
#[derive(Debug)]
struct Limit {
    /// The mean time between turns under load.
    grain: Duration,
    /// Whether delayed turns happen at multiples of the grain.
    on_grid: bool,
    /// The earliest time of the next turn that may be delayed.
    ready: Instant,
}

impl Limit {
    /// A limit of one turn per `grain`, or per `coalesce` if that is longer.
    fn new(grain: Duration, coalesce: Duration) -> Self {
        Self { grain: coalesce.max(grain), on_grid: !coalesce.is_zero(), ready: Instant::default() }
    }

    /// Sets the mean time between turns, unless they happen at the multiples of a fixed one.
    fn set_grain(&mut self, grain: Duration) {
        if !self.on_grid {
            self.grain = grain;
        }
    }

    /// Counts a turn of any cause, or a call that sends, which begins now.
    fn count(&mut self, now: Instant) {
        self.ready = if self.on_grid {
            now.next_multiple_of(self.grain)
        } else {
            let saved = now - SAVED_TURNS * self.grain;
            (self.ready.max(saved) + self.grain).min(now + self.grain)
        };
    }
}

/// The action that follows from a turn or a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DriverAction {
    /// Nothing.
    None,
    /// Set the alarm.
    SetAlarm(Instant),
    /// Wake the driver.
    Wake,
    /// Send what is due on the calling thread.
    Send,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

impl Schedule {
    /// The schedule of a port with this `coalesce` time.
    pub(crate) fn new(coalesce: Duration) -> Self {
        Self {
            wake_ups: Limit::new(WAKE_UP_GRAIN, coalesce),
            calls: Limit::new(CALL_GRAIN, coalesce),
            bursts: Bursts::default(),
            deliveries: Deliveries::new(coalesce),
            size: TurnSize::default(),
            next: None,
            burst: None,
            alarm: None,
            blocked: false,
        }
    }

    /// How long before its time a message may be delivered together with others.
    pub(crate) fn early_delivery(&self) -> Duration {
        self.deliveries.early()
    }

    /// Notes that a turn begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.bursts.turn_begins();
        self.wake_ups.count(now);
        // With `coalesce`, a wake-up does not delay the first call after it.
        if !self.calls.on_grid {
            self.calls.count(now);
        }
    }

    /// Takes note of the bytes that the turn at `now` has received and takes out for sending.
    pub(crate) fn measure(&mut self, now: Instant, bytes: usize) {
        self.size.follow(now, bytes, GROUP);
        self.wake_ups.set_grain(self.size.shorten(WAKE_UP_GRAIN).max(CALL_GRAIN));
    }

    /// Whether datagrams may wait for the next delivery: the load is moderate.
    pub(crate) const fn may_gather(&self) -> bool {
        self.size.is_moderate()
    }

    /// Schedules the next turn as one ends, with `work` as the next work. Returns the action that
    /// causes it.
    pub(crate) fn end(&mut self, now: Instant, work: Option<Work>, blocked: bool) -> DriverAction {
        self.blocked = blocked;
        self.burst = None;
        self.next = work.map(|work| {
            if work.is_delivery {
                self.deliveries.plan(now, work.due, self.wake_ups.ready, &self.size);
            }
            // While the socket takes nothing, datagrams that wait to be sent would make every turn
            // due at once.
            if blocked { work.due.max(now + BLOCKED_GRAIN) } else { self.turn_for(work) }
        });
        self.wake_for_next(now)
    }

    /// Reschedules the next turn after a call between turns, since which `work` is the next work.
    pub(crate) fn advance(&mut self, now: Instant, work: Work) -> DriverAction {
        // A call that makes nothing due now is like any other wake-up. Deliveries become due by
        // themselves.
        match work.due <= now && !work.is_delivery {
            true => self.advance_call(now),
            false => self.bring_forward(now, self.turn_for(work)),
        }
    }

    /// Decides who sends what a call has made due.
    fn advance_call(&mut self, now: Instant) -> DriverAction {
        let call = self.bursts.note_call(now);
        let is_due = self.next.is_some_and(|next| next <= now);
        match call {
            _ if self.blocked => DriverAction::None,
            _ if self.calls.on_grid => {
                let action = self.bring_forward(now, self.calls.ready.max(now));
                if action == DriverAction::Wake {
                    self.calls.count(now);
                }
                action
            }
            Call::EndsBatch => DriverAction::Send,
            Call::Single if !is_due && self.calls.ready <= now => {
                self.calls.count(now);
                DriverAction::Send
            }
            Call::Single | Call::OwnThread => self.bring_forward(now, self.calls.ready.max(now)),
            Call::InBurst => self.collect(now, self.calls.ready.max(now + BURST)),
        }
    }

    /// Lets the next turn be at `due`, if it is not before.
    fn bring_forward(&mut self, now: Instant, due: Instant) -> DriverAction {
        let is_before = |turn: Option<Instant>| turn.is_some_and(|turn| turn <= due);
        if self.blocked || is_before(self.next) || is_before(self.burst) {
            return DriverAction::None;
        }
        self.next = Some(due);
        self.wake_at(now, due)
    }

    /// Lets a turn at `due` send the messages of a burst that are not sent before.
    fn collect(&mut self, now: Instant, due: Instant) -> DriverAction {
        if self.burst.is_some() || self.next.is_some_and(|next| next <= due) {
            return DriverAction::None;
        }
        self.burst = Some(due);
        self.wake_at(now, due)
    }

    /// Reschedules the next turn after the calling thread has taken out all that was due. `work` is
    /// the next work.
    pub(crate) fn sent(&mut self, now: Instant, work: Option<Work>) -> DriverAction {
        self.burst = None;
        let turn = work.map(|work| self.turn_for(work));
        self.next = self.next.into_iter().chain(turn).min();
        self.wake_for_next(now)
    }

    /// The time of a turn for `work`.
    fn turn_for(&self, work: Work) -> Instant {
        let due = work.due.max(self.wake_ups.ready);
        if work.is_delivery { due.max(self.deliveries.held_until()) } else { due }
    }

    /// Causes a turn now, since something happened that must not wait.
    pub(crate) fn hurry(&mut self, now: Instant) -> DriverAction {
        if self.next.is_some_and(|next| next <= now) {
            return DriverAction::None;
        }
        self.next = Some(now);
        DriverAction::Wake
    }

    /// Whether the alarm can remain at `alarm` although the next turn is at `next`. An alarm that
    /// goes off too early costs one turn, once; setting it would cost a system call in each turn
    /// that delays something far in the future, such as a keepalive.
    fn serves(&self, now: Instant, alarm: Instant, next: Instant) -> bool {
        let is_far = alarm > now + NEAR_GRAINS * self.wake_ups.grain;
        now < alarm && (alarm == next || alarm < next && is_far)
    }

    fn wake_for_next(&mut self, now: Instant) -> DriverAction {
        self.next.map_or(DriverAction::None, |next| self.wake_at(now, next))
    }

    fn wake_at(&mut self, now: Instant, next: Instant) -> DriverAction {
        if next <= now {
            DriverAction::Wake
        } else if self.alarm.is_some_and(|alarm| self.serves(now, alarm, next)) {
            DriverAction::None
        } else {
            self.alarm = Some(next);
            DriverAction::SetAlarm(next)
        }
    }
}

/// The mean time between turns under load for which the driver wakes up, and so the longest delay
/// of one.
const WAKE_UP_GRAIN: Duration = Duration::from_micros(400);
/// The mean time between turns under load that calls of the application cause.
const CALL_GRAIN: Duration = Duration::from_micros(100);
/// The time for which the driver waits for the rest of a burst. The 47 messages of a millisecond of
/// 500 Mb/s take less.
const BURST: Duration = Duration::from_micros(50);
/// The number of turns that may follow each other without delay after a quiet time.
const SAVED_TURNS: u32 = 4;
/// An alarm is near if at most this number of turns fits before it.
const NEAR_GRAINS: u32 = 10;
/// The time between attempts to send, in case the system does not report that the socket can be
/// written to.
const BLOCKED_GRAIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn micros(micros: u64) -> Instant {
        Instant::from_micros(1_000_000 + micros)
    }

    fn end(schedule: &mut Schedule, now: Instant, due: Instant) -> DriverAction {
        schedule.begin(now);
        schedule.end(now, work(due), false)
    }

    /// Work other than a delivery.
    fn work(due: Instant) -> Option<Work> {
        Some(Work { due, is_delivery: false })
    }

    fn advance(schedule: &mut Schedule, now: Instant, due: Instant) -> DriverAction {
        schedule.advance(now, Work { due, is_delivery: false })
    }

    #[test]
    fn a_quiet_driver_is_on_time() {
        let mut schedule = Schedule::default();
        for ms in 0..100 {
            let due = micros(1_000 * ms + 10);
            assert_eq!(end(&mut schedule, micros(1_000 * ms), due), DriverAction::SetAlarm(due));
            let due = micros(1_000 * ms + 20);
            assert_eq!(
                end(&mut schedule, micros(1_000 * ms + 10), due),
                DriverAction::SetAlarm(due)
            );
        }
    }

    #[test]
    fn a_distant_alarm_is_not_set_again_for_each_delay() {
        let mut schedule = Schedule::default();
        let keepalive = |ms| micros(1_000 * ms + 1_000_000);
        assert_eq!(
            end(&mut schedule, micros(0), keepalive(0)),
            DriverAction::SetAlarm(keepalive(0))
        );
        for ms in 1..990 {
            assert_eq!(end(&mut schedule, micros(1_000 * ms), keepalive(ms)), DriverAction::None);
        }
        let late = keepalive(0);
        assert_eq!(
            end(&mut schedule, late, keepalive(998)),
            DriverAction::SetAlarm(keepalive(998))
        );
    }

    #[test]
    fn a_near_alarm_is_delayed_instead_of_going_off_too_early() {
        let mut schedule = Schedule::default();
        assert_eq!(end(&mut schedule, micros(0), micros(900)), DriverAction::SetAlarm(micros(900)));
        assert_eq!(end(&mut schedule, micros(500), micros(900)), DriverAction::None);
        assert_eq!(
            end(&mut schedule, micros(600), micros(1_800)),
            DriverAction::SetAlarm(micros(1_800))
        );
    }

    #[test]
    fn a_busy_driver_has_a_turn_every_grain() {
        let mut schedule = Schedule::default();
        let (mut now, mut turns) = (micros(0), 0);
        while now < micros(100_000) {
            turns += 1;
            // Something is due two microseconds after every turn.
            now = match end(&mut schedule, now, now + Duration::from_micros(2)) {
                DriverAction::SetAlarm(at) => at,
                other => panic!("{other:?} at {now}"),
            };
        }
        assert!((250..=250 + SAVED_TURNS).contains(&turns), "{turns} turns in 100 ms");
    }

    #[test]
    fn no_turn_is_delayed_by_more_than_a_grain() {
        let mut schedule = Schedule::default();
        // Datagrams cause turns far more often than the limit.
        for us in 0..1_000 {
            schedule.begin(micros(us));
        }
        let due = micros(1_001);
        assert_eq!(
            schedule.end(micros(999), work(due), false),
            DriverAction::SetAlarm(micros(999) + WAKE_UP_GRAIN)
        );
    }

    #[test]
    fn a_call_wakes_a_sleeping_driver_once() {
        let mut schedule = Schedule::default();
        assert_eq!(
            end(&mut schedule, micros(0), micros(50_000)),
            DriverAction::SetAlarm(micros(50_000))
        );
        assert_eq!(advance(&mut schedule, micros(10_000), micros(60_000)), DriverAction::None);
        assert_eq!(
            advance(&mut schedule, micros(10_000), micros(20_000)),
            DriverAction::SetAlarm(micros(20_000))
        );
        assert_eq!(advance(&mut schedule, micros(10_001), micros(9_000)), DriverAction::Wake);
        assert_eq!(advance(&mut schedule, micros(10_002), micros(9_000)), DriverAction::None);
        assert_eq!(schedule.hurry(micros(10_003)), DriverAction::None);
    }

    #[test]
    fn calls_between_crowded_turns_set_the_alarm_once() {
        let mut schedule = Schedule::default();
        for us in 0..10 {
            schedule.begin(micros(us));
        }
        assert_eq!(schedule.end(micros(9), None, false), DriverAction::None);
        let ready = micros(9) + CALL_GRAIN;
        assert_eq!(advance(&mut schedule, micros(10), micros(10)), DriverAction::SetAlarm(ready));
        assert_eq!(advance(&mut schedule, micros(11), micros(11)), DriverAction::None);
        assert_eq!(schedule.hurry(micros(12)), DriverAction::Wake);
    }

    /// A turn of a driver with a thread of its own, after which nothing is due.
    fn turn_of_another_thread(schedule: &mut Schedule, now: Instant) {
        let turn = || {
            schedule.begin(now);
            schedule.end(now, None, false)
        };
        let action = thread::scope(|scope| scope.spawn(turn).join()).expect("no panic");
        assert_eq!(action, DriverAction::None);
    }

    #[test]
    fn another_thread_sends_single_messages_and_leaves_bursts_to_the_driver() {
        let mut schedule = Schedule::default();
        turn_of_another_thread(&mut schedule, micros(0));
        for message in 1..10 {
            let now = micros(10_000 * message);
            assert_eq!(advance(&mut schedule, now, now), DriverAction::Send);
        }
        for burst in 10..20 {
            let now = micros(10_000 * burst);
            let after = now + Duration::from_micros(50);
            let mut actions = Vec::new();
            (0..10).for_each(|_| actions.push(advance(&mut schedule, now, now)));
            let alarms = actions.iter().filter(|&&action| action == DriverAction::SetAlarm(after));
            assert_eq!(alarms.count(), 1, "{actions:?}");
            let sent = actions.iter().filter(|&&action| action == DriverAction::Send).count();
            assert_eq!(sent, if burst == 10 { 3 } else { 0 });
            turn_of_another_thread(&mut schedule, after);
        }
    }

    #[test]
    fn the_driver_does_not_wake_up_for_a_batch_that_the_thread_has_sent() {
        let mut schedule = Schedule::default();
        turn_of_another_thread(&mut schedule, micros(0));
        let (keepalive, ack) = (micros(1_000_000), micros(205_000));
        let burst = |schedule: &mut Schedule, now: Instant| {
            let calls = (0..100).map(|_| advance(schedule, now, now));
            calls.filter(|action| *action != DriverAction::None).collect::<Vec<_>>()
        };
        burst(&mut schedule, micros(100_000));
        turn_of_another_thread(&mut schedule, micros(100_050));
        let now = micros(200_000);
        assert_eq!(burst(&mut schedule, now)[1..], [DriverAction::Send; 2]);
        assert_eq!(schedule.sent(now, work(ack)), DriverAction::SetAlarm(ack));
        assert_eq!(schedule.sent(now, work(keepalive)), DriverAction::None, "the ACK is still due");
        let after = now + BURST;
        assert_eq!(
            advance(&mut schedule, now, now),
            DriverAction::SetAlarm(after),
            "the next burst"
        );
        assert_eq!(schedule.sent(now, work(keepalive)), DriverAction::SetAlarm(ack));
    }

    #[test]
    fn frequent_single_messages_are_sent_ten_thousand_times_a_second_at_most() {
        let mut schedule = Schedule::default();
        turn_of_another_thread(&mut schedule, micros(0));
        let (mut sent, mut turns, mut turn) = (0, 0, None);
        for call in 0..1_000 {
            let now = micros(1_000 + 60 * call);
            if let Some(at) = turn.take_if(|at| *at <= now) {
                turn_of_another_thread(&mut schedule, at);
                turns += 1;
            }
            match advance(&mut schedule, now, now) {
                DriverAction::Send => sent += 1,
                DriverAction::SetAlarm(at) => turn = Some(at),
                DriverAction::None => assert_ne!(turn, None),
                DriverAction::Wake => panic!("the alarm suffices"),
            }
        }
        assert!((590..=600 + SAVED_TURNS).contains(&(sent + turns)), "{sent} and {turns}");
    }

    #[test]
    fn calls_that_make_nothing_due_leave_a_crowded_alarm_alone() {
        let mut schedule = Schedule::default();
        for us in 0..10 {
            schedule.begin(micros(us));
        }
        let delayed = micros(9) + WAKE_UP_GRAIN;
        let ended = schedule.end(micros(9), work(micros(30)), false);
        assert_eq!(ended, DriverAction::SetAlarm(delayed));
        assert_eq!(advance(&mut schedule, micros(10), micros(30)), DriverAction::None);
    }

    #[test]
    fn a_call_does_not_bring_a_group_of_deliveries_forward() {
        let mut schedule = Schedule::default();
        let delivery = |us| Work { due: micros(us), is_delivery: true };
        let mut turn = |now, due| {
            schedule.begin(micros(now));
            schedule.end(micros(now), Some(delivery(due)), false)
        };
        // Crowded turns, after which messages are delivered together.
        (0..10).for_each(|us| {
            turn(us, us + 10);
        });
        let DriverAction::SetAlarm(group_ends) = turn(10, 20) else {
            panic!("the turn is not delayed")
        };
        // The application takes messages after that of the 20th microsecond is due.
        assert_eq!(schedule.advance(micros(30), delivery(20)), DriverAction::None);
        assert!(group_ends > micros(10) + CALL_GRAIN);
    }

    #[test]
    fn calls_run_at_a_rate_at_which_wake_ups_would_be_delayed() {
        let mut schedule = Schedule::default();
        // 5,000 messages a second, each sent by a task that is awake.
        for message in 0..100 {
            let now = micros(200 * message);
            assert_eq!(advance(&mut schedule, now, now), DriverAction::Wake, "message {message}");
            schedule.begin(now);
            assert_eq!(schedule.end(now, None, false), DriverAction::None);
        }
        let (now, due) = (micros(20_000), micros(20_010));
        schedule.begin(now);
        let ended = schedule.end(now, work(due), false);
        assert_eq!(ended, DriverAction::SetAlarm(now + WAKE_UP_GRAIN));
    }

    #[test]
    fn with_coalesce_wake_ups_come_at_multiples_of_that_time() {
        let coalesce = Duration::from_millis(5);
        let mut schedule = Schedule::new(coalesce);
        let (mut now, mut turns) = (micros(0), 0);
        while now < micros(100_000) {
            turns += 1;
            let due = now + Duration::from_micros(300);
            now = match end(&mut schedule, now, due) {
                DriverAction::SetAlarm(at) => at,
                other => panic!("{other:?} at {now}"),
            };
            assert!(now - due < coalesce);
            assert_eq!(now.as_micros() % 5_000, 0);
        }
        assert_eq!(turns, 20);
        // After a pause, a call is not delayed.
        schedule.begin(now);
        schedule.end(now, None, false);
        assert_eq!(advance(&mut schedule, micros(200_000), micros(200_000)), DriverAction::Wake);
    }

    #[test]
    fn with_coalesce_the_first_call_after_a_wake_up_is_handled_at_once() {
        let mut schedule = Schedule::new(Duration::from_millis(5));
        for tick in 0..20 {
            let now = micros(5_000 * tick + 30);
            schedule.begin(now);
            schedule.end(now, None, false);
            assert_eq!(advance(&mut schedule, now, now), DriverAction::Wake, "tick {tick}");
            schedule.begin(now);
            schedule.end(now, None, false);
            let next = micros(5_000 * tick + 5_000);
            assert_eq!(advance(&mut schedule, now, now), DriverAction::SetAlarm(next));
            schedule.begin(next);
            schedule.end(next, None, false);
        }
    }

    #[test]
    fn a_blocked_driver_does_not_spin() {
        let mut schedule = Schedule::default();
        schedule.begin(micros(0));
        let retry = micros(0) + BLOCKED_GRAIN;
        assert_eq!(schedule.end(micros(0), work(micros(0)), true), DriverAction::SetAlarm(retry));
        assert_eq!(advance(&mut schedule, micros(1), micros(1)), DriverAction::None);
    }
}
