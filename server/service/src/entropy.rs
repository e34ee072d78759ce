//! Entropy: where randomness comes from.

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The system's generator, or a seeded one that makes a test repeatable.
#[derive(Clone, Debug, Default)]
pub struct Entropy(Option<Arc<Mutex<StdRng>>>);

impl Entropy {
    /// The system's generator; fit for secrets.
    pub fn system() -> Self {
        Self(None)
    }

    /// A generator that gives the same bytes for the same seed, in the order in which they are
    /// asked for.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    /// Random bytes, as many as asked for.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        match &self.0 {
            // A generator has no state that a panic could leave half changed.
            Some(rng) => rng
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .fill_bytes(&mut bytes),
            None => rand::rng().fill_bytes(&mut bytes),
        }
        bytes
    }

    /// A random number.
    pub fn number(&self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}
