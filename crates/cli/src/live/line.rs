//! The line at the bottom of a terminal, or a message every ten seconds without a terminal.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::live::LineText;

/// Shows the text of `describe` repeatedly, which gets the time since the last one: on a terminal
/// the parts that fit.
pub(crate) async fn show(mut describe: impl FnMut(Duration) -> Option<LineText>) {
    let on_terminal = std::io::stderr().is_terminal();
    let period = if on_terminal { REDRAW } else { MESSAGE };
    let line = on_terminal.then(|| LINE.get_or_init(new_line));
    let start = Instant::now();
    let mut before = start;
    loop {
        tokio::time::sleep(period).await;
        let now = Instant::now();
        let text = describe(now - before);
        before = now;
        match (line, text) {
            (Some(line), Some(text)) => {
                let clock = clock(now - start);
                let room = columns().saturating_sub(clock.len() + 2);
                line.set_message(format!("{clock}  {}", text.fit(room)));
            }
            (Some(line), None) => line.set_message(""),
            (None, Some(text)) => tracing::info!("{text}"),
            (None, None) => {}
        }
    }
}

/// Does `write` above the line, if there is one.
pub(crate) fn above<T>(write: impl FnOnce() -> T) -> T {
    match LINE.get() {
        Some(line) => line.suspend(write),
        None => write(),
    }
}

/// Removes the line.
pub(crate) fn finish() {
    if let Some(line) = LINE.get() {
        line.finish_and_clear();
    }
}

/// There is one terminal, so there is one line.
static LINE: OnceLock<ProgressBar> = OnceLock::new();

fn new_line() -> ProgressBar {
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{wide_msg}").expect("the template is sound");
    line.with_style(style)
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
