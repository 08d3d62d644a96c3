//! The completion scripts of shells.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::Shell;

/// The completion script for `shell` of a program, without hidden options and commands. `names`
/// gives values that the program itself takes beside others.
pub fn script(command: &Command, names: &[ArgumentValues], shell: Shell) -> String {
    let mut shown = names.iter().fold(visible(command), |command, names| {
        command.mut_subcommand(names.subcommand, |it| {
            it.mut_arg(names.argument, |arg| one_of(arg, &names.values))
        })
    });
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown, command.get_name(), &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Fish => script + &for_fish(command.get_name(), names),
        _ => script,
    }
}

/// The known values of a positional argument.
#[derive(Clone, Debug)]
pub struct ArgumentValues {
    /// The command.
    pub subcommand: &'static str,
    /// Its argument.
    pub argument: &'static str,
    /// The values.
    pub values: Vec<&'static str>,
}

/// Values for fish, whose generator leaves positional arguments out.
fn for_fish(program: &str, names: &[ArgumentValues]) -> String {
    let line = |ArgumentValues { subcommand, values, .. }: &ArgumentValues| {
        let place = format!("__fish_{}_using_subcommand {subcommand}", program.replace('-', "_"));
        format!("complete -c {program} -n \"{place}\" -f -a \"{}\"\n", values.join(" "))
    };
    names.iter().map(line).collect()
}

/// The same argument, with these values. Only for a script: the program takes others too.
fn one_of(arg: Arg, names: &[&'static str]) -> Arg {
    arg.value_parser(PossibleValuesParser::new(names.iter().copied()))
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
