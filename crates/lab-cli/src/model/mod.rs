//! `punctual-lab model`: how rarely a reliable stream glitches, by the model.

mod document;
mod page;
mod tcp;
mod text;

use punctual_figures::Page;
use punctual_probe::model::glitch::{Answers, Question, QuestionError, Setting};

use crate::args::ModelArgs;
use punctual_program::exit::Failure;
use punctual_program::output::print;
use punctual_program::written;

/// A question with its answers.
pub(crate) struct Answered {
    pub(crate) question: Question,
    pub(crate) setting: Setting,
    pub(crate) answers: Answers,
}

/// Answers the question, prints the answers, and writes the page.
pub(crate) fn run(args: &ModelArgs) -> Result<(), Failure> {
    let answered = answer(args)?;
    if args.output.json {
        print(format!("{:#}\n", document::document(&answered)))?;
    } else {
        print(text::text(&answered))?;
    }
    if let Some(path) = &args.output.page {
        written::replace(path, page::page(&answered), "page", Page::recognises)?;
        tracing::info!("wrote {}", path.display());
    }
    if answered.answers.answers.iter().any(|answer| answer.is_enough) {
        return Ok(());
    }
    Err(Failure::runtime(text::missed(&answered.question)))
}

fn answer(args: &ModelArgs) -> Result<Answered, Failure> {
    let (question, setting) = (args.question(), args.setting());
    let answers = question.answers(&setting).map_err(|error| failure(&error))?;
    Ok(Answered { question, setting, answers })
}

/// A figure out of its range is a fault of the command line; a goal out of reach is a result.
fn failure(error: &QuestionError) -> Failure {
    match error {
        QuestionError::OutOfReach { .. } | QuestionError::Overhead { .. } => {
            Failure::runtime(error.to_string())
        }
        QuestionError::TooFew(_) => Failure::usage(format!(
            "{error} (--rate, --loss, --rtt, --buffer, --glitch-target, --overhead)"
        )),
        _ => Failure::usage(error.to_string()),
    }
}
