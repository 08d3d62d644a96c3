//! Texts that name things: URIs, stream IDs, packet filters, quantities.

use punctual_proto::{Config, StreamId};
use punctual_units::{
    Bitrate, DisplayBytes, DisplayDuration, parse_bitrate, parse_bytes, parse_count,
    parse_duration, parse_share,
};
use punctual_uri::{Target, Uri, redacted, set_option};

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind % 5 {
        0 => stream_id(text),
        1 => packet_filter(text),
        2 => quantities(text),
        3 => option(text),
        _ => uri(text),
    }
}

/// A stream ID that can be written in the standard form reads the same there, and its password is
/// not shown.
fn stream_id(text: &str) {
    let id = match StreamId::parse(text) {
        Ok(id) => id,
        Err(error) => return drop(error.to_string()),
    };
    drop(format!("{id:?}"));
    let Ok(standard) = id.to_standard() else { return };
    let again = StreamId::parse(&standard).expect("the standard form is a form");
    assert_eq!(again.to_standard().as_deref(), Ok(&standard[..]));
    assert_eq!((again.user(), again.resource()), (id.user(), id.resource()));
    assert_eq!((again.stated_mode(), again.host()), (id.stated_mode(), id.host()));
    assert_eq!(again.content(), id.content());
    assert!(again.others().eq(id.others()));
}

/// An accepted filter is the given one, whatever the filter before was.
fn packet_filter(text: &str) {
    match Config::default().with_packet_filter(text) {
        Ok(config) => {
            assert_eq!(config.packet_filter(), text);
            let again = config.clone().with_packet_filter(text);
            assert_eq!(again.as_ref(), Ok(&config));
        }
        Err(error) => drop(error.to_string()),
    }
}

/// A quantity that was read, written for people to its last digit, reads the same.
fn quantities(text: &str) {
    if let Ok(duration) = parse_duration(text) {
        assert_eq!(parse_duration(&DisplayDuration(duration).to_string()), Ok(duration));
    }
    if let Ok(bytes) = parse_bytes(text) {
        assert_eq!(parse_bytes(&DisplayBytes(bytes).to_string()), Ok(bytes));
    }
    if let Ok(rate) = parse_bitrate(text) {
        assert_eq!(parse_bitrate(&rate.to_string()), Ok(rate));
        assert_eq!(rate.to_string().parse::<Bitrate>(), Ok(rate));
    }
    if let Ok(share) = parse_share(text) {
        assert!((0.0..=1.0).contains(&share), "{share}");
    }
    drop(parse_count(text).map_err(|error| error.to_string()));
}

/// An option by its key, as `KEY=VALUE`.
fn option(text: &str) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    if let Err(error) = set_option(Config::default(), key, value) {
        drop(error.to_string());
    }
}

/// Neither the URI nor its error shows its passphrase.
fn uri(text: &str) {
    const SECRET: &str = "horse-battery";
    if text.contains(SECRET) {
        return;
    }
    let read = |text: &str| match text.parse::<Uri>() {
        // The name of a file is no secret, whatever it looks like.
        Ok(Uri { target: Target::File(file), .. }) => file.path.is_absolute().to_string(),
        Ok(uri) => {
            drop(uri.warnings().join(" "));
            format!("{uri} {uri:?}")
        }
        Err(error) => format!("{error} {error:?} {}", error.uri()),
    };
    drop(read(text));
    drop(read(&redacted(text)));
    // The passphrase is a key of the query, which `text` may begin or not.
    let separator = if text.contains('?') { '&' } else { '?' };
    let shown = read(&format!("{text}{separator}passphrase={SECRET}"));
    assert!(!shown.contains(SECRET), "{shown}");
}
