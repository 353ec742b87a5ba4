//! The cost of a paraphrase: the tokens of one text, and the counts of labels.
//!
//! # Proof
//! Each unit gives one of its records, which is chosen by a keyed hash of the unit's number alone. The label of that record and a second
//! hash give the one batch that it belongs to. Condition on the hashes, whose key is secret: they are as good as independent of each other
//! for different units, so the units of neighbors that are in both of them can be given the same hashes. A unit that is added or removed
//! then changes one batch, by one row of logits for each of its tokens. The tokens of a text are an adaptive composition of exponential
//! mechanisms (`mechanisms::ExponentialMechanism` has their proof): the next token of a text, and whether there is one, follows from the
//! tokens before it. All other texts have the same references in both neighbors, so their law is the same, and the texts of all batches
//! together cost what `tokens` tokens of one batch cost, whether these were drawn or the text ended before. A unit that is exchanged
//! changes two batches by one row each, or one batch by two rows, which is how the accountant charges `replace_one`. A unit that is zeroed
//! out gives a row of differences that are 0.
//!
//! The number of texts of each label follows from the released counts of labels, which one unit moves by 1, and from the file. A batch is
//! drawn from once.
//!
//! # References
//! Vinod, Pillutla & Thakurta 2025, <https://arxiv.org/abs/2507.02974>: clipped differences from public logits, and the set of tokens.
//! Here, the divisor is public and the number of references is not.

use accountant::calibrate::EpsilonTarget;
use accountant::{Bounds, Delta, DpEvent};
use mechanisms::ExponentialMechanism;

use crate::{ParaphraseFile, PlanError};

/// A paraphrase whose cost is computed and does not exceed its ε.
#[derive(Clone, Debug)]
pub struct CertifiedParaphrase {
    /// The file.
    pub file: ParaphraseFile,
    /// The mechanism that draws a token.
    pub mechanism: ExponentialMechanism,
    /// The event of all texts, and of the counts of labels.
    pub event: DpEvent,
    /// Certified bounds on the ε of `event`.
    pub epsilon: Bounds,
    /// The δ of the guarantee.
    pub delta: Delta,
}

impl ParaphraseFile {
    /// Computes the largest clip, or the smallest divisor of a given clip, with which all texts together stay within `privacy.epsilon`.
    ///
    /// # Errors
    /// [`PlanError::Accountant`] if the accountant has no certified answer; [`PlanError::Field`] for an ε that cannot be met.
    pub fn certify(self) -> Result<CertifiedParaphrase, PlanError> {
        let (relation, limit) = (self.privacy.relation, self.privacy.epsilon);
        let delta = Delta::new(self.privacy.delta)?;
        let target = EpsilonTarget { epsilon: limit, delta, relation };
        // ρ = 1/2σ² names a draw by the noise multiplier of a Gaussian that is as concentrated.
        let of_noise = |sigma: f64| DpEvent::ZeroConcentrated { rho: 0.5 / (sigma * sigma) };
        let sigma = target.noise_multiplier(|sigma| self.with_labels(self.tokens_of(of_noise(sigma))))?;
        // ρ = D²/2N², where D/N is the clip over divisor and temperature. What is rounded is rounded in favor of privacy.
        let temperature = self.temperature;
        let (clip, divisor) = match self.clip {
            Some(clip) => (clip, clip * sigma / temperature * (1.0 + 1e-12)),
            None => (self.references() as f64 * temperature / sigma, self.references() as f64),
        };
        let mechanism = ExponentialMechanism::new(clip.min(65536.0), divisor, temperature)?;
        let event = self.with_labels(self.tokens_of(mechanism.event()));
        let epsilon = accountant::epsilon(&event, delta, relation)?;
        if epsilon.upper <= limit {
            return Ok(CertifiedParaphrase { file: self, mechanism, event, epsilon, delta });
        }
        let allowed = format!("at least {}", epsilon.upper);
        crate::messages::refuse("privacy.epsilon", limit.to_string(), &allowed, "raise it")
    }

    fn tokens_of(&self, event: DpEvent) -> DpEvent {
        DpEvent::SelfComposed { event: Box::new(event), count: self.tokens }
    }

    fn with_labels(&self, tokens: DpEvent) -> DpEvent {
        let labels = self
            .label_histogram()
            .map(|labels| DpEvent::Gaussian { noise_multiplier: labels.noise_multiplier });
        DpEvent::Composed { events: labels.into_iter().chain([tokens]).collect() }
    }
}

impl CertifiedParaphrase {
    /// Returns the event of all texts together.
    #[must_use]
    pub fn texts_event(&self) -> DpEvent {
        self.file.tokens_of(self.mechanism.event())
    }

    /// Returns the event of the counts of labels, if there are labels.
    #[must_use]
    pub fn labels_event(&self) -> Option<DpEvent> {
        self.file
            .label_histogram()
            .map(|labels| DpEvent::Gaussian { noise_multiplier: labels.noise_multiplier })
    }

    /// Allots the texts to the labels in the proportions of their counts, of which those below 0 count as 0; evenly if none is above 0 or
    /// they are lost. Without labels there is one group.
    #[must_use]
    pub fn texts_by_label(&self, counts: Option<&[i64]>) -> Vec<u64> {
        let groups = self.file.labels.len().max(1);
        let mut shares: Vec<u128> =
            counts.unwrap_or(&[]).iter().map(|count| u128::from((*count).max(0) as u64)).collect();
        shares.resize(groups, 0);
        if shares.iter().all(|share| *share == 0) {
            shares.fill(1);
        }
        let (total, records) = (shares.iter().sum::<u128>(), u128::from(self.file.records));
        let mut allotted: Vec<u64> = shares.iter().map(|share| (records * share / total) as u64).collect();
        // Largest remainders get what rounding left; the first of equal ones.
        let mut order: Vec<usize> = (0..groups).collect();
        order.sort_by_key(|group| std::cmp::Reverse(records * shares[*group] % total));
        let left = self.file.records - allotted.iter().sum::<u64>();
        order.into_iter().take(left as usize).for_each(|group| allotted[group] += 1);
        allotted
    }
}

#[cfg(test)]
mod tests {
    use accountant::NeighboringRelation;

    use super::*;

    fn file(change: impl FnOnce(&mut serde_json::Value)) -> Result<ParaphraseFile, PlanError> {
        let mut file = serde_json::json!({
            "name": "comments",
            "data": { "source": { "path": "comments.jsonl" }, "units": 1000 },
            "privacy": { "unit": "record", "relation": "add_or_remove_one", "delta": 1e-5, "epsilon": 8.0 },
            "generator": "public", "records": 100, "tokens": 30, "temperature": 1.0
        });
        change(&mut file);
        ParaphraseFile::parse(&file.to_string())
    }

    fn certified(change: impl FnOnce(&mut serde_json::Value)) -> CertifiedParaphrase {
        file(change).unwrap().certify().unwrap()
    }

    /// Oracles: ρ = T·(C/(B·τ))²/2 by hand, and the accountant.
    #[test]
    fn the_clip_follows_from_epsilon_and_costs_what_the_closed_form_says() {
        let certified = certified(|file| file["temperature"] = 1.2.into());
        assert!(certified.epsilon.upper <= 8.0 && certified.epsilon.upper > 7.99, "{:?}", certified.epsilon);
        let moved = certified.mechanism.clip() / (10.0 * 1.2);
        let rho = accountant::zcdp(&certified.event, NeighboringRelation::AddOrRemoveOne).unwrap();
        assert!((rho / (30.0 * moved * moved / 2.0) - 1.0).abs() < 1e-6, "{rho}");
        let one = DpEvent::ZeroConcentrated { rho };
        let epsilon =
            accountant::epsilon(&one, certified.delta, NeighboringRelation::AddOrRemoveOne).unwrap();
        assert!((epsilon.upper / certified.epsilon.upper - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_clip_grows_with_references_and_temperature_and_falls_with_tokens_and_exchange() {
        let clip = |pointer: &str, value: serde_json::Value| {
            certified(|file| *file.pointer_mut(pointer).unwrap() = value).mechanism.clip()
        };
        let base = clip("/records", 100.into());
        for (pointer, value, ratio) in [
            ("/records", 50.into(), 2.0),
            ("/tokens", 120.into(), 0.5),
            ("/temperature", 1.5.into(), 1.5),
            ("/privacy/relation", "replace_one".into(), 0.5),
        ] {
            assert!((clip(pointer, value) / base / ratio - 1.0).abs() < 1e-3, "{pointer}");
        }
        let given = certified(|file| file["clip"] = (base / 4.0).into());
        assert!((given.mechanism.divisor() - 2.5).abs() < 1e-3 && given.epsilon.upper <= 8.0);
        assert!(given.epsilon.upper > 7.99 && (given.mechanism.clip() * 4.0 / base - 1.0).abs() < 1e-6);
        let labelled = certified(|file| {
            file["labels"] = serde_json::json!(["a", "b"]);
            file["data"]["label_field"] = "label".into();
        });
        assert!(labelled.mechanism.clip() < base && labelled.mechanism.clip() > 0.99 * base);
    }

    /// Oracle: by hand.
    #[test]
    fn texts_are_allotted_in_the_proportions_of_the_counts() {
        let certified = certified(|file| {
            file["labels"] = serde_json::json!(["a", "b", "c"]);
            file["data"]["label_field"] = "label".into();
        });
        assert_eq!(certified.texts_by_label(Some(&[50, -9, 150])), [25, 0, 75]);
        assert_eq!(certified.texts_by_label(Some(&[1, 1, 1])), [34, 33, 33]);
        assert_eq!(certified.texts_by_label(None), [34, 33, 33]);
        assert_eq!(certified.texts_by_label(Some(&[-1, -1, 0])), [34, 33, 33]);
    }

    #[test]
    fn what_a_file_cannot_mean_is_refused_with_its_field() {
        for (field, value) in [
            ("records", serde_json::json!(1001)),
            ("tokens", 0.into()),
            ("temperature", 0.into()),
            ("clip", 0.into()),
            ("label_noise_multiplier", 0.into()),
            ("prompt", "no reference".into()),
            ("public_prompt", "{text}".into()),
            ("public_prompt", "{label}".into()),
            ("labels", serde_json::json!(["a", "a"])),
            ("name", "a/b".into()),
        ] {
            let refused = file(|file| file[field] = value).unwrap_err().to_string();
            assert!(refused.starts_with(field.trim_start_matches("public_")), "{refused}");
        }
        let unknown = file(|file| file["token"] = 1.into()).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `token`"), "{unknown}");
        let dear = file(|file| {
            file["labels"] = serde_json::json!(["a"]);
            file["data"]["label_field"] = "label".into();
            file["label_noise_multiplier"] = 0.1.into();
        });
        assert!(dear.unwrap().certify().is_err());
    }
}
