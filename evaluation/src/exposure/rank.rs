//! Ranks a run's secrets among the candidates under its released model.

use std::path::Path;

use plan::Device;

use super::Figures;
use network::Example;
use network::nn::Kernels;
use training::RunError;
use training::data::{Canaries, Dataset, Occurrences, Secret, Secrets, Units, WindowSpec, read_units};
use training::infer::{ModelTask, RunModel, with_model};
use training::objective::canary_tokens;
use training::plan_file::read_uncertified;
use training::store::{files, read_canaries};

/// Largest number of training examples in which a model is asked for one secret.
const EXAMPLES: usize = 16;

/// Figures of a model on the secrets of its run.
pub(super) struct Measured {
    /// Number of tokens that a secret could be.
    pub candidates: usize,
    /// Figures by number of occurrences, then by pattern.
    pub cells: Vec<Figures>,
}

/// Asks the model of a finished run for its secrets. `base` is the folder that the plan's paths are relative to.
///
/// # Errors
/// [`RunError::Refused`] if the run holds no secrets, or its text cannot be read.
pub(super) fn measure(run: &Path, base: &Path, device: Device) -> Result<Measured, RunError> {
    let canaries = read_canaries(run)?.ok_or_else(|| without_secrets(run))?;
    let units = read_units(
        &read_uncertified(&run.join(files::PLAN))?,
        base,
        false,
        &training::ranks::Ranks::alone(),
    )?;
    with_model(run, device, Ask { run, canaries, units })
}

fn without_secrets(run: &Path) -> RunError {
    RunError::Refused(format!("{} was run without secrets", run.display()))
}

struct Ask<'a> {
    run: &'a Path,
    canaries: Canaries,
    units: Units,
}

impl ModelTask for Ask<'_> {
    type Output = Measured;

    fn run<B: Kernels>(self, run: &RunModel<B>) -> Result<Measured, RunError> {
        let candidates = canary_tokens(&run.plan, &run.tokenizer).of_text;
        let found = self.canaries.secrets(&candidates);
        let (secrets, drawn) = found.ok_or_else(|| without_secrets(self.run))?;
        let spec = run.objective.window_spec();
        let asked: Vec<Asked> = match secrets.occurrences {
            Occurrences::Copies(_) => {
                drawn.iter().map(|secret| Asked::in_copies(secrets, secret, spec)).collect()
            }
            Occurrences::Probabilities(_) => {
                let dataset = Dataset::new(self.units, &run.tokenizer, spec)?;
                in_units(&dataset, spec, secrets, &drawn, self.canaries.seed)
            }
        };
        let ranks = |(secret, asked): (&Secret, &Asked)| asked.ranks(run, secret.secret(), &candidates);
        let ranks: Vec<Vec<f64>> = drawn.iter().zip(&asked).map(ranks).collect::<Result<_, RunError>>()?;
        let each = secrets.each as usize;
        let cells = asked.chunks(each).zip(ranks.chunks(each));
        let cells = cells.map(|(asked, ranks)| figures(asked, &ranks.concat(), candidates.len())).collect();
        Ok(Measured { candidates: candidates.len(), cells })
    }
}

/// Computes the figures of the secrets of one pattern and one number of occurrences.
fn figures(asked: &[Asked], ranks: &[f64], candidates: usize) -> Figures {
    let mean_rank = (!ranks.is_empty()).then(|| ranks.iter().sum::<f64>() / ranks.len() as f64);
    Figures {
        occurrences: asked.iter().map(|asked| asked.occurrences).sum::<f64>() / asked.len() as f64,
        mean_rank,
        exposure: mean_rank.map(|rank| (candidates as f64).log2() - rank.log2()),
    }
}

/// The examples in which a model is asked for one secret.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// Number of units of the training text that hold the secret.
    occurrences: f64,
    /// Windows, with the secret's place.
    windows: Vec<(Vec<u32>, usize)>,
}

impl Asked {
    /// Makes the examples of a secret whose copies are units of their own.
    fn in_copies(secrets: &Secrets, secret: &Secret, spec: WindowSpec) -> Self {
        let mut asked = Self { occurrences: secrets.levels()[secret.level], windows: Vec::new() };
        asked.ask(&secret.record(spec), secret.place + usize::from(spec.overlaps), spec);
        asked
    }

    /// Adds the question for the secret at `place` in each training window of a unit that predicts it.
    fn ask(&mut self, unit: &[u32], place: usize, spec: WindowSpec) {
        let overlap = usize::from(spec.overlaps);
        for window in 0..spec.windows(unit.len()) {
            let begin = spec.training_begin(unit.len(), window);
            let end = unit.len().min(begin + spec.length + overlap);
            if (begin + overlap..end).contains(&place) {
                self.windows.push((unit[begin..end].to_vec(), place - begin));
            }
        }
    }

    /// Returns the ranks of the secret in all examples that predict it: 1 if no candidate is likelier.
    /// Equally likely candidates count half.
    fn ranks<B: Kernels>(
        &self,
        run: &RunModel<B>,
        secret: u32,
        candidates: &[u32],
    ) -> Result<Vec<f64>, RunError> {
        let questions =
            self.windows.iter().filter_map(|(window, place)| run.objective.question(window, *place));
        let rank = |question: Example| {
            let logits = run.model.logits(&question).map_err(|error| RunError::Failed(error.to_string()))?;
            Ok(rank(logits.last().map_or(&[], Vec::as_slice), secret, candidates))
        };
        questions.map(rank).collect()
    }
}

fn rank(logits: &[f32], secret: u32, candidates: &[u32]) -> f64 {
    let own = logits[secret as usize];
    let place = |&token: &u32| match logits[token as usize].partial_cmp(&own) {
        Some(std::cmp::Ordering::Greater) => 1.0,
        Some(std::cmp::Ordering::Less) => 0.0,
        _ => 0.5,
    };
    1.0 + candidates.iter().filter(|&&token| token != secret).map(place).sum::<f64>()
}

/// Makes examples of secrets that are inserted into units. Secrets that occur nowhere are also
/// asked for in some units.
fn in_units(
    dataset: &Dataset,
    spec: WindowSpec,
    secrets: &Secrets,
    drawn: &[Secret],
    seed: u64,
) -> Vec<Asked> {
    let levels = secrets.levels();
    let of_none = EXAMPLES as f64 / dataset.units().max(1) as f64;
    let mut all = vec![Asked::default(); drawn.len()];
    for unit in dataset.in_memory() {
        let slots = Secrets::slots(seed, unit, spec, drawn.len());
        for (at, asked) in all.iter_mut().enumerate() {
            let level = levels[drawn[at].level];
            let holds = slots[at].holds(level);
            asked.occurrences += f64::from(u8::from(holds));
            let asks = holds || (level == 0.0 && slots[at].holds(of_none));
            if asks && asked.windows.len() < EXAMPLES {
                let (tokens, begin) = secrets.inserted(drawn, &slots, unit, Some(at));
                asked.ask(&tokens, begin + drawn[at].place, spec);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_counts_likelier_candidates_and_half_of_equally_likely_ones() {
        let logits = [9.0, 1.0, 2.0, 2.0, 3.0];
        assert_eq!(rank(&logits, 2, &[1, 2, 3, 4]), 2.5);
        assert_eq!(rank(&logits, 4, &[1, 2, 3, 4]), 1.0);
        assert_eq!(rank(&[f32::NAN; 5], 2, &[1, 2, 3, 4]), 2.5, "a broken model knows nothing");
    }

    /// Oracle: Hoory's formula by hand, log₂ 8 − log₂ 2.
    #[test]
    fn exposure_is_the_logarithm_of_candidates_over_the_mean_rank() {
        let asked = [Asked { occurrences: 3.0, ..Asked::default() }, Asked::default()];
        let found = figures(&asked, &[1.0, 3.0], 8);
        assert_eq!(found, Figures { occurrences: 1.5, mean_rank: Some(2.0), exposure: Some(2.0) });
        assert_eq!(figures(&asked, &[], 8).exposure, None);
    }

    /// Wherever the unit is cut, a training window holds the secret at the place that is asked for.
    #[test]
    fn the_secret_stands_where_the_model_is_asked_for_it() {
        for overlaps in [false, true] {
            let spec = WindowSpec { bos: 0, eos: 0, length: 4, overlaps, marks_pieces: false };
            let unit: Vec<u32> = (100..120).collect();
            for place in 1..20 {
                let mut asked = Asked::default();
                asked.ask(&unit, place, spec);
                let (window, at) = &asked.windows[0];
                assert_eq!(window[*at], unit[place]);
                assert!(window.len() <= 4 + usize::from(overlaps) && *at >= usize::from(overlaps));
            }
        }
    }
}
