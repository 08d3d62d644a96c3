use std::fmt;
use std::ops::Deref;

/// A stream ID as it travels: the bytes that a caller sends to a listener.
///
/// They are nearly always text, and can be used as such: what is not UTF-8 shows as U+FFFD. The
/// [bytes](Self::bytes) themselves are unchanged.
///
/// ```
/// use punctual_proto::RawStreamId;
///
/// let id = RawStreamId::from(b"caf\xE9".to_vec());
/// assert_eq!((id.as_str(), id.bytes()), ("caf\u{FFFD}", &b"caf\xE9"[..]));
/// assert_eq!(RawStreamId::from("camera 1").strip_prefix("camera "), Some("1"));
/// ```
#[derive(Clone, Default, Eq, Hash, PartialEq)]
pub struct RawStreamId {
    /// The bytes, or what is shown of them.
    text: String,
    /// The bytes if they are not text.
    other: Option<Box<[u8]>>,
}

impl RawStreamId {
    /// The stream ID as text; each sequence of bytes that is not UTF-8 is U+FFFD.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The bytes of the stream ID.
    pub fn bytes(&self) -> &[u8] {
        self.other.as_deref().unwrap_or(self.text.as_bytes())
    }
}

impl Deref for RawStreamId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<Vec<u8>> for RawStreamId {
    fn from(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Self { text, other: Some(error.into_bytes().into_boxed_slice()) }
            }
        }
    }
}

impl From<String> for RawStreamId {
    fn from(text: String) -> Self {
        Self { text, other: None }
    }
}

impl From<&str> for RawStreamId {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for RawStreamId {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Debug for RawStreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.other {
            None => self.text.fmt(f),
            Some(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
        }
    }
}

impl PartialEq<str> for RawStreamId {
    fn eq(&self, text: &str) -> bool {
        self.bytes() == text.as_bytes()
    }
}

impl PartialEq<&str> for RawStreamId {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_text_are_text_and_others_are_kept() {
        let text = RawStreamId::from("été".as_bytes().to_vec());
        assert_eq!((text.as_str(), text.bytes()), ("été", "été".as_bytes()));
        assert_eq!(text, RawStreamId::from("été"));
        let other = RawStreamId::from(b"\xE9t\xE9\0".to_vec());
        assert_eq!((other.as_str(), other.bytes()), ("\u{FFFD}t\u{FFFD}\0", &b"\xE9t\xE9\0"[..]));
        assert_eq!(format!("{other:?}"), r#""\xe9t\xe9\x00""#);
    }

    #[test]
    fn ids_that_show_the_same_text_differ_if_their_bytes_do() {
        let [one, two] = [b"\xE9", b"\xE8"].map(|bytes| RawStreamId::from(bytes.to_vec()));
        assert_eq!(one.as_str(), two.as_str());
        assert_ne!(one, two);
        assert_ne!(one, "\u{FFFD}");
        assert_eq!(RawStreamId::from("\u{FFFD}"), "\u{FFFD}");
    }
}
