//! The Python package `private_lm`. Its modules are in `private_lm/`; here are the functions that they show.

mod accounting;
mod events;
mod frames;
mod interrupt;
mod options;
mod private_text;
mod runs;
mod search;
mod tokenizer;
mod training_runs;

use pyo3::prelude::*;

/// The compiled part of private_lm.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::accounting::{
        Bounds, Estimate, audited_epsilon, delta, epsilon, epsilon_of_mu, epsilon_of_rates, exact_epsilon,
        gaussian_equivalent, odds, renyi_divergence, renyi_epsilon, statement, true_positive_rate, zcdp,
    };
    #[pymodule_export]
    use super::runs::{CertifiedPlan, VerificationError, VerifiedRun, certify, verify};
    #[pymodule_export]
    use super::search::{
        NoiseBatch, Split, batch_size, noise_batch_ratio, noise_multiplier, smallest_batch_size,
        split_budget, steps,
    };
    #[pymodule_export]
    use super::tokenizer::{Tokenizer, train_tokenizer};
    #[pymodule_export]
    use super::training_runs::{Progress, Proposal, generate, init, train};
}
