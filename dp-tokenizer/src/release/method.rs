//! The ways to find private items.

/// How private items are found. All have the same event; they differ in how many items the same budget finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Even weights. With one round the weighted Gaussian mechanism, with several DP-SIPS: what a round releases leaves
    /// before the next (Swanberg et al. 2023, <https://arxiv.org/abs/2301.01998>).
    Sips,
    /// As DP-SIPS, but units pass over items that the noise so far speaks against, and thresholds hold for the evidence
    /// of all rounds together.
    Pooled,
    /// The policy Gaussian: units one after the other, each moving the items it holds towards a common target
    /// (Gopi et al. 2020, <https://arxiv.org/abs/2002.09745>, ℓ2-descent).
    Policy,
    /// MAD2R in two rounds: units of few items take weight back from items that have more than enough and give it to their
    /// others; what the first round saw biases the weights of the second (Chen, Cohen-Addad, Epasto, Zadimoghaddam 2025,
    /// <https://arxiv.org/abs/2502.08878>). `src/release/degree.rs` says what is the paper's and what ours, with a proof.
    Mad2r,
}

impl Method {
    /// The shares of μ² for its rounds, where a quarter is left to the counts.
    #[must_use]
    pub fn round_shares(self) -> &'static [f64] {
        match self {
            Self::Sips => &[0.0625, 0.1875, 0.5],
            Self::Pooled => &[0.07, 0.07, 0.14, 0.2, 0.27],
            Self::Policy => &[0.75],
            Self::Mad2r => &[0.15, 0.6],
        }
    }
}
