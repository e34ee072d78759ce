//! Entropy, the source of randomness.

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The system's random number generator, or a seeded one that makes a test repeatable.
#[derive(Clone, Debug, Default)]
pub struct Entropy(Option<Arc<Mutex<StdRng>>>);

impl Entropy {
    /// Returns the system's generator, which is fit for secrets.
    pub fn system() -> Self {
        Self(None)
    }

    /// Returns a generator that produces the same sequence of bytes for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    /// Returns `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        match &self.0 {
            // A panic can't leave the generator half changed, so a poisoned lock is safe to use.
            Some(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(&mut bytes),
            None => rand::rng().fill_bytes(&mut bytes),
        }
        bytes
    }

    pub fn number(&self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}
