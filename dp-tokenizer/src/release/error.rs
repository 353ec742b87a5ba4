//! The reasons why a release is refused.

use mechanisms::MechanismError;

use crate::unit::UnitError;

/// The reason why a release is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A parameter outside its domain.
    #[error("{name} = {value} is out of range; allowed: {allowed}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// The given value.
        value: f64,
        /// The allowed values.
        allowed: &'static str,
    },
    /// The noise cannot be drawn.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// The units cannot be read.
    #[error(transparent)]
    Units(#[from] UnitError),
    /// There are more units than the proof of a method covers.
    #[error(
        "the text has more than {most} units; methods policy and mad2r are proven for at most that many; use pooled or sips"
    )]
    TooManyUnits {
        /// The largest number of units that is allowed.
        most: u64,
    },
    /// Two units share a place in the order, because the names of two users have the same hash.
    #[error(
        "method policy needs units in one fixed order, and two units share a place in it; use pooled or sips"
    )]
    NotInOrder,
}
