//! The completion scripts of shells.

use clap::CommandFactory;
use clap_complete::Shell;
use punctual_lab::published;
use punctual_program::completions::{self, ArgumentValues};

use crate::args::LabCli;

/// The completion script for `shell`, with the names of plans.
pub(crate) fn script(shell: Shell) -> String {
    let plans = || published::plans().iter().map(|(name, _)| *name).collect();
    let names = ["run", "show"].map(|it| ArgumentValues {
        subcommand: it,
        argument: "plan",
        values: plans(),
    });
    completions::script(&LabCli::command(), &names, shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_plans_and_no_hidden_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = script(shell);
            assert!(!script.contains("handle-sigint"), "{shell}");
            assert!(script.contains("glitch-target"), "{shell}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(script(shell).contains("srt-4g"), "{shell}");
        }
    }
}
