//! The end in good order: on Ctrl-C, on SIGTERM, when the terminal closes, or after a time.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::exit::{Failure, INTERRUPTED};
use crate::hangup;

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

/// Completes when a signal has asked for the end, and this time has passed with it.
pub async fn signalled_for(time: Duration) {
    let _ = STAGE.subscribe().wait_for(|stage| *stage != Stage::None).await;
    sleep(time).await;
}

/// The end of a stream, whose failure is only logged if a signal has ended the command: what was on
/// its way is then lost by intention.
pub fn judge(ended: Result<(), Failure>) -> Result<(), Failure> {
    match ended {
        Err(failure) if signalled() => {
            tracing::warn!("{failure}");
            Ok(())
        }
        ended => ended,
    }
}

/// Tells all parts of a command when it is time to end.
#[derive(Clone, Debug)]
pub struct Stop {
    told: watch::Receiver<Option<Instant>>,
    teller: Arc<watch::Sender<Option<Instant>>>,
}

impl Stop {
    /// Ends on Ctrl-C, on SIGTERM, on SIGHUP if that asks for nothing else, and after `duration` if
    /// there is one. After a further signal the connections are only told of the end; a third one
    /// ends the program at once. Signals that come together are one: `timeout` sends two.
    pub fn on_signals(duration: Option<Duration>) -> Self {
        let (teller, told) = watch::channel(None);
        let stop = Self { told, teller: Arc::new(teller) };
        let (signals, by_time) = (stop.clone(), stop.clone());
        // Made here, so that a signal that comes before the task runs counts as well.
        let mut ends = Signals::to_end();
        let mut hangups = Signals::hangups();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = ends.next() => signals.signal(),
                    () = hangups.next() => signals.hang_up().await,
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

    /// Tells all parts that it is time to end.
    pub fn tell(&self) {
        self.teller.send_if_modified(|told| {
            let is_new = told.is_none();
            told.get_or_insert_with(Instant::now);
            is_new
        });
    }

    /// Completes when it is time to end.
    pub async fn told(&self) {
        // An error would mean that the sender is gone, but `self` holds it.
        let _ = self.told.clone().wait_for(Option::is_some).await;
    }

    /// Whether it is time to end.
    pub fn is_told(&self) -> bool {
        self.told.borrow().is_some()
    }

    /// The result of `work`, or `None` if it is time to end first.
    pub async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = work => Some(result),
            () = self.told() => None,
        }
    }

    fn signal(&self) {
        let (told, stage) = (*self.told.borrow(), *STAGE.borrow());
        match Step::after(told, stage, Instant::now()) {
            Step::Nothing => {}
            Step::End => {
                STAGE.send_replace(Stage::Ending);
                self.tell();
                tracing::info!("stopping; a second Ctrl-C ends at once");
            }
            Step::Hurry => {
                STAGE.send_replace(Stage::Hurrying(Instant::now()));
                self.tell();
            }
            Step::Exit => std::process::exit(INTERRUPTED.into()),
        }
    }

    async fn hang_up(&self) {
        match hangup::work() {
            // A shell may send the signal just before its terminal closes.
            true => {
                sleep(TOGETHER).await;
                if hangup::terminal_closed() {
                    self.signal();
                }
            }
            false if hangup::ends() => self.signal(),
            false => {}
        }
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
struct Signals {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
    #[cfg(not(unix))]
    ctrl_c: bool,
}

impl Signals {
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
