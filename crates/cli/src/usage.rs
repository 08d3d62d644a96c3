//! Messages about a command line that cannot be parsed.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use punctual_uri::redacted;

use crate::args::Cli;

/// The error as it may be shown: without text that may be a passphrase, and with the right place of
/// a connection's option, if one was typed as an option of the program.
pub(crate) fn explained(mut error: clap::Error, command_line: &[OsString]) -> clap::Error {
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
        && let Some(better) = no_number(&why, &error)
    {
        return better;
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(option) = greedy_option(command_line)
    {
        let tip = format!(
            "`{option}` takes all URIs that follow it: give the others by `-o`, as in `-i SRC -o DST`"
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return error,
    };
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if let Some(tip) = tip(&unknown, command_line).filter(|_| is_unknown) {
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue] {
            error.remove(kind);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The option for URIs of `route` that took several words.
fn greedy_option(command_line: &[OsString]) -> Option<&'static str> {
    let words: Vec<&str> = command_line.iter().filter_map(|word| word.to_str()).collect();
    let takes_several = |names: [&str; 2]| {
        let place = words.iter().position(|word| names.contains(word))?;
        let values = words[place + 1..].iter().take_while(|word| !word.starts_with("--"));
        (values.count() > 1).then_some(())
    };
    if takes_several(["-i", "--input"]).is_some() {
        Some("-i")
    } else {
        takes_several(["-o", "--output"]).map(|()| "-o")
    }
}

/// The error of a value that is no whole number, in words for people; `None` for other faults.
fn no_number(why: &str, error: &clap::Error) -> Option<clap::Error> {
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
    Some(clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(&Cli::command()))
}

/// The right place of an option of SRT that was typed as an option of this command.
fn tip(typed: &str, command_line: &[OsString]) -> Option<String> {
    let name = typed.strip_prefix("--")?.to_lowercase();
    let words: Vec<&str> = command_line.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let command = words.iter().find(|word| !word.starts_with('-'))?;
    if ["rate", "bitrate", "bandwidth", "bw", "pace", "sendrate"].contains(&name.as_str()) {
        let own = match *command {
            "generate" => "--sendrate 5Mbps",
            "route" => "--pace 5Mbps",
            "file" => "--targetrate 5Mbps",
            "probe" | "emulate" | "latency" | "model" => "--rate 5Mbps",
            "lab" => "--set bitrate=5Mbps",
            "receive" | "demo" => {
                return Some(format!(
                    "`{command}` takes no rate: a sender has it, as in `punctual generate \
                     --sendrate 5Mbps`"
                ));
            }
            _ => return None,
        };
        return Some(format!("the rate of `{command}` is an option of its own: `{own}`"));
    }
    let option = punctual_uri::options()
        .find(|option| option.name == name || option.aliases.contains(&name.as_str()))?;
    let form = |value: &str| match *command {
        "lab" => Some(format!("write it as `--set {name}={value}`")),
        "generate" | "receive" | "route" | "file" | "probe" => {
            Some(format!("write it into the URI: `srt://…?{name}={value}`"))
        }
        _ => None,
    };
    if option.name == "passphrase" {
        let advice = form("…")?.replace("passphrase=…", "passphrase-file=PATH");
        return Some(format!("`{name}` is an option of the connection; {advice}"));
    }
    let value = value_of(typed, &words).unwrap_or_else(|| "VALUE".to_owned());
    Some(format!("`{name}` is an option of the connection; {}", form(&value)?))
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn told(words: &[&str]) -> String {
        let line: Vec<OsString> = ["punctual"].iter().chain(words).map(OsString::from).collect();
        let error = Cli::try_parse_from(&line).expect_err("it is wrong");
        explained(error, &line).to_string()
    }

    #[test]
    fn an_option_of_the_connection_is_sent_into_the_uri() {
        let uri = "srt://h:1";
        let text = told(&["generate", uri, "--latency", "200"]);
        assert!(text.contains("into the URI: `srt://…?latency=200`"), "{text}");
        assert!(!text.contains("-- --latency"), "{text}");
        let text = told(&["receive", uri, "--rcvlatency=80ms"]);
        assert!(text.contains("`srt://…?rcvlatency=80ms`"), "{text}");
        let text = told(&["lab", "run", "srt-4g", "--latency", "200ms"]);
        assert!(text.contains("`--set latency=200ms`"), "{text}");
        let text = told(&["route", uri, "-", "--latncy", "200"]);
        assert!(!text.contains("option of the connection"), "{text}");
    }

    #[test]
    fn a_rate_is_sent_to_the_option_that_has_it() {
        let told_of = |command| told(&[command, "srt://h:1", "a", "--rate", "5M"]);
        assert!(told_of("route").contains("`--pace 5Mbps`"), "{}", told_of("route"));
        assert!(told_of("generate").contains("`--sendrate 5Mbps`"), "{}", told_of("generate"));
        assert!(told_of("receive").contains("takes no rate: a sender has it"));
        let of_another = told(&["generate", "srt://h:1", "--pace", "5M"]);
        assert!(of_another.contains("`--sendrate 5Mbps`"), "{of_another}");
        let of_another = told(&["route", "a", "srt://h:1", "--sendrate", "5M"]);
        assert!(of_another.contains("`--pace 5Mbps`"), "{of_another}");
        for command in ["probe", "emulate", "latency", "model"] {
            let text = told(&[command, "--bitrate", "5M"]);
            assert!(text.contains("`--rate 5Mbps`"), "{text}");
        }
        let text = told(&["lab", "run", "srt-4g", "--bitrate", "5M"]);
        assert!(text.contains("`--set bitrate=5Mbps`"), "{text}");
    }

    #[test]
    fn a_bare_number_that_is_too_small_for_a_rate_is_refused_by_each_command() {
        let uri = "srt://h:1";
        for words in [
            &["generate", uri, "--sendrate", "5"][..],
            &["route", "a.ts", uri, "--pace", "5"],
            &["file", "send", "a", uri, "--targetrate", "5"],
            &["probe", uri, "--rate", "5"],
            &["probe", uri, "--max-rate", "5"],
            &["emulate", ":1", "h:2", "--rate", "5"],
            &["emulate", ":1", "h:2", "--rate-up", "5"],
            &["emulate", ":1", "h:2", "--at", "20s: rate=5"],
            &["latency", "--rate", "5"],
            &["model", "--rate", "5"],
        ] {
            let text = told(words);
            assert!(text.contains("did you mean `5Mbps`?"), "{words:?}: {text}");
        }
    }

    #[test]
    fn numbers_and_arguments_at_the_wrong_place_are_explained_in_words() {
        let uri = "srt://h:1";
        for (value, fault) in [("two", "`two` is not a whole number"), ("0", "must be 1 or more")] {
            let text = told(&["receive", uri, "--concurrent-streams", value]);
            assert!(text.contains(fault) && text.contains("--concurrent-streams"), "{text}");
            assert!(!text.contains("digit"), "{text}");
        }
        for words in [["file", "send", uri, "a.ts"], ["file", "receive", "folder", uri]] {
            let text = told(&words);
            assert!(text.contains("file send FILE URI"), "{text}");
        }
        let text = told(&["route", "-i", "a", "srt://h:1", "srt://h:2"]);
        assert!(text.contains("`-i` takes all URIs that follow it"), "{text}");
        let text = told(&["emulate", ":1", "h:1", "--trace-up", "/nowhere/trace"]);
        assert!(text.contains("/nowhere/trace: No such file"), "{text}");
        assert!(!text.contains("os error"), "{text}");
    }

    #[test]
    fn no_passphrase_is_shown_wherever_it_was_typed() {
        for words in [
            &["srt://h:1?passphrase=hush, hush"][..],
            &["route", "--passphrase", "hush, hush", "udp://:1", "srt://h:1"],
            &["route", "--passphrase=hush", "udp://:1", "srt://h:1"],
            &["route", "--pasphrase=hush", "udp://:1", "srt://h:1"],
            &["route", "srt://h:1?pasphrase=hush", "-"],
            &["route", "srt:h:1?pasphrase=hush", "-"],
            &["route", "--chunk", "passphrase=hush", "-"],
            &["file", "srt://h:1?passphrase=hush"],
            &["probe", "h:1?pw=hush"],
        ] {
            let text = told(words);
            assert!(!text.contains("hush"), "{words:?}: {text}");
        }
        let text = told(&["route", "--passphrase", "hush", "udp://:1", "srt://h:1"]);
        assert!(text.contains("`srt://…?passphrase-file=PATH`"), "{text}");
    }
}
