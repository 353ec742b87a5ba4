//! What is charged, line by line.

use leptos::prelude::*;
use plan::{PlanFile, Sampling};

use crate::ask::Certified;
use crate::numbers::{grouped, rounded_up};
use crate::page::desk::Desk;

/// The planned ledger.
#[component]
pub fn LedgerPanel() -> impl IntoView {
    let desk = expect_context::<Desk>();
    let lines = move || desk.certified.with(|it| it.as_ref().map(|(plan, certified)| lines(plan, certified)));
    let rows = move || {
        let row = |cells: [String; 4]| {
            let [what, count, probability, noise] = cells;
            view! { <tr><th scope="row">{what}</th><td>{count}</td><td>{probability}</td><td>{noise}</td></tr> }
        };
        lines().map(|lines| lines.into_iter().map(row).collect_view())
    };
    view! {
        <section class="panel" aria-labelledby="ledger-title">
            <h2 id="ledger-title">"What is charged"</h2>
            <div class="scroll" tabindex="0" role="region" aria-label="Charges, line by line" class:stale=move || desk.stale.get()>
                <table>
                    <thead>
                        <tr>
                            <th scope="col">"Event"</th>
                            <th scope="col">"Times"</th>
                            <th scope="col">"q"</th>
                            <th scope="col">"σ"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </section>
    }
}

fn lines(plan: &PlanFile, certified: &Certified) -> Vec<[String; 4]> {
    let mut lines = Vec::new();
    if let Some(release) = certified.release {
        let what = format!("Vocabulary release, thresholds with δ = {:e}", release.threshold_delta);
        lines.push([what, "1".to_owned(), "1".to_owned(), rounded_up(release.noise_multiplier, 5)]);
    }
    for phase in &certified.phases {
        let what = charged(plan).to_owned();
        let probability = rounded_up(phase.sampling_probability, 4);
        lines.push([what, grouped(phase.steps), probability, rounded_up(phase.noise_multiplier, 5)]);
    }
    let dearest = certified.phases.iter().max_by_key(|phase| phase.expected_batch_size);
    if let Some(phase) = dearest.filter(|_| plan.privacy.spare_steps > 0) {
        let what = "The same, spare".to_owned();
        let probability = rounded_up(phase.sampling_probability, 4);
        lines.push([
            what,
            grouped(plan.privacy.spare_steps),
            probability,
            rounded_up(phase.noise_multiplier, 5),
        ]);
    }
    lines
}

/// What one line of training charges.
fn charged(plan: &PlanFile) -> &'static str {
    match plan.privacy.sampling {
        Sampling::Poisson => "Poisson-sampled Gaussian, one training step",
        Sampling::TruncatedPoisson(_) => "Gaussian on a cut Poisson sample, one training step",
        Sampling::FixedSize => "Gaussian on a sample without replacement, one training step",
        Sampling::BallsInBins => "Gaussian on a random batch a pass, by its steps",
        Sampling::Shuffle => "Gaussian on shuffled batches, by its steps",
    }
}
