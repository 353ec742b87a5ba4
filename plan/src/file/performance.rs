//! Performance settings, none of which reaches a privacy event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Performance settings. They affect time and memory, never privacy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Performance {
    /// The compute device.
    pub device: Device,
    /// Units per micro-batch: each batch is processed in micro-batches of this size. Defaults to what fits into free
    /// memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub physical_batch: Option<u32>,
    /// Number format of the operands of matrix products in a training step. Weights, norms, clipped sums, noise and
    /// optimizer state are always 32-bit.
    pub precision: Precision,
    /// Whether the backward pass recomputes the activations of each block instead of storing them. Saves memory, gives
    /// the same weights, and about doubles the time of a private step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub recompute: bool,
    /// Whether a micro-batch holds examples of similar length and is padded to that length instead of `model.context`. Saves time where
    /// most texts are shorter than the context.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub group_by_length: bool,
    /// Number of steps between checkpoints. One is also written at the end.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub checkpoint_every: u64,
    /// Number of steps between snapshots: models in `snapshots/STEPS/` of the run folder, which cost no further ε.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub snapshot_every: Option<u64>,
}

impl Default for Performance {
    fn default() -> Self {
        Self {
            device: Device::Cpu,
            physical_batch: None,
            precision: Precision::F32,
            recompute: false,
            group_by_length: false,
            checkpoint_every: 25,
            snapshot_every: None,
        }
    }
}

/// The compute device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// The CPU.
    Cpu,
    /// A GPU, through WebGPU.
    Wgpu,
    /// An NVIDIA GPU, through CUDA.
    Cuda,
}

/// Number format of the operands of matrix products in a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32-bit floating point.
    F32,
    /// bfloat16 operands with 32-bit accumulation. Faster on GPUs that support it; other devices refuse it.
    Bf16,
}
