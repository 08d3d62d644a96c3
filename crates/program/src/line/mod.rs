//! The line at the bottom of a terminal, or a message every ten seconds without a terminal.

mod fit;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub use fit::LineText;

use crate::output;

/// Shows the text of `describe` repeatedly, which gets the time since the last one: on a terminal
/// the parts that fit.
pub async fn show(mut describe: impl FnMut(Duration) -> Option<LineText>) {
    match std::io::stderr().is_terminal() {
        true => show_on_terminal(describe).await,
        false => {
            repeat(MESSAGE, |_, time| {
                if let Some(text) = describe(time) {
                    tracing::info!("{text}");
                }
            })
            .await;
        }
    }
}

/// The same, and nothing without a terminal.
pub async fn show_on_terminal(mut describe: impl FnMut(Duration) -> Option<LineText>) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    repeat(REDRAW, |since, time| {
        output::show(describe(time).map_or(String::new(), |text| {
            let clock = clock(since);
            let room = columns().saturating_sub(clock.len() + 2);
            format!("{clock}  {}", text.fit(room))
        }));
    })
    .await;
}

/// Removes the line.
pub fn finish() {
    output::show(String::new());
}

/// Calls `show` once a period, for ever, with the time since the start and since the last call.
async fn repeat(period: Duration, mut show: impl FnMut(Duration, Duration)) {
    let start = Instant::now();
    let mut before = start;
    loop {
        tokio::time::sleep(period).await;
        let now = Instant::now();
        show(now - start, now - before);
        before = now;
    }
}

/// The present width of the terminal.
fn columns() -> usize {
    terminal_size::terminal_size_of(std::io::stderr())
        .map_or(USUAL_COLUMNS, |(terminal_size::Width(columns), _)| columns.into())
}

/// Hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}")
}

/// The width of a terminal that does not report it.
const USUAL_COLUMNS: usize = 80;

/// The time from one change of the line to the next.
const REDRAW: Duration = Duration::from_millis(500);

/// The time from one message to the next without a terminal.
const MESSAGE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_as_on_a_clock() {
        assert_eq!(clock(Duration::from_secs(3_723)), "01:02:03");
    }
}
