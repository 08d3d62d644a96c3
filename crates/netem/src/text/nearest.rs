//! The closest name to a misspelt one.

use strsim::levenshtein;

/// The known word that is closest to `word`, if it differs in at most a third of its letters.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let most = word.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|known| (levenshtein(&word, known), known))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_gets_a_suggestion_and_nonsense_none() {
        let known = ["delay", "loss", "rate"];
        assert_eq!(nearest("dely", known), Some("delay"));
        assert_eq!(nearest("Loss", known), Some("loss"));
        assert_eq!(nearest("bandwidth", known), None);
        assert_eq!(nearest("", known), None);
    }
}
