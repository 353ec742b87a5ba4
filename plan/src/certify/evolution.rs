//! The cost of an evolution: a Gaussian histogram of votes in each round.
//!
//! # Proof
//! In a round each unit adds 1 to each of `votes` counts, those of the candidates nearest to one of its records. Which these are
//! depends on that unit, on public or released values (the candidates and the embedding), and on a random choice that is independent
//! of those of other units. A unit that is added or removed therefore moves the vector of counts by √votes in L2 norm, which is the sensitivity of the Gaussian
//! mechanism, rounded up. A unit that is exchanged moves it by at most twice as much, which is how the accountant charges
//! `replace_one`. The next candidates are computed from the released counts and from public values, so the rounds are an adaptive
//! composition of Gaussian mechanisms, whose event is theirs together.
//!
//! # References
//! Lin et al. 2023, <https://arxiv.org/abs/2305.15560>, Algorithm 2; Xie et al. 2024, <https://arxiv.org/abs/2403.01749>.

use accountant::calibrate::EpsilonTarget;
use accountant::{Bounds, Delta, DpEvent};
use mechanisms::{GaussianMechanism, L2Sensitivity};

use crate::{EvolutionFile, PlanError};

/// An evolution whose cost is computed and does not exceed its ε.
#[derive(Clone, Debug)]
pub struct CertifiedEvolution {
    /// The file.
    pub file: EvolutionFile,
    /// The mechanism that releases the votes of a round.
    pub mechanism: GaussianMechanism,
    /// The L2 norm of what a unit adds to the votes of a round.
    pub sensitivity: L2Sensitivity,
    /// The event of all rounds.
    pub event: DpEvent,
    /// Certified bounds on the ε of `event`.
    pub epsilon: Bounds,
    /// The δ of the guarantee.
    pub delta: Delta,
}

impl EvolutionFile {
    /// Computes the smallest noise with which all rounds together stay within `privacy.epsilon`.
    ///
    /// # Errors
    /// [`PlanError::Accountant`] if the accountant has no certified answer; [`PlanError::Field`] for an ε that cannot be met.
    pub fn certify(self) -> Result<CertifiedEvolution, PlanError> {
        let (relation, limit) = (self.privacy.relation, self.privacy.epsilon);
        let delta = Delta::new(self.privacy.delta)?;
        let target = EpsilonTarget { epsilon: limit, delta, relation };
        let event_of = |noise_multiplier| all_rounds(DpEvent::Gaussian { noise_multiplier }, self.rounds);
        let mechanism = GaussianMechanism::new(target.noise_multiplier(event_of)?)?;
        let event = all_rounds(mechanism.event(), self.rounds);
        let epsilon = accountant::epsilon(&event, delta, relation)?;
        if epsilon.upper <= limit {
            let sensitivity = L2Sensitivity::new((self.votes as f64).sqrt().next_up())?;
            return Ok(CertifiedEvolution { file: self, mechanism, sensitivity, event, epsilon, delta });
        }
        let allowed = format!("at least {}", epsilon.upper);
        crate::messages::refuse("privacy.epsilon", limit.to_string(), &allowed, "raise it")
    }
}

impl CertifiedEvolution {
    /// Returns the event of the votes of one round.
    #[must_use]
    pub fn round_event(&self) -> DpEvent {
        self.mechanism.event()
    }

    /// Returns the standard deviation of the noise on each count.
    #[must_use]
    pub fn noise_std(&self) -> f64 {
        self.mechanism.noise_multiplier() * self.sensitivity.get()
    }
}

fn all_rounds(event: DpEvent, count: u64) -> DpEvent {
    DpEvent::Composed { events: vec![DpEvent::SelfComposed { event: Box::new(event), count }] }
}

#[cfg(test)]
mod tests {
    use accountant::NeighboringRelation;

    use super::*;

    fn file(change: impl FnOnce(&mut serde_json::Value)) -> Result<EvolutionFile, PlanError> {
        let mut file = serde_json::json!({
            "name": "comments",
            "data": { "source": { "path": "comments.jsonl" }, "units": 1000 },
            "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-5, "epsilon": 1.0 },
            "candidates": { "texts": "public.txt" },
            "embedding": "bert", "rounds": 4, "records": 100
        });
        change(&mut file);
        EvolutionFile::parse(&file.to_string())
    }

    /// The rounds are one Gaussian mechanism with σ/√rounds (Dong, Roth, Su 2019, Corollary 2), whose noise the accountant finds apart.
    #[test]
    fn the_rounds_cost_as_much_as_one_gaussian_of_half_the_noise() {
        let certified = file(|_| ()).unwrap().certify().unwrap();
        let one = DpEvent::Gaussian { noise_multiplier: certified.mechanism.noise_multiplier() / 2.0 };
        let relation = NeighboringRelation::AddOrRemoveOne;
        let alone = accountant::epsilon(&one, certified.delta, relation).unwrap();
        assert!((alone.upper - certified.epsilon.upper).abs() < 1e-6);
        assert!(certified.epsilon.upper <= 1.0 && certified.epsilon.upper > 0.999);
        let more = file(|file| file["rounds"] = 16.into()).unwrap().certify().unwrap();
        let ratio = more.mechanism.noise_multiplier() / certified.mechanism.noise_multiplier();
        assert!((ratio - 2.0).abs() < 1e-4, "{ratio}");
    }

    #[test]
    fn the_noise_on_a_count_grows_with_the_votes_of_a_unit_and_the_cost_does_not() {
        let one = file(|_| ()).unwrap().certify().unwrap();
        let four = file(|file| file["votes"] = 4.into()).unwrap().certify().unwrap();
        assert_eq!(one.event, four.event);
        assert!(four.sensitivity.get() >= 2.0 && four.sensitivity.get() < 2.0 + 1e-12);
        assert!((four.noise_std() / one.noise_std() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn an_exchanged_unit_needs_twice_the_noise() {
        let exchanged = file(|file| file["privacy"]["relation"] = "replace_one".into()).unwrap();
        let ratio = exchanged.certify().unwrap().mechanism.noise_multiplier()
            / file(|_| ()).unwrap().certify().unwrap().mechanism.noise_multiplier();
        assert!((ratio - 2.0).abs() < 1e-3, "{ratio}");
    }

    #[test]
    fn what_a_file_cannot_mean_is_refused_with_its_field() {
        for (field, value) in [
            ("rounds", 0.into()),
            ("population", 1.into()),
            ("votes", 2001.into()),
            ("threshold", (-1).into()),
            ("records", 0.into()),
            ("labels", serde_json::json!(["a", "a"])),
            ("name", "a/b".into()),
        ] {
            let refused = file(|file| file[field] = value).unwrap_err().to_string();
            assert!(refused.starts_with(field), "{refused}");
        }
        for (field, value) in [("target_field", "a".into()), ("visibility", "public".into())] {
            let refused = file(|file| file["data"][field] = value).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("data.{field}")), "{refused}");
        }
        let delta = file(|file| file["privacy"]["delta"] = 0.001.into()).unwrap_err().to_string();
        assert!(delta.starts_with("privacy.delta"), "{delta}");
        let unknown = file(|file| file["round"] = 1.into()).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `round`"), "{unknown}");
    }
}
