//! Predicts the loss that training from random weights under privacy can be expected to reach, by McKenna et al. 2025,
//! <https://arxiv.org/abs/2501.18914>, Table 2.
//!
//! The paper prints exponents of a sum of powers of parameters, examples and noise, without its four constants. However these are chosen,
//! that sum has its least value elsewhere than the table: with 1e8 units, ε = 1 and 5.2e21 operations, at 7e8 parameters and 2,200
//! steps, where the paper found 1.3e8 and 58,000. The form here has both the losses and the optima of the table.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{CertifiedPlan, Initial, Objective, PlanFile, Source, Tokenizer, Words};

/// Entropy of the frequencies of tokens in the paper's setting, in nats: that of WikiText-2 (validation and test) with
/// BERT's uncased vocabulary.
pub(super) const PAPER_UNIGRAM: f64 = 7.08;

/// What a law predicts from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Number of parameters.
    pub parameters: f64,
    /// Number of steps.
    pub steps: f64,
    /// σ/B.
    pub noise_batch_ratio: f64,
    /// Units times ε, if training starts from the words that were released for the vocabulary.
    pub released: Option<f64>,
}

/// A law, with the ranges of the data that it was fitted to.
struct Fit {
    /// A law for the loss as a multiple of the entropy of word frequencies.
    law: fn(Setting) -> f64,
    /// Largest relative error on the data of the fit, and on held-out runs if there are any, rounded up to a percent.
    error: f64,
    source: &'static str,
    parameters: [f64; 2],
    steps: [f64; 2],
    noise_batch_ratio: [f64; 2],
    /// Units times ε, where it counts.
    released: [f64; 2],
    objective: Objective,
    window: u32,
}

/// The measured loss of plans that no law covers: `trainer-native/UTILITY.md`.
const NOTES_MEASURED: &str =
    "The built-in notes, made from templates, were measured at 2.4 nats a token (frequencies alone: 5.5).";

/// The law fitted to the table's 20 optima.
const PAPER: Fit = Fit {
    law: paper_relative_loss,
    error: 0.07,
    source: "the 20 optima of McKenna et al. 2025",
    parameters: [4.6e6, 3.3e8],
    steps: [1_800.0, 110_000.0],
    noise_batch_ratio: [3.6e-7, 2.7e-3],
    released: [0.0, f64::INFINITY],
    objective: Objective::MaskedLm,
    window: 512,
};

/// The law fitted to runs on novels, which `plan/README.md` lists.
const SMALL: Fit = Fit {
    law: small_relative_loss,
    error: 0.05,
    source: "runs of this trainer",
    parameters: [9.3e4, 6.7e5],
    steps: [50.0, 900.0],
    noise_batch_ratio: [3.1e-4, 1.6e-2],
    released: [0.0, f64::INFINITY],
    objective: Objective::CausalLm,
    window: 64,
};

/// The law fitted to runs that start from pairs of released words, which `plan/README.md` lists.
const WARM: Fit = Fit {
    law: warm_relative_loss,
    error: 0.11,
    source: "runs of this trainer that start from released words",
    parameters: [5.9e4, 6.7e5],
    steps: [40.0, 1_080.0],
    noise_batch_ratio: [8.1e-4, 0.7],
    released: [1.2e4, 4.8e5],
    objective: Objective::CausalLm,
    window: 32,
};

/// Returns the predicted loss as a multiple of the entropy of word frequencies. Above 1, the law expects a model that
/// predicts worse than these.
pub(super) fn relative_loss(setting: Setting) -> f64 {
    (fit(setting).law)(setting)
}

/// Returns the law that applies: the paper's or, for models nearer to those of our runs and for a start from released words, the one
/// that predicts the lower loss.
fn fit(setting: Setting) -> &'static Fit {
    // Halfway, on the logarithm, between the models of the two fits.
    let is_small = setting.parameters * setting.parameters < SMALL.parameters[1] * PAPER.parameters[0];
    let near = match setting.released {
        Some(_) => Some(&WARM),
        None => is_small.then_some(&SMALL),
    };
    near.filter(|near| (near.law)(setting) < (PAPER.law)(setting)).unwrap_or(&PAPER)
}

/// Computes the law for the paper's table.
///
/// L = A·M^−α + B·(T / (1 + (r / r₀)²·M^κ))^−β for M parameters, T steps and r = σ/B. Noise of ratio r₀ halves what a step is worth;
/// where it is the larger part, L depends on T·(B/σ)² alone, the signal-to-noise ratio of all steps. A, B, r₀ and exponents are
/// fitted by least squares to the logarithms of the 20 losses (standard deviation 3 %), with a penalty where a row of the table is not within 1 % of the least
/// loss at its cost, of models of 4.5e6 to 7.8e8 parameters and batches of powers of two.
fn paper_relative_loss(Setting { parameters, steps, noise_batch_ratio, .. }: Setting) -> f64 {
    let millions = parameters / 1e7;
    let noise = noise_batch_ratio / 1.792e-6;
    let worth = 1.0 + noise * noise * libm::pow(millions, 0.3778);
    let capacity = 0.7005 * libm::pow(millions, -0.3377);
    (capacity + 1.2817 * libm::pow(steps / worth / 1e4, -0.1258)) / PAPER_UNIGRAM
}

/// Computes the law for our runs: the first steps of small models, whose gradients agree so well that noise matters far
/// less than in the paper's law. It is a product of powers, fitted by least squares to logarithms. Steps beyond the
/// longest of these runs count as no gain.
fn small_relative_loss(Setting { parameters, steps, noise_batch_ratio, .. }: Setting) -> f64 {
    0.9887
        * libm::pow(steps.min(SMALL.steps[1]) / 100.0, -0.067)
        * libm::pow(noise_batch_ratio / 1e-3, 0.0339)
        * libm::pow(parameters / 1e5, 0.004)
}

/// Computes the law for our runs that start from pairs of released words. The start gives most of what these runs learn, so that its
/// release counts most; noise makes steps worth less as in [`paper_relative_loss`]. Steps and parameters beyond the most of these runs
/// count as no gain. Fitted by least squares to logarithms.
fn warm_relative_loss(Setting { parameters, steps, noise_batch_ratio, released }: Setting) -> f64 {
    let noise = noise_batch_ratio / 0.01789;
    let parameters = parameters.min(WARM.parameters[1]);
    let worth = 1.0 + noise * noise * libm::pow(parameters / 1e5, -0.90);
    0.8510
        * libm::pow(released.unwrap_or_default() / 1e5, -0.0296)
        * libm::pow(steps.min(WARM.steps[1]) / worth / 100.0, -0.0133)
        * libm::pow(parameters / 1e5, -0.0050)
}

/// A loss that a law predicts, and how far the plan is from the data of the fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Predicted cross-entropy on other text of the same kind, nats a token. At most `unigram`, where the law ends.
    pub loss: f64,
    /// Entropy of the frequencies of tokens in such text, nats a token: the loss of a model that knows nothing else.
    pub unigram: f64,
    /// Description of the kind of text, with the vocabulary.
    pub text: String,
    /// Largest relative error of the law on what it was fitted to.
    pub error: f64,
    /// Description of what the law was fitted to.
    pub fitted_to: String,
    /// The properties in which the plan lies outside of the fit, with the range of the fit. If empty, the prediction
    /// interpolates.
    pub extrapolated: Vec<String>,
}

impl Prediction {
    /// Predicts the loss for a plan with one phase.
    #[must_use]
    pub fn of_plan(plan: &CertifiedPlan) -> Option<Self> {
        let [phase] = plan.phases() else { return None };
        Self::of(plan.plan().file(), phase.noise_batch_ratio(), plan.epsilon().upper)
    }

    /// Returns the reason why no loss is predicted for a plan, as a sentence.
    #[must_use]
    pub fn why_none(file: &PlanFile) -> Option<&'static str> {
        let starts_from_notes =
            file.training.warm_start.is_some() && matches!(file.data.source, Source::Embedded { .. });
        Self::no_law(file).or(starts_from_notes.then_some(NOTES_MEASURED))
    }

    /// Returns the reason why no law covers a plan.
    fn no_law(file: &PlanFile) -> Option<&'static str> {
        let training = &file.training;
        if training.objective.reads_fields() {
            return Some("No law predicts the loss of a model that learns no running text.");
        }
        if file.model.initial != Initial::Random {
            return Some("No law predicts the loss of training from a checkpoint.");
        }
        training.warm_start?;
        let has_pairs = matches!(file.tokenizer.release(), Some((_, Words::Pairs)));
        let is_covered = has_pairs && training.objective == Objective::CausalLm;
        (!is_covered).then_some("No law predicts the loss of this start from released words.")
    }

    /// Predicts the loss for the steps and the batch of `file` with this σ/B and ε, unless there is a reason against it.
    pub(super) fn of(file: &PlanFile, noise_batch_ratio: f64, epsilon: f64) -> Option<Self> {
        Self::why_none(file).is_none().then(|| Self::by_law(file, noise_batch_ratio, epsilon))?
    }

    /// Predicts the loss that running text would have in place of the plan's text. Returns `None` where no law applies.
    pub(super) fn by_law(file: &PlanFile, noise_batch_ratio: f64, epsilon: f64) -> Option<Self> {
        if Self::no_law(file).is_some() {
            return None;
        }
        let cost = file.cost();
        let (parameters, steps) = (cost.parameters as f64, cost.steps as f64);
        let setting = Setting { parameters, steps, noise_batch_ratio, released: released(file, epsilon) };
        let (unigram, text) = unigram(file, setting.released);
        let fit = fit(setting);
        let loss = unigram * (fit.law)(setting).min(1.0);
        let ranges = [
            ("parameters", Some(parameters), fit.parameters),
            ("steps", Some(steps), fit.steps),
            ("σ/B", Some(noise_batch_ratio), fit.noise_batch_ratio),
            ("units × ε", setting.released, fit.released),
        ];
        let outside = |(name, value, [least, most]): (&str, Option<f64>, [f64; 2])| {
            let value = value.filter(|value| !(least..=most).contains(value))?;
            Some(format!("{name} {value:.1e} (fitted: {least:.1e} to {most:.1e})"))
        };
        let mut extrapolated: Vec<String> = ranges.into_iter().filter_map(outside).collect();
        if file.training.objective != fit.objective || file.model.context != fit.window {
            extrapolated.push(format!(
                "objective and windows of {} tokens (fitted: one objective on windows of {})",
                file.model.context, fit.window
            ));
        }
        Some(Self { loss, unigram, text, error: fit.error, fitted_to: fit.source.to_owned(), extrapolated })
    }

    /// Returns whether the loss is below that of word frequencies by more than the law's error.
    #[must_use]
    pub fn beats_frequencies(&self) -> bool {
        self.loss <= (1.0 - self.error) * self.unigram
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Predicted loss: {:.2} nats a token; the frequencies of tokens alone have {:.2} ({}). The law gives {} \
             within {:.0} %. ",
            self.loss,
            self.unigram,
            self.text,
            self.fitted_to,
            100.0 * self.error
        )?;
        match self.extrapolated.as_slice() {
            [] => write!(f, "This plan lies among them: an interpolation."),
            outside => write!(f, "This plan extrapolates it: {}.", outside.join(", ")),
        }
    }
}

/// Returns how many times the units of a plan, in batches as many times as large, are needed to predict better than
/// word frequencies by more than the law's error. The sampling probability q, and with it σ, stays as it is. Returns
/// `None` beyond a thousand.
pub(super) fn times_the_units(setting: Setting) -> Option<u32> {
    let enough = |times: &u32| {
        let times = f64::from(*times);
        let more = Setting {
            noise_batch_ratio: setting.noise_batch_ratio / times,
            released: setting.released.map(|released| released * times),
            ..setting
        };
        relative_loss(more) <= 1.0 - fit(more).error
    };
    [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000].into_iter().find(enough)
}

/// Returns the units times ε of a plan that starts from released words.
pub(super) fn released(file: &PlanFile, epsilon: f64) -> Option<f64> {
    file.training.warm_start.map(|_| file.data.units as f64 * epsilon)
}

/// Points of a curve: size of the vocabulary, and entropy of the frequencies of tokens in nats.
type Curve = [(f64, f64); 5];

/// English: the middle of novels, WikiText-2, Ubuntu's chat and the Brown corpus, which are within 8 % of it at 512 tokens and 4 % elsewhere. The first
/// vocabulary is that of bytes, the others are unigram models trained on the text itself.
const ENGLISH: Curve = [(256.0, 3.16), (512.0, 4.62), (2048.0, 6.26), (8192.0, 6.81), (32_768.0, 6.97)];

/// The same curve for the built-in clinical notes. They have 4,416 words.
const NOTES: Curve = [(256.0, 3.16), (400.0, 3.81), (1024.0, 5.53), (2048.0, 5.62), (4182.0, 5.62)];

/// Size of the vocabulary that is assumed for a public tokenizer: that of BERT.
const VOCABULARY_OF_FILE: f64 = 30_522.0;

/// Returns the entropy of word frequencies in the plan's kind of text, in nats a token, and the name of that kind.
fn unigram(file: &PlanFile, released: Option<f64>) -> (f64, String) {
    let (curve, kind) = match file.data.source {
        Source::Embedded { .. } => (NOTES, "the built-in notes"),
        Source::Path(_) | Source::Paths(_) => (ENGLISH, "English"),
    };
    let (vocabulary, tokens) = match &file.tokenizer {
        Tokenizer::Bytes => (256.0, "bytes".to_owned()),
        Tokenizer::Train(trained) => {
            (f64::from(trained.vocab_size), format!("{} tokens", trained.vocab_size))
        }
        Tokenizer::Public(_) | Tokenizer::Extend(_) => (
            VOCABULARY_OF_FILE,
            format!("{VOCABULARY_OF_FILE} tokens, which a plan with a tokenizer file does not state"),
        ),
    };
    let entropy = interpolated(&curve, vocabulary);
    match released {
        // Few released words leave many tokens a word, which are easier to predict. Fitted to the vocabularies of the runs.
        Some(released) => {
            let share = (4.748 + 0.2573 * libm::log(released / 1e5)) / interpolated(&ENGLISH, 2048.0);
            (entropy * share.clamp(0.1, 1.0), format!("{kind} in {tokens}, released from so many units"))
        }
        None => (entropy, format!("{kind} in {tokens}")),
    }
}

/// Interpolates a curve on straight lines between the points, by the logarithm of the vocabulary. Outside the points it
/// is level.
fn interpolated(curve: &Curve, vocabulary: f64) -> f64 {
    let mut before = curve[0];
    for after in curve.iter().copied() {
        if vocabulary < after.0 {
            let [from, at, to] = [before.0, vocabulary.max(before.0), after.0].map(libm::log);
            return before.1 + (after.1 - before.1) * if to > from { (at - from) / (to - from) } else { 0.0 };
        }
        before = after;
    }
    before.1
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use accountant::calibrate::EpsilonTarget;
    use accountant::{Delta, DpEvent, NeighboringRelation};

    use super::*;

    /// McKenna et al. 2025, Table 2: units, ε, loss, parameters, steps and batch.
    pub(in crate::advise) const OPTIMA: [[f64; 6]; 20] = [
        [100_000.0, 1.0, 7.28, 4.6e+06, 1_800.0, 510.0],
        [100_000.0, 4.0, 6.65, 4.6e+06, 1_800.0, 4_100.0],
        [100_000.0, 16.0, 5.6, 1.7e+07, 2_700.0, 14_000.0],
        [100_000.0, 64.0, 4.63, 2.0e+07, 6_300.0, 19_000.0],
        [1_000_000.0, 1.0, 5.89, 4.6e+06, 2_500.0, 8_200.0],
        [1_000_000.0, 4.0, 4.62, 1.9e+07, 6_500.0, 23_000.0],
        [1_000_000.0, 16.0, 3.61, 1.7e+07, 14_000.0, 46_000.0],
        [1_000_000.0, 64.0, 2.82, 4.9e+07, 12_000.0, 190_000.0],
        [10_000_000.0, 1.0, 3.73, 1.7e+07, 9_600.0, 78_000.0],
        [10_000_000.0, 4.0, 2.81, 4.9e+07, 11_000.0, 220_000.0],
        [10_000_000.0, 16.0, 2.15, 7.0e+07, 12_000.0, 740_000.0],
        [10_000_000.0, 64.0, 1.66, 3.3e+08, 49_000.0, 880_000.0],
        [100_000_000.0, 1.0, 2.26, 1.3e+08, 58_000.0, 220_000.0],
        [100_000_000.0, 4.0, 1.66, 3.3e+08, 49_000.0, 880_000.0],
        [100_000_000.0, 16.0, 1.32, 3.3e+08, 93_000.0, 1_000_000.0],
        [100_000_000.0, 64.0, 1.23, 3.3e+08, 110_000.0, 880_000.0],
        [1_000_000_000.0, 1.0, 1.36, 3.3e+08, 94_000.0, 880_000.0],
        [1_000_000_000.0, 4.0, 1.23, 3.3e+08, 110_000.0, 880_000.0],
        [1_000_000_000.0, 16.0, 1.22, 3.3e+08, 110_000.0, 880_000.0],
        [1_000_000_000.0, 64.0, 1.2, 3.3e+08, 110_000.0, 1_100_000.0],
    ];

    fn random(parameters: f64, steps: f64, noise_batch_ratio: f64) -> Setting {
        Setting { parameters, steps, noise_batch_ratio, released: None }
    }

    /// The table does not state δ: here 1e-8, or a tenth of one over the units.
    fn noise([units, epsilon, _, _, steps, batch]: [f64; 6]) -> f64 {
        let delta = Delta::new((0.1 / units).min(1e-8)).unwrap();
        let relation = NeighboringRelation::AddOrRemoveOne;
        let event = |noise_multiplier| DpEvent::SelfComposed {
            event: Box::new(DpEvent::PoissonSampledGaussian {
                sampling_probability: batch / units,
                noise_multiplier,
            }),
            count: steps as u64,
        };
        EpsilonTarget { epsilon, delta, relation }.noise_multiplier(event).unwrap()
    }

    #[test]
    fn the_law_gives_the_losses_of_the_paper_within_its_error() {
        let mut worst = 0.0_f64;
        for row in OPTIMA {
            let [_, _, loss, parameters, steps, batch] = row;
            let predicted =
                PAPER_UNIGRAM * relative_loss(random(parameters, steps, noise(row) / batch)).min(1.0);
            worst = worst.max((predicted / loss - 1.0).abs());
        }
        assert!(worst <= PAPER.error && worst > 0.9 * PAPER.error, "{worst}");
    }

    /// Parameters, steps, σ/B and loss, nats a token, on paragraphs of other novels, whose best unigram model has 5.884: runs of
    /// `trainer-native train` that `plan/README.md` describes.
    const OUR_RUNS: [[f64; 4]; 26] = [
        [9.3e+04, 50.0, 3.125e-04, 6.055],
        [9.3e+04, 100.0, 3.125e-04, 5.635],
        [9.3e+04, 150.0, 3.125e-04, 5.339],
        [9.3e+04, 50.0, 4.000e-04, 6.065],
        [9.3e+04, 100.0, 4.000e-04, 5.665],
        [9.3e+04, 150.0, 4.000e-04, 5.364],
        [9.3e+04, 50.0, 1.000e-03, 6.127],
        [9.3e+04, 100.0, 1.000e-03, 5.825],
        [9.3e+04, 150.0, 1.000e-03, 5.597],
        [9.3e+04, 50.0, 1.600e-02, 6.614],
        [9.3e+04, 100.0, 1.600e-02, 6.331],
        [9.3e+04, 150.0, 1.600e-02, 6.232],
        [9.3e+04, 100.0, 4.000e-03, 6.074],
        [9.3e+04, 200.0, 4.000e-03, 5.822],
        [9.3e+04, 500.0, 4.000e-03, 5.485],
        [9.3e+04, 900.0, 4.000e-03, 5.308],
        [6.7e+05, 50.0, 1.000e-03, 6.152],
        [6.7e+05, 100.0, 1.000e-03, 5.855],
        [6.7e+05, 150.0, 1.000e-03, 5.663],
        [6.7e+05, 50.0, 4.000e-03, 6.472],
        [6.7e+05, 100.0, 4.000e-03, 6.2],
        [6.7e+05, 150.0, 4.000e-03, 6.051],
        [6.7e+05, 200.0, 4.000e-03, 5.966],
        [6.7e5, 50.0, 4.000e-4, 5.998],
        [6.7e5, 100.0, 4.000e-4, 5.62],
        [6.7e5, 150.0, 4.000e-4, 5.352],
    ];

    #[test]
    fn the_law_of_small_models_gives_our_runs_within_its_error() {
        let error = |[parameters, steps, ratio, loss]: [f64; 4]| {
            (5.884 * relative_loss(random(parameters, steps, ratio)) / loss - 1.0).abs()
        };
        let worst = OUR_RUNS.into_iter().map(error).fold(0.0, f64::max);
        assert!(worst <= SMALL.error && worst > 0.5 * SMALL.error, "{worst}");
    }

    /// Parameters, steps, σ/B, units times ε, and of the evaluated text the entropy of word frequencies and the loss, nats a token: runs
    /// that `plan/README.md` describes.
    #[rustfmt::skip]
    const WARM_RUNS: [[f64; 6]; 55] = [
        [9.203e+04, 120.0, 3.747e-03, 4.800e+05, 4.986, 4.005],
        [9.203e+04, 360.0, 1.126e-02, 4.800e+05, 4.986, 4.014],
        [9.203e+04, 40.0, 1.249e-03, 4.800e+05, 4.986, 4.029],
        [6.630e+05, 1080.0, 6.907e-01, 4.800e+05, 4.986, 4.084],
        [6.630e+05, 120.0, 7.970e-02, 4.800e+05, 4.986, 4.037],
        [6.630e+05, 360.0, 2.302e-01, 4.800e+05, 4.986, 4.043],
        [6.630e+05, 40.0, 2.657e-02, 4.800e+05, 4.986, 4.031],
        [9.203e+04, 1080.0, 1.036e-01, 4.800e+05, 4.986, 4.177],
        [9.203e+04, 120.0, 1.126e-02, 4.800e+05, 4.986, 4.062],
        [9.203e+04, 360.0, 3.397e-02, 4.800e+05, 4.986, 4.091],
        [9.203e+04, 40.0, 3.747e-03, 4.800e+05, 4.986, 4.067],
        [2.332e+05, 1080.0, 2.590e-01, 4.800e+05, 4.986, 4.137],
        [2.332e+05, 120.0, 2.838e-02, 4.800e+05, 4.986, 4.030],
        [2.332e+05, 360.0, 8.634e-02, 4.800e+05, 4.986, 4.057],
        [2.332e+05, 40.0, 9.462e-03, 4.800e+05, 4.986, 4.029],
        [5.926e+04, 120.0, 7.322e-03, 6.480e+04, 4.186, 3.683],
        [5.926e+04, 360.0, 2.204e-02, 6.480e+04, 4.186, 3.636],
        [5.926e+04, 40.0, 2.444e-03, 6.480e+04, 4.186, 3.747],
        [5.926e+04, 1080.0, 6.684e-02, 6.480e+04, 4.186, 3.633],
        [1.677e+05, 120.0, 2.052e-02, 6.480e+04, 4.186, 3.621],
        [1.677e+05, 40.0, 6.839e-03, 6.480e+04, 4.186, 3.647],
        [1.677e+05, 360.0, 6.094e-02, 6.480e+04, 4.186, 3.616],
        [1.677e+05, 1080.0, 1.884e-01, 6.480e+04, 4.186, 3.648],
        [5.320e+05, 1080.0, 5.180e-01, 6.480e+04, 4.186, 3.726],
        [5.320e+05, 120.0, 6.475e-02, 6.480e+04, 4.186, 3.721],
        [5.320e+05, 360.0, 1.884e-01, 6.480e+04, 4.186, 3.717],
        [5.320e+05, 40.0, 2.158e-02, 6.480e+04, 4.186, 3.731],
        [9.203e+04, 1080.0, 3.397e-02, 4.800e+05, 4.986, 4.065],
        [6.630e+05, 1080.0, 2.302e-01, 4.800e+05, 4.986, 4.035],
        [6.630e+05, 120.0, 2.657e-02, 4.800e+05, 4.986, 3.999],
        [6.630e+05, 360.0, 7.970e-02, 4.800e+05, 4.986, 4.009],
        [6.630e+05, 40.0, 8.893e-03, 4.800e+05, 4.986, 4.001],
        [2.332e+05, 1080.0, 8.634e-02, 4.800e+05, 4.986, 4.055],
        [2.332e+05, 120.0, 9.462e-03, 4.800e+05, 4.986, 3.990],
        [2.332e+05, 360.0, 2.838e-02, 4.800e+05, 4.986, 4.000],
        [2.332e+05, 40.0, 3.149e-03, 4.800e+05, 4.986, 3.992],
        [5.926e+04, 1080.0, 2.204e-02, 6.480e+04, 4.186, 3.472],
        [5.926e+04, 120.0, 2.444e-03, 6.480e+04, 4.186, 3.621],
        [5.926e+04, 360.0, 7.322e-03, 6.480e+04, 4.186, 3.499],
        [5.926e+04, 40.0, 8.148e-04, 6.480e+04, 4.186, 3.729],
        [1.677e+05, 1080.0, 6.094e-02, 6.480e+04, 4.186, 3.537],
        [1.677e+05, 120.0, 6.839e-03, 6.480e+04, 4.186, 3.545],
        [1.677e+05, 360.0, 2.052e-02, 6.480e+04, 4.186, 3.526],
        [1.677e+05, 40.0, 2.282e-03, 6.480e+04, 4.186, 3.599],
        [5.320e+05, 40.0, 7.170e-03, 6.480e+04, 4.186, 3.657],
        [2.332e+05, 100.0, 2.623e-02, 6.000e+04, 4.639, 3.867],
        [2.332e+05, 100.0, 9.577e-03, 1.800e+05, 5.016, 4.098],
        [5.320e+05, 1080.0, 1.884e-01, 6.480e+04, 4.186, 3.629],
        [5.320e+05, 120.0, 2.158e-02, 6.480e+04, 4.186, 3.632],
        [5.320e+05, 360.0, 6.475e-02, 6.480e+04, 4.186, 3.624],
        [2.332e+05, 100.0, 4.047e-03, 3.200e+05, 5.147, 4.234],
        [2.332e+05, 100.0, 9.577e-03, 1.200e+05, 4.784, 4.000],
        [2.332e+05, 100.0, 2.623e-02, 4.000e+04, 4.478, 3.865],
        [2.332e+05, 100.0, 4.047e-03, 1.920e+05, 4.810, 4.256],
        [2.332e+05, 100.0, 7.445e-03, 1.271e+04, 4.117, 3.818],
    ];

    #[test]
    fn the_law_of_starts_gives_our_runs_within_its_error() {
        let mut file = PlanFile::parse(include_str!("../../presets/wikitext.json")).unwrap();
        let error = |[parameters, steps, noise_batch_ratio, released, entropy, loss]: [f64; 6]| {
            let setting = Setting { parameters, steps, noise_batch_ratio, released: Some(released) };
            let relative = relative_loss(setting) * entropy / loss - 1.0;
            if let Tokenizer::Train(trained) = &mut file.tokenizer {
                trained.vocab_size = if released == 6.48e4 { 1024 } else { 2048 };
            }
            let predicted = unigram(&file, Some(released)).0 * relative_loss(setting) / loss - 1.0;
            [relative.abs(), predicted.abs()]
        };
        let worst = WARM_RUNS
            .map(error)
            .into_iter()
            .reduce(|one, other| [one[0].max(other[0]), one[1].max(other[1])]);
        let [relative, predicted] = worst.unwrap();
        assert!(relative < 0.065 && (0.05..0.065).contains(&predicted), "{relative} {predicted}");
    }

    #[test]
    fn a_start_that_no_law_covers_has_a_reason_in_place_of_a_prediction() {
        let mut file = PlanFile::parse(include_str!("../../presets/quickstart.json")).unwrap();
        assert!(Prediction::why_none(&file).unwrap().contains("templates"));
        file.data.source = Source::Path("notes.jsonl".to_owned());
        let predicted = Prediction::of(&file, 1e-2, 8.0).unwrap();
        assert!(Prediction::why_none(&file).is_none() && predicted.beats_frequencies(), "{predicted}");
        assert!(predicted.fitted_to.contains("released words"), "{predicted}");
        assert_eq!(released(&file, 8.0), Some(6_000.0 * 8.0));
        file.training.objective = Objective::MaskedLm;
        assert!(
            Prediction::why_none(&file).unwrap().contains("this start")
                && Prediction::of(&file, 1e-2, 8.0).is_none()
        );
        file.training.warm_start = None;
        assert!(Prediction::why_none(&file).is_none() && Prediction::of(&file, 1e-2, 8.0).is_some());
    }

    /// No run with such a start was larger. The smallest of equal sizes is the one that advice takes.
    #[test]
    fn a_model_beyond_the_runs_with_a_start_counts_as_the_largest_of_them() {
        let loss = |parameters, noise_batch_ratio| {
            let released = Some(6_000.0 * 8.0);
            warm_relative_loss(Setting { parameters, steps: 300.0, noise_batch_ratio, released })
        };
        let [smaller, largest, larger] = [0.5, 1.0, 9.0].map(|times| times * WARM.parameters[1]);
        for noise in [1e-3, 0.1] {
            assert!(loss(smaller, noise) > loss(largest, noise));
            assert_eq!(loss(larger, noise), loss(largest, noise));
        }
    }

    #[test]
    fn loss_grows_with_noise_and_falls_with_steps() {
        for [_, _, _, parameters, steps, batch] in OPTIMA {
            let ratio = 2.0 / batch;
            let here = relative_loss(random(parameters, steps, ratio));
            assert!(relative_loss(random(parameters, steps, 2.0 * ratio)) > here);
            assert!(relative_loss(random(parameters, 2.0 * steps, ratio)) < here);
        }
        // Where noise is all, twice the noise takes four times the steps.
        let [once, four] =
            [(1e-2, 1e4), (2e-2, 4e4)].map(|(ratio, steps)| relative_loss(random(1e7, steps, ratio)));
        assert!((once / four - 1.0).abs() < 1e-6);
    }

    #[test]
    fn units_that_are_needed_are_the_least_of_their_row_that_suffice() {
        let times = times_the_units(random(1e7, 2_000.0, 1e-2)).unwrap();
        let loss = |times: u32| relative_loss(random(1e7, 2_000.0, 1e-2 / f64::from(times)));
        assert!(loss(times) <= 1.0 - PAPER.error && loss(times / 2) > 1.0 - PAPER.error, "{times}");
        assert_eq!(times_the_units(random(1e7, 2_000.0, 1e3)), None);
    }

    /// Oracle: the points measured, and their middle on the logarithm of the vocabulary.
    #[test]
    fn entropy_lies_between_those_of_the_vocabularies_measured() {
        assert_eq!(interpolated(&ENGLISH, 10.0), 3.16);
        assert_eq!(interpolated(&ENGLISH, 2048.0), 6.26);
        assert!((interpolated(&ENGLISH, 4096.0) - (6.26 + 6.81) / 2.0).abs() < 1e-12);
        assert_eq!(interpolated(&NOTES, 1e6), 5.62);
    }
}
