//! What is added to a sum of gradients at once, on a processor and on several ranks.

use super::PlanFile;

/// Number of trained parameters up to which a rank keeps the whole sum of a step, of 1 GiB at most, and sends it once. With more, the ranks
/// add up after each micro-batch, and each keeps its part: that takes less memory, but more time (`cluster/README.md`).
pub const LARGEST_WHOLE_SUM: u32 = 1 << 27;

/// Number of parameters whose sums the ranks exchange in one message after a micro-batch.
pub const SUMS_A_MESSAGE: u32 = 1 << 20;

/// Tokens of an example from which the CPU computes each by itself, those from which exact sums hold most gradients as a whole, and those of
/// the shorter examples whose factors they hold at a time.
const LONG: u32 = 512;
pub(super) const HELD_WHOLE: u32 = 160;
const TOKENS_HELD: u32 = 512;

/// Whether each example is computed by itself, as exact sums and long examples are on the CPU.
pub(super) fn computes_one_by_one(file: &PlanFile, exact: bool) -> bool {
    exact || file.model.context >= LONG && !file.performance.group_by_length
}

/// Returns the number of examples of a micro-batch that a worker adds to a sum at once.
pub(crate) fn examples_at_once(file: &PlanFile, exact: bool, micro_batch: u32) -> u32 {
    let context = file.model.context;
    match (computes_one_by_one(file, exact), context < HELD_WHOLE) {
        (true, true) => (TOKENS_HELD / context.max(1)).clamp(1, micro_batch.max(1)),
        (true, false) => 1,
        (false, _) => micro_batch.max(1),
    }
}
