//! Certified intervals, and δ.

use serde::{Deserialize, Serialize};

use crate::AccountantError;

/// A failure probability δ of approximate differential privacy, strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Delta(f64);

impl Delta {
    /// Accepts 0 < `value` < 1.
    ///
    /// ```
    /// use accountant::Delta;
    /// assert!(Delta::new(1e-6).is_ok());
    /// assert!(Delta::new(1.0).is_err() && Delta::new(f64::NAN).is_err());
    /// ```
    ///
    /// # Errors
    /// [`AccountantError::OutOfRange`] for anything else, NaN included.
    pub fn new(value: f64) -> Result<Self, AccountantError> {
        if value > 0.0 && value < 1.0 {
            Ok(Self(value))
        } else {
            Err(AccountantError::out_of_range("delta", value, "0 < delta < 1"))
        }
    }

    /// Returns the probability as a float.
    ///
    /// ```
    /// assert_eq!(accountant::Delta::new(1e-6)?.get(), 1e-6);
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Delta {
    type Error = AccountantError;
    fn try_from(value: f64) -> Result<Self, AccountantError> {
        Self::new(value)
    }
}

impl From<Delta> for f64 {
    fn from(delta: Delta) -> f64 {
        delta.0
    }
}

/// A certified interval `lower ≤ true value ≤ upper`, rounded outward.
///
/// # Guarantee
/// `0 ≤ lower ≤ upper`, `lower` finite; `upper` may be `+∞` only where no finite bound exists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Certified lower end.
    pub lower: f64,
    /// Certified upper end: the figure to report and to spend.
    pub upper: f64,
}

impl Bounds {
    /// Accepts an ordered, non-negative pair.
    ///
    /// ```
    /// use accountant::Bounds;
    /// assert_eq!(Bounds::new(1.0, 2.0)?.upper, 2.0);
    /// assert!(Bounds::new(2.0, 1.0).is_err() && Bounds::new(f64::NAN, 1.0).is_err());
    /// # Ok::<(), accountant::AccountantError>(())
    /// ```
    ///
    /// # Errors
    /// [`AccountantError::NotConverged`] when the ends are not ordered numbers: an invalid bound is refused, never repaired.
    pub fn new(lower: f64, upper: f64) -> Result<Self, AccountantError> {
        if lower >= 0.0 && lower.is_finite() && lower <= upper {
            Ok(Self { lower, upper })
        } else {
            Err(AccountantError::NotConverged { what: "bounds are not ordered" })
        }
    }

    /// Returns the intersection of both intervals.
    pub(crate) fn intersect(self, other: Self) -> Result<Self, AccountantError> {
        Self::new(self.lower.max(other.lower), self.upper.min(other.upper))
    }

    /// Returns the worse of two costs.
    pub(crate) fn worse(self, other: Self) -> Result<Self, AccountantError> {
        Self::new(self.lower.max(other.lower), self.upper.max(other.upper))
    }
}
