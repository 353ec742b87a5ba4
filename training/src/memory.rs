//! Checks free memory: whether a plan fits, and how many windows can be computed at once.

use plan::{CertifiedPlan, Cost, Device, Plan, ProcessSettings, Trainable};

use crate::{RunError, limits};
use network::model::Network;
use network::nn::ParamSpec;

/// Refuses a plan that needs more memory than the processes on this machine may use together.
/// Nothing is refused on other devices, or where the system does not report free memory.
///
/// # Errors
/// [`RunError::Refused`] with both figures.
pub(crate) fn check(
    plan: &CertifiedPlan,
    vocabulary: u32,
    physical_batch: Option<u32>,
    device: Device,
    processes: usize,
) -> Result<(), RunError> {
    if device != Device::Cpu {
        return Ok(());
    }
    let needed =
        plan.plan().least_training_bytes(vocabulary, physical_batch).saturating_mul(processes as u128);
    limits::free().map_or(Ok(()), |free| check_against(needed, free))
}

/// Returns the memory that the plan needs with a vocabulary of this size and with its adapters,
/// whose sizes the plan does not state.
///
/// # Errors
/// [`RunError::Refused`] if there is no such network.
pub fn cost(plan: &Plan, vocabulary: u32) -> Result<Cost, RunError> {
    let mut cost = plan.file().cost_with_vocabulary(vocabulary);
    if let Trainable::Lora(_) = plan.model().trainable {
        let refused = |error: &dyn std::fmt::Display| RunError::Refused(error.to_string());
        let network = Network::new(plan.model(), plan.training(), vocabulary as usize)
            .map_err(|error| refused(&error))?;
        let selection = network.selection(plan.model()).map_err(|error| refused(&error))?;
        let adapters =
            selection.map_or(0, |adapted| adapted.specs().iter().map(ParamSpec::len).sum::<usize>());
        cost.trained += adapters as u128;
        cost.bytes += 16 * adapters as u128;
    }
    Ok(cost)
}

/// Returns an estimate of the most bytes that a process takes for a plan of this cost. On devices other than the CPU, the bytes of the
/// cost are a lower bound.
pub(crate) fn peak(
    plan: &Plan,
    cost: &Cost,
    vocabulary: u32,
    device: Device,
    settings: ProcessSettings,
) -> u128 {
    if device != Device::Cpu {
        return cost.bytes;
    }
    // Beside the plan's own trained parameters, the cost counts adapters: values, moments, gradients and sums.
    let adapters = match plan.model().trainable {
        Trainable::Lora(_) => cost.trained,
        _ => 0,
    };
    plan.peak_training_bytes(vocabulary, adapters, settings)
}

/// Assumed bytes of free memory if the system does not report it, as on graphics processors.
const ASSUMED_FREE: u64 = 4 << 30;

/// Returns the number of windows that each of `workers` on this machine computes at once: the given
/// number, the plan's, or as many as fit into free memory.
pub(crate) fn windows_at_once(
    plan: &Plan,
    vocabulary: u32,
    physical_batch: Option<u32>,
    device: Device,
    workers: usize,
) -> usize {
    let free = if device == Device::Cpu { limits::free() } else { None };
    plan.windows_at_once(vocabulary, physical_batch, free.unwrap_or(ASSUMED_FREE), workers as u32) as usize
}

fn check_against(needed: u128, free: u64) -> Result<(), RunError> {
    if needed <= u128::from(free) {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "model: training needs at least {} MiB of memory, and this machine has {} MiB free for this process; make \
         performance.physical_batch (in a run that has begun: --physical-batch), the model or the vocabulary smaller, raise the \
         limit of the container or of `ulimit -v`, or use a machine with more memory",
        needed >> 20,
        free >> 20
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_beyond_the_limit_is_refused_with_both_figures() {
        assert!(check_against(8_192_000_000, 8_192_000_000).is_ok());
        let refused = check_against(8_192_000_001 + (1 << 20), 8_192_000_000).unwrap_err().to_string();
        assert!(refused.contains("7813 MiB") && refused.contains("7812 MiB"), "{refused}");
    }
}
