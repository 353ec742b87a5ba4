//! Whether advice holds: for three budgets and two texts, twelve plans of equal cost beside the plan that `advise` proposes, and the
//! predicted losses beside those that the runs have.

use plan::{Compute, Plan, PlanFile, Prediction, SIZES, Start, advise};
use serde_json::{Value, json};

use super::Table;
use super::corpus::Sizes;
use super::experiment::{Experiment, changed};
use super::utility::language_model;

pub(crate) const TABLE: Table = Table {
    name: "advice",
    head: ["text", "plan", "predicted"],
    groups: &[
        ("articles-small", |_| rows("articles-small", &articles(), SMALL)),
        ("articles-medium", |_| rows("articles-medium", &articles(), MEDIUM)),
        ("articles-large", |_| rows("articles-large", &articles(), LARGE)),
        ("novels-small", |sizes| rows("novels-small", &novels(sizes), SMALL)),
        ("novels-medium", |sizes| rows("novels-medium", &novels(sizes), MEDIUM)),
        ("novels-large", |sizes| rows("novels-large", &novels(sizes), LARGE)),
    ],
};

/// Budgets: operations of the private steps, to which those of the start come on top.
const SMALL: f64 = 1.73e11;
const MEDIUM: f64 = 5.3e11;
const LARGE: f64 = 1.6e12;

const WIDTHS: [u64; 3] = [32, 64, 128];
const STEPS: [u64; 4] = [40, 120, 360, 1080];

fn novels(sizes: &Sizes) -> Value {
    language_model("novels.jsonl", sizes.novels, 32, 1, 1)
}

/// WikiText, by units of 32 words as its preset has them.
fn articles() -> Value {
    let units = json!({ "data": { "units": 8100 }, "privacy": { "unit": { "words": 32 } } });
    let vocabulary = json!({ "tokenizer": { "train": { "vocab_size": 1024 } } });
    changed(&changed(&language_model("articles.txt", 8100, 32, 1, 1), units), vocabulary)
}

/// A row for each width and number of steps, and one for the proposal, which is among the sizes with a name.
fn rows(group: &'static str, base: &Value, budget: f64) -> Vec<Experiment> {
    let grid = WIDTHS.into_iter().flat_map(|width| {
        STEPS.into_iter().filter_map(move |steps| {
            let batch = (operations_a_unit(&of_width(base, width))?.recip() * budget / steps as f64).round();
            let plan = with_steps(&of_width(base, width), batch as u64, steps)?;
            Some(row(group, format!("width {width}, {steps} steps of {batch}"), plan))
        })
    });
    grid.chain(advised(group, base, budget)).collect()
}

fn row(group: &'static str, setting: String, plan: PlanFile) -> Experiment {
    let predicted = Plan::try_from(plan.clone()).and_then(|plan| plan.certify());
    let predicted = predicted.ok().and_then(|plan| Prediction::of_plan(&plan));
    let predicted = predicted.map_or("–".to_owned(), |predicted| {
        format!("{:.3} ± {:.0} %", predicted.loss, 100.0 * predicted.error)
    });
    let name = format!("{group} {setting}").replace([' ', ',', ':'], "-");
    let plan = changed(&serde_json::to_value(plan).unwrap_or_default(), json!({ "name": name }));
    Experiment::new(group, setting, predicted, vec![plan])
}

/// The proposal of the least predicted loss: each named size has the tokens that the budget pays for.
fn advised(group: &'static str, base: &Value, budget: f64) -> Option<Experiment> {
    let proposals = SIZES.iter().take(WIDTHS.len()).filter_map(|size| {
        let mut file: PlanFile = serde_json::from_value(base.clone()).ok()?;
        size.apply(&mut file);
        let one = with_steps(&serde_json::to_value(&file).ok()?, 1, 1)?.cost();
        let tokens = Compute::Tokens(budget / one.flops * one.tokens as f64);
        let advice = advise(&file, tokens, Start::Random(size)).ok()?;
        Some((advice.prediction?.loss, advice.certified.plan().file().clone()))
    });
    let (_, plan) = proposals.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let training = &plan.training;
    let (steps, batch) = (training.steps?, training.expected_batch_size?);
    let setting = format!("advised: width {}, {steps} steps of {batch}", plan.model.d_model);
    Some(row(group, setting, plan))
}

/// The plan with two layers of this width, and the clip norm and learning rate of advice.
fn of_width(base: &Value, width: u64) -> Value {
    let model = json!({ "d_model": width, "layers": 2, "heads": 4, "d_ff": 4 * width });
    let rate = (0.128 / width as f64 * 1e5).round() / 1e5;
    let training = json!({ "l2_clip_norm": 0.1, "learning_rate": { "peak": rate } });
    changed(base, json!({ "model": model, "training": training }))
}

fn with_steps(plan: &Value, batch: u64, steps: u64) -> Option<PlanFile> {
    let warmup = json!({ "warmup_steps": (steps / 10).min(100) });
    let training = json!({ "expected_batch_size": batch.max(1), "steps": steps, "learning_rate": warmup });
    serde_json::from_value(changed(plan, json!({ "training": training }))).ok()
}

/// Operations of the private steps for one unit in one step.
fn operations_a_unit(plan: &Value) -> Option<f64> {
    Some(with_steps(plan, 1, 1)?.cost().flops)
}
