//! What is added to a sum of gradients at once, on a processor and on several ranks.

use super::{Arithmetic, Device, PlanFile};

/// Number of trained parameters up to which a rank keeps the whole sum of a step, of 1 GiB at most, and sends it once. With more, the ranks
/// add up after each micro-batch, and each keeps its part: that takes less memory, but more time (`cluster/README.md`).
pub const LARGEST_WHOLE_SUM: u32 = 1 << 27;

/// Number of parameters whose sums the ranks exchange in one message after a micro-batch.
pub const SUMS_A_MESSAGE: u32 = 1 << 20;

/// Tokens of an example from which the CPU computes each by itself, those from which exact sums hold most gradients as a whole, and those of
/// the shorter examples that share a pass and whose factors are held at a time.
const LONG: u32 = 512;
pub(super) const HELD_WHOLE: u32 = 160;
const TOKENS_HELD: u32 = 512;

/// Whether exact sums take no more time than fast ones. The gradient of a long example takes less time than the Gram matrices that give its
/// norm, so that the CPU computes each by itself in any case.
#[must_use]
pub fn exact_is_free(device: Device, context: u32, group_by_length: bool) -> bool {
    device == Device::Cpu && context >= LONG && !group_by_length
}

impl PlanFile {
    /// Returns the arithmetic in which this device sums clipped gradients.
    #[must_use]
    pub fn arithmetic_on(&self, device: Device) -> Arithmetic {
        let is_wanted = self.privacy.arithmetic != Some(Arithmetic::Fast);
        let is_exact =
            is_wanted || exact_is_free(device, self.model.context, self.performance.group_by_length);
        if device == Device::Cpu && is_exact { Arithmetic::Exact } else { Arithmetic::Fast }
    }
}

/// Whether the CPU adds examples to a sum one by one, as it does in exact sums and with long examples.
pub(super) fn adds_one_by_one(file: &PlanFile, exact: bool) -> bool {
    exact || exact_is_free(Device::Cpu, file.model.context, file.performance.group_by_length)
}

/// Returns the number of examples of a micro-batch that a worker adds to a sum at once.
pub(crate) fn examples_at_once(file: &PlanFile, exact: bool, micro_batch: u32) -> u32 {
    let context = file.model.context;
    match (adds_one_by_one(file, exact), context < HELD_WHOLE) {
        (true, true) => (TOKENS_HELD / context.max(1)).clamp(1, micro_batch.max(1)),
        (true, false) => 1,
        (false, _) => micro_batch.max(1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arithmetic(changes: &[&(&str, serde_json::Value)], device: Device) -> Arithmetic {
        let mut plan: serde_json::Value =
            serde_json::from_str(include_str!("../../presets/quickstart.json")).expect("a preset is JSON");
        if let Some(privacy) = plan["privacy"].as_object_mut() {
            privacy.remove("arithmetic");
        }
        for (place, value) in changes {
            let (section, field) = place.split_once('.').expect("a place has a section");
            plan[section][field] = value.clone();
        }
        let file: PlanFile = serde_json::from_value(plan).expect("a plan");
        file.arithmetic_on(device)
    }

    #[test]
    fn sums_are_exact_unless_the_plan_or_the_device_says_otherwise() {
        let on_cpu = |changes: &[_]| arithmetic(changes, Device::Cpu);
        let (fast, exact) = (("privacy.arithmetic", json!("fast")), ("privacy.arithmetic", json!("exact")));
        let grouped = ("performance.group_by_length", json!(true));
        let long = ("model.context", json!(512));
        let checkpoint = ("model.initial", json!({ "checkpoint": "base" }));
        let head = ("model.trainable", json!("head"));
        let exact_ones = [
            vec![],
            vec![&exact, &grouped],
            vec![&fast, &long],
            vec![&grouped],
            vec![&grouped, &long],
            vec![&checkpoint],
            vec![&checkpoint, &head],
            vec![&checkpoint, &head, &long],
        ];
        for changes in exact_ones {
            assert_eq!(on_cpu(&changes), Arithmetic::Exact, "{changes:?}");
        }
        let short = ("model.context", json!(511));
        let fast_ones =
            [vec![&fast], vec![&fast, &short], vec![&fast, &long, &grouped], vec![&fast, &checkpoint, &head]];
        for changes in fast_ones {
            assert_eq!(on_cpu(&changes), Arithmetic::Fast, "{changes:?}");
        }
        assert_eq!(arithmetic(&[], Device::Cuda), Arithmetic::Fast);
    }
}
