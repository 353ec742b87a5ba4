//! Knobs of speed. None of them reaches a privacy event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Knobs of speed: they change time and memory, never privacy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Performance {
    /// What computes.
    pub device: Device,
    /// Windows computed at once; a batch is worked off in pieces of this size. Found from the machine's free memory
    /// where left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub physical_batch: Option<u32>,
    /// Number format of what a training step multiplies. Weights, norms, clipped sums, noise and optimizer are of 32 bits
    /// whatever it says.
    pub precision: Precision,
    /// Compute each block of layers again for the backward pass instead of keeping what it needs: less memory, the same
    /// weights, about twice the time of a private step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recompute: bool,
    /// Save a checkpoint after every so many steps, and at the end.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub checkpoint_every: u64,
}

impl Default for Performance {
    fn default() -> Self {
        Self {
            device: Device::Cpu,
            physical_batch: None,
            precision: Precision::F32,
            recompute: false,
            checkpoint_every: 25,
        }
    }
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// The processor.
    Cpu,
    /// A graphics processor through WebGPU.
    Wgpu,
    /// An NVIDIA graphics processor.
    Cuda,
}

/// Number format of the operands of a training step's matrix products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32 bits.
    F32,
    /// The upper 16 of them (bfloat16), added up in 32: faster on graphics processors that have it, others refuse.
    Bf16,
}
