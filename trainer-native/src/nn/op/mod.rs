//! The operators of the models. Each owns its forward pass, its backward pass and the per-example gradients of its
//! parameters.

mod activation;
mod attention;
mod context_concat;
mod embedding;
mod feed_forward;
mod gated;
mod grouped_attention;
mod head;
mod layer_norm;
mod linear;
mod multi_head;
mod relative_bias;
mod rms_norm;
mod rotary;

pub use activation::Activation;
pub use attention::{CausalAttention, SavedAttention};
pub use context_concat::ContextConcat;
pub use embedding::{PositionEmbedding, TokenEmbedding};
pub use feed_forward::{FeedForward, SavedFeedForward};
pub use gated::{GatedFeedForward, SavedGated};
pub use grouped_attention::{GroupedAttention, SavedGroupedAttention};
pub use head::{HeadLoss, LmHead};
pub use layer_norm::{LayerNorm, SavedNorm};
pub use linear::{Linear, Stored};
pub use multi_head::{AttentionMask, MultiHeadAttention, MultiHeadGrads, SavedMultiHead};
pub use relative_bias::{RelativeBias, RelativeGrads};
pub use rms_norm::{RmsNorm, SavedRmsNorm};
pub use rotary::{Angles, Rotary};
