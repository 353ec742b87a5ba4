//! What a plan needs: memory, arithmetic and time, by formulas that a reader can check.
//!
//! These are estimates, good to about a factor of two. They never enter an event or an ε.

use crate::{PlanFile, memory};

/// A machine, from its data sheet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Name of the machine.
    pub name: &'static str,
    /// Largest rate in 32-bit floating point, FLOP a second.
    pub peak_flops: f64,
    /// Fraction of that rate that training reaches.
    pub utilization: f64,
    /// Memory, bytes.
    pub memory: f64,
}

/// Rates in 32 bits without tensor cores: lanes × clock × 2. H100 SXM: 16 896 lanes × 1.98 GHz, 80 GB
/// (<https://modal.com/gpu-glossary/perf/peak-rate>). A100: 19.5 TFLOPS, 80 GB, NVIDIA's data sheet as quoted by
/// <https://glennklockwood.com/garden/processors/A100>. RTX 4090: 16 384 lanes × 2.52 GHz, 24 GB, and T4: 2 560 lanes ×
/// 1.59 GHz, 16 GB (<https://www.topcpu.net/en/gpu-c/tesla-t4-vs-geforce-rtx-4090>). The processor, 8 cores × 3 GHz × 32 FLOP
/// a cycle (two 256-bit fused multiply-adds) with 16 GB, is an assumption, and so are the utilizations. Memory in units of 10⁹ bytes.
pub const MACHINES: [Machine; 5] = [
    Machine { name: "Processor, 8 cores", peak_flops: 0.77e12, utilization: 0.25, memory: 16e9 },
    Machine { name: "NVIDIA T4", peak_flops: 8.1e12, utilization: 0.35, memory: 16e9 },
    Machine { name: "NVIDIA RTX 4090", peak_flops: 82.6e12, utilization: 0.35, memory: 24e9 },
    Machine { name: "NVIDIA A100 80 GB", peak_flops: 19.5e12, utilization: 0.5, memory: 80e9 },
    Machine { name: "NVIDIA H100 SXM", peak_flops: 67e12, utilization: 0.4, memory: 80e9 },
];

/// What a plan needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Number of trainable parameters, P. The vocabulary of a public tokenizer counts as that of bytes: its size is unknown.
    pub parameters: u128,
    /// Tokens processed: steps × expected batch × window. A unit with several windows contributes one per step.
    pub tokens: u128,
    /// Floating-point operations: tokens × (8·P + 12·layers·width·window).
    pub flops: f64,
    /// Bytes of weights and of the activations of one micro-batch in 32 bits, and of gradient sum and two moments of what is
    /// trained. Frozen weights of a checkpoint count 16 bits.
    pub bytes: u128,
}

impl Cost {
    /// Seconds on a machine: operations divided by the rate that training reaches.
    #[must_use]
    pub fn seconds_on(&self, machine: &Machine) -> f64 {
        self.flops / (machine.peak_flops * machine.utilization)
    }

    /// Whether the machine has enough memory.
    #[must_use]
    pub fn fits(&self, machine: &Machine) -> bool {
        self.bytes as f64 <= machine.memory
    }
}

impl PlanFile {
    /// What the plan needs, whether or not it can be certified.
    ///
    /// A token costs 2·P forward and 4·P backward (Kaplan et al. 2020, §2.1), at most 2·P more for the norm of one
    /// example's gradient (a second product with the weights' shape; the Gram form is taken where it is less), and
    /// 12·layers·width·window for attention scores (Chowdhery et al. 2022, appendix B).
    ///
    /// ```
    /// use plan::PlanFile;
    /// let file = PlanFile::parse(include_str!("../presets/quickstart.json"))?;
    /// let cost = file.cost();
    /// let [steps, batch] = [file.training.steps, file.training.expected_batch_size].map(|n| u128::from(n.unwrap_or(0)));
    /// assert_eq!(cost.tokens, steps * batch * u128::from(file.model.context));
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn cost(&self) -> Cost {
        let (model, network) = (&self.model, memory::Network::of(self));
        let parameters = network.parameters();
        let bytes = network.least_training_bytes(self.performance.physical_batch.unwrap_or(1));
        let drawn = |phase: crate::BatchPhase| {
            u128::from(phase.steps).saturating_mul(u128::from(phase.expected_batch_size))
        };
        let units = self.training.phases().into_iter().map(drawn).fold(0, u128::saturating_add);
        let tokens = units.saturating_mul(u128::from(model.context));
        let [layers, width, window] = [model.layers, model.d_model, model.context].map(f64::from);
        let a_token = 8.0 * parameters as f64 + 12.0 * layers * width * window;
        Cost { parameters, tokens, flops: tokens as f64 * a_token, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: by hand. P = 1 M, one block of width 100 and window 50: a token takes 8 M + 60 k operations.
    #[test]
    fn operations_and_time_follow_the_formulas() {
        let mut file: PlanFile =
            serde_json::from_str(include_str!("../presets/quickstart.json")).expect("a preset is a plan");
        file.training.steps = Some(10);
        file.training.expected_batch_size = Some(20);
        file.model.context = 50;
        let cost = file.cost();
        assert_eq!(cost.tokens, 10 * 20 * 50);
        let attention = 12.0 * f64::from(file.model.layers) * f64::from(file.model.d_model) * 50.0;
        let by_hand = 10_000.0 * (8.0 * cost.parameters as f64 + attention);
        assert!((cost.flops / by_hand - 1.0).abs() < 1e-12);
        let machine = Machine { name: "m", peak_flops: 1e9, utilization: 0.5, memory: 1.0 };
        assert!((cost.seconds_on(&machine) * 5e8 / by_hand - 1.0).abs() < 1e-12);
        assert!(!cost.fits(&machine) && cost.fits(&Machine { memory: 1e15, ..machine }));
    }

    #[test]
    fn a_plan_beyond_all_machines_saturates_instead_of_failing() {
        let mut file: PlanFile =
            serde_json::from_str(include_str!("../presets/quickstart.json")).expect("a preset is a plan");
        file.training.steps = Some(u64::MAX);
        file.training.expected_batch_size = Some(u64::MAX);
        file.model.context = u32::MAX;
        assert!(file.cost().flops.is_finite());
        assert_eq!(file.cost().tokens, u128::MAX);
    }
}
