//! Messages about a command line that cannot be parsed.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use punctual_program::usage::{self, Advice};

use crate::args::Cli;

/// The error as it may be shown, with the right way.
pub(crate) fn explained(error: clap::Error, command_line: &[OsString]) -> clap::Error {
    let mut error = usage::explained(error, command_line, &ADVICE);
    if error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(option) = greedy_option(command_line)
    {
        let tip = format!(
            "`{option}` takes all URIs that follow it: give the others by `-o`, as in `-i SRC -o DST`"
        );
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

const ADVICE: Advice = Advice { program: Cli::command, rate, option };

/// The way to give a command a rate.
fn rate(command: &str) -> Option<String> {
    let own = match command {
        "generate" => "--sendrate 5Mbps",
        "route" => "--pace 5Mbps",
        "file" => "--targetrate 5Mbps",
        "probe" | "emulate" => "--rate 5Mbps",
        "receive" | "demo" => {
            return Some(format!(
                "`{command}` takes no rate: a sender has it, as in `punctual generate --sendrate \
                 5Mbps`"
            ));
        }
        _ => return None,
    };
    Some(format!("the rate of `{command}` is an option of its own: `{own}`"))
}

/// The way to give a command an option of SRT.
fn option(command: &str, name: &str, value: &str) -> Option<String> {
    ["generate", "receive", "route", "file", "probe"]
        .contains(&command)
        .then(|| format!("write it into the URI: `srt://…?{name}={value}`"))
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

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
        for command in ["probe", "emulate"] {
            let text = told(&[command, "--bitrate", "5M"]);
            assert!(text.contains("`--rate 5Mbps`"), "{text}");
        }
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
