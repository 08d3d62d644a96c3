//! The command line of `punctual-relay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use punctual_program::args::{LogArgs, value};

/// A relay, into which encoders publish streams by name, and from which players, recorders and
/// other sites take them
///
/// Without a file it listens on srt://[::]:8890 and serves its page on http://127.0.0.1:9997; the
/// first lines that it prints say what to paste into encoders and players. `punctual relay` runs
/// this program.
#[derive(Debug, Parser)]
#[command(name = "punctual-relay", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    // Before the others, whose heading would hold for these options too.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options to run a relay.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The configuration; without one the defaults hold
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Publish a built-in clip as `demo`, in a loop
    #[arg(long)]
    pub(crate) demo: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a configuration, print all problems with their places, and exit
    Check {
        /// The file
        file: Option<PathBuf>,
        /// Explain a key, such as `stream.keep-viewers`
        #[arg(long, value_name = "KEY", conflicts_with = "file")]
        explain: Option<String>,
    },
    /// Print the configuration in force, with the origin of each value; secrets are hidden
    PrintConfig {
        /// The file
        file: Option<PathBuf>,
    },
    /// Make a short signed token for a stream ID: `#!::r=live/a,m=publish,token=TOKEN`
    Token(TokenArgs),
    /// Ask a running relay whether it is ready: exit code 0 if it is, 1 if not
    Health {
        /// The address of its API, such as `http://127.0.0.1:9997`; without it the one that the
        /// configuration has
        url: Option<String>,
        /// The configuration of the relay, whose certificate is then trusted by any name
        #[arg(short, long, value_name = "FILE", conflicts_with = "url")]
        config: Option<PathBuf>,
    },
    /// Turn a mediamtx.yml into a configuration, and list what has no counterpart
    Import {
        /// The file
        file: PathBuf,
    },
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Options of a token.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    /// The file with the key, which `auth.signing-key-file` of the relay names
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: PathBuf,
    /// The stream, or a pattern of streams: `live/a`, `live/*`
    #[arg(long)]
    pub(crate) stream: String,
    /// The holder may publish
    #[arg(long, required_unless_present_any = ["read", "playback"])]
    pub(crate) publish: bool,
    /// The holder may view
    #[arg(long)]
    pub(crate) read: bool,
    /// The holder may view recordings
    #[arg(long)]
    pub(crate) playback: bool,
    /// The time for which the token is valid
    #[arg(long = "for", value_name = "TIME", default_value = "24h", value_parser = value::seconds)]
    pub(crate) lifetime: Duration,
    /// The name of the holder, for limits and logs
    #[arg(long)]
    pub(crate) user: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  punctual relay                       listen on srt://[::]:8890, page on http://127.0.0.1:9997
  punctual relay --demo                the same, with a clip to watch as `demo`
  punctual relay --config relay.toml
  punctual relay check relay.toml
  punctual relay token --key-file key --stream 'live/*' --publish --for 2h
  punctual relay import mediamtx.yml > relay.toml

SIGHUP reads the configuration again; SIGTERM drains the relay: viewers end in slices, publishers
last. docs/relay.md describes everything.";
