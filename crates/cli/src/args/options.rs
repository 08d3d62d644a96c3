use clap::Args;

/// Print every option of srt:// URIs: unit, default, range, the end that it concerns, its effect
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OptionsArgs {
    /// Names of options; or words that an option's name, other name, end or effect must have, all
    /// of them
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Print JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  punctual options
  punctual options latency
  punctual options receiver loss
  punctual options fc mss rcvbuf
  punctual options --json | jq -r '.[] | [.name, .unit, .default] | @tsv'

docs/options.md has more about them. `punctual help uri` has the forms of URIs and the keys of UDP and TCP.";
