//! Measures how well a score tells members of the training text from others.
//!
//! # References
//! True positive rate at low false positive rates: Carlini et al. 2022,
//! <https://arxiv.org/abs/2112.03570>.

use std::fmt;

use serde::{Deserialize, Serialize};

/// False positive rate at which the true positive rate is reported.
const FALSE_POSITIVE_RATE: f64 = 0.01;
/// Number of steps of the false positive rate between the points of a ROC curve.
const ROC_STEPS: usize = 100;

/// Rates of the test that claims "member" above a score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Membership {
    /// Probability that a member's score is above a non-member's: the area under the ROC curve. ½ by chance.
    pub area_under_curve: f64,
    /// Share of members whose score is above the scores of all but `false_positive_rate` of the non-members.
    pub true_positive_rate: f64,
    /// Share of non-members that may be taken for members.
    pub false_positive_rate: f64,
    /// False and true positive rates of at most 101 thresholds, from (0, …) to (1, 1).
    #[serde(default)]
    pub roc: Vec<(f64, f64)>,
}

impl Membership {
    /// Computes the rates of these scores; [`None`] without members or without others.
    pub fn of(members: &[f64], mut others: Vec<f64>) -> Option<Self> {
        if members.is_empty() || others.is_empty() {
            return None;
        }
        others.sort_by(f64::total_cmp);
        let count = others.len();
        let below = |score: &f64| {
            let less = others.partition_point(|other| other < score);
            let not_more = others.partition_point(|other| other <= score);
            (less + not_more) as f64 / (2 * count) as f64
        };
        // The largest of the other scores that a member must exceed.
        let threshold = others[count - 1 - (FALSE_POSITIVE_RATE * count as f64) as usize];
        let share = |hits: f64| hits / members.len() as f64;
        let above = |threshold: f64| share(members.iter().filter(|&&score| score > threshold).count() as f64);
        let steps = ROC_STEPS.min(count);
        let point = |step: usize| {
            let taken = step * count / steps;
            let rate = if taken == count { 1.0 } else { above(others[count - 1 - taken]) };
            (taken as f64 / count as f64, rate)
        };
        Some(Self {
            area_under_curve: share(members.iter().map(below).sum()),
            true_positive_rate: above(threshold),
            false_positive_rate: FALSE_POSITIVE_RATE,
            roc: (0..=steps).map(point).collect(),
        })
    }
}

impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { area_under_curve, true_positive_rate, false_positive_rate, .. } = self;
        write!(
            f,
            "membership: area under the ROC curve {area_under_curve:.3}, true positive rate {:.1} % at a false positive rate of {} %",
            100.0 * true_positive_rate,
            100.0 * false_positive_rate
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Oracle: pairs counted by hand.
    #[test]
    fn the_area_is_the_share_of_pairs_in_the_right_order() {
        let found = Membership::of(&[3.0, 1.0], vec![2.0, 0.0, 1.0]).unwrap();
        // Four of the six pairs are in order, and one is tied.
        assert!((found.area_under_curve - 4.5 / 6.0).abs() < 1e-12);
        assert_eq!(found.true_positive_rate, 0.5);
        // Above 2, 1 and 0 there are one, one and both of the members.
        assert_eq!(found.roc, [(0.0, 0.5), (1.0 / 3.0, 0.5), (2.0 / 3.0, 1.0), (1.0, 1.0)]);
        assert_eq!(Membership::of(&[], vec![1.0]), None);
        assert_eq!(Membership::of(&[1.0], Vec::new()), None);
    }

    #[test]
    fn one_of_a_hundred_others_may_be_taken_for_a_member() {
        let others: Vec<f64> = (0..200).map(f64::from).collect();
        let found = Membership::of(&[197.5, 196.5, 250.0, 10.0], others).unwrap();
        assert_eq!(found.true_positive_rate, 0.5);
        assert_eq!((found.roc.len(), found.roc[1]), (101, (0.01, 0.5)));
    }
}
