use clap::Args;

/// Print every option of srt:// URIs: unit, default, range, whom it concerns and what it does
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OptionsArgs {
    /// Only the options with all of these in name, other name, whom it concerns or effect; or,
    /// where each is the name of an option, just these options
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// As JSON, for programs
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

docs/options.md says more. `punctual help uri` has the forms of URIs and the keys of UDP and TCP.";
