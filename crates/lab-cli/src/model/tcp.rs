//! TCP on the same path, by published formulas.

use std::fmt::Write;
use std::time::Duration;

use punctual_probe::model::glitch::DisplayMeanTime;
use punctual_probe::model::tcp::TcpPath;
use serde_json::{Value, json};

use super::Answered;

/// The rates of TCP on the path of a question, where loss and round trip are known.
pub(super) struct Rival {
    path: TcpPath,
    /// The stream, in b/s.
    stream: Option<f64>,
}

impl Rival {
    /// TCP on the path of the question; `None` if the path is not known, or loses nothing.
    pub(super) fn of(answered: &Answered) -> Option<Self> {
        let question = &answered.question;
        let path = TcpPath::new(question.rtt?, question.loss?).ok()?;
        Some(Self { path, stream: question.rate.map(|rate| rate.as_mbps() * 1e6) })
    }

    /// A sentence or two.
    pub(super) fn text(&self) -> String {
        let path = &self.path;
        let mut text = format!(
            "TCP would get on the mean: {} by Mathis, {} by PFTK (with timeouts); CUBIC {}.",
            mbps(path.mathis()),
            mbps(path.pftk()),
            mbps(path.cubic())
        );
        if let Some([least, most]) = self.first_second() {
            let _ = write!(
                text,
                "\nThe first second of this stream would be there after {} to {}.",
                DisplayMeanTime(least),
                DisplayMeanTime(most)
            );
        }
        text
    }

    /// The rates, and the delay until the first second of the stream.
    pub(super) fn document(&self) -> Value {
        let delays = self.first_second();
        json!({
            "mathis_bps": self.path.mathis(),
            "pftk_bps": self.path.pftk(),
            "cubic_bps": self.path.cubic(),
            "first_second_s": delays.map(|delays| delays.to_vec()),
        })
    }

    /// The delay until the first second is there, in seconds: by Mathis with an ACK for each
    /// segment, and by PFTK with one for each second segment.
    fn first_second(&self) -> Option<[f64; 2]> {
        let delay = |rate| self.stream.map(|stream| self.path.start_up(stream, SECOND, rate));
        let (quick, slow) =
            (delay(self.path.mathis())?, delay(self.path.with_delayed_acks().pftk())?);
        Some([quick.with_slow_start, slow.at_steady_rate])
    }
}

/// A rate with three digits.
fn mbps(rate: f64) -> String {
    let mbps = rate / 1e6;
    match mbps {
        ..10.0 => format!("{mbps:.2} Mb/s"),
        ..1_000.0 => format!("{mbps:.0} Mb/s"),
        _ => "more than 1 Gb/s".to_owned(),
    }
}

const SECOND: Duration = Duration::from_secs(1);
