//! Suggestions for misspelt words.

use strsim::osa_distance;

/// Returns `; did you mean …?` with the candidate nearest to `word`, or an empty string if none is
/// similar.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(candidate) => format!("; did you mean `{candidate}`?"),
        None => String::new(),
    }
}

/// The candidate with the fewest edits from `word`, if they change at most a third of the letters.
fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(word, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()).div_ceil(3))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_similar_words_are_suggested() {
        let keys = ["latency", "mode", "streamid"];
        assert_eq!(did_you_mean("stremaid", keys), "; did you mean `streamid`?");
        assert_eq!(did_you_mean("latnecy", keys), "; did you mean `latency`?");
        assert_eq!(did_you_mean("bandwidth", keys), "");
    }
}
