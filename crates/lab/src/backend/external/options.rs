//! Options as libsrt's programs want them: bare numbers in their units.

use crate::plan::{Dimension, ParameterValue};

/// Options as the end of a URI's query, each with an `&` in front. FFmpeg counts latencies in
/// microseconds and does not know every option by libsrt's name.
pub(super) fn query(options: &[(String, ParameterValue)], ffmpeg: bool) -> String {
    let option = |(name, value): &(String, ParameterValue)| {
        format!("&{name}={}", encode(&plain(name, value, ffmpeg)))
    };
    options.iter().map(option).collect()
}

fn plain(name: &str, value: &ParameterValue, ffmpeg: bool) -> String {
    let quantity = match value {
        ParameterValue::Text(text) => {
            return match (name, text.as_str()) {
                ("retransmitalgo", "aggressive") => "0".to_owned(),
                ("retransmitalgo", "efficient") => "1".to_owned(),
                _ => text.clone(),
            };
        }
        ParameterValue::Secret(_) => return value.exact(),
        ParameterValue::Quantity(quantity) => quantity,
    };
    let in_microseconds =
        ffmpeg && matches!(name, "latency" | "rcvlatency" | "peerlatency" | "tsbpddelay");
    match quantity.dimension {
        Dimension::Time => {
            let time = quantity.time().unwrap_or_default();
            match name {
                "linger" => time.as_secs().to_string(),
                _ if in_microseconds => time.as_micros().to_string(),
                _ => time.as_millis().to_string(),
            }
        }
        Dimension::Rate => quantity.rate().unwrap_or_default().as_bytes_per_sec().to_string(),
        Dimension::Bytes => quantity.bytes().unwrap_or_default().to_string(),
        Dimension::Share => quantity.to_string().trim_end_matches('%').to_owned(),
        Dimension::Number => quantity.to_string(),
    }
}

/// Characters that mean something in a URI, in percent notation.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::keys::measure;
    use crate::plan::value::literal;

    #[test]
    fn options_are_bare_numbers_in_the_units_of_libsrt_and_ffmpeg() {
        let option = |name: &str, text: &str| {
            (name.to_owned(), literal(text, measure(&format!("options.{name}"))))
        };
        let options = [
            option("latency", "80ms"),
            option("maxbw", "1Gbps"),
            option("retransmitalgo", "aggressive"),
            option("oheadbw", "25%"),
            option("sndbuf", "125MB"),
        ];
        let all = "&latency=80&maxbw=125000000&retransmitalgo=0&oheadbw=25&sndbuf=125000000";
        assert_eq!(query(&options, false), all);
        assert!(query(&options, true).starts_with("&latency=80000&maxbw="));
    }
}
