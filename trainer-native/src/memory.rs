//! Free memory: whether a plan fits, and how many windows are computed at once.

use plan::{CertifiedPlan, Device, Plan};

use crate::RunError;

/// Refuses a plan that needs more memory than this machine has free. Nothing is refused on other devices, or where the
/// system does not report free memory.
///
/// # Errors
/// [`RunError::Refused`] with both figures.
pub(crate) fn check(plan: &CertifiedPlan, device: Device) -> Result<(), RunError> {
    if device != Device::Cpu {
        return Ok(());
    }
    free().map_or(Ok(()), |free| check_against(plan.plan().least_training_bytes(), free))
}

/// Assumed free memory where the system does not report it, as on graphics processors.
const ASSUMED_FREE: u64 = 4 << 30;

/// Number of windows that each of `workers` computes at once: the plan's, or as many as fit into free memory.
pub(crate) fn windows_at_once(plan: &Plan, device: Device, workers: usize) -> usize {
    let free = if device == Device::Cpu { free() } else { None };
    plan.windows_at_once(free.unwrap_or(ASSUMED_FREE), workers as u32) as usize
}

fn free() -> Option<u64> {
    std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text))
}

fn check_against(needed: u128, free: u64) -> Result<(), RunError> {
    if needed <= u128::from(free) {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "model: training needs at least {} MiB of memory, and this machine has {} MiB free; make \
         performance.physical_batch, the model or the vocabulary smaller, or use a machine with more memory",
        needed >> 20,
        free >> 20
    )))
}

/// Available memory in bytes, from the text of `/proc/meminfo`.
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
