//! Random calls of the C functions, beside a model of what they may do.
//!
//! The input decides on the calls and their arguments: sockets that exist, are gone or never were;
//! any option, address and length; null wherever libsrt checks for it. Buffers are as long as the
//! calls are told, since C's contract requires that. After each call the model checks its result,
//! its error, and the state of each socket.

#![expect(unsafe_code, reason = "the functions are C's")]
#![expect(clippy::disallowed_types, reason = "hooks run on other threads, and sockets are real")]
#![expect(clippy::cast_possible_truncation, reason = "random numbers are cut to their useful bits")]

mod addresses;
mod connecting;
mod data;
mod faults;
mod files;
mod groups;
mod hooks;
mod input;
mod options;
mod pairs;
mod sets;
mod sockets;
mod states;
mod texts;
mod verdict;

use std::ffi::c_void;
use std::net::SocketAddr;
use std::sync::Once;

use self::input::Input;
use self::sets::Descriptors;
use self::states::{CLOSED, NONEXISTENT, States};

/// The most calls of one input: each may wait for some milliseconds.
const MOST_STEPS: usize = 96;
/// The most sockets that are open at once.
const MOST_SOCKETS: usize = 20;

/// Counts what the calls have led to: a model that never connects would find little.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reached {
    /// Connections that were accepted.
    pub accepted: u32,
    /// Groups that were accepted.
    pub accepted_groups: u32,
    /// Messages that were sent.
    pub sent: u32,
    /// Messages that were received.
    pub received: u32,
    /// Events that were reported.
    pub reported: u32,
}

/// Makes the calls that the input describes.
///
/// # Panics
///
/// A call broke a promise.
pub fn run(input: &[u8]) -> Reached {
    faults::watch();
    let mut world = World::new();
    let mut input = Input(input);
    for _ in 0..MOST_STEPS {
        let Some(step) = input.next() else { break };
        world.step(step, &mut input);
        world.observe();
        faults::assert_none();
    }
    world.end();
    faults::assert_none();
    world.reached
}

/// A socket, a group or a link that the model knows.
#[derive(Clone, Copy, Debug)]
struct Known {
    id: i32,
    possible: States,
    /// Whether a hook may close it at any time.
    may_be_closed: bool,
    is_link: bool,
}

struct World {
    sockets: Vec<Known>,
    /// Numbers of sockets that are forgotten.
    gone: Vec<i32>,
    sets: Vec<i32>,
    gone_sets: Vec<i32>,
    /// Options of links.
    configs: Vec<*mut c_void>,
    /// The addresses of bound sockets.
    bound: Vec<SocketAddr>,
    descriptors: Descriptors,
    reached: Reached,
}

impl World {
    fn new() -> Self {
        static QUIET: Once = Once::new();
        // Refused callers are logged, and there are many.
        QUIET.call_once(|| punctual_srt::log::srt_setloglevel(0));
        verdict::begin();
        let started = punctual_srt::startup::srt_startup();
        verdict::judge("srt_startup", started, &[]);
        Self {
            sockets: Vec::new(),
            gone: Vec::new(),
            sets: Vec::new(),
            gone_sets: Vec::new(),
            configs: Vec::new(),
            bound: Vec::new(),
            descriptors: Descriptors::new(),
            reached: Reached::default(),
        }
    }

    fn step(&mut self, step: u8, input: &mut Input<'_>) {
        match step % 48 {
            0 | 1 => self.create(input),
            2..=4 => self.bind(input),
            5 | 6 => self.listen(input),
            7..=9 => self.connect(input),
            10 => self.meet(input),
            11 | 12 => self.accept(input),
            13 => self.accept_of_several(input),
            14..=17 => self.send(input),
            18..=21 => self.receive(input),
            22..=24 => self.set_option(input),
            25 | 26 => self.read_option(input),
            27 | 28 => self.close(input),
            29 => self.read_names(input),
            30 | 31 => self.make_set(input),
            32 | 33 => self.subscribe(input),
            34 | 35 => self.wait(input),
            36 => self.use_descriptor(input),
            37 => self.create_group(input),
            38 => self.connect_group(input),
            39 => self.read_group(input),
            40 => self.set_hook(input),
            41 => self.read_statistics(input),
            42 => self.read_texts(input),
            43 => self.use_file(input),
            44 => self.restart(input),
            45 => self.configure_link(input),
            _ => self.pair(input),
        }
    }

    /// A number of a socket: known, gone, or any.
    fn number(&self, input: &mut Input<'_>) -> i32 {
        let choice = usize::from(input.byte());
        match choice {
            0..=223 if !self.sockets.is_empty() => self.sockets[choice % self.sockets.len()].id,
            224..=239 if !self.gone.is_empty() => self.gone[choice % self.gone.len()],
            _ => match input.byte() {
                0..=40 => 0,
                41..=80 => -1,
                81..=100 => i32::MIN,
                101..=120 => i32::MAX,
                121..=150 => 1 << 30,
                _ => input.i32(),
            },
        }
    }

    fn known(&mut self, id: i32) -> Option<&mut Known> {
        self.sockets.iter_mut().find(|known| known.id == id)
    }

    /// The states that a socket may have. There is no socket with a number that the model does not
    /// know.
    fn possible(&self, id: i32) -> States {
        let known = self.sockets.iter().find(|known| known.id == id);
        known.map_or(States::of(&[NONEXISTENT]), |known| {
            let states = known.possible.later();
            if known.may_be_closed { states.or(States::closed()) } else { states }
        })
    }

    /// Whether there is certainly no open socket with this number.
    fn is_gone(&self, id: i32) -> bool {
        self.possible(id).are_among(&[CLOSED, NONEXISTENT])
    }

    /// Notes what is possible after a call that succeeded.
    fn becomes(&mut self, id: i32, possible: States) {
        if let Some(known) = self.known(id) {
            known.possible = possible;
        }
    }

    /// Notes what is possible in addition.
    fn may_become(&mut self, id: i32, states: States) {
        if let Some(known) = self.known(id) {
            known.possible = known.possible.or(states);
        }
    }

    fn add(&mut self, id: i32, possible: States) {
        assert!(id > 0, "a socket has the number {id}");
        assert!(self.known(id).is_none(), "two sockets have the number {id}");
        self.sockets.push(Known { id, possible, may_be_closed: false, is_link: false });
    }

    /// Reads the state of each socket, and compares it with the model.
    fn observe(&mut self) {
        for index in 0..self.sockets.len() {
            let Known { id, is_link, .. } = self.sockets[index];
            let possible = self.possible(id);
            let state = punctual_srt::sockets::srt_getsockstate(id);
            if is_link {
                assert!((1..=NONEXISTENT).contains(&state), "link {id} has the state {state}");
                continue;
            }
            assert!(possible.has(state), "{id} has the state {state}, possible are {possible:?}");
            self.sockets[index].possible = States::of(&[state]);
        }
        let Self { sockets, gone, .. } = self;
        sockets.retain(|known| {
            let is_gone = !known.is_link && known.possible.are_among(&[NONEXISTENT]);
            if is_gone {
                gone.push(known.id);
            }
            !is_gone
        });
    }

    /// Ends the library. Every number is of no socket then.
    fn end(&mut self) {
        for config in self.configs.drain(..) {
            // SAFETY: it comes from `srt_create_config`, and is used nowhere else.
            unsafe { punctual_srt::groups::srt_delete_config(config) };
        }
        self.shut_down();
    }

    /// Takes back every start, and forgets what the library has forgotten.
    fn shut_down(&mut self) {
        // Starts are counted, and the restart of the library makes one more.
        for _ in 0..2 {
            assert_eq!(punctual_srt::startup::srt_cleanup(), 0);
        }
        for known in self.sockets.drain(..) {
            let state = punctual_srt::sockets::srt_getsockstate(known.id);
            assert_eq!(state, NONEXISTENT, "{} after the end", known.id);
            self.gone.push(known.id);
        }
        self.gone_sets.append(&mut self.sets);
        self.bound.clear();
    }
}
