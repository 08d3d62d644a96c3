use percent_encoding::percent_decode_str;

/// The query of a stream ID or of a URL: `key=value&…`, as it was sent.
#[derive(Clone, Default, Eq, PartialEq)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The first value of this key that is not empty, decoded. A `+` stays a `+`: tokens have it.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        let pairs = self.0.split(['&', ';']).filter_map(|pair| pair.split_once('='));
        let mut values = pairs.filter(|(name, value)| *name == key && !value.is_empty());
        values.next().map(|(_, value)| decoded(value))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The text with each `%XX` replaced by the byte that it encodes. Bytes that are no UTF-8 become
/// U+FFFD, which no name of a stream has.
pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
