//! Cuts bytes into pieces, as a network does.

/// Takes an option byte from the front. It is 0 if there is none.
pub fn option(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// Cuts `data` into pieces whose lengths `seed` decides: all of one length, or of many lengths.
pub fn pieces(data: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = data;
    let mut state = u32::from(seed);
    while !rest.is_empty() {
        let length = if seed < 32 {
            usize::from(seed) + 1
        } else {
            // The constants of Numerical Recipes.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as usize % 64 + 1
        };
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
