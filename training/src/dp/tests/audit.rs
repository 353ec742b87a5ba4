//! An audit of the private step in the space of gradients: it compares what the step leaks with
//! what the accountant certifies.
//!
//! The gradient of one unit has a known direction, and those of all others the opposite one. The
//! auditor sees every noisy sum along this direction and says whether the unit took part. Over many
//! independent runs, the rates of its true and false claims have Clopper–Pearson bounds. A true
//! positive rate above the largest one that the certified δ(ε) allows at the false positive rate
//! refutes the certificate.
//!
//! Broken trainers exist only in this module. They change the input of the step, never the step
//! itself.
//!
//! # References
//! Nasr et al. 2021, <https://arxiv.org/abs/2101.04535>; Nasr et al. 2023,
//! <https://arxiv.org/abs/2302.07956>. Shuffled batches charged as Poisson samples: Annamalai et
//! al. 2024, <https://arxiv.org/abs/2411.10614>.

use std::sync::Arc;
use std::time::{Duration, Instant};

use accountant::audit::Positives;
use accountant::{DpEvent, NeighboringRelation};
use mechanisms::{
    BallsInBinsGaussian, Bands, CyclicPoissonGaussian, FixedSizeSampledGaussian,
    PoissonSampledExamplesGaussian, PoissonSampledGaussian, ShuffledGaussian, TrainingMechanism,
    TruncatedPoissonSampledGaussian,
};
use serde_json::json;

use super::*;
use crate::network_tests::testing::network;

/// Number of units of the text. Each batch has one of them on average.
const UNITS: u64 = 8;
const STEPS: u64 = 8;
const NOISE_MULTIPLIER: f64 = 0.5;
/// Rows of a micro-batch.
const ROWS: usize = 4;
/// The δ at which ε is reported.
const DELTA: f64 = 1e-3;

/// The fault of a trainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    NoClipping,
    HalfTheNoise,
    /// Batches of a shuffled pass are charged as Poisson samples.
    ShuffledAsPoisson,
    /// Every step adds the noise of the first step.
    NoiseReused,
    /// Every step takes back all noise of the step before, and is charged as if it took back what the matrix of two bands does.
    NoiseTakenBack,
    /// Micro-batches are filled with copies of the last example.
    PaddingRepeated,
    /// Each view of a unit is clipped by itself, and their sum is not divided.
    ViewsClippedAlone,
    /// Each of a unit's examples is sampled by itself, and charged as if it were the unit.
    ExamplesAsUnits,
}

const FAULTS: [Fault; 8] = [
    Fault::NoClipping,
    Fault::HalfTheNoise,
    Fault::ShuffledAsPoisson,
    Fault::NoiseReused,
    Fault::NoiseTakenBack,
    Fault::PaddingRepeated,
    Fault::ViewsClippedAlone,
    Fault::ExamplesAsUnits,
];

/// A trainer under audit.
struct Audit {
    fault: Fault,
    /// The mechanism whose event is charged.
    certified: Box<dyn TrainingMechanism>,
    relation: NeighboringRelation,
}

/// Data of the auditor's choice.
#[derive(Clone, Copy)]
struct World {
    /// Whether the unit in question takes part.
    member: bool,
    /// Whether the other units contribute. Otherwise they have no text.
    crowd: bool,
}

/// A model whose two examples have gradients in opposite directions.
struct Target {
    model: Network,
    weights: Weights<Flex>,
    member: Example,
    other: Example,
    direction: Vec<f64>,
    l2_clip_norm: f64,
}

impl Target {
    /// For a vocabulary of two tokens, the gradient of the logits for one target is minus that for
    /// the other, up to its length.
    fn new() -> Self {
        let sizes =
            json!({ "family": "feed_forward", "d_model": 2, "history": 1, "hidden": [2], "context": 1 });
        let model = network(&sizes, "causal_lm", 2);
        let weights = moved_weights(&model, 3, &DEVICE);
        let [member, other] = [[0, 1], [0, 0]].map(|window| Example::causal(&window));
        let [of_member, of_other] =
            [&member, &other].map(|example| single_gradient(&model, &weights, example, &DEVICE));
        let [length, of_others] = [&of_member, &of_other].map(|gradient| norm(gradient));
        let direction: Vec<f64> = of_member.iter().map(|value| value / length).collect();
        let cosine = dot(&direction, &of_other) / of_others;
        assert!((cosine + 1.0).abs() < 1e-5, "{cosine}");
        let member = Example::of_views(vec![member; 3]);
        Self { model, weights, member, other, direction, l2_clip_norm: length.min(of_others) / 4.0 }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Audit {
    /// A trainer with Poisson sampling, or with correlated noise and whole parts in place of samples.
    fn of(fault: Fault) -> Self {
        let probability = 1.0 / UNITS as f64;
        let certified: Box<dyn TrainingMechanism> = match fault {
            Fault::NoiseTakenBack => Box::new(CyclicPoissonGaussian::new(STEPS, 2, 1.0, 2.0).unwrap()),
            _ => Box::new(PoissonSampledGaussian::new(probability, NOISE_MULTIPLIER).unwrap()),
        };
        Self { fault, certified, relation: NeighboringRelation::AddOrRemoveOne }
    }

    /// A right trainer of each sampling.
    fn of_samplings() -> [Self; 7] {
        use NeighboringRelation::{AddOrRemoveOne, ZeroOut};
        let right = |certified: Box<dyn TrainingMechanism>, relation| Self {
            fault: Fault::Nothing,
            certified,
            relation,
        };
        let q = 1.0 / UNITS as f64;
        [
            right(Box::new(PoissonSampledGaussian::new(q, NOISE_MULTIPLIER).unwrap()), AddOrRemoveOne),
            right(
                Box::new(PoissonSampledExamplesGaussian::new(q, NOISE_MULTIPLIER, 3).unwrap()),
                AddOrRemoveOne,
            ),
            // Two parts, whose units are sampled with twice the probability.
            right(
                Box::new(CyclicPoissonGaussian::new(STEPS, 2, 2.0 * q, NOISE_MULTIPLIER).unwrap()),
                AddOrRemoveOne,
            ),
            right(
                Box::new(TruncatedPoissonSampledGaussian::new(q, UNITS, 2, NOISE_MULTIPLIER).unwrap()),
                ZeroOut,
            ),
            right(Box::new(ShuffledGaussian::new(UNITS, NOISE_MULTIPLIER).unwrap()), ZeroOut),
            right(Box::new(FixedSizeSampledGaussian::new(1, UNITS, NOISE_MULTIPLIER).unwrap()), ZeroOut),
            right(Box::new(BallsInBinsGaussian::new(UNITS, NOISE_MULTIPLIER).unwrap()), AddOrRemoveOne),
        ]
    }

    fn name(&self) -> String {
        match self.fault {
            Fault::Nothing => {
                format!("{:?}", self.certified).split(' ').next().unwrap_or_default().to_owned()
            }
            fault => format!("{fault:?}"),
        }
    }

    /// The noisy sums of all steps along the target's direction, in clip norms.
    fn sums(&self, target: &Target, world: World, rng: &TestRng) -> Vec<f64> {
        let shuffled = ShuffledGaussian::new(UNITS, NOISE_MULTIPLIER).unwrap();
        let sampler: &dyn TrainingMechanism =
            if self.fault == Fault::ShuffledAsPoisson { &shuffled } else { self.certified.as_ref() };
        // A unit that is zeroed out stays in the text without a contribution.
        let removed = !world.member && self.relation == NeighboringRelation::AddOrRemoveOne;
        let population = UNITS - 1 + if removed { 0 } else { self.examples_of_member() };
        let in_pass = sampler.steps_per_pass();
        let block = self.matrix().map(|matrix| BandedNoise::begin(matrix, 0, 0));
        let mut carried = Carried { block, ..Carried::default() };
        let release = |step| {
            let mut pass = sampler.sample(step / in_pass, population, rng).unwrap();
            let example = |unit: u64| match unit + 1 >= UNITS {
                true => world.member.then(|| target.member.clone()),
                false => world.crowd.then(|| target.other.clone()),
            };
            let examples: Vec<Example> = pass.batch(step % in_pass).into_iter().filter_map(example).collect();
            self.step(target, examples, step, &mut carried, rng)
        };
        (0..STEPS).map(release).collect()
    }

    /// Number of the unit's examples of which each is sampled by itself.
    fn examples_of_member(&self) -> u64 {
        match self.certified.event() {
            DpEvent::PoissonSampledExamplesGaussian { examples_per_unit, .. } => examples_per_unit.into(),
            _ if self.fault == Fault::ExamplesAsUnits => 3,
            _ => 1,
        }
    }

    /// The matrix that correlates the noise.
    fn matrix(&self) -> Option<Arc<Bands>> {
        match self.fault {
            // C = A, the matrix of ones: w_t = z_t − z_{t−1}.
            Fault::NoiseTakenBack => {
                Some(Arc::new(Bands::new(STEPS, vec![1 << 16; STEPS as usize - 1]).unwrap()))
            }
            _ => self.certified.bands().unwrap(),
        }
    }

    /// Takes one step and returns its noisy sum along the target's direction.
    fn step(
        &self,
        target: &Target,
        mut examples: Vec<Example>,
        step: u64,
        carried: &mut Carried,
        rng: &TestRng,
    ) -> f64 {
        if let (Fault::PaddingRepeated, Some(last)) = (self.fault, examples.last().cloned()) {
            examples.resize(examples.len().next_multiple_of(ROWS), last);
        }
        if self.fault == Fault::ViewsClippedAlone {
            let alone = |view: &Example| Example { further: Vec::new(), ..view.clone() };
            examples = examples.iter().flat_map(Example::views).map(alone).collect();
        }
        // The same noise on a sum that is not clipped.
        let unclipped = if self.fault == Fault::NoClipping { 1000.0 } else { 1.0 };
        let less = match (self.fault, &carried.block) {
            (Fault::HalfTheNoise, _) => 2.0,
            // z has the standard deviation of independent noise.
            (Fault::NoiseTakenBack, Some(block)) => block.bands().column_norm(),
            _ => 1.0,
        };
        let noise_multiplier = self.certified.noise().noise_multiplier();
        let figures = DpStep {
            step: if self.fault == Fault::NoiseReused { 0 } else { step },
            noise: GaussianMechanism::new(noise_multiplier / less / unclipped).unwrap(),
            l2_clip_norm: target.l2_clip_norm * unclipped,
            expected_batch_size: 1.0,
            learning_rate: 0.0,
        };
        let lot = lot(&target.model, &examples, ROWS);
        let (gradient, _) = private_gradient(
            &target.model,
            &target.weights,
            &lot,
            &figures,
            fast(Clipping::Flat),
            carried,
            rng,
        )
        .unwrap();
        let released: Vec<f64> = gradient.into_parts().into_iter().flat_map(to_host_f64).collect();
        dot(&released, &target.direction) / target.l2_clip_norm
    }
}

/// Signs of a member in the sums of all steps.
const STATISTICS: [fn(&[f64]) -> f64; 4] = [
    |sums| sums.iter().sum(),
    // The mean of the prefix sums.
    |sums| {
        sums.iter().rev().zip(1_u32..).map(|(sum, steps)| sum * f64::from(steps)).sum::<f64>() / STEPS as f64
    },
    |sums| sums.iter().copied().fold(f64::MIN, f64::max),
    |sums| sums.iter().copied().fold(f64::MIN, f64::max) - sums.iter().copied().fold(f64::MAX, f64::min),
];
/// Values of a statistic above which the auditor claims a member.
const THRESHOLDS: [f64; 6] = [0.3, 0.5, 0.7, 1.0, 1.5, 2.5];

/// The result of an audit.
#[derive(Clone, Copy, Debug)]
struct Finding {
    refuted: bool,
    epsilon_at_least: f64,
    certified_epsilon: f64,
}

/// The cost of an audit, and the strength of its result.
#[derive(Clone, Copy)]
struct Effort {
    /// Runs of each world.
    runs: u64,
    /// Probability that a valid certificate is refuted.
    false_alarm: f64,
}

/// Audits a trainer.
fn audit(audit: &Audit, target: &Target, effort: Effort, seed: u64) -> Finding {
    let event = DpEvent::SelfComposed {
        event: Box::new(audit.certified.event()),
        count: STEPS.div_ceil(audit.certified.steps_per_pass()),
    };
    let delta = accountant::Delta::new(DELTA).unwrap();
    let certified_epsilon = accountant::epsilon(&event, delta, audit.relation).unwrap().upper;
    let curve = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0]
        .map(|epsilon: f64| (epsilon, accountant::delta(&event, epsilon, audit.relation).unwrap().upper));
    let tests = 2 * STATISTICS.len() * THRESHOLDS.len();
    let confidence = 1.0 - effort.false_alarm / (2 * tests) as f64;
    let mut finding = Finding { refuted: false, epsilon_at_least: 0.0, certified_epsilon };
    for crowd in [false, true] {
        let [inside, outside] = [true, false].map(|member| {
            let world = World { member, crowd };
            let address =
                |run: u64| ((seed * 2 + u64::from(crowd)) * 2 + u64::from(member)) * (1 << 20) + run;
            let sums = |run| audit.sums(target, world, &TestRng::from_seed(address(run)));
            (0..effort.runs).map(sums).collect::<Vec<_>>()
        });
        for statistic in STATISTICS {
            for threshold in THRESHOLDS {
                let claims = |runs: &[Vec<f64>]| Positives {
                    positives: runs.iter().filter(|sums| statistic(sums) > threshold).count() as u64,
                    trials: runs.len() as u64,
                };
                let true_rate = claims(&inside).rate_at_least(confidence).unwrap();
                let false_rate = claims(&outside).rate_at_most(confidence).unwrap();
                let too_many = |&(epsilon, delta): &(f64, f64)| {
                    let odds = epsilon.exp();
                    true_rate > odds * false_rate + delta
                        || 1.0 - false_rate > odds * (1.0 - true_rate) + delta
                };
                finding.refuted |= curve.iter().any(too_many);
                // Rates that say nothing are refused.
                let found = accountant::convert::epsilon_of_rates(false_rate, true_rate, delta);
                finding.epsilon_at_least = finding.epsilon_at_least.max(found.unwrap_or(0.0));
            }
        }
    }
    finding
}

fn show(name: &str, findings: &[Finding]) {
    let refuted = findings.iter().filter(|finding| finding.refuted).count();
    let mean = findings.iter().map(|finding| finding.epsilon_at_least).sum::<f64>() / findings.len() as f64;
    println!(
        "{name:<36} refuted {refuted:>2} of {}; ε ≥ {mean:.2} found on average, ε ≤ {:.2} charged",
        findings.len(),
        findings[0].certified_epsilon
    );
}

/// PITFALLS 1, 5, 6, 11. A campaign of `CAMPAIGN_MINUTES` has more runs, one seed after the other,
/// and every sampling scheme.
#[test]
fn audits_catch_broken_trainers_and_no_right_one() {
    let minutes = std::env::var("CAMPAIGN_MINUTES").ok().map(|minutes| minutes.parse::<u64>().unwrap());
    let (effort, samplings) = match minutes {
        Some(_) => (Effort { runs: 400, false_alarm: 1e-4 }, 7),
        None => (Effort { runs: 160, false_alarm: 1e-2 }, 3),
    };
    let end = Instant::now() + Duration::from_secs(60 * minutes.unwrap_or(0));
    let target = Target::new();
    let right = Audit::of_samplings().into_iter().take(samplings);
    let trainers: Vec<Audit> = right.chain(FAULTS.map(Audit::of)).collect();
    let mut findings: Vec<Vec<Finding>> = vec![Vec::new(); trainers.len()];
    for seed in (1..).take_while(|&seed| seed == 1 || Instant::now() < end) {
        for (trainer, findings) in trainers.iter().zip(&mut findings) {
            findings.push(audit(trainer, &target, effort, seed));
        }
    }
    println!("δ = {DELTA}, confidence {}", 1.0 - effort.false_alarm);
    for (trainer, findings) in trainers.iter().zip(&findings) {
        show(&trainer.name(), findings);
    }
    for (trainer, findings) in trainers.iter().zip(&findings) {
        for (seed, finding) in (1..).zip(findings) {
            let expected = trainer.fault != Fault::Nothing;
            assert_eq!(finding.refuted, expected, "{}, seed {seed}", trainer.name());
            assert!(expected || finding.epsilon_at_least <= finding.certified_epsilon, "{finding:?}");
        }
    }
}
