//! The completion scripts of shells.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use punctual_lab::published;

use crate::args::Cli;

/// The completion script for `shell`, with the names of plans and of options of SRT, and without
/// hidden options and commands.
pub(crate) fn script(shell: Shell) -> String {
    let mut command = visible(&Cli::command());
    let plans = || published::plans().iter().map(|(name, _)| *name);
    for name in ["run", "show"] {
        command = command.mut_subcommand("lab", |lab| {
            lab.mut_subcommand(name, |plan| plan.mut_arg("plan", |arg| one_of(arg, plans())))
        });
    }
    command = command.mut_subcommand("options", |options| {
        let names = punctual_uri::options().map(|option| option.name);
        options.mut_arg("words", |arg| one_of(arg, names))
    });
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "punctual", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Fish => script + &for_fish(plans(), punctual_uri::options().map(|it| it.name)),
        _ => script,
    }
}

/// The names of plans and of options for fish, whose generator leaves positional arguments out.
fn for_fish<'a>(
    plans: impl Iterator<Item = &'a str>,
    options: impl Iterator<Item = &'a str>,
) -> String {
    let line = |place: &str, names: Vec<&str>| {
        format!("complete -c punctual -n \"{place}\" -f -a \"{}\"\n", names.join(" "))
    };
    let lab = "__fish_punctual_using_subcommand lab; and __fish_seen_subcommand_from run show";
    line(lab, plans.collect())
        + &line("__fish_punctual_using_subcommand options", options.collect())
}

/// The same argument, with these values. Only for a script: the program takes others too.
fn one_of(arg: Arg, names: impl Iterator<Item = &'static str>) -> Arg {
    arg.value_parser(PossibleValuesParser::new(names))
}

/// The same command as far as help shows it.
fn visible(command: &Command) -> Command {
    let mut shown = Command::new(command.get_name().to_owned());
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(version.to_owned());
    }
    let args = command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned();
    let subcommands = command.get_subcommands().filter(|it| !it.is_hide_set()).map(visible);
    shown.args(args).subcommands(subcommands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_plans_and_options_and_no_hidden_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = script(shell);
            assert!(!script.contains("handle-sigint"), "{shell}");
            assert!(!script.contains("run-in-namespace"), "{shell}");
            assert!(script.contains("sendrate"), "{shell}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(script.contains("srt-4g") && script.contains("peerlatency"), "{shell}");
        }
    }
}
