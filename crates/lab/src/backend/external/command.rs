//! Command lines with placeholders.

use std::path::PathBuf;

use punctual_uri::did_you_mean;

use crate::backend::external::options::query;
use crate::run::Setup;

/// Where a program finds the others.
#[derive(Clone, Debug)]
pub(super) struct ProgramPlaces {
    /// Where to call (the sender) or to listen (the receiver).
    pub(super) port: u16,
    /// Where the sender gets its stream by UDP.
    pub(super) feed: u16,
    /// Where the receiver puts the stream by UDP.
    pub(super) sink: u16,
    /// Where statistics are to be written.
    pub(super) stats: PathBuf,
}

/// A command line's words with everything filled in; `end` is 0 for the sender, 1 for the receiver.
///
/// # Errors
///
/// A placeholder that there is not, or quotes that are not closed.
pub(super) fn words(
    template: &str,
    setup: &Setup,
    end: usize,
    places: &ProgramPlaces,
) -> Result<Vec<String>, String> {
    let options = &setup.written_options[end];
    let latency = setup.sender.peer_latency().max(setup.receiver.receive_latency());
    let seconds = setup.duration.as_secs_f64();
    let values: [(&str, String); 12] = [
        ("port", places.port.to_string()),
        ("feed", places.feed.to_string()),
        ("sink", places.sink.to_string()),
        ("stats", places.stats.display().to_string()),
        ("latency_ms", latency.as_millis().to_string()),
        ("latency_us", latency.as_micros().to_string()),
        ("bitrate_bps", setup.bitrate.as_bits_per_sec().to_string()),
        ("duration_s", seconds.to_string()),
        ("payload", setup.payload.to_string()),
        ("messages", messages(setup).to_string()),
        ("query", query(options, false)),
        ("query_ffmpeg", query(options, true)),
    ];
    split(template)?.iter().map(|word| fill(word, &values)).collect()
}

/// The number of messages of the stream.
fn messages(setup: &Setup) -> u64 {
    let bytes = setup.bitrate.as_bytes_per_sec() * setup.duration.as_secs();
    bytes / (setup.payload as u64).max(1)
}

/// Splits at white space outside of quotes.
fn split(template: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut begun = false;
    for character in template.chars() {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (Some(_), _) => word.push(character),
            (None, '\'' | '"') => (quote, begun) = (Some(character), true),
            (None, _) if character.is_whitespace() => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (None, _) => word.push(character),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote is not closed in `{template}`"));
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    if words.is_empty() { Err("a command line is empty".to_owned()) } else { Ok(words) }
}

fn fill(word: &str, values: &[(&str, String)]) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        let Some((name, behind)) = after.split_once('}') else {
            return Err(format!("a `}}` is missing in `{word}`"));
        };
        let Some((_, value)) = values.iter().find(|(known, _)| *known == name) else {
            let suggestion = did_you_mean(name, values.iter().map(|(known, _)| *known));
            let known: Vec<&str> = values.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            return Err(format!("unknown placeholder `{{{name}}}`{suggestion} (known: {known})"));
        };
        filled += value;
        rest = behind;
    }
    Ok(filled + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_does() {
        let words = split("a 'b c' --d=\"e f\"  ''").unwrap();
        assert_eq!(words, ["a", "b c", "--d=e f", ""]);
        assert!(split("a 'b").unwrap_err().contains("not closed"));
        assert!(split("  ").unwrap_err().contains("empty"));
    }

    #[test]
    fn placeholders_are_filled_and_unknown_ones_named() {
        let values = [("port", "9000".to_owned())];
        let uri = fill("srt://:{port}?mode=listener", &values);
        assert_eq!(uri.as_deref(), Ok("srt://:9000?mode=listener"));
        assert!(fill("{prot}", &values).unwrap_err().contains("did you mean `port`?"));
        assert!(fill("{port", &values).unwrap_err().contains("missing"));
    }
}
