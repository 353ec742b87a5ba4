//! Measures how well a model knows secrets of its training text, by the number of their
//! occurrences, with privacy and without.
//!
//! A secret is a random token among random hints ([`Secrets`]). One plan is carried out twice with
//! secrets in its text, and each model is asked for every secret in the training examples that hold
//! it. Exposure is log₂(candidates) − log₂(mean rank of the secret among them): about 1 bit for a
//! secret that the model never saw.
//!
//! The run without privacy protects nobody, and the questions repeat private text, so no figure may
//! be published, and nothing is written to a run folder.
//!
//! # References
//! Hoory et al. 2021, section 5.2; exposure of Carlini et al. 2019, <https://arxiv.org/abs/1802.08232>.

mod rank;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use accountant::Bounds;
use chart::{Chart, Scale, Scene, Series};
use plan::Device;
use serde::{Deserialize, Serialize};

use training::RunError;
use training::data::{Occurrences, Pattern, Planting, Secrets};
use training::objective::Objective;
use training::plan_file::read_uncertified;
use training::progress::DIGITS;
use training::run::{Request, run};
use training::store::files;

/// The warning that comes with the figures.
const WARNING: &str =
    "NOT PRIVATE: may not be published. These figures depend on private text and on a model without privacy.";

/// The name of the curve of a run without privacy.
pub(crate) const WITHOUT: &str = "without privacy";

/// Points of occurrences and exposure, in bits.
type Points = Vec<(f64, f64)>;

/// Exposure of secrets with privacy and without.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curve {
    warning: Cow<'static, str>,
    /// The certified bounds on ε of the run with privacy.
    epsilon: Option<Bounds>,
    delta: f64,
    /// Number of tokens that a secret could be, in the vocabularies of the runs with and without
    /// privacy.
    candidates: [usize; 2],
    rows: Vec<Row>,
}

/// Figures of the secrets of one pattern and one number of occurrences.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    pattern: String,
    /// Number of copies, or probability, as requested.
    planted: f64,
    with_privacy: Figures,
    without_privacy: Figures,
}

/// Figures of a model on some secrets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Figures {
    /// Mean number of units that hold a secret.
    occurrences: f64,
    /// Mean rank of the secret among the candidates; [`None`] if there was no example to ask in.
    mean_rank: Option<f64>,
    /// Exposure, in bits.
    exposure: Option<f64>,
}

/// Carries out the plan of a request with secrets in its text, with privacy and without, and measures both models.
///
/// # Errors
/// [`RunError::Refused`] for secrets or a plan out of range; otherwise as [`run`].
pub fn exposure(request: &Request, secrets: &Secrets) -> Result<Curve, RunError> {
    check(secrets)?;
    let plan = read_uncertified(&request.plan)?;
    if plan.is_public() {
        return Err(RunError::Refused(
            "data.visibility: a plan for public text has no run with privacy to compare; allowed: \"private\"".to_owned(),
        ));
    }
    check_predicted(&plan, secrets)?;
    let folder =
        request.out.clone().unwrap_or_else(|| Path::new("runs").join(format!("{}-exposure", plan.name())));
    let carry_out = |name: &str, non_private: bool| {
        let out = folder.join(name);
        let resume = request.resume && out.join(files::LEDGER).exists();
        run(&Request {
            resume,
            copied: request.copied && resume,
            out: Some(out),
            non_private,
            canaries: Some(Planting::Secrets(Box::new(secrets.clone()))),
            ..request.clone()
        })
    };
    let [private, plain] = [carry_out("private", false)?, carry_out("non-private", true)?];
    let base = request.plan.parent().map(Path::to_owned).unwrap_or_default();
    let device = request.device.unwrap_or(Device::Cpu);
    let measure = |run: &PathBuf| rank::measure(run, &base, device);
    let [with_privacy, without_privacy] = [measure(&private.run)?, measure(&plain.run)?];
    let cells =
        secrets.levels().into_iter().flat_map(|level| secrets.patterns.iter().map(move |p| (p, level)));
    let figures = with_privacy.cells.iter().zip(&without_privacy.cells);
    let rows = cells.zip(figures).map(|((pattern, planted), (&with_privacy, &without_privacy))| Row {
        pattern: pattern.to_string(),
        planted,
        with_privacy,
        without_privacy,
    });
    Ok(Curve {
        warning: WARNING.into(),
        epsilon: private.epsilon,
        delta: private.delta,
        candidates: [with_privacy.candidates, without_privacy.candidates],
        rows: rows.collect(),
    })
}

fn check(secrets: &Secrets) -> Result<(), RunError> {
    let refused = |option: &str, value: &dyn fmt::Display, allowed: &str| {
        Err(RunError::Refused(format!("{option}: {value} is out of range; allowed: {allowed}")))
    };
    if !(1..=1000).contains(&secrets.each) {
        return refused("--secrets", &secrets.each, "1 to 1000");
    }
    match &secrets.occurrences {
        Occurrences::Copies(copies) => match copies.iter().find(|&&copies| copies == 0) {
            Some(copies) => refused("--copies", copies, "whole numbers from 1, separated by commas"),
            None => Ok(()),
        },
        Occurrences::Probabilities(all) => match all.iter().find(|&&p| !(p > 0.0 && p <= 1.0)) {
            Some(p) => refused("--probabilities", p, "above 0 and at most 1, separated by commas"),
            None => Ok(()),
        },
    }
}

/// Refuses patterns whose secret training never predicts: no model could know it.
fn check_predicted(plan: &plan::Plan, secrets: &Secrets) -> Result<(), RunError> {
    if let Occurrences::Probabilities(_) = secrets.occurrences {
        return Ok(());
    }
    let predicted = |pattern: &Pattern| Objective::predicts(plan, pattern.length(), pattern.place());
    let Some(pattern) = secrets.patterns.iter().find(|pattern| !predicted(pattern)) else { return Ok(()) };
    Err(RunError::Refused(format!(
        "--patterns {pattern}: training never predicts the secret of such a text, because this plan's objective has it read that place; \
         allowed: patterns that end in the secret, such as HHHHS; or use --probabilities, which inserts secrets into longer texts"
    )))
}

impl Curve {
    /// Writes the curve as an SVG file.
    ///
    /// # Errors
    /// [`RunError::Refused`] if the file exists or would be a run's; [`RunError::Storage`] if it cannot be written.
    pub fn draw(&self, path: &Path) -> Result<(), RunError> {
        let chart = self.chart();
        let Some(scene) = Scene::new(&chart) else { return Ok(()) };
        Ok(durable::write_public(path, scene.svg(&chart).as_bytes())?)
    }

    /// Returns the patterns of hints and secrets, in order.
    pub fn patterns(&self) -> Vec<&str> {
        let mut patterns: Vec<&str> = self.rows.iter().map(|row| row.pattern.as_str()).collect();
        patterns.sort_unstable();
        patterns.dedup();
        patterns
    }

    /// Returns the exposure of the secrets of a pattern by their occurrences, with privacy and without.
    pub fn points(&self, pattern: &str) -> [Points; 2] {
        let of = |figures: fn(&Row) -> Figures| {
            let own = self.rows.iter().filter(|row| row.pattern == pattern).map(figures);
            let planted = own.filter(|figures| figures.occurrences > 0.0);
            planted.filter_map(|figures| Some((figures.occurrences, figures.exposure?))).collect()
        };
        [of(|row| row.with_privacy), of(|row| row.without_privacy)]
    }

    /// Describes the guarantee of the run with privacy, for a legend.
    pub fn guarantee(&self) -> String {
        let rounded_up = |bounds: Bounds| format!("ε ≤ {:.2}", (100.0 * bounds.upper).ceil() / 100.0);
        self.epsilon.map_or_else(|| "with privacy".to_owned(), rounded_up)
    }

    fn chart(&self) -> Chart {
        let series = self.patterns().into_iter().flat_map(|pattern| {
            let [private, plain] = self.points(pattern);
            let named = |name: &str, points| Series { name: format!("{pattern}, {name}"), points };
            [named(&self.guarantee(), private), named(WITHOUT, plain)]
        });
        chart("NOT PRIVATE: exposure of secrets".to_owned(), series.collect())
    }
}

/// Creates a chart of exposure by occurrences.
pub(crate) fn chart(title: String, series: Vec<Series>) -> Chart {
    Chart {
        title,
        x_label: "occurrences".to_owned(),
        y_label: "exposure, bits".to_owned(),
        x_scale: Scale::Log,
        y_scale: Scale::Linear,
        series,
        highlight: None,
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.warning)?;
        if let Some(bounds) = self.epsilon {
            let upper = cli::rounded_up(bounds.upper, DIGITS);
            writeln!(f, "with privacy: ε ≤ {upper} at δ = {:e}", self.delta)?;
        }
        let most = self.candidates.map(|candidates| (candidates as f64).log2());
        writeln!(
            f,
            "exposure in bits: about 1 by chance, {:.2} at most with privacy, {:.2} without",
            most[0], most[1]
        )?;
        write!(f, "{:<10}{:>9}  {:>26}  {:>26}", "", "", "with privacy", "without privacy")?;
        let heads = ["occur", "rank", "exposure"];
        write!(f, "\n{:<10}{:>9}", "pattern", "planted")?;
        for _ in 0..2 {
            write!(f, "  {:>8}{:>9}{:>9}", heads[0], heads[1], heads[2])?;
        }
        for row in &self.rows {
            write!(f, "\n{:<10}{:>9}", row.pattern, row.planted)?;
            for Figures { occurrences, mean_rank, exposure } in [row.with_privacy, row.without_privacy] {
                let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.2}"));
                write!(f, "  {occurrences:>8.1}{:>9}{:>9}", shown(mean_rank), shown(exposure))?;
            }
        }
        Ok(())
    }
}
