//! Suggestions for misspelt names.

/// The similarity, from 0 to 1, at which an unknown name counts as a misspelling.
const SIMILAR_MIN: f64 = 0.8;

/// Returns the known name that a misspelt one probably stands for.
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .filter(|(similarity, _)| *similarity >= SIMILAR_MIN)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, known)| known)
}
