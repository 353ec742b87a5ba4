//! Describes a certified plan in one paragraph.

use std::fmt;

use accountant::NeighboringRelation;

use crate::{CertifiedPlan, PrivacyUnit};

impl fmt::Display for CertifiedPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let privacy = self.plan().privacy();
        if self.plan().is_public() {
            let (steps, units) = (self.total_steps(), self.plan().data().units);
            return write!(
                f,
                "NOT PRIVATE: {steps} steps without noise on {units} units of public text; nothing is promised"
            );
        }
        let bounds = self.epsilon();
        let unit = match privacy.unit {
            PrivacyUnit::Record => "one record".to_owned(),
            PrivacyUnit::User => "one user's records".to_owned(),
            PrivacyUnit::Owner => "all records of one owner".to_owned(),
            PrivacyUnit::Words(words) => format!("{words} words of one record"),
        };
        let change = match privacy.relation {
            NeighboringRelation::AddOrRemoveOne => "adding or removing",
            NeighboringRelation::ReplaceOne => "replacing",
            NeighboringRelation::ZeroOut => "blanking out",
        };
        write!(
            f,
            "ε ≤ {} (not below {}) at δ = {:e} for {change} {unit}, {} units: ",
            bounds.upper,
            bounds.lower,
            self.delta().get(),
            self.plan().data().units
        )?;
        match self.tokenizer_release() {
            Some(release) => {
                write!(f, "a vocabulary released with noise multiplier {}, ", release.noise_multiplier)?;
            }
            None => write!(f, "a public vocabulary, ")?,
        }
        if let Some(histogram) = &self.plan().data().label_histogram {
            write!(f, "label counts with noise multiplier {}, ", histogram.noise_multiplier)?;
        }
        for phase in self.phases() {
            write!(
                f,
                "{} steps of {} expected {} ({} sampling, q = {:.6}) with noise multiplier {}, ",
                phase.steps,
                phase.expected_batch_size,
                privacy.sampling.sampled(),
                privacy.sampling.name(),
                phase.sampling_probability,
                phase.noise_multiplier()
            )?;
        }
        write!(f, "{} spare steps charged", privacy.spare_steps)
    }
}
