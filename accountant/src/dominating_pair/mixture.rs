//! Pairs of Gaussian mixtures on a line.

/// `weight` of a normal law displaced by `shift` ≥ 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Component {
    pub(crate) weight: f64,
    pub(crate) shift: f64,
}

/// P = Σ wᵢ N(+shiftᵢ, σ²) against Q = Σ wⱼ N(−shiftⱼ, σ²), all shifts ≥ 0.
///
/// P/Q then increases in x, so that the privacy loss ℓ(x) = log P(x)/Q(x) has an inverse. The weights of P sum to one, and so
/// do those of Q; displacements are in units of the sensitivity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MixturePair {
    sigma: f64,
    p: Vec<Component>,
    q: Vec<Component>,
    cut: f64,
}

impl MixturePair {
    /// `p` and `q` list the displaced components; the remaining weight of each is at 0.
    pub(crate) fn new(sigma: f64, p: Vec<Component>, q: Vec<Component>) -> Self {
        Self { sigma, p, q, cut: f64::INFINITY }
    }

    /// The pair of the most noise and the rarest sampling among `pairs`, which costs no more than any of them, or of the least noise and the
    /// most frequent sampling, which costs no less; none where displacements or the number of components differ.
    ///
    /// Noise that is added is post-processing, and where q ≤ q′ both laws at q are mixtures of N(0) with those at q′ in the same
    /// proportion, so that joint convexity applies.
    pub(crate) fn extreme(pairs: &[&Self], costliest: bool) -> Option<Self> {
        let pick = if costliest { f64::max } else { f64::min };
        let mut found: Self = (*pairs.first()?).clone();
        for pair in pairs {
            found.sigma = if costliest { found.sigma.min(pair.sigma) } else { found.sigma.max(pair.sigma) };
            for (own, other) in [(&mut found.p, &pair.p), (&mut found.q, &pair.q)] {
                match (own.as_mut_slice(), other.as_slice()) {
                    ([], []) => {}
                    ([own], [other]) if own.shift == other.shift => {
                        own.weight = pick(own.weight, other.weight)
                    }
                    _ => return None,
                }
            }
            if pair.cut != f64::INFINITY {
                return None;
            }
        }
        Some(found)
    }

    pub(crate) fn sigma(&self) -> f64 {
        self.sigma
    }

    /// The pair without its outermost outcomes, of P-mass at most `tail`.
    ///
    /// Rare outcomes of enormous loss make moments explode although δ hardly depends on them. Leaving them out lowers δ by at
    /// most `tail` a use, which the upper bound adds.
    pub(crate) fn cut_at_tail(&self, tail: f64) -> Self {
        let cut = self.largest_shifts().0 + self.sigma * crate::normal::isf(tail);
        Self { cut, ..self.clone() }
    }

    /// Returns the largest outcome, or +∞ for a whole pair.
    pub(crate) fn cut(&self) -> f64 {
        self.cut
    }

    /// Largest displacement of P and of Q.
    pub(crate) fn largest_shifts(&self) -> (f64, f64) {
        let far = |components: &[Component]| components.iter().fold(0.0, |far: f64, c| far.max(c.shift));
        (far(&self.p), far(&self.q))
    }

    /// The x at which the only component of P overtakes the rest, and the component's weight; none for other pairs.
    pub(crate) fn overtaking(&self) -> Option<(f64, f64)> {
        match (self.p.as_slice(), self.q.as_slice()) {
            ([only], []) if only.weight < 1.0 && only.shift == 1.0 => {
                let log_odds = libm::log1p(-only.weight) - libm::log(only.weight);
                Some((self.sigma * self.sigma * log_odds + 0.5, only.weight))
            }
            _ => None,
        }
    }

    /// log of a lower bound on the weight that Q has at 0, −∞ where that may be nothing.
    pub(crate) fn log_kept_of_q(&self) -> f64 {
        let moved: f64 = self.q.iter().map(|c| c.weight).sum();
        // The sum of the weights may be off by a few units each.
        let moved = moved * (1.0 + 1e-13);
        if moved < 1.0 { libm::log1p(-moved) } else { f64::NEG_INFINITY }
    }

    /// True when Q is the plain normal law, so that ℓ = log(P/N(0, σ²)).
    pub(crate) fn q_is_plain(&self) -> bool {
        self.q.is_empty()
    }

    /// The Gaussian mechanism with sensitivity over noise `mu`.
    pub(crate) fn gaussian(mu: f64) -> Self {
        Self::new(1.0 / mu, vec![Component { weight: 1.0, shift: 1.0 }], Vec::new())
    }

    /// The x with ℓ(x) = `loss`, −∞ or +∞ where ℓ stays above or below.
    pub(crate) fn locate(&self, loss: f64) -> f64 {
        let variance = self.sigma * self.sigma;
        match (self.p.as_slice(), self.q.as_slice()) {
            ([only], []) => variance * exponent_of(loss, only.weight) / only.shift + 0.5 * only.shift,
            ([], [only]) => -(variance * exponent_of(-loss, only.weight) / only.shift + 0.5 * only.shift),
            _ => self.search(loss),
        }
    }

    /// [`Self::locate`] for pairs without a closed inverse, on the part of the line that carries mass.
    fn search(&self, loss: f64) -> f64 {
        let (p, q) = self.largest_shifts();
        let (mut low, mut high) = (-q - 60.0 * self.sigma, p + 60.0 * self.sigma);
        if self.loss(low) >= loss {
            return f64::NEG_INFINITY;
        }
        if self.loss(high) <= loss {
            return f64::INFINITY;
        }
        let (mut at_low, mut at_high) = (self.loss(low) - loss, self.loss(high) - loss);
        for round in 0..200 {
            // Regula falsi in two rounds of three, bisection in the third.
            let guess = low - at_low * (high - low) / (at_high - at_low);
            let middle =
                if round % 3 == 2 || !(guess > low && guess < high) { 0.5 * (low + high) } else { guess };
            if !(middle > low && middle < high) {
                break;
            }
            let value = self.loss(middle) - loss;
            if value == 0.0 {
                return middle;
            }
            if value < 0.0 {
                (low, at_low) = (middle, value);
            } else {
                (high, at_high) = (middle, value);
            }
            if high - low <= 4e-16 * (libm::fabs(low) + libm::fabs(high)) {
                break;
            }
        }
        0.5 * (low + high)
    }

    /// The least upper bound of ℓ, +∞ where P is displaced.
    pub(crate) fn highest_loss(&self) -> f64 {
        if self.p.is_empty() {
            let kept = 1.0 - self.q.iter().map(|c| c.weight).sum::<f64>();
            // Rounded up: the sum of the weights may be off by a few units.
            -libm::log(kept * (1.0 - 1e-13)) + 1e-15
        } else {
            f64::INFINITY
        }
    }

    /// P-mass of the outcomes above x, to a few units in the last place of `erfc`.
    pub(crate) fn p_above(&self, x: f64) -> f64 {
        let kept = 1.0 - self.p.iter().map(|c| c.weight).sum::<f64>();
        let moved = self.p.iter().map(|c| c.weight * crate::normal::sf((x - c.shift) / self.sigma));
        moved.sum::<f64>() + kept.max(0.0) * crate::normal::sf(x / self.sigma)
    }

    /// log of P's density over that of N(0, σ²) at x.
    pub(crate) fn log_p(&self, x: f64) -> f64 {
        log_mixture(&self.p, x, self.sigma * self.sigma)
    }

    /// log of Q's density over that of N(0, σ²) at x.
    pub(crate) fn log_q(&self, x: f64) -> f64 {
        log_mixture(&self.q, -x, self.sigma * self.sigma)
    }

    /// Slopes of log P and of −log Q over the density of N(0, σ²); their sum is dℓ/dx.
    pub(crate) fn slopes(&self, x: f64) -> (f64, f64) {
        let variance = self.sigma * self.sigma;
        (slope_mixture(&self.p, x, variance), slope_mixture(&self.q, -x, variance))
    }

    /// ℓ(x) = log P(x)/Q(x), accurate to a few units in the last place also where it is tiny.
    pub(crate) fn loss(&self, x: f64) -> f64 {
        if self.q_is_plain() { self.log_p(x) } else { self.log_p(x) - self.log_q(x) }
    }
}

/// The z with log(1 − w + w·e^z) = `loss`, w = `weight`.
fn exponent_of(loss: f64, weight: f64) -> f64 {
    if weight == 1.0 {
        return loss;
    }
    if loss > 30.0 {
        return loss - libm::log(weight) + libm::log1p(-(1.0 - weight) * libm::exp(-loss));
    }
    let moved = libm::expm1(loss) / weight;
    if moved <= -1.0 { f64::NEG_INFINITY } else { libm::log1p(moved) }
}

/// log(1 + Σ w·(e^z − 1)), z = (shift·x − shift²/2)/σ².
fn log_mixture(components: &[Component], x: f64, variance: f64) -> f64 {
    let exponent = |c: &Component| c.shift * (x - 0.5 * c.shift) / variance;
    if let [only] = components
        && only.weight == 1.0
    {
        return exponent(only);
    }
    let largest = components.iter().map(exponent).fold(0.0, f64::max);
    if largest < 30.0 {
        let excess: f64 = components.iter().map(|c| c.weight * libm::expm1(exponent(c))).sum();
        return libm::log1p(excess);
    }
    let kept = 1.0 - components.iter().map(|c| c.weight).sum::<f64>();
    let moved: f64 = components.iter().map(|c| c.weight * libm::exp(exponent(c) - largest)).sum();
    largest + libm::log(moved + kept.max(0.0) * libm::exp(-largest))
}

/// d/dx of [`log_mixture`].
fn slope_mixture(components: &[Component], x: f64, variance: f64) -> f64 {
    let log_all = log_mixture(components, x, variance);
    components
        .iter()
        .map(|c| {
            c.weight * c.shift / variance * libm::exp(c.shift * (x - 0.5 * c.shift) / variance - log_all)
        })
        .sum()
}
