//! HTTP requests as bytes, each with another number.

use std::ops::Range;

use rand::RngExt as _;

/// The placeholder in a template for eight digits that differ from request to request.
pub const DIGITS: &str = "{digits}";

/// Local numbers, none of which has a special meaning for the sandbox.
pub const NUMBERS: Range<u64> = 10_000_000..100_000_000;

/// Coprime to the length of [`NUMBERS`], so that its multiples reach each number once, in a scattered
/// order.
const STEP: u64 = 7_368_787;

/// Requests made from templates, with digits from a range. Both are chosen at random.
pub struct Requests {
    templates: Vec<Template>,
    digits: Range<u64>,
    /// The position of the next number, if no number may come twice.
    position: Option<u64>,
}

struct Template {
    bytes: Vec<u8>,
    /// The offset of the digits, if the template has any.
    digits: Option<usize>,
}

impl Requests {
    /// Each template is a whole request. `digits` is the range of the digits.
    pub fn new(templates: impl IntoIterator<Item = Vec<u8>>, digits: Range<u64>) -> Self {
        let templates = templates.into_iter().map(Template::new).collect();
        Self { templates, digits, position: None }
    }

    /// Makes requests from one template, with local numbers.
    pub fn of(request: Vec<u8>) -> Self {
        Self::new([request], NUMBERS)
    }

    /// Makes requests from one template, with local numbers of which none comes twice, from this
    /// position in their order on.
    pub fn each_once(request: Vec<u8>, position: u64) -> Self {
        Self { position: Some(position), ..Self::of(request) }
    }

    pub fn next(&mut self) -> &[u8] {
        let mut random = rand::rng();
        let which = random.random_range(0..self.templates.len());
        let template = &mut self.templates[which];
        if let Some(at) = template.digits {
            let mut number = match &mut self.position {
                Some(position) => {
                    *position += 1;
                    self.digits.start + *position * STEP % (self.digits.end - self.digits.start)
                }
                None => random.random_range(self.digits.clone()),
            };
            for digit in template.bytes[at..at + DIGITS.len()].iter_mut().rev() {
                *digit = b"0123456789"[usize::try_from(number % 10).unwrap()];
                number /= 10;
            }
        }
        &template.bytes
    }
}

impl Template {
    fn new(bytes: Vec<u8>) -> Self {
        let digits = bytes.windows(DIGITS.len()).position(|window| window == DIGITS.as_bytes());
        Self { bytes, digits }
    }
}
