//! Proposes a model, a batch size, a number of steps, the noise, a clip norm and a learning rate for a budget of
//! privacy and of computing time.
//!
//! The accountant computes every ε and σ, and [`crate::Cost`] every number of operations. Size, batch and steps are
//! those with the least loss by the law in [`super::law`]; for a checkpoint, which it does not cover, batch and steps are the usual ones.
//! Rules of thumb are called so and name their source.

use accountant::calibrate::EpsilonTarget;
use accountant::correlated::{Participation, Strategy, TrainingRun, best_banded};

use super::candidates::{Candidate, Compute, FEWEST_STEPS, Trial, examples, set_batch};
use super::law::{Prediction, Setting, times_the_units};
use super::start::vocabulary;
use super::{CHECKPOINTS, Checkpoint, Start, Trained, optimizer};
use crate::messages::refuse;
use crate::{
    CertifiedPlan, Cost, CyclicPoisson, Initial, MACHINES, Machine, Objective, Plan, PlanError, PlanFile,
    Sampling, Size,
};

/// A proposed plan, with the reasons for it.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The proposal.
    pub certified: CertifiedPlan,
    /// The batch sizes that were tried with the proposed model, in increasing order.
    pub candidates: Vec<Candidate>,
    /// The predicted loss; `None` if the law predicts none: for a model that starts from a checkpoint or learns no
    /// text.
    pub prediction: Option<Prediction>,
    /// What the plan needs, with the number of tokens of a checkpoint that is known by name.
    pub cost: Cost,
    /// Estimated bytes of memory on the machine, or on a processor if the budget names none; on a graphics processor a lower bound.
    pub memory: f64,
    /// Reasons for the proposal, one sentence each.
    pub reasons: Vec<String>,
    /// Points to reconsider, one sentence each.
    pub warnings: Vec<String>,
}

/// Proposes a plan with the data and the privacy of `file` and, unless `start` is a checkpoint with one, its tokenizer.
///
/// ```
/// use plan::{Compute, MACHINES, PlanFile, Start, advise};
/// let file = PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
/// let compute = Compute::Time { machine: MACHINES[0], seconds: 600.0 };
/// let advice = advise(&file, compute, Start::Proposed)?;
/// assert!(advice.certified.epsilon().upper <= 8.0);
/// assert!(advice.certified.plan().file().cost().seconds_on(&MACHINES[0]) <= 600.0);
/// # Ok::<(), plan::PlanError>(())
/// ```
///
/// # Errors
/// [`PlanError::Field`] for a plan on public text, for one without ε, for a start that does not fit the plan, or for a budget that pays
/// for less than one step of one unit; whatever else is wrong with the plan.
pub fn advise(file: &PlanFile, compute: Compute, start: Start) -> Result<Advice, PlanError> {
    let mut file = file.clone();
    file.privacy.noise_multipliers = None;
    // The batch is chosen for independent noise, and then the bands for this batch.
    let is_correlated = matches!(file.privacy.sampling, Sampling::CyclicPoisson(_));
    if is_correlated {
        file.privacy.sampling = Sampling::Poisson;
    }
    let training = &mut file.training;
    (training.batch_schedule, training.epochs) = (None, None);
    (training.steps, training.expected_batch_size) = (Some(1), Some(1));
    training.learning_rate.warmup_steps = 0;
    let size = start.apply(&mut file)?;
    if size.is_none() && file.model.initial != Initial::Random {
        return from_checkpoint(file, compute, is_correlated);
    }
    let trials = match size {
        Some(size) => Trial::new(&file, compute, size)?.into_iter().collect(),
        None => Trial::of_sizes(&file, compute)?,
    };
    let Some(best) = trials.iter().min_by(|one, other| one.least().total_cmp(&other.least())) else {
        return too_little();
    };
    let chosen = best.chosen()?;
    let mut file = best.file.clone();
    set_batch(&mut file, chosen.expected_batch_size, chosen.steps);
    let prediction = Prediction::of(&file, chosen.noise_batch_ratio, best.target.epsilon);
    let mut reasons = vec![model_reason(&file, &trials), batch_reason(best, chosen)];
    reasons.extend(prediction.as_ref().map(Prediction::to_string));
    reasons.extend(Prediction::why_none(&file).map(str::to_owned));
    reasons.extend(checkpoint_reason(&file, compute));
    if examples(&file, compute) >= 1.5 * file.epochs() * file.population() as f64 {
        reasons.push(format!(
            "Passes: {:.0}. The budget pays for more, from which the law promises less than 1 %. More data or a larger ε would help; \
             more time does not.",
            file.epochs()
        ));
    }
    let setting = best.setting(chosen.steps, chosen.noise_batch_ratio);
    // The built-in notes count as any text here: what counts is how many units there are.
    let of_text = Prediction::by_law(&file, chosen.noise_batch_ratio, best.target.epsilon);
    let too_few = too_few_units(&file, setting, of_text.as_ref());
    let mut advice = finished(file, best, chosen, compute, is_correlated)?;
    reasons.append(&mut advice.reasons);
    let warnings = too_few.into_iter().chain(advice.warnings).collect();
    Ok(Advice { reasons, warnings, prediction, candidates: best.candidates.clone(), ..advice })
}

fn too_little<T>() -> Result<T, PlanError> {
    let (given, fix) =
        ("less than one step of one unit with this model", "raise the budget, or choose a smaller model");
    refuse("budget", given, "more time, tokens or operations", fix)
}

/// Proposes the usual batch and passes for the checkpoint of a plan.
fn from_checkpoint(file: PlanFile, compute: Compute, is_correlated: bool) -> Result<Advice, PlanError> {
    let Some((trial, usual)) = Trial::of_checkpoint(file, compute)? else { return too_little() };
    let mut file = trial.file.clone();
    set_batch(&mut file, usual.expected_batch_size, usual.steps);
    let machine = machine_of(compute);
    let known = Checkpoint::of(&file);
    let mut reasons = vec![
        format!("Model: {} from a checkpoint.", file.model.shape_in_words()),
        format!(
            "Batch: {:.1} passes in batches of {} units are usual for what is trained, a rule of thumb of `trainer-native init`.",
            file.epochs(),
            usual.expected_batch_size
        ),
        memories(&file, &machine),
    ];
    reasons.extend(Prediction::why_none(&file).map(str::to_owned));
    reasons.extend(known.map(|known| format!("{}.", known.before_training())));
    let mut advice = finished(file, &trial, usual, compute, is_correlated)?;
    if let Some(known) = known {
        advice.warnings.push(format!(
            "This plan reads {} from the folder \"{}\" beside it, model and tokenizer, as save_pretrained of transformers writes them.",
            known.hub, known.name
        ));
    }
    reasons.append(&mut advice.reasons);
    Ok(Advice { reasons, ..advice })
}

/// Certifies a plan whose batch and steps are chosen.
fn finished(
    mut file: PlanFile,
    trial: &Trial,
    chosen: Candidate,
    compute: Compute,
    is_correlated: bool,
) -> Result<Advice, PlanError> {
    file.training.learning_rate.warmup_steps = (chosen.steps / 10).min(100);
    let mut reasons = noise_reasons(&file, &trial.target, chosen)?;
    if let Some((bands, change)) = best_bands(&file, &trial.target, chosen) {
        reasons.push(format!(
            "Correlated noise: {bands} bands (\"cyclic_poisson\") change the noise of sums over many steps by {:+.0} %.",
            change * 100.0
        ));
        if is_correlated {
            file.privacy.sampling = Sampling::CyclicPoisson(CyclicPoisson { bands });
        }
    }
    reasons.push(optimizer::reason(&file));
    let machine = machine_of(compute);
    let vocabulary = vocabulary(&file);
    let (cost, memory) = (file.cost_with_vocabulary(vocabulary), file.memory_on(&machine, vocabulary));
    let mut warnings = Vec::new();
    if memory > machine.memory {
        warnings.push(format!(
            "{} has too little memory for this plan: {} of {}.",
            machine.name,
            gigabytes(memory),
            gigabytes(machine.memory)
        ));
    }
    let certified = Plan::try_from(file)?.certify()?;
    Ok(Advice { certified, candidates: Vec::new(), prediction: None, cost, memory, reasons, warnings })
}

/// Returns the machine of a budget; a processor if it names none.
fn machine_of(compute: Compute) -> Machine {
    match compute {
        Compute::Time { machine, .. } => machine,
        Compute::Tokens(_) | Compute::Flops(_) => MACHINES[0],
    }
}

fn gigabytes(bytes: f64) -> String {
    format!("{:.1} GB", bytes / 1e9)
}

/// Says how much memory each way to train the plan's checkpoint takes on a machine.
fn memories(file: &PlanFile, machine: &Machine) -> String {
    let mut tried = file.clone();
    let each = Trained::choices(file.training.objective).iter().map(|trained| {
        trained.apply(&mut tried);
        format!("{} {}", trained.label(), gigabytes(tried.memory_on(machine, vocabulary(&tried))))
    });
    let each: Vec<String> = each.collect();
    let at_least = if machine.cores == 0 { "at least " } else { "about " };
    format!("Memory on {}: {at_least}{}.", machine.name, each.join(", "))
}

/// Says what a public checkpoint would give and take in place of random weights.
fn checkpoint_reason(file: &PlanFile, compute: Compute) -> Option<String> {
    let [smallest, ..] = &CHECKPOINTS;
    let learns_text = file.training.objective == Objective::CausalLm;
    learns_text.then(|| {
        let mut tuned = file.clone();
        smallest.apply(&mut tuned, Trained::Lora);
        format!(
            "A public checkpoint: {}. {}",
            smallest.before_training(),
            memories(&tuned, &machine_of(compute))
        )
    })
}

/// Returns the number of bands with the least noise in prefix sums, and by which share this noise differs from that of
/// independent noise, at the ε of the whole plan. Returns `None` if the plan samples otherwise, or has too many steps.
fn best_bands(file: &PlanFile, target: &EpsilonTarget, chosen: Candidate) -> Option<(u64, f64)> {
    let Candidate { expected_batch_size, steps, .. } = chosen;
    if file.privacy.sampling != Sampling::Poisson {
        return None;
    }
    let units = file.data.units;
    let sampling_probability = expected_batch_size as f64 / units as f64;
    let poisson = Participation::CyclicPoisson { sampling_probability };
    let alone = Strategy::independent(steps).ok()?.noise_multiplier(poisson, target).ok()?;
    let best = best_banded(TrainingRun { units, expected_batch_size, steps }, target).ok()?;
    Some((best.bands, best.equivalent_noise_multiplier / alone - 1.0))
}

fn model_reason(file: &PlanFile, trials: &[Trial]) -> String {
    let name = Size::of(file).map_or("the model", |size| size.name);
    let mut reason = format!("Model: {name} has {:.1e} parameters.", file.cost().parameters as f64);
    let best = trials.iter().map(Trial::least).fold(f64::INFINITY, f64::min);
    let others = trials.iter().filter(|trial| trial.least() > best);
    let others: Vec<String> = others
        .map(|trial| {
            let name = Size::of(&trial.file).map_or("", |size| size.name);
            format!("{name} {:+.0} %", (trial.least() / best - 1.0) * 100.0)
        })
        .collect();
    if !others.is_empty() {
        let others = others.join(", ");
        reason += &format!(" Of the named sizes, the law predicts the least loss for it ({others}).");
    }
    reason
}

fn batch_reason(trial: &Trial, chosen: Candidate) -> String {
    let ratio = chosen.noise_batch_ratio;
    let larger = trial.candidates.iter().find(|tried| tried.expected_batch_size > chosen.expected_batch_size);
    let rule = match trial.file.training.warm_start {
        Some(_) => "the batch with the least is proposed",
        None => "the middle of the batches within 3 % of the least is proposed, which is the law's own error",
    };
    match larger {
        Some(larger) => format!(
            "Batch: σ/B is {ratio:.2e}. A batch of {} with {} steps changes the predicted loss by {:+.1} %; {rule}.",
            larger.expected_batch_size,
            larger.steps,
            (larger.relative_loss / chosen.relative_loss - 1.0) * 100.0
        ),
        None => format!(
            "Batch: σ/B is {ratio:.2e}. A larger batch would leave fewer than {FEWEST_STEPS} steps, a rule of thumb."
        ),
    }
}

/// Explains how a larger ε and more data change the noise.
fn noise_reasons(
    file: &PlanFile,
    target: &EpsilonTarget,
    chosen: Candidate,
) -> Result<Vec<String>, PlanError> {
    let doubled =
        noise_for(file, &EpsilonTarget { epsilon: 2.0 * target.epsilon, ..*target }, file.data.units)?;
    let mut reasons = vec![format!(
        "ε: at ε = {} the noise would be {:.2} times this one.",
        2.0 * target.epsilon,
        doubled / chosen.noise_multiplier
    )];
    if let Ok(more) = noise_for(file, target, file.data.units.saturating_mul(10)) {
        reasons.push(format!(
            "Data: with ten times the data, the noise would be {:.2} times this one.",
            more / chosen.noise_multiplier
        ));
    }
    Ok(reasons)
}

/// Returns the noise that meets `target` with another number of units.
fn noise_for(file: &PlanFile, target: &EpsilonTarget, units: u64) -> Result<f64, PlanError> {
    let mut changed = file.clone();
    if let Sampling::PoissonOfExamples(sampled) = &mut changed.privacy.sampling {
        sampled.examples = (sampled.examples as f64 * units as f64 / file.data.units as f64) as u64;
    }
    changed.data.units = units;
    if let crate::Source::Embedded { records, .. } = &mut changed.data.source {
        *records = units;
    }
    let plan = Plan::try_from(changed)?;
    let release = plan.release(plan.tokenizer_noise(target)?);
    Ok(target.noise_multiplier(|noise| plan.pipeline_with(release.as_ref(), noise))?)
}

/// Warns of a plan that learns too little from its units.
fn too_few_units(file: &PlanFile, setting: Setting, prediction: Option<&Prediction>) -> Option<String> {
    prediction.filter(|prediction| !prediction.beats_frequencies())?;
    let needed = match times_the_units(setting) {
        Some(times) => format!("about {times} times the units, in batches {times} times as large"),
        None => "more than 1000 times the units".to_owned(),
    };
    let release = file.tokenizer.release().is_some();
    let vocabulary = if release { " with its public vocabulary" } else { "" };
    Some(format!(
        "This plan is not expected to predict words better than their frequencies alone. That takes {needed}, or a public \
         checkpoint{vocabulary}."
    ))
}

impl PlanFile {
    /// Returns the number of passes over the data: the units or examples drawn in all steps, divided by their number.
    ///
    /// ```
    /// let file = plan::PlanFile::parse(include_str!("../../presets/quickstart.json"))?;
    /// assert_eq!(file.epochs(), 150.0 * 256.0 / 6000.0);
    /// # Ok::<(), plan::PlanError>(())
    /// ```
    #[must_use]
    pub fn epochs(&self) -> f64 {
        let drawn = |phase: crate::BatchPhase| phase.steps as f64 * phase.expected_batch_size as f64;
        self.training.phases().into_iter().map(drawn).sum::<f64>() / self.population() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::law::PAPER_UNIGRAM;
    use super::super::law::tests::OPTIMA;
    use super::*;
    use crate::{MACHINES, SIZES};

    fn quickstart() -> PlanFile {
        PlanFile::parse(include_str!("../../presets/quickstart.json")).unwrap()
    }

    fn from_random_weights() -> PlanFile {
        let mut file = quickstart();
        file.training.warm_start = None;
        if let crate::Tokenizer::Train(trained) = &mut file.tokenizer {
            trained.words = crate::Words::ByClass;
        }
        file
    }

    /// Oracle: `accountant correlated`, which has the least noise at these bands.
    #[test]
    fn correlated_noise_gets_the_bands_with_the_least_noise() {
        let mut file = quickstart();
        (file.tokenizer, file.training.warm_start) = (crate::Tokenizer::Bytes, None);
        file.privacy.sampling = Sampling::CyclicPoisson(CyclicPoisson { bands: 1 });
        let compute = Compute::Tokens(6000.0 * 64.0 * 6.4);
        let advice = advise(&file, compute, Start::Random(&SIZES[0])).unwrap();
        let plan = advice.certified.plan();
        let phase = plan.training().phases()[0];
        let (expected_batch_size, steps) = (phase.expected_batch_size, phase.steps);
        let run = TrainingRun { units: 6000, expected_batch_size, steps };
        let relation = plan.privacy().relation;
        let target = EpsilonTarget { epsilon: 8.0, delta: plan.delta(), relation };
        let rows = accountant::correlated::compare(run, &target).unwrap();
        assert_eq!(plan.privacy().sampling, Sampling::CyclicPoisson(CyclicPoisson { bands: rows[1].bands }));
        assert!(advice.certified.epsilon().upper <= 8.0);
        let said = format!("{} bands", rows[1].bands);
        assert!(advice.reasons.iter().any(|reason| reason.contains(&said)), "{:?}", advice.reasons);
        file.privacy.sampling = Sampling::Poisson;
        let independent = advise(&file, compute, Start::Random(&SIZES[0])).unwrap();
        assert_eq!(independent.certified.plan().privacy().sampling, Sampling::Poisson);
        assert!(independent.reasons.iter().any(|reason| reason.contains(&said)));
    }

    /// Oracle: certification of each candidate as a plan of its own.
    #[test]
    fn every_candidate_meets_epsilon_at_its_noise_and_the_proposal_is_in_the_middle_of_the_good_ones() {
        let compute = Compute::Tokens(4_096.0 * 150.0 * 64.0);
        let advice = advise(&from_random_weights(), compute, Start::Random(&SIZES[0])).unwrap();
        let proposal = advice.certified.plan().file().training.clone();
        let best = advice.candidates.iter().map(|tried| tried.relative_loss).fold(f64::INFINITY, f64::min);
        let good = advice.candidates.iter().filter(|tried| tried.relative_loss <= 1.03 * best);
        let [smaller, larger] = good.fold([0, 0], |[smaller, larger], tried| {
            let proposed = proposal.expected_batch_size.unwrap();
            [
                smaller + i32::from(tried.expected_batch_size < proposed),
                larger + i32::from(tried.expected_batch_size > proposed),
            ]
        });
        assert!(
            larger == smaller || larger == smaller + 1,
            "{smaller} and {larger}: {:?}",
            advice.candidates
        );
        for tried in &advice.candidates {
            let mut file = from_random_weights();
            set_batch(&mut file, tried.expected_batch_size, tried.steps);
            file.training.learning_rate.warmup_steps = 0;
            let noise = Plan::try_from(file).unwrap().certify().unwrap().phases()[0].noise_multiplier();
            assert!((tried.noise_multiplier / noise - 1.0).abs() < 1e-5, "{tried:?}: {noise}");
        }
        assert!(advice.candidates.len() > 2);
    }

    /// Bidirectional training on this many records, in windows of 512 tokens of a vocabulary of 30,522, at δ = 1e-10.
    fn records(units: u64, epsilon: f64) -> PlanFile {
        let mut file = from_random_weights();
        file.data.units = units;
        file.data.source = crate::Source::Path("text.jsonl".to_owned());
        (file.privacy.epsilon, file.privacy.delta, file.privacy.spare_steps) = (Some(epsilon), 1e-10, 0);
        (file.model.family, file.model.context) = (crate::Family::Bert, 512);
        file.training.objective = crate::Objective::MaskedLm;
        if let crate::Tokenizer::Train(trained) = &mut file.tokenizer {
            (trained.vocab_size, trained.model) = (30_522, crate::TokenizerModel::Wordpiece);
        }
        file
    }

    /// Within 3 % for a batch and 1 % for fewer steps.
    #[test]
    fn the_predicted_loss_does_not_grow_with_units_epsilon_or_compute() {
        let loss = |units, epsilon, flops| {
            let advice = advise(&records(units, epsilon), Compute::Flops(flops), Start::Proposed).unwrap();
            advice.prediction.unwrap().loss
        };
        for worse_and_better in [
            [loss(1_000_000, 2.0, 1e18), loss(3_000_000, 2.0, 1e18), loss(30_000_000, 2.0, 1e18)],
            [loss(1_000_000, 2.0, 1e18), loss(1_000_000, 4.0, 1e18), loss(1_000_000, 16.0, 1e18)],
            [loss(3_000_000, 4.0, 1e17), loss(3_000_000, 4.0, 1e18), loss(3_000_000, 4.0, 1e20)],
        ] {
            let [worst, middle, best] = worse_and_better;
            assert!(worst * 1.04 >= middle && middle * 1.04 >= best && worst > best, "{worse_and_better:?}");
        }
    }

    /// Oracle: McKenna et al. 2025, Table 2, whose compute is 6 operations a parameter and token; here it is 8, with the product for norms.
    /// The loss is within the law's error of 7 %, and the 3 % within which batches count as equally good. Losses are flat around these optima,
    /// and two neighboring rows of the table can differ by a factor of four in the batch: sizes and batches lie within a factor of three, and
    /// most within two.
    #[test]
    fn proposals_for_the_compute_of_the_papers_optima_have_their_losses_sizes_and_batches() {
        let ratios = OPTIMA.map(|[units, epsilon, loss, parameters, steps, batch]| {
            let mut file = records(units as u64, epsilon);
            file.privacy.delta = (0.1 / units).min(1e-8);
            let compute = Compute::Flops(8.0 * parameters * batch * 512.0 * steps);
            let advice = advise(&file, compute, Start::Proposed).unwrap();
            let predicted = advice.prediction.unwrap();
            assert!(predicted.fitted_to.contains("McKenna"), "{predicted}");
            let training = &advice.certified.plan().file().training;
            [
                PAPER_UNIGRAM * predicted.loss / predicted.unigram / loss,
                advice.cost.parameters as f64 / parameters,
                training.expected_batch_size.unwrap() as f64 / batch,
            ]
        });
        // The table has two digits, and batches here are powers of two.
        let within = |at: usize, [least, most]: [f64; 2]| {
            ratios.iter().filter(|row| (least..most).contains(&row[at])).count()
        };
        let rows = || ratios.map(|row| row.map(|ratio| (ratio * 100.0).round() / 100.0));
        assert_eq!(within(0, [0.93, 1.1]), 20, "{:?}", rows());
        for (at, least) in [(1, 18), (2, 15)] {
            assert_eq!(within(at, [1.0 / 3.0, 3.0]), 20, "{:?}", rows());
            let within_two = within(at, [1.0 / 2.02, 2.02]);
            assert!(within_two >= least, "{within_two} of {at}: {:?}", rows());
        }
    }

    /// A budget far beyond what pays off: the size that is proposed is the one for the work that is proposed.
    #[test]
    fn the_size_follows_the_work_that_is_used_and_not_the_budget() {
        for (units, epsilon) in [(10_000, 8.0), (1_000_000, 2.0)] {
            let file = records(units, epsilon);
            let rich = advise(&file, Compute::Flops(1e26), Start::Proposed).unwrap();
            let used = Compute::Flops(1.001 * rich.cost.flops);
            let again = advise(&file, used, Start::Proposed).unwrap();
            let [parameters, enough] = [&rich, &again].map(|advice| advice.cost.parameters as f64);
            assert!((0.4..2.5).contains(&(parameters / enough)), "{parameters:e} and {enough:e}");
        }
    }

    /// Oracle: the estimate of `Network::peak_bytes`, whose parts are tested there, and counts by hand: rank 4 on a matrix of 768 × 2304 in 12
    /// layers.
    #[test]
    fn a_checkpoint_is_proposed_with_what_is_trained_and_its_memory() {
        let compute = Compute::Time { machine: MACHINES[0], seconds: 36_000.0 };
        let of = |trained| {
            advise(&quickstart(), compute, Start::Checkpoint(Some(&CHECKPOINTS[0]), trained)).unwrap()
        };
        let [lora, all] = [Trained::Lora, Trained::All].map(of);
        for advice in [&lora, &all] {
            let file = advice.certified.plan().file();
            assert_eq!(file.cost_with_vocabulary(50_257).parameters, 124_439_808 - (1024 - 256) * 768);
            assert_eq!(file.model.initial, Initial::Checkpoint("gpt2".to_owned()));
            assert!(advice.prediction.is_none() && advice.certified.epsilon().upper <= 8.0);
            assert!(advice.cost.seconds_on(&MACHINES[0]) <= 36_000.0);
            let said = advice.reasons.join(" ");
            assert!(said.contains("adapters (LoRA)") && said.contains("3.38 nats a word"), "{said}");
            assert!(said.contains(&gigabytes(advice.memory)), "{said}");
        }
        // Gradients, moments and sums of all weights are far more than those of adapters.
        assert!(all.memory > 4.0 * 1.2e8 + lora.memory, "{} and {}", all.memory, lora.memory);
        let adapters = 4 * (768 + 2304) * 12;
        let file = lora.certified.plan().file();
        let without = {
            let mut frozen = file.clone();
            frozen.model.trainable = crate::Trainable::Lora(crate::Lora {
                targets: vec!["c_fc".to_owned()],
                ..crate::Lora::usual(crate::Family::Gpt2)
            });
            frozen.memory_on(&MACHINES[0], 50_257)
        };
        assert_eq!(lora.memory - without, f64::from(28 * adapters));
        let head = advise(&quickstart(), compute, Start::Checkpoint(Some(&CHECKPOINTS[0]), Trained::Head));
        assert!(head.unwrap_err().to_string().starts_with("model.trainable"));
        let none = advise(&quickstart(), compute, Start::Checkpoint(None, Trained::Lora)).unwrap_err();
        assert!(none.to_string().starts_with("model.initial"), "{none}");
        // The plan's own checkpoint is kept, and a size takes its place.
        let kept = advise(file, compute, Start::Proposed).unwrap();
        assert_eq!(kept.certified.plan().file().model, file.model);
        let random = advise(file, compute, Start::Random(&SIZES[1])).unwrap();
        assert_eq!(random.certified.plan().file().model.initial, Initial::Random);
        assert!(random.prediction.is_some());
    }

    /// A classification says what its head alone takes beside adapters and all weights.
    #[test]
    fn a_classification_from_a_checkpoint_can_train_its_head_alone() {
        let mut file = records(6_920, 1.0);
        (file.evaluation, file.tokenizer) = (None, crate::Tokenizer::Bytes);
        file.training.objective = crate::Objective::SequenceClassification;
        file.training.labels = Some(vec!["bad".to_owned(), "good".to_owned()]);
        CHECKPOINTS[0].apply(&mut file, Trained::All);
        file.model.family = crate::Family::Bert;
        file.privacy.delta = 1e-6;
        let compute = Compute::Flops(1e18);
        let head = advise(&file, compute, Start::Checkpoint(None, Trained::Head)).unwrap();
        let training = &head.certified.plan().file().training;
        assert_eq!((training.expected_batch_size, training.steps), (Some(2048), Some(60)));
        let said = head.reasons.join(" ");
        assert!(said.contains("the head alone") && said.contains("all weights"), "{said}");
        let all = advise(&file, compute, Start::Checkpoint(None, Trained::All)).unwrap();
        assert!(head.memory < all.memory / 2.0, "{} and {}", head.memory, all.memory);
    }

    #[test]
    fn a_plan_that_cannot_beat_word_frequencies_is_told_so_with_the_units_that_it_takes() {
        let few = advise(&records(2_000, 0.5), Compute::Flops(1e14), Start::Proposed).unwrap();
        assert!(!few.prediction.unwrap().beats_frequencies());
        let warning = few.warnings.join(" ");
        assert!(
            warning.contains("than their frequencies alone") && warning.contains("times the units"),
            "{warning}"
        );
        let many = advise(&records(20_000_000, 1.0), Compute::Flops(1e19), Start::Proposed).unwrap();
        assert!(many.prediction.unwrap().beats_frequencies() && many.warnings.is_empty());
        let mut classes = records(2_000, 0.5);
        classes.training.objective = crate::Objective::SequenceClassification;
        classes.training.labels = Some(vec!["a".to_owned(), "b".to_owned()]);
        classes.evaluation = None;
        let advice = advise(&classes, Compute::Flops(1e14), Start::Proposed).unwrap();
        assert!(advice.prediction.is_none() && advice.warnings.is_empty(), "{:?}", advice.warnings);
    }

    #[test]
    fn more_time_gives_a_larger_model_and_stays_within_the_time() {
        let size = |seconds| {
            let mut file = from_random_weights();
            file.data.units = 10_000_000;
            file.privacy.delta = 1e-9;
            file.data.source = crate::Source::Path("notes.jsonl".to_owned());
            let advice =
                advise(&file, Compute::Time { machine: MACHINES[4], seconds }, Start::Proposed).unwrap();
            let file = advice.certified.plan().file().clone();
            assert!(file.cost().seconds_on(&MACHINES[4]) <= seconds);
            SIZES.iter().position(|size| Some(size) == Size::of(&file)).unwrap()
        };
        let sizes = [60.0, 3600.0, 360_000.0].map(size);
        assert!(sizes[0] < sizes[1] && sizes[1] < sizes[2], "{sizes:?}");
    }

    #[test]
    fn a_budget_or_a_plan_without_an_answer_is_refused() {
        let nothing = advise(&quickstart(), Compute::Tokens(10.0), Start::Proposed).unwrap_err();
        assert!(nothing.to_string().starts_with("budget: less than one step"), "{nothing}");
        assert!(advise(&quickstart(), Compute::Flops(f64::NAN), Start::Proposed).is_err());
        let mut open = quickstart();
        open.privacy.epsilon = None;
        assert!(
            advise(&open, Compute::Tokens(1e9), Start::Proposed)
                .unwrap_err()
                .to_string()
                .starts_with("privacy.epsilon")
        );
    }
}
