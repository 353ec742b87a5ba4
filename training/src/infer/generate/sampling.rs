//! Draws the next token from the model's distribution, or takes the likeliest one.
//!
//! # References
//! Fan et al. 2018, <https://arxiv.org/abs/1805.04833> (top-k); Holtzman et al. 2020, <https://arxiv.org/abs/1904.09751>
//! (top-p); the sets of tokens as `transformers` keeps them.

use mechanisms::Stream;

use super::{Constraints, Decoding, Prompt};
use crate::infer::{InferenceError, InferenceModel};
use network::nn::Kernels;

/// Options of drawing a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenSampling {
    /// Divides the logits: text is safer below 1 and wilder above 1; 0 always takes the likeliest token.
    pub temperature: f64,
    /// Draws among this many of the likeliest tokens.
    pub top_k: Option<usize>,
    /// Draws among the fewest likeliest tokens whose probabilities sum to at least this.
    pub top_p: Option<f64>,
    /// Draws among the tokens that are at least this share as likely as the likeliest one.
    pub min_p: Option<f64>,
}

impl TokenSampling {
    /// Always takes the likeliest token.
    pub const GREEDY: Self = Self { temperature: 0.0, top_k: None, top_p: None, min_p: None };

    /// Draws from the model's own distribution.
    pub const PLAIN: Self = Self { temperature: 1.0, ..Self::GREEDY };

    /// Returns the token at quantile `uniform` of the distribution.
    fn draw(&self, logits: &[f32], uniform: f64) -> u32 {
        if self.temperature == 0.0 {
            return likeliest(logits);
        }
        let weights = self.weights(logits);
        let mut left = uniform * weights.iter().sum::<f64>();
        for (token, &weight) in weights.iter().enumerate() {
            left -= weight;
            if left <= 0.0 && weight > 0.0 {
                return token as u32;
            }
        }
        likeliest(logits)
    }

    /// Returns the weight of each token: 0 for tokens that are never drawn.
    pub(super) fn weights(&self, logits: &[f32]) -> Vec<f64> {
        let top = f64::from(logits[likeliest(logits) as usize]);
        let weight = |&logit: &f32| ((f64::from(logit) - top) / self.temperature).exp();
        let mut weights: Vec<f64> = logits.iter().map(weight).collect();
        if self.top_k.is_none() && self.top_p.is_none() && self.min_p.is_none() {
            return weights;
        }
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        if let Some(&last) = self.top_k.and_then(|k| order.get(k.checked_sub(1)?)) {
            // Tokens as likely as the last one stay.
            let least = weights[last];
            order.retain(|&token| weights[token] >= least);
        }
        if let Some(share) = self.top_p {
            let wanted = share * order.iter().map(|&token| weights[token]).sum::<f64>();
            let mut sum = 0.0;
            let enough = order.iter().position(|&token| {
                sum += weights[token];
                sum >= wanted
            });
            order.truncate(enough.map_or(order.len(), |at| at + 1));
        }
        // The likeliest token has the weight 1.
        order.retain(|&token| weights[token] >= self.min_p.unwrap_or(0.0));
        let mut kept = vec![0.0; weights.len()];
        order.into_iter().for_each(|token| kept[token] = std::mem::take(&mut weights[token]));
        kept
    }
}

/// Returns the token with the largest logit, and the first of equal ones.
fn likeliest(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (token, &logit) in logits.iter().enumerate() {
        if logit > logits[best] {
            best = token;
        }
    }
    best as u32
}

/// Continues each prompt, until a token or `is_stopped` ends its text. Row i draws from `streams[i]` alone, so its text
/// does not depend on the other prompts.
///
/// The tokens returned are the generated ones, without the token that ends a text.
pub(super) fn sample<B: Kernels>(
    model: &InferenceModel<B>,
    prompts: &[Prompt],
    sampling: &TokenSampling,
    constraints: &Constraints,
    is_stopped: impl Fn(&[u32]) -> bool,
    mut streams: Vec<Stream>,
) -> Result<Vec<Vec<u32>>, InferenceError> {
    let mut generated: Vec<Vec<u32>> = vec![Vec::new(); prompts.len()];
    if constraints.most == 0 {
        return Ok(generated);
    }
    let (mut decoding, mut logits) = Decoding::start(model, prompts)?;
    let mut texts: Vec<Vec<u32>> = prompts.iter().map(|prompt| prompt.written.clone()).collect();
    // The index in `prompts` of each remaining row.
    let mut owners: Vec<usize> = (0..prompts.len()).collect();
    for length in 1..=constraints.most {
        let mut parents = Vec::new();
        for (row, logits) in logits.iter_mut().enumerate() {
            let owner = owners[row];
            constraints.apply(&texts[row], length - 1, logits);
            let next = sampling.draw(logits, streams[owner].uniform());
            if !constraints.ends.contains(&next) {
                generated[owner].push(next);
                if !is_stopped(&generated[owner]) {
                    texts[row].push(next);
                    parents.push(row);
                }
            }
        }
        if parents.is_empty() || length == constraints.most {
            break;
        }
        texts = parents.iter().map(|&row| std::mem::take(&mut texts[row])).collect();
        owners = parents.iter().map(|&row| owners[row]).collect();
        logits = decoding.next_logits(&parents, &texts)?;
    }
    Ok(generated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_drawn_as_often_as_its_softmax_says() {
        let logits = [0.0_f32, 1.0, -1.0];
        let total: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        let edge = 1.0 / total;
        let plain = TokenSampling::PLAIN;
        assert_eq!(plain.draw(&logits, edge - 1e-9), 0);
        assert_eq!(plain.draw(&logits, edge + 1e-9), 1);
        assert_eq!(plain.draw(&logits, 1.0 - 1e-9), 2);
        assert_eq!(TokenSampling::GREEDY.draw(&logits, 0.999), 1);
    }

    /// Oracle: by hand. The probabilities are 0.4, 0.3, 0.2 and 0.1.
    #[test]
    fn only_the_likeliest_tokens_are_drawn() {
        let logits = [0.2_f64, 0.4, 0.1, 0.3].map(|p| p.ln() as f32);
        let kept_of = |top_k, top_p, min_p| {
            let weights = TokenSampling { temperature: 1.0, top_k, top_p, min_p }.weights(&logits);
            weights.into_iter().map(|weight| weight > 0.0).collect::<Vec<_>>()
        };
        let kept = |top_k, top_p| kept_of(top_k, top_p, None);
        assert_eq!(kept(Some(2), None), [false, true, false, true]);
        assert_eq!(kept(None, Some(0.69)), [false, true, false, true]);
        assert_eq!(kept(None, Some(0.71)), [true, true, false, true]);
        assert_eq!(kept(None, Some(1e-9)), [false, true, false, false]);
        // The first of the two likeliest tokens has 4/7 of their probability.
        assert_eq!(kept(Some(2), Some(0.57)), [false, true, false, false]);
        assert_eq!(kept(Some(9), Some(1.0)), [true; 4]);
        assert_eq!(kept_of(None, None, Some(0.49)), [true, true, false, true]);
        assert_eq!(kept_of(None, None, Some(0.51)), [false, true, false, true]);
        let top = TokenSampling { temperature: 0.5, top_k: Some(1), ..TokenSampling::GREEDY };
        assert_eq!([0.0, 0.5, 0.999].map(|at| top.draw(&logits, at)), [1; 3]);
    }
}
