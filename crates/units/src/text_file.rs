use std::io;
use std::path::Path;

/// Reads a text file that a person wrote, with any editor.
///
/// # Errors
///
/// The file cannot be read, or is no text (see [`text_of`]).
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    text_of(std::fs::read(path)?)
}

/// The text in the bytes of a file: UTF-8 with or without a byte order mark, or UTF-16 with one, as
/// editors and shells of Windows write it. The mark is no part of the text. Line ends stay as they
/// are; [`str::lines`] knows both kinds.
///
/// # Errors
///
/// [`InvalidData`](io::ErrorKind::InvalidData) if the bytes are no text of these encodings.
pub fn text_of(mut bytes: Vec<u8>) -> io::Result<String> {
    let no_text = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let utf16 = |decode: fn([u8; 2]) -> u16| {
        let (pairs, odd) = bytes[2..].as_chunks();
        let units: Vec<u16> = pairs.iter().copied().map(decode).collect();
        let text = String::from_utf16(&units).ok().filter(|_| odd.is_empty());
        text.ok_or_else(|| no_text("this is not valid UTF-16: save it as UTF-8"))
    };
    match bytes[..] {
        [0xFF, 0xFE, ..] => return utf16(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => return utf16(u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, ..] => drop(bytes.drain(..3)),
        _ => {}
    }
    String::from_utf8(bytes).map_err(|_| no_text("this is not text in UTF-8: save it as UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_of_an_editor_gives_the_same_text() {
        let text = "cäm1\r\ncam2\r\n";
        let wide = |mark: u16, bytes: fn(u16) -> [u8; 2]| {
            let units = std::iter::once(mark).chain(text.encode_utf16());
            units.flat_map(bytes).collect::<Vec<u8>>()
        };
        let marked = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
        let (little, big) = (wide(0xFEFF, u16::to_le_bytes), wide(0xFEFF, u16::to_be_bytes));
        for bytes in [text.as_bytes().to_vec(), marked, little, big] {
            assert_eq!(text_of(bytes).unwrap(), text);
        }
        assert_eq!(text_of(Vec::new()).unwrap(), "");
        assert_eq!(text_of(vec![0xEF, 0xBB, 0xBF]).unwrap(), "");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_a_remedy() {
        for bytes in [&b"caf\xE9"[..], b"\xFF\xFEa", b"\xFF\xFE\x00\xD8", b"\x00\xFF"] {
            let error = text_of(bytes.to_vec()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains("save it as UTF-8"), "{error}");
        }
    }
}
