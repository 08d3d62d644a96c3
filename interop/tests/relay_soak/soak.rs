//! A crowd behind a bad link, and the promises of the relay to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use interop::{Folder, Process, Relay, emulator, free_port, wait_until_bound};
use punctual_stalls::Watch;
use punctual_testbed::{Random, ShownOnPanic};

use crate::crowd::{Crowd, Habits};
use crate::ledger::Ledger;
use crate::relay_watch::{Counters, Held, compare, is_empty};

/// A soak.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) habits: Habits,
    /// The time for which the crowd comes and goes: a quarter of it before the memory is looked at
    /// first.
    pub(crate) time: Duration,
    pub(crate) keep_viewers: Duration,
    /// The time between two hosts that lose power.
    pub(crate) power_cuts: Duration,
}

/// The crowd comes and goes, at first for a shorter time, then for a longer one. After each the
/// relay has to hold what it held before.
///
/// # Panics
///
/// If the relay broke a promise.
pub(crate) fn soak(name: &str, plan: Plan, seed: u64) {
    let line = format!("SOAK_SEED={seed}, {plan:?}");
    println!("{line}");
    let _shown = ShownOnPanic(format!("failed: {line}"));
    let mut soak = Soak::start(name, plan, seed);
    let idle = soak.held();
    soak.round(plan.time / 4, seed);
    let before = soak.settled(idle);
    soak.round(plan.time * 3 / 4, seed.wrapping_add(1));
    let after = soak.settled(idle);
    soak.judge(before, after);
}

struct Soak {
    plan: Plan,
    relay: Relay,
    /// Keeps the link up.
    _emulator: Process,
    address: SocketAddr,
    ledger: Arc<Ledger>,
    counters: Counters,
    random: Random,
    start: Instant,
    power_cuts: u32,
    stalls: Watch,
    /// When the machine had stalled for [`STALL`] or more.
    disturbed: Vec<Instant>,
}

impl Soak {
    fn start(name: &str, plan: Plan, seed: u64) -> Self {
        let folder = Folder::of(name);
        let lines = format!("[defaults]\nkeep-viewers = \"{}s\"\n", plan.keep_viewers.as_secs());
        let relay = Relay::start(&folder, &lines);
        let port = free_port();
        let mut link = emulator(port, relay.port, &LINK);
        link.args(["--seed", &seed.to_string()]);
        let emulator = Process::start("emulator", link, &folder);
        wait_until_bound(port);
        Self {
            plan,
            relay,
            _emulator: emulator,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            ledger: Arc::new(Ledger::new(plan.habits.publishers, plan.keep_viewers)),
            counters: Counters::default(),
            random: Random(seed),
            start: Instant::now(),
            power_cuts: 0,
            stalls: Watch::start(),
            disturbed: Vec::new(),
        }
    }

    /// The crowd comes, goes for this time, holds still while the relay's reports are compared, and
    /// leaves.
    fn round(&mut self, time: Duration, seed: u64) {
        let mut crowd = Crowd::start(self.address, self.plan.habits, &self.ledger, seed);
        let end = Instant::now() + time;
        let mut next_cut = Instant::now() + self.plan.power_cuts;
        let mut next_line = Instant::now();
        while Instant::now() < end {
            thread::sleep(LOOK);
            self.look();
            if Instant::now() >= next_cut {
                next_cut += self.plan.power_cuts;
                let host = crowd.cut_power(&mut self.random);
                self.power_cuts += 1;
                thread::sleep(self.random.millis(1_000));
                crowd.switch_on(host);
            }
            if Instant::now() >= next_line {
                next_line += PROGRESS;
                self.print_progress();
            }
        }
        crowd.hold();
        self.wait_for("the reports do not agree with the callers", |soak| {
            soak.look();
            compare(&soak.relay, &soak.ledger)
        });
        self.print_progress();
        crowd.leave();
    }

    /// Looks at the counters of all streams, and at the machine.
    fn look(&mut self) {
        if self.stalls.longest() >= STALL {
            self.disturbed.push(Instant::now());
        }
        self.stalls.forget();
        for fault in self.counters.note(&self.relay.json("/v1/streams")) {
            self.ledger.fault(fault);
        }
    }

    fn print_progress(&mut self) {
        let (held, totals, streams) = (self.held(), self.ledger.totals(), self.ledger.streams());
        let publishers = streams.iter().filter(|it| it.since.is_some()).count();
        let viewers: u32 = streams.iter().map(|it| it.viewers).sum();
        println!(
            "{:4} s: {publishers} publishers, {viewers} viewers; calls {}, refused {}, unanswered \
             {}, outlasted {}; messages {}, lost {}; {} power cuts; {held}; {} stalls; {} faults",
            self.start.elapsed().as_secs(),
            totals.calls,
            totals.refused,
            totals.unanswered,
            totals.outlasted,
            totals.got.messages,
            totals.got.lost,
            self.power_cuts,
            self.disturbed.len(),
            self.ledger.faults().len(),
        );
    }

    fn held(&mut self) -> Held {
        Held::by(self.relay.process().id())
    }

    /// Waits until the relay has no stream and no connection, and as many descriptors and threads
    /// as at its start. Returns what it holds then.
    fn settled(&mut self, idle: Held) -> Held {
        self.wait_for("the relay does not get empty", |soak| {
            soak.look();
            match is_empty(&soak.relay) {
                true => Ok(()),
                false => Err(soak.relay.json("/v1/connections").to_string()),
            }
        });
        self.wait_for("the relay holds more than at its start", |soak| {
            let held = soak.held();
            match held.descriptors <= idle.descriptors && held.threads <= idle.threads {
                true => Ok(()),
                false => Err(format!("{held}; at its start {idle}")),
            }
        });
        self.held()
    }

    /// Waits until `is_right` finds nothing wrong. After [`SETTLE`] this is a fault.
    fn wait_for(&mut self, fault: &str, is_right: impl Fn(&mut Self) -> Result<(), String>) {
        let deadline = Instant::now() + self.plan.keep_viewers + SETTLE;
        while let Err(text) = is_right(self) {
            if Instant::now() >= deadline {
                return self.ledger.fault(format!("{fault}: {text}"));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Prints the report, and judges.
    fn judge(self, before: Held, after: Held) {
        let (totals, cuts, stalls) = (self.ledger.totals(), self.power_cuts, self.disturbed.len());
        println!(
            "{} calls: {} admitted, {} refused because nobody published, {} without an answer\n\
             {} viewers outlasted their publisher; {cuts} power cuts; {stalls} stalls\n\
             {} messages; {} more were lost on the viewers' links\n\
             {} continuity errors that nothing announced, before those that the relay's own losses \
             explain\n\
             the relay held {before} after the first quarter, and {after} at the end",
            totals.calls,
            totals.admitted,
            totals.refused,
            totals.unanswered,
            totals.outlasted,
            totals.got.messages,
            totals.got.lost,
            totals.got.continuity_errors,
        );
        let (doubtful, certain): (Vec<_>, Vec<_>) =
            self.ledger.faults().into_iter().partition(|(at, _)| self.is_doubtful(*at));
        println!("{} faults beside stalls of the machine, which do not count", doubtful.len());
        let mut certain: Vec<String> = certain.into_iter().map(|it| it.1).collect();
        certain.extend(self.faults_of_the_whole(before, after));
        assert!(certain.is_empty(), "{} faults:\n{}", certain.len(), certain.join("\n"));
    }

    /// Looks at all promises that concern the whole.
    fn faults_of_the_whole(&self, before: Held, after: Held) -> Vec<String> {
        let (totals, mut faults) = (self.ledger.totals(), Vec::new());
        for (number, presence) in (0_u16..).zip(self.ledger.streams()) {
            let lost = self.counters.lost_before(number);
            if presence.errors > BREAKS * lost {
                let errors = presence.errors;
                faults.push(format!(
                    "a viewer of stream {number} got {errors} unmarked continuity errors, where \
                     {lost} packets of the publisher were lost"
                ));
            }
        }
        if after.resident_kb > before.resident_kb * 5 / 4 + SLACK_KB {
            faults.push(format!("memory grew: {before:?}, then {after:?}"));
        }
        // A call that repeats its handshake is one call. Some of those without an answer, and of
        // those whose host lost power meanwhile, were admitted.
        let admitted = self.relay.json("/v1/server")["calls_admitted"].as_u64().unwrap_or(0);
        if !(totals.admitted..=totals.calls - totals.refused).contains(&admitted) {
            faults.push(format!("the relay admitted {admitted} calls, of {totals:?}"));
        }
        faults
    }

    /// Whether a fault that was noticed then says nothing of the relay: a machine that stalls keeps
    /// callers from sending, which then look dead.
    fn is_doubtful(&self, noticed: Instant) -> bool {
        self.disturbed.iter().any(|at| *at + AFTERMATH > noticed && noticed + LOOK * 2 > *at)
    }
}

/// The link between the callers and the relay, each way.
const LINK: [&str; 8] =
    ["--rtt", "300ms", "--loss", "3%", "--max-clients", "8192", "--client-timeout", "10s"];

/// The time between two looks at the relay's counters.
const LOOK: Duration = Duration::from_millis(500);

/// A stall of the machine that disturbs callers: half the time after which a silent one counts as
/// dead.
const STALL: Duration = Duration::from_millis(600);

/// The time for which a stall has consequences: both latencies, and the idle timeout.
const AFTERMATH: Duration = Duration::from_secs(10);

/// The time between two lines.
const PROGRESS: Duration = Duration::from_secs(5);

/// The longest time from the last caller's leaving to the end of its connection, if its shutdown
/// was lost or its host lost power, and of the relay's idle threads.
const SETTLE: Duration = Duration::from_secs(15);

/// The continuity errors behind one lost message, which has packets of three PIDs at most.
const BREAKS: u64 = 3;

/// The memory that a relay may gain between the first round and the second, beside a quarter.
const SLACK_KB: u64 = 4_096;
