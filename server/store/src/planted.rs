//! Faults that are planted to show that tests would notice them. Each planted fault breaks one
//! guarantee. Only `.make/planted` builds a program that has them.

/// Returns whether the environment variable `PLANTED_FAULT` names this fault.
#[cfg(feature = "planted-faults")]
pub fn is_planted(fault: &str) -> bool {
    std::env::var("PLANTED_FAULT").is_ok_and(|planted| planted == fault)
}

/// Returns false: this program has no planted faults.
#[cfg(not(feature = "planted-faults"))]
pub const fn is_planted(_fault: &str) -> bool {
    false
}
