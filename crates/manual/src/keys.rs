//! The page of the relay's configuration, from the tables of its keys.

use clap_mangen::roff::{Roff, bold, italic, roman};
use punctual_relay_config::sections;

use crate::page::ManualPage;

/// `punctual-relay.toml(5)`.
pub(crate) fn page() -> ManualPage {
    let name = "punctual-relay.toml";
    let source = concat!("Punctual ", env!("CARGO_PKG_VERSION"));
    let mut roff = Roff::new();
    roff.control("TH", [name.to_uppercase().as_str(), "5", "", source, "Punctual"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - the configuration of punctual-relay"))]);
    for (heading, paragraphs) in RULES {
        roff.control("SH", [*heading]);
        for paragraph in *paragraphs {
            roff.control("PP", []);
            roff.text([roman(*paragraph)]);
        }
    }
    for section in sections() {
        roff.control("SH", [section.head]);
        roff.text([roman(without_marks(section.about))]);
        for (facts, default) in section.keys {
            roff.control("TP", []);
            let value = default.unwrap_or_else(|| "none".to_owned());
            roff.text([bold(facts.name), roman(" (default: "), italic(value), roman(")")]);
            let meaning = capitalised(&without_marks(facts.meaning));
            let form = without_marks(facts.form);
            let effect = facts.reload.name();
            roff.text([roman(format!("{meaning}. Value: {form}. Reload: {effect}."))]);
        }
    }
    roff.control("SH", ["FILES"]);
    for (file, holds) in FILES {
        roff.control("TP", []);
        roff.text([italic(*file)]);
        roff.text([roman(*holds)]);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([bold("punctual-relay"), roman("(1)")]);
    ManualPage { name: name.to_owned(), section: 5, text: roff.to_roff() }
}

/// The text without the marks of code in Markdown.
fn without_marks(text: &str) -> String {
    text.replace('`', "")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    first + letters.as_str()
}

/// The text before the keys: headings with paragraphs.
const RULES: &[(&str, &[&str])] = &[
    (
        "DESCRIPTION",
        &[
            "punctual-relay reads one file in TOML. `punctual-relay check FILE` checks the whole \
             file and tells all problems with line and column, `punctual-relay check --explain \
             KEY` explains a key, and `punctual-relay print-config FILE` prints the values in \
             force with the origin of each. Without a file the defaults hold.",
            "A time is a text with a unit, such as \"120ms\", \"10s\" or \"1d\"; so is a size, such \
             as \"100GB\". A key that ends with -file names a file with the secret; relative names \
             are sought in $CREDENTIALS_DIRECTORY, then beside the configuration.",
            "One section counts for a stream, over [defaults]: the section with its name, else the \
             pattern that matches and has the most characters besides * and ?, else the first \
             regular expression that finds a match, else [stream.all_others].",
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            "PUNCTUAL_RELAY_HTTP_LISTEN sets http.listen, and so on for [http], [auth], [drain] and \
           [defaults]: dots and hyphens become underscores, commas separate the parts of a list.",
        ],
    ),
    (
        "RELOAD",
        &["SIGHUP or the API reads everything again. If anything is wrong, nothing changes. \
           Otherwise each difference has effect at the time that its key names: live, at once; \
           new connections, for connections, requests and recordings that begin afterwards; \
           restart, at the next start."],
    ),
];

/// Files and their contents.
const FILES: &[(&str, &str)] = &[
    ("/etc/punctual/relay.toml", "The configuration that the service of Debian's package reads."),
    ("/var/lib/punctual-relay/state.toml", "Changes by the API that are kept."),
];

#[cfg(test)]
mod tests {
    use punctual_relay_config::keys;

    use super::*;

    #[test]
    fn the_page_has_every_key() {
        let text = page().text;
        for facts in keys() {
            let name = facts.name.replace('-', "\\-");
            assert!(text.contains(&format!("\\fB{name}\\fR (default: ")), "{name}");
        }
    }
}
