/// A URI, or a query, without its passphrase: what may be shown and written down.
pub fn redacted(text: &str) -> String {
    // Without a `?` it is all query.
    let query = text.find('?').map_or(0, |at| at + 1);
    let (place, query) = text.split_at(query);
    let pairs: Vec<String> = query.split('&').map(redact_pair).collect();
    place.to_owned() + &pairs.join("&")
}

fn redact_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((key, value)) if is_secret(key) && !value.is_empty() => format!("{key}=…"),
        _ => pair.to_owned(),
    }
}

/// Whether the value of this key, as it is written, is nobody's business: also where the key is
/// misspelt or written with `%`.
pub(crate) fn is_secret(key: &str) -> bool {
    let passphrase = key.to_lowercase().starts_with("pass") && !key.contains(['-', '_']);
    passphrase || key.contains('%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passphrase_is_left_out_wherever_it_stands() {
        for (written, shown) in [
            ("srt://h:1?passphrase=hush, hush", "srt://h:1?passphrase=…"),
            ("srt://h:1?a=1&passphrase=x=y?z&b=2", "srt://h:1?a=1&passphrase=…&b=2"),
            ("srt://h:1?passphrasse=x", "srt://h:1?passphrasse=…"),
            ("srt://h:1?PassPhrase=x&b=2", "srt://h:1?PassPhrase=…&b=2"),
            ("srt://h:1?%70assphrase=x&b=2", "srt://h:1?%70assphrase=…&b=2"),
            ("passphrase=x", "passphrase=…"),
            ("srt://h:1?passphrase=&b=2", "srt://h:1?passphrase=&b=2"),
            ("srt://h:1?passphrase-file=/run/x&b", "srt://h:1?passphrase-file=/run/x&b"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(redacted(written), shown);
        }
    }
}
