//! The nearest right spelling of a word.

use strsim::osa_distance;

/// `; did you mean …?` with the candidate nearest to `word`, or nothing if none looks like it.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        Some(candidate) => format!("; did you mean `{candidate}`?"),
        None => String::new(),
    }
}

/// The candidate that fewest edits turn `word` into, if at most a third of its letters change.
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
    fn suggests_what_looks_alike_and_nothing_else() {
        let keys = ["latency", "mode", "streamid"];
        assert_eq!(did_you_mean("stremaid", keys), "; did you mean `streamid`?");
        assert_eq!(did_you_mean("latnecy", keys), "; did you mean `latency`?");
        assert_eq!(did_you_mean("bandwidth", keys), "");
    }
}
