//! ε as other libraries compute it.

use accountant::rdp::{self, Conversion};
use accountant::{Delta, DpEvent, NeighboringRelation, convert};

use super::settings::{Settings, Step, Theirs};

/// An ε of another library.
pub(super) struct Figure {
    pub epsilon: f64,
    /// Where it comes from.
    pub how: &'static str,
}

impl Settings {
    /// The ε that the library reports: as the file states it, or computed as the library does; `None` for an accountant by
    /// numerical convolution.
    pub fn figure(&self, delta: Delta, relation: NeighboringRelation) -> Result<Option<Figure>, String> {
        if let Some(epsilon) = self.epsilon {
            return Ok(Some(Figure { epsilon, how: "as the file states it" }));
        }
        let charged = self.charged();
        let refused = |error: accountant::AccountantError| error.to_string();
        let figure = match self.accountant {
            Theirs::Prv | Theirs::Pld => return Ok(None),
            Theirs::OpacusRdp => Figure {
                epsilon: of_orders(&charged, delta, relation).map_err(refused)?,
                how: "Rényi orders of Opacus",
            },
            Theirs::Rdp => Figure {
                epsilon: rdp::epsilon(&charged, delta, relation, Conversion::Improved)
                    .map_err(refused)?
                    .max(0.0),
                how: "Rényi orders of dp_accounting",
            },
            Theirs::Gdp => {
                let [Step { sigma, rate, steps }] = self.steps.as_slice() else {
                    return Err("history: Opacus's gdp takes one entry; allowed: one noise multiplier and sample rate".to_owned());
                };
                let mu = rate * (*steps as f64).sqrt() * libm::expm1(1.0 / (sigma * sigma)).sqrt();
                Figure {
                    epsilon: convert::epsilon_of_mu(mu, delta).map_err(refused)?,
                    how: "a central limit theorem, which is an approximation",
                }
            }
        };
        Ok(Some(figure))
    }
}

/// The ε of Opacus's orders, `RDPAccountant.DEFAULT_ALPHAS`, by the conversion of Balle et al. 2020, Theorem 21.
fn of_orders(
    event: &DpEvent,
    delta: Delta,
    relation: NeighboringRelation,
) -> Result<f64, accountant::AccountantError> {
    let orders = (11..=109).map(|tenth| f64::from(tenth) / 10.0).chain((12..=63).map(f64::from));
    let log_delta = libm::log(delta.get());
    let mut least = f64::INFINITY;
    for order in orders {
        let divergence = rdp::divergence(event, order, relation)?;
        let epsilon =
            divergence + libm::log((order - 1.0) / order) - (log_delta + libm::log(order)) / (order - 1.0);
        least = least.min(epsilon);
    }
    Ok(least)
}
