//! Layers with hand-written backward passes: `forward` gives the output and what `backward` needs; `backward` gives
//! the input gradient and a [`crate::dp::Record`]. Layers hold addresses of parameters, not the values.

mod activation;
mod attention;
mod cpu;
mod dense;
mod embedding;
mod feed_forward;
mod gated;
mod grouped_attention;
mod head;
mod history;
mod kernel;
mod multi_head;
mod norm;
pub(crate) mod portable;
mod relative;
mod rms_norm;
mod rotary;
mod selection;
#[cfg(test)]
mod tests;
mod weights;

pub use activation::Activation;
pub use attention::{CausalAttention, SavedAttention};
pub use dense::{Dense, Stored};
pub use embedding::{PositionEmbedding, TokenEmbedding};
pub use feed_forward::{FeedForward, SavedFeedForward};
pub use gated::{GatedFeedForward, SavedGated};
pub use grouped_attention::{GroupedAttention, SavedGroupedAttention};
pub use head::{HeadLoss, TiedHead};
pub use history::History;
pub use kernel::{AdamStep, Kernels, NoiseSource};
pub use multi_head::{MultiHeadAttention, MultiHeadGrads, SavedMultiHead, Sight};
pub use norm::{LayerNorm, SavedNorm};
pub use relative::{RelativeBias, RelativeGrads};
pub use rms_norm::{RmsNorm, SavedRmsNorm};
pub use rotary::{Angles, Rotary};
pub use selection::{Selection, SelectionError};
pub use weights::{Initial, ParamId, ParamSpec, Weights};
