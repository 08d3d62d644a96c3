//! The end in good order: on Ctrl-C, on SIGTERM, when the terminal closes, or after a time.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::exit::INTERRUPTED;
use crate::hangup;

pub use punctual_ends::Stop;

/// How far signals have brought this process to its end.
static STAGE: LazyLock<watch::Sender<Stage>> = LazyLock::new(watch::Sender::default);

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, PartialOrd)]
enum Stage {
    /// No signal has come.
    #[default]
    None,
    /// The command ends in good order.
    Ending,
    /// It says goodbye to its peers and ends.
    Hurrying(Instant),
}

/// Whether a signal has asked for the end of the command.
pub fn signalled() -> bool {
    *STAGE.borrow() != Stage::None
}

/// Completes when a further signal asks for the end at once: connections say goodbye to their
/// peers, and nothing else is waited for.
pub async fn hurried() {
    // The sender is never dropped.
    let _ = STAGE.subscribe().wait_for(|stage| matches!(stage, Stage::Hurrying(_))).await;
}

/// Ends on Ctrl-C, on SIGTERM, on SIGHUP if that asks for nothing else, and after `duration` if
/// there is one. After a further signal the connections are only told of the end; a third one ends
/// the program at once. Signals that come together are one: `timeout` sends two.
pub fn on_signals(duration: Option<Duration>) -> Stop {
    let stop = Stop::default();
    let (signals, by_time) = (stop.clone(), stop.clone());
    // Made here, so that a signal that comes before the task runs counts as well.
    let mut ends = StopSignals::to_end();
    let mut hangups = StopSignals::hangups();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = ends.next() => signal(&signals),
                () = hangups.next() => hang_up(&signals).await,
            }
        }
    });
    if let Some(duration) = duration {
        tokio::spawn(async move {
            sleep(duration).await;
            by_time.tell();
            tracing::debug!("the time is over");
        });
    }
    stop
}

fn signal(stop: &Stop) {
    let stage = *STAGE.borrow();
    match Step::after(stop.told_at(), stage, Instant::now()) {
        Step::Nothing => {}
        Step::End => {
            STAGE.send_replace(Stage::Ending);
            stop.interrupt();
            tracing::info!("stopping; a second Ctrl-C ends at once");
        }
        Step::Hurry => {
            STAGE.send_replace(Stage::Hurrying(Instant::now()));
            stop.interrupt();
        }
        Step::Exit => std::process::exit(INTERRUPTED.into()),
    }
}

async fn hang_up(stop: &Stop) {
    match hangup::work() {
        // A shell may send the signal just before its terminal closes.
        true => {
            sleep(TOGETHER).await;
            if hangup::terminal_closed() {
                signal(stop);
            }
        }
        false if hangup::ends() => signal(stop),
        false => {}
    }
}

/// The effect of a signal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Nothing,
    End,
    Hurry,
    Exit,
}

impl Step {
    /// The effect of a signal at `now`, in a command that was told to end at a time.
    fn after(told: Option<Instant>, stage: Stage, now: Instant) -> Self {
        let is_together = |before: Instant| now.saturating_duration_since(before) < TOGETHER;
        match (stage, told) {
            (Stage::None, None) => Self::End,
            (Stage::Hurrying(at), _) if is_together(at) => Self::Nothing,
            (Stage::Hurrying(_), _) => Self::Exit,
            (_, Some(at)) if is_together(at) => match stage {
                Stage::None => Self::End,
                _ => Self::Nothing,
            },
            _ => Self::Hurry,
        }
    }
}

/// Signals of some kinds, from the time at which this is made.
struct StopSignals {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
    #[cfg(not(unix))]
    ctrl_c: bool,
}

impl StopSignals {
    /// Ctrl-C and SIGTERM.
    fn to_end() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::SignalKind;
            Self::of(&[SignalKind::interrupt(), SignalKind::terminate()])
        }
        #[cfg(not(unix))]
        Self { ctrl_c: true }
    }

    /// SIGHUP, if it concerns this command.
    fn hangups() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::SignalKind;
            let kinds = [SignalKind::hangup()];
            Self::of(if hangup::matters() { &kinds } else { &[] })
        }
        #[cfg(not(unix))]
        Self { ctrl_c: false }
    }

    #[cfg(unix)]
    fn of(kinds: &[tokio::signal::unix::SignalKind]) -> Self {
        let signals = kinds.iter().filter_map(|kind| tokio::signal::unix::signal(*kind).ok());
        Self { signals: signals.collect() }
    }

    /// Completes on the next signal; never if the system gives no signals.
    async fn next(&mut self) {
        #[cfg(unix)]
        std::future::poll_fn(|context| {
            let came = self.signals.iter_mut().any(|it| it.poll_recv(context).is_ready());
            if came { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        #[cfg(not(unix))]
        if !self.ctrl_c || tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Signals that follow each other within this time are one.
const TOGETHER: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn signals_that_come_together_are_one_and_later_ones_go_further() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(Step::after(None, Stage::None, start), Step::End);
        assert_eq!(Step::after(Some(start), Stage::Ending, after(299)), Step::Nothing);
        assert_eq!(Step::after(Some(start), Stage::Ending, after(300)), Step::Hurry);
        let hurrying = Stage::Hurrying(after(300));
        assert_eq!(Step::after(Some(start), hurrying, after(599)), Step::Nothing);
        assert_eq!(Step::after(Some(start), hurrying, after(600)), Step::Exit);
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_hurries_a_command_whose_time_is_over() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(Step::after(Some(start), Stage::None, after(1)), Step::End);
        assert_eq!(Step::after(Some(start), Stage::None, after(1_000)), Step::Hurry);
    }
}
