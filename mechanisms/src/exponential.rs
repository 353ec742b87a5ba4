//! The exponential mechanism on the next token of a language model.

use accountant::DpEvent;

use crate::bernoulli::bernoulli_exp;
use crate::{MechanismError, Stream, out_of_range};

/// Parts of a nat: logits are compared on this grid.
const PER_NAT: f64 = (1_u64 << 24) as f64;
/// The largest public logit in nats. Larger ones are cut, which is public.
const LARGEST_LOGIT: f64 = 1e6;

/// Draws a token with probability proportional to exp(score/temperature). The score of a token is its public logit, and the sum of the
/// differences of the private logits from it, each clipped to [−clip, clip], divided by a constant (InvisibleInk).
///
/// # Guarantee
/// A draw is exact: logits are integers in units of 2⁻²⁴ nats before they are clipped, and sums and probabilities are computed in integers
/// alone. It satisfies ρ-zCDP with the ρ of [`Self::event`] if one unit adds one row of logits.
///
/// # Proof
/// Let D be the clip and N the divisor times the temperature, both in parts of a nat, and P and Q the laws of a token with and without a
/// row d, |d_v| ≤ D. Then log P(v)/Q(v) is d_v/N less a constant: it lies in an interval of length η = 2D/N. With L this logarithm and
/// ψ(s) = log E_Q\[e^{sL}\], ψ(0) = ψ(1) = 0, and ψ″(s) is the variance of L under a tilted law, so at most η²/4. Hence ψ(s) − s(s−1)η²/8 is
/// concave and 0 at 0 and 1, so at most 0 for s > 1: the Rényi divergence of order α is at most α·η²/8. The same holds for Q and P.
/// ρ = η²/8 = D²/2N². The set of tokens to draw from is public, and so is their public logit.
///
/// # References
/// Vinod, Pillutla & Thakurta 2025, <https://arxiv.org/abs/2507.02974>; bounded range: Durfee & Rogers 2019,
/// <https://arxiv.org/abs/1905.04273>; Cesar & Rogers 2021, <https://arxiv.org/abs/2004.07223>.
///
/// ```
/// use accountant::DpEvent;
/// use mechanisms::{ExponentialMechanism, PrivacyRng, Purpose, TestRng};
/// let mechanism = ExponentialMechanism::new(1.0, 4.0, 1.0)?;
/// let mut scores = mechanism.scores(&[0.0, 1.0, 2.0], &[0, 1]);
/// scores.add(&[30.0, 0.0, 9.0]);
/// let mut stream = TestRng::from_seed(1).stream(Purpose::Tokens, 0, 0);
/// assert!(mechanism.draw(&scores, &mut stream).is_some_and(|token| token < 2));
/// // 1/(2·4²)
/// assert!(matches!(mechanism.event(), DpEvent::ZeroConcentrated { rho } if (rho - 0.03125).abs() < 1e-8));
/// # Ok::<(), mechanisms::MechanismError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialMechanism {
    /// D, in parts of a nat.
    clip: u64,
    /// Number by which sums are divided.
    divisor: f64,
    /// N, in parts of a nat.
    scale: u64,
}

/// The scores of the tokens to draw from. They can be added to, and drawn from, but not read.
#[must_use = "a mechanism draws a token by them"]
pub struct TokenScores {
    tokens: Vec<u32>,
    public: Vec<f32>,
    /// Scores times divisor, in parts of a nat.
    sums: Vec<i128>,
    clip: i64,
}

impl ExponentialMechanism {
    /// Accepts a clip of 2⁻²⁰ to 2¹⁶ nats, a divisor of 2⁻²⁰ to 2³⁰, and a temperature of 2⁻¹⁰ to 2¹⁰.
    ///
    /// # Errors
    /// [`MechanismError::OutOfRange`] otherwise, NaN included.
    pub fn new(clip: f64, divisor: f64, temperature: f64) -> Result<Self, MechanismError> {
        if !(2_f64.powi(-20)..=65536.0).contains(&clip) {
            return out_of_range("clip (in nats)", clip, "2^-20 to 2^16");
        }
        if !(2_f64.powi(-20)..=2_f64.powi(30)).contains(&divisor) {
            return out_of_range("divisor", divisor, "2^-20 to 2^30");
        }
        if !(2_f64.powi(-10)..=1024.0).contains(&temperature) {
            return out_of_range("temperature", temperature, "2^-10 to 2^10");
        }
        // The product with a power of two is exact, and the next float covers the rounding of the other one.
        let scale = f64::ceil((divisor * temperature).next_up() * PER_NAT) as u64;
        Ok(Self { clip: f64::floor(clip * PER_NAT) as u64, divisor, scale })
    }

    /// Returns the largest contribution of a row to the score of a token, in nats and before the division.
    #[must_use]
    pub fn clip(&self) -> f64 {
        self.clip as f64 / PER_NAT
    }

    /// Returns the number by which the sum of the differences is divided.
    #[must_use]
    pub fn divisor(&self) -> f64 {
        self.divisor
    }

    /// Returns the event of one draw.
    #[must_use]
    pub fn event(&self) -> DpEvent {
        let moved = self.clip as f64 / self.scale as f64;
        DpEvent::ZeroConcentrated { rho: 0.5 * moved * moved * (1.0 + 1e-15) }
    }

    /// Begins with the public logits of all tokens, of which `tokens` may be drawn.
    pub fn scores(&self, public: &[f32], tokens: &[u32]) -> TokenScores {
        let tokens: Vec<u32> =
            tokens.iter().copied().filter(|token| (*token as usize) < public.len()).collect();
        let public: Vec<f32> = tokens.iter().map(|token| public[*token as usize]).collect();
        let score = |logit: &f32| {
            let logit = f64::from(*logit);
            let kept =
                if logit.is_nan() { -LARGEST_LOGIT } else { logit.clamp(-LARGEST_LOGIT, LARGEST_LOGIT) };
            (kept * PER_NAT * self.divisor).round() as i128
        };
        let sums = public.iter().map(score).collect();
        TokenScores { tokens, public, sums, clip: self.clip as i64 }
    }

    /// Draws a token; none if there is none to draw from.
    #[must_use]
    pub fn draw(&self, scores: &TokenScores, stream: &mut Stream) -> Option<u32> {
        let largest = scores.sums.iter().max()?;
        loop {
            let place = stream.below(scores.tokens.len() as u64) as usize;
            let below = largest.abs_diff(scores.sums[place]);
            if bernoulli_exp(below, u128::from(self.scale), stream) {
                return Some(scores.tokens[place]);
            }
        }
    }
}

impl TokenScores {
    /// Adds the logits of a private row, one for each token of the model. A difference that is no number counts as 0.
    pub fn add(&mut self, logits: &[f32]) {
        for ((sum, token), public) in self.sums.iter_mut().zip(&self.tokens).zip(&self.public) {
            let logit = logits.get(*token as usize).copied().unwrap_or(*public);
            let difference = (f64::from(logit) - f64::from(*public)) * PER_NAT;
            // A cast of a float that is no number gives 0, and one of a large number the largest integer.
            *sum += i128::from((difference.round() as i64).clamp(-self.clip, self.clip));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PrivacyRng, Purpose, TestRng};

    const PUBLIC: [f32; 5] = [0.0, 1.0, -1.0, 0.5, 7.0];

    /// Returns χ² of draws from the first four tokens against the softmax of scores at a temperature: 3 degrees of freedom.
    fn chi2(mechanism: &ExponentialMechanism, rows: &[[f32; 5]], scores: [f64; 4], temperature: f64) -> f64 {
        let (mut counts, draws) = ([0.0; 4], 40_000);
        let mut stream = TestRng::from_seed(3).stream(Purpose::Tokens, 0, 0);
        let mut drawn = mechanism.scores(&PUBLIC, &[0, 1, 2, 3]);
        rows.iter().for_each(|row| drawn.add(row));
        for _ in 0..draws {
            counts[mechanism.draw(&drawn, &mut stream).unwrap() as usize] += 1.0;
        }
        let weights = scores.map(|score| (score / temperature).exp());
        let total: f64 = weights.iter().sum();
        let expected = weights.map(|weight| weight / total * f64::from(draws));
        counts.iter().zip(expected).map(|(count, expected)| (count - expected).powi(2) / expected).sum()
    }

    /// qchisq(1e-6, 3, lower = FALSE) = 30.66. Oracle: clipping and softmax by hand.
    #[test]
    fn tokens_are_drawn_by_public_logits_and_clipped_differences_and_wrong_laws_are_rejected() {
        let mechanism = ExponentialMechanism::new(0.5, 4.0, 0.8).unwrap();
        // Differences 0.25, 9, −9 and NaN; then 0, 0.5, 0.5 and −0.1.
        let rows = [[0.25, 10.0, -10.0, f32::NAN, 0.0], [0.0, 1.5, -0.5, 0.4, 0.0]];
        let right = [0.25 / 4.0, 1.0 + 1.0 / 4.0, -1.0, 0.5 - 0.1 / 4.0];
        assert!(chi2(&mechanism, &rows, right, 0.8) < 30.7);
        let unclipped = [0.25 / 4.0, 1.0 + 9.5 / 4.0, -1.0 - 8.5 / 4.0, 0.5 - 0.1 / 4.0];
        let by_their_number = [0.25 / 2.0, 1.0 + 1.0 / 2.0, -1.0, 0.5 - 0.1 / 2.0];
        for (scores, temperature) in
            [(unclipped, 0.8), (by_their_number, 0.8), (right, 1.0), ([0.0, 1.0, -1.0, 0.5], 0.8)]
        {
            assert!(chi2(&mechanism, &rows, scores, temperature) > 30.7, "{scores:?} {temperature}");
        }
    }

    /// The bound that the proof rests on, in the integers of the mechanism.
    #[test]
    fn a_row_moves_every_score_by_at_most_the_clip_whatever_its_logits_are() {
        let mechanism = ExponentialMechanism::new(0.3, 8.0, 1.0).unwrap();
        let before = mechanism.scores(&PUBLIC, &[0, 1, 2, 3, 4]);
        for row in [
            [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN],
            [1e-8, -1e-8, 0.3, 0.300_001, 7.3],
        ] {
            let mut after = mechanism.scores(&PUBLIC, &[0, 1, 2, 3, 4]);
            after.add(&row);
            for (after, before) in after.sums.iter().zip(&before.sums) {
                assert!(after.abs_diff(*before) <= u128::from(mechanism.clip));
            }
        }
        assert!(mechanism.clip() <= 0.3 && mechanism.clip() > 0.299_999);
        let DpEvent::ZeroConcentrated { rho } = mechanism.event() else { unreachable!() };
        let moved = mechanism.clip as f64 / mechanism.scale as f64;
        assert!(rho >= 0.5 * moved * moved && rho < 0.5 * (0.3_f64 / 8.0).powi(2) * (1.0 + 1e-9));
    }

    #[test]
    fn public_logits_that_are_no_numbers_and_wrong_parameters_do_no_harm() {
        let mechanism = ExponentialMechanism::new(1.0, 1.0, 1.0).unwrap();
        let mut stream = TestRng::from_seed(4).stream(Purpose::Tokens, 0, 0);
        let public = [f32::NAN, f32::NEG_INFINITY, 0.0];
        for _ in 0..100 {
            assert_eq!(mechanism.draw(&mechanism.scores(&public, &[0, 1, 2, 9]), &mut stream), Some(2));
        }
        assert_eq!(mechanism.draw(&mechanism.scores(&public, &[]), &mut stream), None);
        for (clip, divisor, temperature) in
            [(0.0, 1.0, 1.0), (f64::NAN, 1.0, 1.0), (1.0, f64::NAN, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)]
        {
            assert!(ExponentialMechanism::new(clip, divisor, temperature).is_err());
        }
    }
}
