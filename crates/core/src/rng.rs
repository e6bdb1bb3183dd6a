//! Randomness as a dependency that is handed in, so that a seed repeats a run.

use std::sync::Mutex;
use uuid::{Builder, Uuid};

/// A source of randomness: from the operating system, or from a seed in tests and simulations.
#[derive(Debug)]
pub struct Rng(Mutex<u64>);

impl Rng {
    /// Seeded by the operating system.
    #[must_use]
    pub fn from_os() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that asks the operating system for entropy"
        )]
        let (high, low) = Uuid::new_v4().as_u64_pair();
        Self::seeded(high ^ low.rotate_left(31))
    }

    /// Repeats the same sequence for the same seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// The next 64 random bits (SplitMix64).
    #[must_use]
    pub fn next_u64(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random (version 4) UUID.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&self.next_u64().to_le_bytes());
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_sequence() {
        let (a, b) = (Rng::seeded(7), Rng::seeded(7));
        assert_eq!(a.uuid(), b.uuid());
        assert_ne!(a.uuid(), a.uuid());
    }

    #[test]
    fn two_starts_differ() {
        assert_ne!(Rng::from_os().uuid(), Rng::from_os().uuid());
    }
}
