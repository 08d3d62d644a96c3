//! The completion scripts of shells.

use clap::CommandFactory;
use clap_complete::Shell;
use punctual_program::completions::{self, ArgumentValues};

use crate::args::Cli;

/// The completion script for `shell`, with the names of options of SRT.
pub(crate) fn script(shell: Shell) -> String {
    let options = punctual_uri::options().map(|option| option.name).collect();
    let names = ArgumentValues { subcommand: "options", argument: "words", values: options };
    completions::script(&Cli::command(), &[names], shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_options_and_no_hidden_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let script = script(shell);
            assert!(!script.contains("handle-sigint"), "{shell}");
            assert!(!script.contains("run-in-namespace"), "{shell}");
            assert!(script.contains("sendrate"), "{shell}");
        }
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(script(shell).contains("peerlatency"), "{shell}");
        }
    }
}
