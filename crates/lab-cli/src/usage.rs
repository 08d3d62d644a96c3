//! Messages about a command line that cannot be parsed.

use std::ffi::OsString;

use clap::CommandFactory;
use punctual_program::usage::{self, Advice};

use crate::args::LabCli;

/// The error as it may be shown, with the right way.
pub(crate) fn explained(error: clap::Error, command_line: &[OsString]) -> clap::Error {
    usage::explained(error, command_line, &ADVICE)
}

const ADVICE: Advice = Advice { program: LabCli::command, rate, option };

/// The way to give a command a rate.
fn rate(command: &str) -> Option<String> {
    let own = match command {
        "latency" | "model" => "--rate 5Mbps",
        "run" => "--set bitrate=5Mbps",
        _ => return None,
    };
    Some(format!("the rate of `{command}` is an option of its own: `{own}`"))
}

/// The way to give a command an option of SRT.
fn option(command: &str, name: &str, value: &str) -> Option<String> {
    (command == "run").then(|| format!("write it as `--set {name}={value}`"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn told(words: &[&str]) -> String {
        let line: Vec<OsString> =
            ["punctual-lab"].iter().chain(words).map(OsString::from).collect();
        let error = LabCli::try_parse_from(&line).expect_err("it is wrong");
        explained(error, &line).to_string()
    }

    #[test]
    fn options_and_rates_of_streams_are_sent_to_the_option_that_has_them() {
        let text = told(&["run", "srt-4g", "--latency", "200ms"]);
        assert!(text.contains("`--set latency=200ms`"), "{text}");
        let text = told(&["run", "srt-4g", "--bitrate", "5M"]);
        assert!(text.contains("`--set bitrate=5Mbps`"), "{text}");
        for command in ["latency", "model"] {
            let text = told(&[command, "--bitrate", "5M"]);
            assert!(text.contains("`--rate 5Mbps`"), "{text}");
            let text = told(&[command, "--rate", "5"]);
            assert!(text.contains("did you mean `5Mbps`?"), "{command}: {text}");
        }
    }
}
