//! A page with curves of the mean time to a glitch over the buffer.

use std::time::Duration;

use punctual::Bitrate;
use punctual_figures::{Axis, Chart, Marker, Page, Series, Table, TableColumn, Text};
use punctual_probe::model::glitch::{Conditions, Setting};

use super::Answered;
use super::tcp::Rival;
use super::text::{setting, share, table, title};

/// The page of a question's answers, with curves around its figures.
pub(super) fn page(answered: &Answered) -> String {
    let mut page = Page::new("Glitches of a reliable stream");
    page.lead(LEAD);
    page.heading("Answer");
    page.text(title(answered) + ".");
    page.text(setting(answered) + ".");
    let (heads, rows) = table(answered);
    let mut table = Table::new("", heads.into_iter().map(TableColumn::number));
    rows.into_iter().for_each(|row| table.row(row));
    page.table(table);
    if let Some(rival) = Rival::of(answered) {
        page.note(rival.text().replace('\n', " "));
    }
    let curves = Curves::of(answered);
    page.heading("Mean time to a glitch over the buffer");
    page.text(STEPS);
    page.chart(curves.of_rates());
    page.chart(curves.of_losses());
    page.chart(curves.of_copies());
    page.foot(
        Text::default()
            .plain(concat!("Computed by Punctual ", env!("CARGO_PKG_VERSION"), ": "))
            .code("punctual model --page FILE")
            .plain(". The model is described in docs/model.md."),
    );
    page.to_html()
}

/// The figures around which curves are drawn.
struct Curves {
    conditions: Conditions,
    setting: Setting,
    /// The buffer that was asked about.
    buffer: Option<Duration>,
}

impl Curves {
    /// Around the figures of the question, and the paper's where it has none.
    fn of(answered: &Answered) -> Self {
        let Answered { question, setting, .. } = answered;
        let conditions = Conditions {
            rate: question.rate.unwrap_or(Bitrate::from_mbps(10)),
            loss: question.loss.unwrap_or(0.02),
            rtt: question.rtt.unwrap_or(Duration::from_millis(200)),
            buffer: Duration::ZERO,
            copies: question.copies.unwrap_or(0),
        };
        Self { conditions, setting: *setting, buffer: question.buffer }
    }

    fn of_rates(&self) -> Chart {
        let mut rates = [6, 10, 40].map(Bitrate::from_mbps).to_vec();
        rates.push(self.conditions.rate);
        rates.sort_unstable();
        rates.dedup();
        let curve =
            |rate: Bitrate| self.curve(format!("{rate:#}"), Conditions { rate, ..self.conditions });
        let caption = format!("{}, {}.", self.loss(), self.round_trip());
        self.chart("Bit rates", caption).all_series(rates.into_iter().map(curve))
    }

    fn of_losses(&self) -> Chart {
        let mut losses = vec![0.001, 0.005, 0.01, 0.02, 0.05, 0.1];
        losses.push(self.conditions.loss);
        losses.sort_unstable_by(f64::total_cmp);
        losses.dedup();
        let curve = |loss: f64| self.curve(share(loss), Conditions { loss, ..self.conditions });
        let caption = format!("{:#}, {}.", self.conditions.rate, self.round_trip());
        self.chart("Losses", caption).all_series(losses.into_iter().map(curve))
    }

    fn of_copies(&self) -> Chart {
        let curve = |copies: u32| {
            let name = match copies {
                0 => "no copies".to_owned(),
                1 => "1 copy".to_owned(),
                _ => format!("{copies} copies"),
            };
            self.curve(name, Conditions { copies, ..self.conditions })
        };
        let caption =
            format!("{:#}, {}, {}.", self.conditions.rate, self.loss(), self.round_trip());
        self.chart("Copies of the last retransmission in time", caption)
            .all_series((0..4).map(curve))
    }

    fn chart(&self, title: &str, caption: String) -> Chart {
        let x = Axis::linear("Buffer", "ms").from(0.0).to(self.longest());
        let y = Axis::log("Mean time to a glitch", "s").from(0.9).to(HIGHEST);
        let mut chart = Chart::new(title, x, y).caption(caption);
        for (seconds, name) in MARKS {
            chart = chart.marker(Marker::horizontal(seconds, name));
        }
        match self.buffer {
            Some(buffer) if ms(buffer) <= self.longest() => {
                chart.marker(Marker::vertical(ms(buffer), "the buffer"))
            }
            _ => chart,
        }
    }

    fn curve(&self, name: String, conditions: Conditions) -> Series {
        let least = ms(conditions.rtt) / 2.0;
        let steps = (0..=STEPS_OF_CURVE).map(|step| {
            let buffer =
                least + (self.longest() - least) * f64::from(step) / f64::from(STEPS_OF_CURVE);
            let conditions =
                Conditions { buffer: Duration::from_secs_f64(buffer / 1e3), ..conditions };
            let outcome = conditions.outcome(&self.setting);
            let mean_time = outcome.map_or(f64::NAN, |outcome| outcome.mean_time);
            // Nobody waits longer, and shorter times would be too close to each other.
            (buffer, if mean_time <= HIGHEST { mean_time } else { f64::NAN })
        });
        Series::new(name, steps.collect::<Vec<_>>())
    }

    /// The longest buffer of a curve: six round trips.
    fn longest(&self) -> f64 {
        ms(self.conditions.rtt) * 6.0
    }

    fn loss(&self) -> String {
        format!("{} of loss", share(self.conditions.loss))
    }

    fn round_trip(&self) -> String {
        format!("a round trip of {:#}", punctual_units::DisplayDuration(self.conditions.rtt))
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

const LEAD: &str = "A reliable stream loses nothing; it glitches where a packet is not there yet \
                    when the player wants it. The model says how rarely.";
const STEPS: &str = "Each step is a round of NAK and retransmission for which the buffer is long \
                     enough. Between the steps more buffer gains nothing, unless losses come in \
                     bursts.";
/// Times that people know, in seconds.
const MARKS: [(f64, &str); 4] =
    [(60.0, "a minute"), (3_600.0, "an hour"), (86_400.0, "a day"), (31_557_600.0, "a year")];
/// The highest mean time that is drawn: some 300 years.
const HIGHEST: f64 = 1e10;
const STEPS_OF_CURVE: u32 = 600;
