//! Private selection: the best of a random number of trials, as in the tuning of hyperparameters.
//!
//! # Proof note
//! Papernot & Steinke 2022, "Hyperparameter tuning with Rényi differential privacy",
//! <https://arxiv.org/abs/2110.03620>, numbered as in v2. Let a trial have Rényi divergence ε(λ), the worse direction.
//! * Truncated negative binomial number of trials, shape η > −1, 0 < γ < 1 (Theorem 2): the selection has
//!   ε′(λ) = ε(λ) + (1+η)(1 − 1/λ̂)·ε(λ̂) + (1+η)·log(1/γ)/λ̂ + log E\[K\]/(λ−1) for every λ̂ ≥ 1: the least over a grid
//!   of λ̂ is taken once, as it does not depend on λ.
//! * Poisson, mean μ (Theorem 6): ε′(λ) = ε(λ) + μ·δ̂ + log μ/(λ−1), with δ̂ the trial's δ at log(1 + 1/(λ−1)), here
//!   from Chernoff's bound.
//!
//! A fixed number of trials is charged as their composition: no bound for the best alone is better
//! in general. From below: where the score says nothing about the trials, the selection releases
//! one of them.

use super::DominatingPair;
use super::chernoff::ChernoffBound;
use super::moment::cumulant;
use crate::{AccountantError, Result, Trials};

/// A selection, known by its Rényi divergences only.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Selection {
    trial: Vec<DominatingPair>,
    /// Excess over the trial's cost, the same for every order.
    constant: f64,
    /// log E\[K\].
    log_mean: f64,
    /// Mean number of trials, if the number has a Poisson law.
    poisson: Option<f64>,
}

impl Selection {
    /// The selection among trials, both directions of which are given.
    pub(super) fn new(trial: Vec<DominatingPair>, trials: Trials) -> Result<Self> {
        if trial.iter().any(|pair| pair.failure() > 0.0) {
            return Err(AccountantError::Unsupported {
                event: "private_selection",
                question: "trials that can fail, such as thresholded_histogram and balls_in_bins_gaussian",
            });
        }
        match trials {
            Trials::TruncatedNegativeBinomial { shape, stop } => {
                let log_mean = libm::log(mean(shape, stop)?) * (1.0 + 1e-13) + 1e-13;
                let worst = |order: f64| {
                    trial.iter().map(|pair| cumulant(pair, order - 1.0) / (order - 1.0)).fold(0.0, f64::max)
                };
                let extra = |order: f64| (1.0 - 1.0 / order) * worst(order) - libm::log(stop) / order;
                // λ̂ = 1 costs log(1/γ).
                let least = (0..48).fold(-libm::log(stop), |least, step| {
                    let order = 1.0 + 0.05 * libm::exp(0.25 * f64::from(step));
                    let cost = extra(order);
                    if cost < least { cost } else { least }
                });
                let constant = (1.0 + shape) * least * (1.0 + 1e-12);
                Ok(Self { trial, constant, log_mean, poisson: None })
            }
            Trials::Poisson { mean } => {
                if !(1.0..=1e9).contains(&mean) {
                    return refused("mean", mean, "1 to 1e9 trials");
                }
                Ok(Self { trial, constant: 0.0, log_mean: libm::log(mean), poisson: Some(mean) })
            }
            Trials::Fixed { .. } => Err(AccountantError::NotConverged { what: "a fixed number is composed" }),
        }
    }

    /// t times the Rényi divergence of order 1 + t.
    pub(crate) fn cumulant(&self, t: f64) -> f64 {
        let trial = self.trial.iter().map(|pair| cumulant(pair, t)).fold(0.0, f64::max);
        let failed = self.poisson.map_or(0.0, |mean| {
            let epsilon = libm::log1p(1.0 / t);
            let worst = self
                .trial
                .iter()
                .map(|pair| ChernoffBound::at_epsilon(pair, epsilon).delta())
                .fold(0.0, f64::max);
            mean * worst
        });
        trial + t * (self.constant + failed) + self.log_mean
    }
}

/// E\[K\] of the truncated negative binomial law.
fn mean(shape: f64, stop: f64) -> Result<f64> {
    if !(stop > 1e-12 && stop < 1.0) {
        return refused("stop", stop, "1e-12 < stop < 1");
    }
    if !(shape > -1.0 && shape <= 1e3) {
        return refused("shape", shape, "−1 < shape ≤ 1000");
    }
    let log = -libm::log(stop);
    // η(1−γ)/(γ(1−γ^η)), whose limit at η = 0 is (1−γ)/(γ·log(1/γ)).
    let part = if shape == 0.0 { 1.0 / log } else { shape / -libm::expm1(-shape * log) };
    Ok((1.0 - stop) / stop * part)
}

fn refused<T>(name: &'static str, value: f64, allowed: &'static str) -> Result<T> {
    Err(AccountantError::out_of_range(name, value, allowed))
}
