//! Whether this machine has the memory that a plan needs at the least, before anything is written.

use plan::{CertifiedPlan, Device};

use crate::RunError;

/// Refuses a plan that this machine's free memory cannot hold. Where the system does not say how much is free, or where
/// another device computes, nothing is refused.
///
/// # Errors
/// [`RunError::Refused`] with both figures.
pub(crate) fn check(plan: &CertifiedPlan, device: Device) -> Result<(), RunError> {
    if device != Device::Cpu {
        return Ok(());
    }
    let free = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text));
    free.map_or(Ok(()), |free| check_against(plan.plan().least_training_bytes(), free))
}

fn check_against(needed: u128, free: u64) -> Result<(), RunError> {
    if needed <= u128::from(free) {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "model: training needs at least {} MiB of memory, and this machine has {} MiB free; make \
         performance.physical_batch, model or vocabulary smaller, or run it on a larger machine",
        needed >> 20,
        free >> 20
    )))
}

/// Bytes that Linux calls available, in the text of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_figure_is_read_and_compared() {
        let text = "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\n";
        assert_eq!(available(text), Some(8_192_000_000));
        assert_eq!((available("MemTotal: 1 kB\n"), available("MemAvailable: much\n")), (None, None));
        assert!(check_against(8_192_000_000, 8_192_000_000).is_ok());
        let refused = check_against(8_192_000_001 + (1 << 20), 8_192_000_000).unwrap_err().to_string();
        assert!(refused.contains("7813 MiB") && refused.contains("7812 MiB"), "{refused}");
    }
}
