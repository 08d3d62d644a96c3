//! Messages about a command line that cannot be parsed.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use punctual_uri::redacted;

/// The advice of a program on options that were typed at the wrong place. Each function gets the
/// name of a command.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// The program's command line.
    pub program: fn() -> clap::Command,
    /// The way to give this command a rate, as a sentence.
    pub rate: fn(&str) -> Option<String>,
    /// The way to give this command an option of SRT, from its name and value.
    pub option: fn(&str, &str, &str) -> Option<String>,
}

/// The error as it may be shown: without text that may be a passphrase, and with the right place of
/// a connection's option, if one was typed as an option of the program.
pub fn explained(
    mut error: clap::Error,
    command_line: &[OsString],
    advice: &Advice,
) -> clap::Error {
    for kind in TYPED {
        let shown = match error.get(kind) {
            Some(ContextValue::String(typed)) => ContextValue::String(redacted(typed)),
            Some(ContextValue::Strings(typed)) => {
                ContextValue::Strings(typed.iter().map(|typed| redacted(typed)).collect())
            }
            _ => continue,
        };
        error.insert(kind, shown);
    }
    if error.kind() == ErrorKind::ValueValidation
        && let Some(why) = std::error::Error::source(&error).map(ToString::to_string)
        && let Some(better) = no_number(&why, &error, advice)
    {
        return better;
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return error,
    };
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if let Some(tip) = tip(&unknown, command_line, advice).filter(|_| is_unknown) {
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
            error.remove(kind);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The error of a value that is no whole number, in words for people; `None` for other faults.
fn no_number(why: &str, error: &clap::Error, advice: &Advice) -> Option<clap::Error> {
    let fault = match why {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "is not a whole number"
        }
        "number too large to fit in target type" => "is too large",
        "number would be zero for non-zero type" => "must be 1 or more",
        _ => return None,
    };
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let (value, option) = (text(ContextKind::InvalidValue), text(ContextKind::InvalidArg));
    let message = format!("`{value}` {fault}, as '{option}' wants\n");
    Some(clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(&(advice.program)()))
}

/// The right place of an option of SRT that was typed as an option of this command.
fn tip(typed: &str, command_line: &[OsString], advice: &Advice) -> Option<String> {
    let name = typed.strip_prefix("--")?.to_lowercase();
    let words: Vec<&str> = command_line.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let command = words.iter().find(|word| !word.starts_with('-'))?;
    if ["rate", "bitrate", "bandwidth", "bw", "pace", "sendrate"].contains(&name.as_str()) {
        return (advice.rate)(command);
    }
    let option = punctual_uri::options()
        .find(|option| option.name == name || option.aliases.contains(&name.as_str()))?;
    if option.name == "passphrase" {
        let form = (advice.option)(command, &name, "…")?;
        let form = form.replace("passphrase=…", "passphrase-file=PATH");
        return Some(format!("`{name}` is an option of the connection; {form}"));
    }
    let value = value_of(typed, &words).unwrap_or_else(|| "VALUE".to_owned());
    let form = (advice.option)(command, &name, &value)?;
    Some(format!("`{name}` is an option of the connection; {form}"))
}

/// The value that was typed after an option.
fn value_of(typed: &str, words: &[&str]) -> Option<String> {
    let place = words.iter().position(|word| word.split('=').next() == Some(typed))?;
    let value = match words[place].split_once('=') {
        Some((_, value)) => value,
        None => words.get(place + 1).filter(|next| !next.starts_with('-'))?,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-%".contains(c);
    (value.len() <= 20 && value.chars().all(plain)).then(|| value.to_owned())
}

/// The parts of an error that the user typed.
const TYPED: [ContextKind; 5] = [
    ContextKind::InvalidArg,
    ContextKind::InvalidSubcommand,
    ContextKind::InvalidValue,
    ContextKind::PriorArg,
    ContextKind::TrailingArg,
];
