//! A test suite that every engine passes: figures with an oracle, settings in which each engine
//! must answer, and no contradictions.
//!
//! An engine may decline a setting that another engine is meant to answer. It may never answer
//! wrongly. If its row says so, it must answer to its tightness.

use super::{
    CHERNOFF, Entry, INVERSION, PLD_ADAPTIVE, PLD_ADAPTIVE_COARSE, PLD_FFT, PLD_FFT_SHORT, Problem, TABLE,
    TRUNCATION_COUNTS, Target, inversion::estimate,
};
use crate::dominating_pair::{DominatingPair, PairRequest, dominating_pairs};
use crate::{Bounds, Delta, DpEvent, NeighboringRelation, Result};

/// Returns the number of rows of [`rows`] in which an engine must be as narrow as its tightness, or
/// as a first look asks.
fn least_narrow(engine: &Entry) -> usize {
    match engine.name {
        "closed form" => 1,
        // Answers where ε is 0.
        "total variation" => 0,
        // The loss is bounded in the other direction only.
        "highest loss" => 0,
        "chernoff" => 17,
        "inversion" => 9,
        "pld_fft, short" => 9,
        "pld_fft" => 11,
        "pld_fft, fine" => 8,
        "pld_adaptive, coarse" => 6,
        "pld_adaptive" => 11,
        "truncation counts" => 2,
        "truncation outcomes" => 2,
        "rare truncation" => 1,
        other => panic!("{other}: say here in how many rows it must be narrow"),
    }
}

/// Returns the ε that an engine gives.
fn ask(entry: &Entry, pair: &DominatingPair, delta: f64) -> Result<Bounds> {
    entry.bounds(&Problem::new(pair, Target::Epsilon { delta }, 0.0))
}

fn pairs_of(event: &DpEvent, units: u32) -> Vec<DominatingPair> {
    let request = PairRequest { group_size: units, ..PairRequest::new(NeighboringRelation::AddOrRemoveOne) };
    dominating_pairs(event, request).unwrap()
}

fn sampled(q: f64, sigma: f64, steps: u64) -> DpEvent {
    let step = DpEvent::PoissonSampledGaussian { sampling_probability: q, noise_multiplier: sigma };
    DpEvent::SelfComposed { event: Box::new(step), count: steps }
}

/// An event, its relation and the number of units that differ; δ; the ε of removal, and the digits
/// to which its oracle knows it.
struct Row {
    event: DpEvent,
    relation: NeighboringRelation,
    units: u32,
    delta: f64,
    exact: f64,
    digits: f64,
}

impl Row {
    fn pairs(&self) -> Vec<DominatingPair> {
        let request = PairRequest { group_size: self.units, ..PairRequest::new(self.relation) };
        dominating_pairs(&self.event, request).unwrap()
    }

    fn contains(&self, name: &str, bounds: &Bounds) {
        let (low, high) = (self.exact * (1.0 - self.digits), self.exact * (1.0 + self.digits));
        assert!(bounds.lower <= high && bounds.upper >= low, "{name}: {bounds:?} for {:?}", self.event);
    }
}

fn rows() -> Vec<Row> {
    let relation = NeighboringRelation::AddOrRemoveOne;
    let row = |event, delta, exact, digits| Row { event, relation, units: 1, delta, exact, digits };
    let truncated = |largest_batch| {
        let step = DpEvent::TruncatedPoissonSampledGaussian {
            sampling_probability: 0.01,
            noise_multiplier: 1.0,
            units: 10_000,
            largest_batch,
        };
        DpEvent::SelfComposed { event: Box::new(step), count: 1000 }
    };
    let zero_out = |row| Row { relation: NeighboringRelation::ZeroOut, ..row };
    let t5 = 8192.0 / 5_240_387_307.0;
    let gaussian = |sigma, count| {
        let step = DpEvent::Gaussian { noise_multiplier: sigma };
        DpEvent::SelfComposed { event: Box::new(step), count }
    };
    vec![
        // Contour inversion on two contours: queries A to F.
        row(sampled(1e-2, 1.0, 1_000), 1e-5, 1.828_237, 1e-6),
        row(sampled(256.0 / 60_000.0, 1.1, 14_062), 1e-5, 2.381_597, 1e-6),
        row(sampled(1e-3, 0.6, 100_000), 1e-8, 8.584_754, 1e-6),
        row(sampled(1e-4, 1.0, 1_000_000), 1e-8, 0.658_114, 1e-6),
        row(sampled(t5, 0.3, 100_000), 1.9e-10, 11.576_781, 1e-6),
        row(sampled(0.23, 3.0, 109), 1e-8, 4.937_670, 1e-6),
        // Contour inversion again: rare jumps, low noise, small and many steps, a tiny δ.
        row(sampled(t5, 0.4, 100_000), 1.0 / 5_240_387_307.0, 4.175_651_021_143_484, 1e-9),
        row(sampled(t5, 0.1, 100_000), 1.0 / 5_240_387_307.0, 279.575_317_697_017_2, 1e-9),
        row(sampled(1e-2, 0.2, 100), 1e-6, 86.696_150_95, 1e-8),
        row(sampled(1e-4, 10.0, 100_000), 1e-6, 0.009_691_061_484_153_21, 1e-9),
        row(sampled(1e-3, 2.0, 10_000_000), 1e-8, 10.443_433_380_849, 1e-9),
        row(sampled(1e-2, 1.0, 1000), 1e-15, 4.854_537_750_605, 1e-9),
        // dp_accounting's PLD at a grid of 1e-5, above by less than 1e-4.
        row(sampled(1e-2, 1.0, 10), 1e-5, 0.379_902, 1e-4),
        // The Gaussian mechanism of μ = 1 (Balle & Wang 2018), whole and next to a training that never samples.
        row(gaussian(2.0, 4), 1e-5, 4.377_178, 1e-6),
        row(
            DpEvent::Composed { events: vec![gaussian(2.0, 4), sampled(0.0, 1.0, 9)] },
            1e-5,
            4.377_178,
            1e-6,
        ),
        // Contour inversion of the binomial mixture: pairs of units.
        Row { units: 2, ..row(sampled(0.01, 4.0, 10_000), 1e-5, 2.038_508, 1e-6) },
        // dp_accounting 0.6.0, PLD of the same pairs: above, to 1e-3; and query A, of which no batch is truncated.
        zero_out(row(truncated(150), 1e-6, 2.137_829, 1e-3)),
        zero_out(row(truncated(200), 1e-5, 1.828_237, 1e-3)),
        // Two phases are one when their settings are the same.
        row(
            DpEvent::Composed { events: vec![sampled(1e-2, 1.0, 400), sampled(1e-2, 1.0, 600)] },
            1e-5,
            1.828_237,
            1e-6,
        ),
    ]
}

#[test]
fn every_engine_passes_the_same_table() {
    for entry in TABLE {
        let mut narrow = 0;
        for row in rows() {
            let Ok(bounds) = ask(entry, &row.pairs()[0], row.delta) else { continue };
            row.contains(entry.name, &bounds);
            // The coarse grid stops before its tightness.
            let wanted = if entry.name.ends_with("coarse") { 0.05 } else { entry.tightness };
            narrow += usize::from(bounds.upper - bounds.lower <= wanted * bounds.upper);
        }
        assert!(narrow >= least_narrow(entry), "{} was narrow in {narrow} rows only", entry.name);
    }
}

/// The estimate is not certified. It must lie between the bounds of `PLD_ADAPTIVE`, and agree with
/// the oracle to the accuracy at which it is used.
#[test]
fn the_estimate_by_bent_contours_passes_the_same_table() {
    let mut answered = 0;
    for row in rows() {
        let pair = &row.pairs()[0];
        let Ok(near) = ask(&PLD_ADAPTIVE, pair, row.delta) else { continue };
        let Some(found) = estimate::epsilon(pair, row.delta, &near) else { continue };
        row.contains("estimate", &Bounds::new(found * (1.0 - 2e-9), found * (1.0 + 2e-9)).unwrap());
        answered += 1;
    }
    assert!(answered >= 7, "{answered} rows only");
}

#[test]
fn every_engine_knows_that_more_noise_and_fewer_steps_cost_no_more() {
    for entry in [&CHERNOFF, &INVERSION, &PLD_FFT_SHORT, &PLD_FFT, &PLD_ADAPTIVE_COARSE, &PLD_ADAPTIVE] {
        let ask = |sigma, steps| ask(entry, &pairs_of(&sampled(0.02, sigma, steps), 1)[0], 1e-6);
        let (Ok(once), Ok(quieter), Ok(shorter)) = (ask(1.0, 800), ask(1.05, 800), ask(1.0, 700)) else {
            panic!("{} declines a plain setting", entry.name);
        };
        assert!(quieter.lower <= once.upper && shorter.lower <= once.upper, "{}: {once:?}", entry.name);
    }
}

#[test]
fn no_engine_answers_with_what_is_not_a_bound() {
    // These questions have no useful answer: ε of 0, δ next to 1, no event, moments that overflow.
    for (q, sigma, steps, delta) in [
        (1e-9, 100.0, 1, 1e-3),
        (0.5, 1e-2, 10, 0.999),
        (0.999, 0.05, 1_000_000, 1e-15),
        (1e-12, 1e-2, 3, 1e-12),
        (1e-9, 1e3, 10_000_000, 1e-15),
    ] {
        for pair in &pairs_of(&sampled(q, sigma, steps), 1) {
            for entry in TABLE {
                // `Bounds` can only hold ordered numbers, so any answer is valid; all other results
                // decline.
                if let Ok(bounds) = ask(entry, pair, delta) {
                    assert!(bounds.lower <= bounds.upper, "{} {q} {sigma} {steps} {delta}", entry.name);
                }
            }
        }
    }
}

#[test]
fn steps_with_a_public_coin_are_bounded_alike_by_both_of_their_engines() {
    let step = DpEvent::TruncatedPoissonSampledGaussian {
        sampling_probability: 0.01,
        noise_multiplier: 1.0,
        units: 10_000,
        largest_batch: 150,
    };
    let run = DpEvent::SelfComposed { event: Box::new(step), count: 1000 };
    let pairs = dominating_pairs(&run, PairRequest::new(NeighboringRelation::ZeroOut)).unwrap();
    let (squared, counted) = (ask(&PLD_ADAPTIVE, &pairs[0], 1e-5), ask(&TRUNCATION_COUNTS, &pairs[0], 1e-5));
    let (squared, counted) = (squared.unwrap(), counted.unwrap());
    // Both bounds lie above the cost without truncation, 1.828 (reference query A).
    assert!(squared.upper >= 1.828 && counted.upper >= 1.828, "{squared:?} {counted:?}");
    assert!((squared.upper / counted.upper - 1.0).abs() < 5e-3, "{squared:?} {counted:?}");
}

/// Whether certified intervals of the engines overlap at one setting, and how many engines answered.
fn agreed(q: f64, sigma: f64, count: u64, delta: f64) -> usize {
    let pairs = pairs_of(&sampled(q, sigma, count), 1);
    let engines = [&INVERSION, &PLD_FFT_SHORT, &PLD_ADAPTIVE_COARSE, &CHERNOFF];
    let answers: Vec<Bounds> =
        engines.into_iter().filter_map(|entry| ask(entry, &pairs[0], delta).ok()).collect();
    let lower = answers.iter().fold(0.0, |most: f64, bounds| most.max(bounds.lower));
    let upper = answers.iter().fold(f64::INFINITY, |least, bounds| least.min(bounds.upper));
    assert!(lower <= upper, "q={q:?} sigma={sigma:?} T={count} delta={delta:?}: {answers:?}");
    answers.iter().filter(|bounds| bounds.upper - bounds.lower < 0.2 * bounds.upper).count()
}

#[test]
fn no_two_engines_contradict_each_other() {
    // Three engines with nothing in common but the pair: their certified intervals must overlap.
    let mut compared = 0;
    for q in [1e-6, 1e-4, 3e-3, 0.05, 0.4] {
        for sigma in [0.4, 0.7, 1.5, 4.0] {
            for count in [3, 40, 1000, 20_000] {
                for delta in [1e-4, 1e-7, 1e-10] {
                    compared += usize::from(agreed(q, sigma, count, delta) > 1);
                }
            }
        }
    }
    assert!(compared > 100, "only {compared} settings were answered by two");
}

#[test]
#[allow(clippy::print_stdout, reason = "a long run says how far it is")]
fn no_two_engines_contradict_each_other_at_random_settings() {
    // q 1e-9…1, σ 0.1…100, T 1…1e7, δ 1e-15…1e-3, log-uniform: 10,000 with ACCOUNTANT_FULL, from ACCOUNTANT_SEED.
    let settings = if std::env::var_os("ACCOUNTANT_FULL").is_some() { 10_000 } else { 60 };
    let mut state = std::env::var("ACCOUNTANT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7_u64);
    let mut power = |low: f64, high: f64| {
        // SplitMix64 (Steele, Lea & Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        libm::exp10(low + (high - low) * ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
    };
    let mut compared = 0;
    for index in 1..=settings {
        let (q, sigma) = (power(-9.0, 0.0), power(-1.0, 2.0));
        let (count, delta) = (power(0.31, 7.0) as u64, power(-15.0, -3.0));
        compared += usize::from(agreed(q, sigma, count, delta) > 1);
        if index % 500 == 0 {
            println!("{index} settings, {compared} answered closely by two engines, no contradiction");
        }
    }
    assert!(5 * compared > settings, "only {compared} of {settings} settings were answered by two");
}

#[test]
fn an_answer_never_leaves_the_bounds_of_any_engine() {
    for row in rows() {
        let pairs = row.pairs();
        let delta = Delta::new(row.delta).unwrap();
        let public = crate::group_epsilon(&row.event, row.units, delta, row.relation).unwrap();
        for (entry, pair) in TABLE.iter().flat_map(|entry| pairs.iter().map(move |pair| (entry, pair))) {
            if let Ok(bounds) = ask(entry, pair, row.delta) {
                assert!(public.upper >= bounds.lower * (1.0 - 1e-9), "{} {:?}", entry.name, row.event);
            }
        }
    }
}
