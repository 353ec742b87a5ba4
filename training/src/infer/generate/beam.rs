//! Beam search: the best of several texts that are extended in parallel.
//!
//! It keeps and ends texts exactly as `transformers` does, so that both find the same texts.

use super::{Constraints, Decoding, Prompt};
use crate::infer::{InferenceError, InferenceModel};
use network::nn::Kernels;

/// The settings of a beam search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beams {
    /// Number of texts that grow side by side.
    pub width: usize,
    /// A finished text's log-probability is divided by its length to this power: above 0 favours long texts.
    pub length_penalty: f64,
    /// The condition that ends the search early.
    pub early_stopping: EarlyStopping,
}

/// The condition that ends a search before the longest length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyStopping {
    /// There are as many finished texts as beams.
    Full,
    /// No growing text can beat the worst finished one at its present length.
    Unlikely,
    /// No growing text can beat the worst finished one at any length.
    Impossible,
}

/// A text with its log-probability or, once it is finished, its score.
#[derive(Clone, Debug)]
struct Scored {
    /// The generated tokens, without the end-of-text token.
    tokens: Vec<u32>,
    score: f32,
}

/// A growing text with one more token.
#[derive(Clone, Copy)]
struct Candidate {
    score: f32,
    beam: usize,
    token: u32,
}

/// The search for one prompt.
struct BeamSearch {
    growing: Vec<Scored>,
    /// Finished texts, the best first; at most as many as beams.
    finished: Vec<Scored>,
    done: bool,
}

impl BeamSearch {
    fn new() -> Self {
        Self { growing: vec![Scored { tokens: Vec::new(), score: 0.0 }], finished: Vec::new(), done: false }
    }

    /// Takes the logits of each growing text's next token. Returns the index of the text that each
    /// new text extends.
    fn advance(
        &mut self,
        prompt: &Prompt,
        logits: &mut [Vec<f32>],
        beams: &Beams,
        constraints: &Constraints,
    ) -> Vec<usize> {
        let length = self.growing[0].tokens.len() + 1;
        let candidates = self.candidates(prompt, logits, beams, constraints);
        let is_end = |token: &u32| constraints.ends.contains(token);
        let ends = |candidate: &Candidate| is_end(&candidate.token) || length == constraints.most;
        let factor = (length as f64).powf(beams.length_penalty) as f32;
        for candidate in candidates.iter().take(beams.width).filter(|candidate| ends(candidate)) {
            let mut tokens = self.growing[candidate.beam].tokens.clone();
            tokens.extend(Some(candidate.token).filter(|token| !is_end(token)));
            self.finished.push(Scored { tokens, score: candidate.score / factor });
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished.truncate(beams.width);
        let next: Vec<Candidate> =
            candidates.into_iter().filter(|candidate| !ends(candidate)).take(beams.width).collect();
        self.done = match next.first() {
            Some(best) => self.is_over(best.score, length, beams, constraints),
            None => true,
        };
        let grown = |candidate: &Candidate| {
            let mut tokens = self.growing[candidate.beam].tokens.clone();
            tokens.push(candidate.token);
            Scored { tokens, score: candidate.score }
        };
        let parents = next.iter().map(|candidate| candidate.beam).collect();
        if !next.is_empty() {
            self.growing = next.iter().map(grown).collect();
        }
        parents
    }

    /// Returns the best continuations: for each beam, one more than there are tokens that end a text, so that enough
    /// remain if the best ones end.
    fn candidates(
        &self,
        prompt: &Prompt,
        logits: &mut [Vec<f32>],
        beams: &Beams,
        constraints: &Constraints,
    ) -> Vec<Candidate> {
        let most = (1 + constraints.ends.len()) * beams.width;
        let mut best: Vec<Candidate> = Vec::with_capacity(most + 1);
        for (beam, (text, values)) in self.growing.iter().zip(logits).enumerate() {
            log_softmax(values);
            let written = [prompt.written.as_slice(), &text.tokens].concat();
            constraints.apply(&written, text.tokens.len(), values);
            for (token, value) in (0..).zip(values.iter()) {
                let score = value + text.score;
                let worst = if best.len() < most { f32::NEG_INFINITY } else { best[best.len() - 1].score };
                if score > worst {
                    let at = best.partition_point(|other| other.score >= score);
                    best.insert(at, Candidate { score, beam, token });
                    best.truncate(most);
                }
            }
        }
        best
    }

    /// Returns whether to stop at `length` generated tokens, where `best` is the log-probability of the best growing
    /// text.
    fn is_over(&self, best: f32, length: usize, beams: &Beams, constraints: &Constraints) -> bool {
        let Some(worst) = self.finished.get(beams.width - 1) else { return false };
        let hypothetical = match beams.early_stopping {
            EarlyStopping::Full => return true,
            EarlyStopping::Impossible if beams.length_penalty > 0.0 => constraints.most,
            EarlyStopping::Impossible | EarlyStopping::Unlikely => length,
        };
        let factor = (hypothetical as f64).powf(beams.length_penalty) as f32;
        // A comparison with NaN ends the search.
        !matches!((best / factor).partial_cmp(&worst.score), Some(std::cmp::Ordering::Greater))
    }

    fn result(mut self) -> Vec<u32> {
        let best = if self.finished.is_empty() { &mut self.growing } else { &mut self.finished };
        best.swap_remove(0).tokens
    }
}

fn log_softmax(logits: &mut [f32]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from((logit - largest).exp())).sum();
    let normalizer = sum.ln() as f32;
    logits.iter_mut().for_each(|logit| *logit = *logit - largest - normalizer);
}

/// Returns the best text that the search finds for each prompt: its generated tokens, without the end-of-text token.
pub(super) fn search<B: Kernels>(
    model: &InferenceModel<B>,
    prompts: &[Prompt],
    beams: &Beams,
    constraints: &Constraints,
) -> Result<Vec<Vec<u32>>, InferenceError> {
    if constraints.most == 0 {
        return Ok(vec![Vec::new(); prompts.len()]);
    }
    let (mut decoding, mut logits) = Decoding::start(model, prompts)?;
    let mut searches: Vec<BeamSearch> = prompts.iter().map(|_| BeamSearch::new()).collect();
    loop {
        let (mut parents, mut texts, mut first) = (Vec::new(), Vec::new(), 0);
        for (search, prompt) in searches.iter_mut().zip(prompts).filter(|(search, _)| !search.done) {
            let rows = first..first + search.growing.len();
            let continued = search.advance(prompt, &mut logits[rows.clone()], beams, constraints);
            if !search.done {
                parents.extend(continued.into_iter().map(|beam| rows.start + beam));
                let text = |beam: &Scored| [prompt.written.as_slice(), &beam.tokens].concat();
                texts.extend(search.growing.iter().map(text));
            }
            first = rows.end;
        }
        if parents.is_empty() {
            return Ok(searches.into_iter().map(BeamSearch::result).collect());
        }
        logits = decoding.next_logits(&parents, &texts)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u32 = 0;

    fn run(early_stopping: EarlyStopping, length_penalty: f64, steps: &[&[&[f32]]]) -> BeamSearch {
        let beams = Beams { width: 2, length_penalty, early_stopping };
        let constraints = Constraints { ends: vec![END], ..Constraints::none() };
        let prompt = Prompt { encoder_input: Vec::new(), written: vec![1] };
        let mut search = BeamSearch::new();
        for probabilities in steps.iter().take_while(|_| true) {
            if search.done {
                break;
            }
            let logits = |row: &&[f32]| row.iter().map(|p| p.ln()).collect();
            let mut logits: Vec<Vec<f32>> = probabilities.iter().map(logits).collect();
            search.advance(&prompt, &mut logits, &beams, &constraints);
        }
        search
    }

    /// Oracle: by hand. The first token alone is likelier than another, but that other leads to a likelier text.
    #[test]
    fn a_text_that_starts_less_likely_can_win() {
        let first: &[&[f32]] = &[&[0.02, 0.5, 0.48]];
        let second: &[&[f32]] = &[&[0.3, 0.3, 0.4], &[0.9, 0.05, 0.05]];
        let third: &[&[f32]] = &[&[0.9, 0.05, 0.05], &[0.9, 0.05, 0.05]];
        let search = run(EarlyStopping::Unlikely, 0.0, &[first, second, third]);
        assert!(search.done);
        assert_eq!(search.result(), [2]);
    }

    /// Oracle: by hand. The beams fill in the second step; only the third step would find a better text by length.
    #[test]
    fn stopping_early_decides_how_long_better_texts_are_looked_for() {
        let first: &[&[f32]] = &[&[0.3, 0.4, 0.3]];
        let second: &[&[f32]] = &[&[0.6, 0.39, 0.01], &[0.98, 0.01, 0.01]];
        for (rule, done) in
            [(EarlyStopping::Full, true), (EarlyStopping::Unlikely, true), (EarlyStopping::Impossible, false)]
        {
            assert_eq!(run(rule, 1.0, &[first, second]).done, done, "{rule:?}");
        }
    }
}
