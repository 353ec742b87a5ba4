//! The Laplace mechanism as a table.
//!
//! # Proof note
//! With displacement m over scale the loss is m with P-mass 1/2, −m with P-mass e^{−m}/2, and has density
//! e^{(ℓ−m)/2}/4 between. A cell [a, a + w] has P-mass c·(e^{w/2} − 1), c = e^{(a−m)/2}/2. *Above*: split onto its ends,
//! so that P-mass and Q-mass stay, it is c·tanh(w/4) at a and c·e^{w/2}·tanh(w/4) at a + w. *Below*: merged into one
//! outcome its loss is a + w/2.

use crate::AccountantError;

use super::tabulated::{Outcome, Tabulated};

/// Cells between the two ends.
const CELLS: f64 = 2048.0;

/// The widest cell, in units of loss.
const WIDEST: f64 = 0.02;

/// Beyond this displacement over scale an answer would promise nothing.
const FARTHEST: f64 = 500.0;

/// The pair of displacement over scale `moved`, from below or from above.
pub(super) fn table(moved: f64, below: bool) -> Result<Tabulated, AccountantError> {
    if !(moved > 0.0 && moved <= FARTHEST) {
        return Err(AccountantError::OutOfRange {
            name: "displacement over the scale of Laplace noise",
            value: moved,
            allowed: "above 0 and at most 500",
        });
    }
    let cells = libm::ceil(2.0 * moved / WIDEST).max(CELLS);
    let width = 2.0 * moved / cells;
    let sign = if below { -1.0 } else { 1.0 };
    // What exponentials may be off by.
    let slack = 1.0 + sign * 1e-13;
    let mut outcomes = vec![
        Outcome { loss: moved, mass: 0.5 },
        Outcome { loss: -moved, mass: 0.5 * libm::exp(-moved) * slack },
    ];
    let tanh = libm::tanh(0.25 * width);
    let mut index = 0.0;
    while index < cells {
        let from = -moved + index * width;
        index += 1.0;
        let to = -moved + index * width;
        let scale = 0.5 * libm::exp(0.5 * (from - moved)) * slack;
        if below {
            outcomes.push(Outcome { loss: from + 0.5 * width, mass: scale * libm::expm1(0.5 * width) });
        } else {
            outcomes.push(Outcome { loss: from, mass: scale * tanh });
            outcomes.push(Outcome { loss: to, mass: scale * libm::exp(0.5 * width) * tanh });
        }
    }
    Ok(Tabulated::new(outcomes))
}
