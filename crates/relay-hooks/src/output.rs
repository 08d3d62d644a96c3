//! The output of programs, line by line into the log.

use std::time::Duration;

use punctual_units::one_line;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Logs the lines of `output`, each at most [`LINE_MOST`] bytes long, and at most [`LINES_MOST`] in
/// ten seconds.
pub(crate) async fn log_lines(title: String, mut output: impl AsyncRead + Unpin) {
    let mut lines = OutputLines::default();
    let mut block = vec![0; 4_096];
    let mut quota = Quota { since: Instant::now(), lines: 0 };
    while let Ok(len @ 1..) = output.read(&mut block).await {
        lines.push(&block[..len], |line| quota.log(&title, line));
    }
    lines.finish(|line| quota.log(&title, line));
    quota.tell_left_out(&title);
}

/// Lines from bytes in pieces of any size. A carriage return ends a line as well, as in progress
/// that a program writes over itself.
#[derive(Debug, Default)]
struct OutputLines {
    line: Vec<u8>,
}

impl OutputLines {
    fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) {
        for &byte in bytes {
            if matches!(byte, b'\n' | b'\r') {
                self.finish(&mut take);
            } else if self.line.len() < LINE_MOST {
                self.line.push(byte);
            }
        }
    }

    fn finish(&mut self, mut take: impl FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            take(&one_line(text.trim_end()));
        }
    }
}

/// The number of lines within ten seconds.
struct Quota {
    since: Instant,
    lines: u64,
}

impl Quota {
    fn log(&mut self, title: &str, line: &str) {
        if self.since.elapsed() >= PERIOD {
            self.tell_left_out(title);
            *self = Self { since: Instant::now(), lines: 0 };
        }
        self.lines += 1;
        if self.lines <= LINES_MOST {
            tracing::info!("{title}: {line}");
        }
    }

    fn tell_left_out(&self, title: &str) {
        let left_out = self.lines.saturating_sub(LINES_MOST);
        if left_out > 0 {
            tracing::info!("{title}: {left_out} more lines are left out");
        }
    }
}

/// The most bytes of a line; the rest of it is left out.
const LINE_MOST: usize = 1_024;
/// The most lines in ten seconds.
const LINES_MOST: u64 = 100;
const PERIOD: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_clean() {
        let mut found = Vec::new();
        let mut lines = OutputLines::default();
        for piece in ["one\ntw", "o\r\n\n  \nthree \x1b[2J", &"x".repeat(2_000), "\nend"] {
            lines.push(piece.as_bytes(), |line| found.push(line.to_owned()));
        }
        lines.finish(|line| found.push(line.to_owned()));
        assert_eq!(found[..2], ["one", "two"]);
        assert!(found[2].starts_with("three \\u{1b}[2Jxxx") && found[2].len() < 1_100);
        assert_eq!(found[3..], ["end"]);
    }
}
