//! The operators of the models. Each owns its forward pass, its backward pass and the per-example gradients of its
//! parameters.

mod activation;
mod arithmetic;
mod attention;
mod context_concat;
mod dot_product;
mod dropout;
mod embedding;
mod feed_forward;
mod gate;
mod gather;
mod layer_norm;
mod linear;
mod relative_bias;
mod rms_norm;
mod rotary;
mod sinusoids;
mod table;

pub use activation::Activation;
pub use arithmetic::{add, branch, scale, soft_cap};
pub use attention::{FusedAttention, MultiHeadAttention, SelfAttention};
pub use context_concat::ContextConcat;
pub use dot_product::{AttentionMask, DotProductAttention, FusedOrder};
pub use dropout::{dropout, residual};
pub use embedding::{PositionEmbedding, SegmentEmbedding, TokenEmbedding};
pub use feed_forward::{FeedForward, FusedGatedFeedForward, GatedFeedForward, MaybeGated};
pub use gate::Gate;
pub use gather::{Places, gather, gather_some, mean, row};
pub use layer_norm::LayerNorm;
pub use linear::{Linear, LinearSpec};
pub use relative_bias::RelativeBias;
pub use rms_norm::RmsNorm;
pub use rotary::{Rotary, RotaryPairs, RotaryScaling};
pub use sinusoids::Sinusoids;
pub use table::TableLogits;
