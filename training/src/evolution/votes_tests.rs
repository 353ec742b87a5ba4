use accountant::audit::Positives;
use accountant::{Delta, NeighboringRelation};
use mechanisms::{L2Sensitivity, TestRng};
use plan::EvolutionFile;

use super::*;

/// Returns a certified evolution of two labels with this many votes a unit.
fn certified(votes: usize) -> CertifiedEvolution {
    let file = serde_json::json!({
        "name": "comments",
        "data": { "source": { "path": "comments.jsonl" }, "units": 1000, "label_field": "label" },
        "labels": ["a", "b"],
        "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-5, "epsilon": 4.0 },
        "candidates": { "texts": "public.txt" },
        "embedding": "bert", "rounds": 1, "votes": votes, "records": 100
    });
    EvolutionFile::parse(&file.to_string()).unwrap().certify().unwrap()
}

/// Candidates on a quarter of a circle: six of each label.
fn candidates() -> (Vec<Candidate>, Vec<Vec<f32>>) {
    let candidate = |at: usize| Candidate { group: at / 6, text: at.to_string() };
    ((0..12).map(candidate).collect(), (0..12).map(|at| on_circle((at % 6) as f32 / 6.0)).collect())
}

fn on_circle(turn: f32) -> Vec<f32> {
    let angle = turn * std::f32::consts::FRAC_PI_2;
    vec![angle.cos(), angle.sin()]
}

fn ballot(group: usize, turn: f32) -> Ballot {
    Ballot { group, embedding: on_circle(turn) }
}

fn counts(units: Vec<Vec<Ballot>>, votes: usize, seed: u64) -> Vec<i64> {
    let (candidates, embeddings) = candidates();
    let electorate = Electorate(Private::new(units));
    electorate.counts(&candidates, &embeddings, votes, 0, &TestRng::from_seed(seed))
}

#[test]
fn a_unit_votes_for_the_nearest_candidates_of_its_label_and_for_no_other() {
    assert_eq!(counts(vec![vec![ballot(0, 0.0)]], 1, 1), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(counts(vec![vec![ballot(1, 0.34)]], 3, 1), [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0]);
    // It votes for each candidate once, so for no more than there are.
    assert_eq!(counts(vec![vec![ballot(1, 0.5)]], 50, 1), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
    // Equal products count for the first; a value that is no number is still at most one vote.
    assert_eq!(
        counts(vec![vec![Ballot { group: 0, embedding: vec![f32::NAN; 2] }]], 1, 1).iter().sum::<i64>(),
        1
    );
}

#[test]
fn a_unit_moves_the_votes_by_its_sensitivity_however_many_records_it_has() {
    for votes in [1, 4] {
        let crowd = || (0..50).map(|at| vec![ballot(at % 2, at as f32 / 50.0)]).collect::<Vec<_>>();
        let heavy: Vec<Ballot> = (0..2000).map(|at| ballot(at % 2, at as f32 / 2000.0)).collect();
        let without = counts(crowd(), votes, 2);
        let with = counts(crowd().into_iter().chain([heavy]).collect(), votes, 2);
        let moved: i64 = with.iter().zip(&without).map(|(with, without)| (with - without).pow(2)).sum();
        assert_eq!(moved, votes as i64);
        assert!((moved as f64).sqrt() <= certified(votes).sensitivity.get());
    }
}

/// The bounds are five standard deviations of a binomial.
#[test]
fn which_record_of_a_unit_votes_is_random_and_new_in_each_round() {
    let units = || (0..2000).map(|_| [0.0, 1.0, 1.0, 1.0].map(|turn| ballot(0, turn)).into()).collect();
    let first = counts(units(), 1, 3)[0] as f64;
    assert!((first - 500.0).abs() < 5.0 * 375_f64.sqrt(), "{first}");
    let (candidates, embeddings) = candidates();
    let electorate = Electorate(Private::new(units()));
    let of_round = |round| electorate.counts(&candidates, &embeddings, 1, round, &TestRng::from_seed(3))[0];
    assert_ne!(of_round(0), of_round(1));
}

/// α = 1e-6: the sum of n squared standard normals is within 4.9·√(2n) of n. Rounding to integers adds 1/12 to the variance.
#[test]
fn the_noise_of_a_vote_has_the_certified_standard_deviation_and_a_wrong_one_is_rejected() {
    for votes in [1, 9] {
        let certified = certified(votes);
        let n = 4000;
        let noisy = with_noise(vec![1000; n], &certified, 0, &TestRng::from_seed(4)).unwrap();
        let squares = |std: f64| {
            let variance = std * std + 1.0 / 12.0;
            noisy.iter().map(|count| ((count - 1000) as f64).powi(2) / variance).sum::<f64>()
        };
        let (std, allowed) = (certified.noise_std(), 4.9 * (2.0 * n as f64).sqrt());
        assert!((squares(std) - n as f64).abs() < allowed, "{}", squares(std));
        let wrong = [0.85, 1.2].map(|factor| (squares(factor * std) - n as f64).abs());
        assert!(wrong.iter().all(|distance| *distance > allowed), "{wrong:?}");
        let again = with_noise(vec![1000; n], &certified, 1, &TestRng::from_seed(4)).unwrap();
        assert_ne!(noisy, again, "each round has noise of its own");
    }
}

/// The fault of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    Nothing,
    /// Each record of a unit votes.
    EachRecordVotes,
    /// The noise is that of one vote, and a unit has four.
    NoiseOfOneVote,
    HalfTheNoise,
}

/// Returns the votes along the direction in which the audited unit moves them, with and without that unit, in so many independent releases.
fn audited(fault: Fault, trials: u64) -> ([Vec<f64>; 2], CertifiedEvolution) {
    let votes = if fault == Fault::NoiseOfOneVote { 4 } else { 1 };
    let right = certified(votes);
    let mut used = right.clone();
    match fault {
        Fault::NoiseOfOneVote => used.sensitivity = L2Sensitivity::new(1.0).unwrap(),
        Fault::HalfTheNoise => {
            used.mechanism =
                mechanisms::GaussianMechanism::new(right.mechanism.noise_multiplier() / 2.0).unwrap();
        }
        Fault::Nothing | Fault::EachRecordVotes => {}
    }
    let (candidates, embeddings) = candidates();
    let direction = counts(vec![vec![ballot(0, 0.0)]], votes, 0);
    let sums = |member: bool, world: u64| {
        let mut units: Vec<Vec<Ballot>> = (0..5).map(|at| vec![ballot(0, at as f32 / 5.0)]).collect();
        if member {
            let records = || ballot(0, 0.0);
            match fault {
                Fault::EachRecordVotes => units.extend((0..4).map(|_| vec![records()])),
                _ => units.push((0..4).map(|_| records()).collect()),
            }
        }
        let electorate = Electorate(Private::new(units));
        let sum = |trial: u64| {
            let rng = TestRng::from_seed(2 * trial + world);
            let released = electorate.release(&candidates, &embeddings, &used, 0, &rng).unwrap();
            released.iter().zip(&direction).map(|(count, along)| (count * along) as f64).sum()
        };
        (0..trials).map(sum).collect::<Vec<f64>>()
    };
    ([sums(true, 0), sums(false, 1)], right)
}

/// Returns whether the rates of true and false claims, each with Clopper–Pearson bounds, refute the certified δ(ε). α = 1e-6 for each of
/// 24 claims.
fn refuted([inside, outside]: &[Vec<f64>; 2], certified: &CertifiedEvolution) -> bool {
    let relation = NeighboringRelation::AddOrRemoveOne;
    let point = |log_delta: i32| {
        let delta = Delta::new(10_f64.powi(log_delta)).unwrap();
        (accountant::epsilon(&certified.event, delta, relation).unwrap().upper, delta)
    };
    let curve: Vec<(f64, Delta)> = (-5..0).map(point).collect();
    let claims = |sums: &[f64], least: f64| Positives {
        positives: sums.iter().filter(|sum| **sum >= least).count() as u64,
        trials: sums.len() as u64,
    };
    let thresholds = (-4..20).map(f64::from);
    thresholds.into_iter().any(|least| {
        let true_rate = claims(inside, least).rate_at_least(1.0 - 1e-6).unwrap();
        let false_rate = claims(outside, least).rate_at_most(1.0 - 1e-6).unwrap();
        curve.iter().any(|(epsilon, delta)| true_rate > epsilon.exp() * false_rate + delta.get())
    })
}

/// PITFALLS 59.
#[test]
fn audits_refute_broken_votes_and_no_right_ones() {
    for fault in [Fault::Nothing, Fault::EachRecordVotes, Fault::NoiseOfOneVote, Fault::HalfTheNoise] {
        let (sums, certified) = audited(fault, 20_000);
        assert_eq!(refuted(&sums, &certified), fault != Fault::Nothing, "{fault:?}");
    }
}
