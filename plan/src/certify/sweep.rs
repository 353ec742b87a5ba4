//! A sweep: trials of one plan with several settings, charged together.
//!
//! [`SweepFile`] is what a user wrote, [`CertifiedSweep`] is what it costs. The noise of every trial is calibrated so that
//! the ε of the whole sweep stays within its limit: the composition of all trials where all are published, or private
//! selection (Papernot & Steinke 2022, <https://arxiv.org/abs/2110.03620>) where only the best of a secret number is. A vocabulary
//! from private text is released once, and all trials share it.

use accountant::calibrate::EpsilonTarget;
use accountant::{Bounds, DpEvent};
use serde_json::{Map, Value, json};

use crate::messages::{refuse, shown};
use crate::{
    AllTrials, CertifiedPlan, NoiseMultipliers, Plan, PlanError, PlanFile, SweepFile, SweepTrials, Tokenizer,
    TrialCount, VaryField,
};

/// Largest number of settings, and of published trials.
const MAX_TRIALS: usize = 1000;

/// A sweep whose cost is computed and does not exceed its ε.
#[derive(Clone, Debug)]
pub struct CertifiedSweep {
    /// The settings: every combination of values.
    pub settings: Vec<SweepSetting>,
    /// The number of trials, and which of them are published.
    pub trials: SweepTrials,
    /// The noise multipliers of the vocabulary and of every trial's training steps.
    pub noise_multipliers: NoiseMultipliers,
    /// The event of the whole sweep, with every trial's spare steps.
    pub event: DpEvent,
    /// Certified bounds on the ε of `event` at the plan's δ.
    pub epsilon: Bounds,
}

/// One combination of values.
#[derive(Clone, Debug)]
pub struct SweepSetting {
    /// The fields that vary, with their values in this setting.
    pub values: Map<String, Value>,
    /// The plan of a trial with this setting.
    pub plan: CertifiedPlan,
}

impl SweepSetting {
    /// Returns the plan file of a trial with this setting.
    #[must_use]
    pub fn plan_file(&self) -> String {
        self.plan.plan().file().text()
    }
}

/// A setting whose noise is not known yet.
struct Draft {
    values: Map<String, Value>,
    file: Value,
    plan: Plan,
}

impl SweepFile {
    /// Computes the noise of the trials and the cost of the sweep.
    ///
    /// A plan that states its noise multiplier keeps it. Otherwise the trials get the smallest noise with which the whole sweep
    /// stays within `epsilon`.
    ///
    /// # Errors
    /// [`PlanError::Field`] for settings that are no plans, for a plan that cannot be swept, and for an ε that cannot be met;
    /// [`PlanError::Accountant`] if the accountant has no certified answer.
    pub fn certify(&self, base: &Plan) -> Result<CertifiedSweep, PlanError> {
        self.check(base)?;
        let drafts = self.drafts(base)?;
        let noise = match base.privacy().noise_multipliers {
            Some(noise) => noise,
            None => self.calibrated(base, &drafts)?,
        };
        self.certify_drafts(base, drafts, noise)
    }

    /// Computes the same as [`Self::certify`], with the noise multipliers that an earlier call computed.
    ///
    /// # Errors
    /// As [`Self::certify`].
    pub fn certify_with(&self, base: &Plan, noise: NoiseMultipliers) -> Result<CertifiedSweep, PlanError> {
        self.check(base)?;
        let drafts = self.drafts(base)?;
        self.certify_drafts(base, drafts, noise)
    }

    fn certify_drafts(
        &self,
        base: &Plan,
        drafts: Vec<Draft>,
        noise: NoiseMultipliers,
    ) -> Result<CertifiedSweep, PlanError> {
        let event = self.event(base, &drafts, noise);
        let epsilon = accountant::epsilon(&event, base.delta(), base.privacy().relation)?;
        if epsilon.upper <= self.epsilon {
            let settings = drafts.into_iter().map(|draft| draft.certify(noise));
            let settings = settings.collect::<Result<_, _>>()?;
            return Ok(CertifiedSweep {
                settings,
                trials: self.trials,
                noise_multipliers: noise,
                event,
                epsilon,
            });
        }
        let given = format!("{}, though this noise gives ε ≤ {} for all trials", self.epsilon, epsilon.upper);
        let fix = "raise it, or leave out the plan's privacy.noise_multipliers to have the noise calibrated";
        refuse("epsilon", given, &format!("at least {}", epsilon.upper), fix)
    }

    /// Refuses sweeps that are impossible whatever their settings are.
    fn check(&self, base: &Plan) -> Result<(), PlanError> {
        if !(self.epsilon > 0.0 && self.epsilon <= 1e6) {
            let fix = "state the ε of the whole sweep";
            return refuse("epsilon", self.epsilon.to_string(), "a number > 0 and ≤ 1000000", fix);
        }
        if base.is_public() {
            let fix = "run its settings as plans of their own: nothing is charged for them";
            return refuse("plan", "a plan on public text", "a plan on private text", fix);
        }
        let has_context = self.vary.0.iter().any(|field| field.path == "model.context");
        if has_context && matches!(base.tokenizer(), Tokenizer::Train(_)) {
            let fix = "remove it, or use \"bytes\" or a public tokenizer";
            let given = "varied, though all trials share one trained vocabulary";
            return refuse("vary: model.context", given, "one context, whose special tokens it has", fix);
        }
        match self.trials {
            SweepTrials::All(AllTrials { seeds }) if (1..=MAX_TRIALS as u64).contains(&seeds) => Ok(()),
            SweepTrials::All(AllTrials { seeds }) => {
                let fix = "set the number of runs of each setting";
                refuse("trials.all.seeds", seeds.to_string(), "1 to 1000", fix)
            }
            SweepTrials::Best(count) => check_count(count).and_then(|()| check_score(base)),
        }
    }

    /// Returns all combinations of values, each as a valid plan.
    fn drafts(&self, base: &Plan) -> Result<Vec<Draft>, PlanError> {
        let file = serde_json::from_str(&base.file().text()).unwrap_or_default();
        let mut drafts = vec![Draft { values: Map::new(), file, plan: base.clone() }];
        for field in &self.vary.0 {
            field.check()?;
            if drafts.len() * field.values.len() > MAX_TRIALS {
                let given = format!("more than {MAX_TRIALS} combinations");
                return refuse("vary", given, "at most 1000 settings", "give fewer values");
            }
            let combined =
                drafts.iter().flat_map(|draft| field.values.iter().map(|value| draft.with(field, value)));
            drafts = combined.collect();
        }
        let event = base.pipeline_with(None, 1.0);
        for draft in &mut drafts {
            draft.plan = valid(&draft.file)?;
            let changed = draft.plan.pipeline_with(None, 1.0) != event;
            if changed && matches!(self.trials, SweepTrials::Best(_)) {
                return Err(self.event_changes(base, &event));
            }
        }
        let runs = match self.trials {
            SweepTrials::All(AllTrials { seeds }) => drafts.len() as u64 * seeds,
            SweepTrials::Best(_) => 1,
        };
        if runs <= MAX_TRIALS as u64 {
            return Ok(drafts);
        }
        let given = format!("{runs} runs of {} settings", drafts.len());
        refuse("trials.all.seeds", given, "at most 1000 runs", "give fewer seeds or values")
    }

    /// Returns a refusal that names the field which changes the cost of a trial.
    fn event_changes(&self, base: &Plan, event: &DpEvent) -> PlanError {
        let file: Value = serde_json::from_str(&base.file().text()).unwrap_or_default();
        let alone = Draft { values: Map::new(), file, plan: base.clone() };
        let changes = |field: &&VaryField| {
            let plans = field.values.iter().map(|value| valid(&alone.with(field, value).file));
            plans.flatten().any(|plan| plan.pipeline_with(None, 1.0) != *event)
        };
        let path = self.vary.0.iter().find(changes).map_or("vary", |field| &field.path);
        PlanError::field(
            &format!("vary: {path}"),
            "values that change what a trial costs",
            "under \"best\", fields that leave every trial's event as it is, such as the learning rate",
            "remove it, or publish all trials with {\"all\": {\"seeds\": 1}}",
        )
    }

    fn calibrated(&self, base: &Plan, drafts: &[Draft]) -> Result<NoiseMultipliers, PlanError> {
        let (delta, relation) = (base.delta(), base.privacy().relation);
        let target = EpsilonTarget { epsilon: self.epsilon, delta, relation };
        let tokenizer = base.tokenizer_noise(&target)?;
        let event_for = |training| self.event(base, drafts, NoiseMultipliers { tokenizer, training });
        let training = target.noise_multiplier(event_for).map_err(|error| {
            let given = format!("{} for all trials together: {error}", self.epsilon);
            let allowed = "an ε that some noise meets, at the plan's δ";
            PlanError::field("epsilon", given, allowed, "raise it, or give fewer trials")
        })?;
        Ok(NoiseMultipliers { tokenizer, training })
    }

    fn event(&self, base: &Plan, drafts: &[Draft], noise: NoiseMultipliers) -> DpEvent {
        let mut trials = drafts.iter().map(|draft| draft.plan.pipeline_with(None, noise.training));
        let events = match self.trials {
            SweepTrials::All(AllTrials { seeds }) => repeated(trials, seeds),
            SweepTrials::Best(count) => {
                // Every trial has the same event, so the first one's stands for a trial with a random setting.
                let event = trials.next().unwrap_or(DpEvent::Composed { events: Vec::new() });
                vec![DpEvent::PrivateSelection { event: Box::new(event), trials: count.distribution() }]
            }
        };
        let release = base.release(noise.tokenizer).map(|release| release.event);
        DpEvent::Composed { events: release.into_iter().chain(events).collect() }
    }
}

/// Counts equal events, so that the accountant sees each of them once.
fn repeated(events: impl Iterator<Item = DpEvent>, seeds: u64) -> Vec<DpEvent> {
    let mut counted: Vec<(DpEvent, u64)> = Vec::new();
    for event in events {
        match counted.iter_mut().find(|(known, _)| *known == event) {
            Some((_, count)) => *count += seeds,
            None => counted.push((event, seeds)),
        }
    }
    let repeated = |(event, count)| DpEvent::SelfComposed { event: Box::new(event), count };
    counted.into_iter().map(repeated).collect()
}

impl Draft {
    /// Returns this setting with another value of a field.
    fn with(&self, field: &VaryField, value: &Value) -> Self {
        let mut next = Self { values: self.values.clone(), file: self.file.clone(), plan: self.plan.clone() };
        next.values.insert(field.path.clone(), value.clone());
        // Epochs became steps when the plan was read.
        if let ("training.epochs", Some(training)) =
            (field.path.as_str(), next.file["training"].as_object_mut())
        {
            training.remove("steps");
        }
        set(&mut next.file, &field.path, value);
        next
    }

    fn certify(mut self, noise: NoiseMultipliers) -> Result<SweepSetting, PlanError> {
        if let Some(privacy) = self.file["privacy"].as_object_mut() {
            privacy.remove("epsilon");
            privacy.insert("noise_multipliers".to_owned(), json!(noise));
        }
        Ok(SweepSetting { values: self.values, plan: valid(&self.file)?.certify()? })
    }
}

impl VaryField {
    fn check(&self) -> Result<(), PlanError> {
        let path = format!("vary: {}", self.path);
        let trained = self.path.starts_with("training.") || self.path.starts_with("model.");
        let sampled = ["privacy.sampling", "privacy.spare_steps"].contains(&self.path.as_str());
        if !(trained || sampled) || self.path == "training.objective" {
            return refuse(
                &path,
                "a field that all trials share",
                "fields of training (but its objective) and model, privacy.sampling, privacy.spare_steps",
                "remove it, or write the path from the top of the plan, as in \"training.learning_rate.peak\"",
            );
        }
        if self.values.is_empty() {
            return refuse(&path, "an empty list", "at least one value", "fill it in, or remove the field");
        }
        let repeated = (1..self.values.len()).find(|&at| self.values[..at].contains(&self.values[at]));
        match repeated {
            None => Ok(()),
            Some(at) => {
                let given = format!("{} twice", shown(&self.values[at]));
                refuse(&path, given, "each value once", "remove one of the two")
            }
        }
    }
}

/// Sets the value at a dotted path. Objects that are missing on the way are made; whether the plan has such a field is for the
/// plan's own check to say.
fn set(file: &mut Value, path: &str, value: &Value) {
    let mut place = file;
    for name in path.split('.') {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name];
    }
    *place = value.clone();
}

fn valid(file: &Value) -> Result<Plan, PlanError> {
    let plan = PlanFile::parse(&file.to_string()).and_then(Plan::try_from);
    plan.map_err(|error| match error {
        PlanError::Field { path, given, allowed, fix } => {
            PlanError::Field { path: format!("vary: {path}"), given, allowed, fix }
        }
        other => other,
    })
}

fn check_count(count: TrialCount) -> Result<(), PlanError> {
    let (name, value, allowed, fits) = match count {
        TrialCount::Poisson { mean } => {
            ("poisson.mean", mean, "1 to 10000 trials", (1.0..=1e4).contains(&mean))
        }
        TrialCount::TruncatedNegativeBinomial { shape, .. } if !(shape > -1.0 && shape <= 1.0) => {
            ("truncated_negative_binomial.shape", shape, "above -1 and at most 1", false)
        }
        TrialCount::TruncatedNegativeBinomial { stop, .. } => {
            ("truncated_negative_binomial.stop", stop, "from 0.0001 to below 1", (1e-4..1.0).contains(&stop))
        }
    };
    if fits {
        return Ok(());
    }
    refuse(&format!("trials.best.{name}"), value.to_string(), allowed, "set it within this range")
}

/// Refuses a sweep whose trials cannot be scored without a cost.
fn check_score(base: &Plan) -> Result<(), PlanError> {
    if base.evaluation().is_some() {
        return Ok(());
    }
    refuse(
        "plan: evaluation",
        "missing, though \"best\" needs a score",
        "public text, whose perplexity is the score",
        "add public evaluation text to the plan, or publish all trials with {\"all\": {\"seeds\": 1}}",
    )
}
