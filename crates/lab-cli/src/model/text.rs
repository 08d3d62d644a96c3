//! The answers as text.

use std::fmt::Write;

use punctual_probe::model::glitch::{
    Answer, Answers, Conditions, DisplayMeanTime, Question, Setting, SolvableFigure, WantedTime,
};
use punctual_units::DisplayDuration;

use super::Answered;
use super::tcp::Rival;

/// The question in a sentence, a table of answers, and TCP beside them.
pub(super) fn text(answered: &Answered) -> String {
    let mut text = format!("{}\n{}\n\n", title(answered), setting(answered));
    let (heads, rows) = table(answered);
    let widths: Vec<usize> = heads
        .iter()
        .enumerate()
        .map(|(column, head)| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([head.chars().count()]).max().unwrap_or_default()
        })
        .collect();
    for row in std::iter::once(&heads).chain(&rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("   "));
    }
    text += "\n";
    if answered.answers.answers.iter().any(|answer| answer.outcome.mean_time.is_finite()) {
        text += "Half of all streams have their first glitch within 0.69 of the mean time.\n";
    }
    if answered.answers.answers.iter().any(|answer| answer.is_at_bound) {
        text += "A value with * is the end of its range: beyond it the goal is met, too.\n";
    }
    if let Some(rival) = Rival::of(answered) {
        let _ = writeln!(text, "{}", rival.text());
    }
    text
}

/// The question in a sentence.
pub(super) fn title(answered: &Answered) -> String {
    let Answered { question, answers, .. } = answered;
    let wanted = match (question.mean_time, question.overhead) {
        (Some(time), None) => format!("a glitch each {} on the mean", DisplayMeanTime(time)),
        (None, Some(overhead)) => format!("at most {} of overhead", share(overhead)),
        (Some(time), Some(overhead)) => {
            let time = DisplayMeanTime(time);
            format!("a glitch each {time} on the mean and at most {} of overhead", share(overhead))
        }
        (None, None) => "glitches".to_owned(),
    };
    let subject = match answers.solved {
        Some(SolvableFigure::Buffer) => format!("Least buffer for {wanted}"),
        Some(SolvableFigure::Loss) => format!("Highest loss for {wanted}"),
        Some(SolvableFigure::RoundTrip) => format!("Longest round trip for {wanted}"),
        Some(SolvableFigure::Rate) => format!("Highest bit rate for {wanted}"),
        None if wanted == "glitches" => "Mean time to a glitch".to_owned(),
        None => format!("Mean time to a glitch, where {wanted} would be enough"),
    };
    let known = known(question);
    if known.is_empty() { subject } else { format!("{subject}, at {}", known.join(", ")) }
}

/// The figures that are known, in words.
fn known(question: &Question) -> Vec<String> {
    let mut known = Vec::new();
    known.extend(question.rate.map(|rate| rate.to_string()));
    known.extend(question.loss.map(|loss| format!("{} of loss", share(loss))));
    let time = |time| format!("{:#}", DisplayDuration(time));
    known.extend(question.rtt.map(|rtt| format!("a round trip of {}", time(rtt))));
    known.extend(question.buffer.map(|buffer| format!("a buffer of {}", time(buffer))));
    known
}

/// The setting in a sentence.
pub(super) fn setting(answered: &Answered) -> String {
    let Setting { return_loss, burst, block, datagrams, last_datagrams, readchunk, wanted, .. } =
        answered.setting;
    let back = match return_loss {
        None => "as much loss on the way back".to_owned(),
        Some(loss) => format!("{} of loss on the way back", share(loss)),
    };
    let mut text = format!(
        "Packets of {block} bytes; {back}; NAKs in {datagrams} {}, the last in time in \
         {last_datagrams}",
        if datagrams == 1 { "datagram" } else { "datagrams" }
    );
    if burst > 1.0 {
        let _ = write!(text, "; {burst} packets lost in a row on the mean");
    }
    let whole = if wanted == WantedTime::ByChunk { ", wanted as a whole" } else { "" };
    let _ = write!(text, "; readchunks of {:#}{whole}", DisplayDuration(readchunk));
    text
}

/// The heads of the columns, and the rows.
pub(super) fn table(answered: &Answered) -> (Vec<String>, Vec<Vec<String>>) {
    let Answered { question, answers, .. } = answered;
    let mut heads: Vec<String> =
        figures(answers).iter().map(|figure| head(*figure).to_owned()).collect();
    heads.extend(
        ["copies", "rounds", "a glitch each", "late packets", "overhead"].map(str::to_owned),
    );
    let is_judged =
        answers.solved.is_none() && (question.mean_time, question.overhead) != (None, None);
    if is_judged {
        heads.push("enough".to_owned());
    }
    let row = |answer: &Answer| {
        let mut row = first_cells(answers, answer);
        row.push(answer.conditions.copies.to_string());
        row.push(answer.outcome.rounds.to_string());
        row.push(DisplayMeanTime(answer.outcome.mean_time).to_string());
        row.push(small_share(answer.outcome.late));
        row.push(format!("{:.2} %", answer.outcome.overhead * 100.0));
        if is_judged {
            row.push(if answer.is_enough { "yes" } else { "no" }.to_owned());
        }
        row
    };
    (heads, answers.answers.iter().map(row).collect())
}

/// The varied figures and the solved one, which have a column each.
fn figures(answers: &Answers) -> Vec<SolvableFigure> {
    let mut figures: Vec<SolvableFigure> = answers.varied.iter().rev().copied().collect();
    figures.extend(answers.solved);
    figures
}

fn first_cells(answers: &Answers, answer: &Answer) -> Vec<String> {
    let cell = |figure: SolvableFigure| {
        let bound = answer.is_at_bound && answers.solved == Some(figure);
        value(figure, &answer.conditions) + if bound { "*" } else { "" }
    };
    figures(answers).into_iter().map(cell).collect()
}

fn head(figure: SolvableFigure) -> &'static str {
    match figure {
        SolvableFigure::Buffer => "buffer",
        SolvableFigure::Loss => "loss",
        SolvableFigure::RoundTrip => "round trip",
        SolvableFigure::Rate => "bit rate",
    }
}

fn value(figure: SolvableFigure, conditions: &Conditions) -> String {
    match figure {
        SolvableFigure::Buffer => DisplayDuration(conditions.buffer).to_string(),
        SolvableFigure::Loss => small_share(conditions.loss),
        SolvableFigure::RoundTrip => DisplayDuration(conditions.rtt).to_string(),
        SolvableFigure::Rate => format!("{:#}", conditions.rate),
    }
}

/// A share as it is typed.
pub(super) fn share(share: f64) -> String {
    let percent: f64 = format!("{:.4e}", share * 100.0).parse().unwrap_or_default();
    format!("{percent} %")
}

/// A share with three digits, however small it is.
pub(super) fn small_share(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..0.001 => format!("{percent:.1e} %"),
        ..0.1 => format!("{percent:.4} %"),
        _ => format!("{percent:.2} %"),
    }
}

/// The message if no answer is enough.
pub(super) fn missed(question: &Question) -> String {
    let mut goals = Vec::new();
    if let Some(time) = question.mean_time {
        goals.push(format!("a glitch each {} on the mean", DisplayMeanTime(time)));
    }
    if let Some(overhead) = question.overhead {
        goals.push(format!("at most {} of overhead", share(overhead)));
    }
    format!(
        "{} cannot be had with these figures; leave out --buffer, --loss, --rtt or --rate, and the \
         value that is enough is computed",
        goals.join(" and ")
    )
}
