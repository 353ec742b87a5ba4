use mechanisms::MechanismError;

/// The reasons why a private step cannot be taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// A mechanism refused its parameters.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// A clipped sum that its integers cannot hold.
    #[error(
        "a sum of clipped gradients is not a number or too large for 64-bit integers; use fewer units a step or a larger \
         noise multiplier"
    )]
    Overflow,
}
