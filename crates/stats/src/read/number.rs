//! Numbers as C++ streams print them.

/// Reads a number; `None` if it is missing or not finite.
///
/// # Errors
///
/// The text is something else; the error says so in words.
pub(super) fn parse(text: &str) -> Result<Option<f64>, String> {
    let lower = text.trim_start_matches(['-', '+']).to_ascii_lowercase();
    if ["", "nan", "nan(ind)", "nan(snan)", "inf"].contains(&lower.as_str()) {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(number) => Ok(Some(number).filter(|number| number.is_finite())),
        Err(_) => Err(format!("`{text}` is no number")),
    }
}
