//! Draws the charts of a report.

use chart::{Chart, Scale, Series};
use plan::CertifiedPlan;

use training::infer::{Evaluation, TokenEvaluation};
use training::optim::learning_rate;
use training::store::metrics::MetricsLine;

/// Number of points of a curve that the plan determines.
const POINTS: u64 = 200;

/// Returns the charts for which this run has points.
pub(super) fn of(
    plan: &CertifiedPlan,
    metrics: &[MetricsLine],
    evaluation: Option<&Evaluation>,
) -> Vec<Chart> {
    let held_out = match evaluation {
        Some(Evaluation::Labels(_) | Evaluation::Entities(_)) => loss(metrics),
        Some(Evaluation::Tokens(figures)) => perplexity(metrics, Some(figures)),
        None => perplexity(metrics, None),
    };
    [spent(metrics), held_out, rate(plan), noise_to_batch(plan)]
        .into_iter()
        .filter(|chart| chart.series.iter().any(|series| series.points.len() > 1))
        .collect()
}

fn by_step(title: &str, y_label: &str, y_scale: Scale, series: Vec<Series>) -> Chart {
    Chart {
        title: title.to_owned(),
        x_label: "step".to_owned(),
        y_label: y_label.to_owned(),
        x_scale: Scale::Linear,
        y_scale,
        series,
        highlight: None,
    }
}

fn series(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.to_owned(), points }
}

fn spent(metrics: &[MetricsLine]) -> Chart {
    let point = |metric: &MetricsLine| Some((metric.step as f64, (*metric.epsilon.get())?));
    let points = metrics.iter().filter_map(point).collect();
    by_step("Privacy spent", "ε, upper bound", Scale::Linear, vec![series("ε spent", points)])
}

fn loss(metrics: &[MetricsLine]) -> Chart {
    let point = |metric: &MetricsLine| Some((metric.step as f64, (*metric.evaluation_nll.get())?));
    let points = metrics.iter().filter_map(point).collect();
    let title = "Held-out loss per label, on public text";
    by_step(title, "nats", Scale::Linear, vec![series("this model", points)])
}

fn perplexity(metrics: &[MetricsLine], evaluation: Option<&TokenEvaluation>) -> Chart {
    let point = |metric: &MetricsLine| Some((metric.step as f64, (*metric.evaluation_nll.get())?.exp()));
    let points: Vec<(f64, f64)> = metrics.iter().filter_map(point).collect();
    let mut all = vec![series("this model", points.clone())];
    if let (Some(evaluation), Some(first), Some(last)) = (evaluation, points.first(), points.last()) {
        let unigram = evaluation.best_unigram_perplexity;
        all.push(series("best unigram model of the same text", vec![(first.0, unigram), (last.0, unigram)]));
    }
    by_step("Held-out perplexity per token, on public text", "perplexity", Scale::Log, all)
}

fn rate(plan: &CertifiedPlan) -> Chart {
    let steps = plan.total_steps();
    let at = |step: u64| (step as f64, learning_rate(&plan.plan().training().learning_rate, step, steps));
    let points = (0..steps).step_by(steps.div_ceil(POINTS).max(1) as usize).map(at).collect();
    by_step("Learning rate", "learning rate", Scale::Linear, vec![series("learning rate", points)])
}

/// Draws σ/B, which determines what DP training can learn (McKenna et al. 2025,
/// <https://arxiv.org/abs/2501.18914>).
fn noise_to_batch(plan: &CertifiedPlan) -> Chart {
    let mut points = Vec::new();
    let mut begun = 0;
    for phase in plan.phases() {
        let ratio = phase.noise_batch_ratio();
        points.extend([(begun as f64, ratio), ((begun + phase.steps) as f64, ratio)]);
        begun += phase.steps;
    }
    by_step("Noise-to-batch ratio", "σ / expected batch size", Scale::Log, vec![series("σ/B", points)])
}
