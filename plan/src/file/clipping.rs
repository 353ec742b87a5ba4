//! How the gradient of a unit is clipped.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the gradient of a unit is clipped. The sensitivity is the clip norm in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clipping {
    /// A gradient longer than the clip norm is scaled down to it.
    #[default]
    Flat,
    /// Each layer's part is clipped separately, to the clip norm / √(number of layers).
    PerLayer,
    /// Every gradient is scaled to just below the clip norm; short gradients are scaled up.
    Automatic(Automatic),
    /// The clip norm follows a quantile of the gradient norms. The noisy count behind it is part of each step's event.
    Adaptive(Adaptive),
}

impl Clipping {
    /// Returns whether this is the default.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        *self == Self::Flat
    }
}

/// Scaling by clip norm / (norm + stability) (Bu et al. 2022).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Automatic {
    /// Added to the norm in the denominator, so that near-zero gradients stay short.
    #[serde(default = "stability")]
    #[schemars(range(min = 1e-12, max = 1e12))]
    pub stability: f64,
}

fn stability() -> f64 {
    0.01
}

/// A clip norm that follows a quantile (Andrew et al. 2019); `l2_clip_norm` is where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {
    /// Target share of unclipped gradients.
    #[serde(default = "quantile")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub quantile: f64,
    /// Learning rate for the logarithm of the clip norm.
    #[serde(default = "learning_rate")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 10.0))]
    pub learning_rate: f64,
    /// Standard deviation of the noise on the count of unclipped gradients, as a share of the expected batch size.
    #[serde(default = "count_noise")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1e6))]
    pub count_noise: f64,
}

fn quantile() -> f64 {
    0.5
}

fn learning_rate() -> f64 {
    0.2
}

fn count_noise() -> f64 {
    0.05
}
