//! Makes [`ChernoffBound`](crate::dominating_pair::chernoff::ChernoffBound) an engine, which answers from above only,
//! and always.

use super::{Engine, Problem, Target};
use crate::{Bounds, Result};

pub(super) struct Chernoff;

impl Engine for Chernoff {
    fn bounds(&self, problem: &Problem<'_>, _tightness: f64) -> Result<Bounds> {
        let bound = problem.chernoff();
        match problem.target {
            Target::Epsilon { .. } => Bounds::new(0.0, bound.epsilon.max(0.0)),
            Target::Delta { .. } => Bounds::new(0.0, bound.delta()),
        }
    }
}
