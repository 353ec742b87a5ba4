//! Layers with hand-written backward passes: `forward` gives the output and what `backward` needs; `backward` gives
//! the input gradient and a [`crate::dp::Record`]. Layers hold addresses of parameters, not the values.

mod activation;
mod attention;
mod cpu;
mod embedding;
mod head;
mod kernel;
mod linear;
mod norm;
mod portable;
mod weights;

pub use activation::Gelu;
pub use attention::{CausalAttention, SavedAttention};
pub use embedding::{PositionEmbedding, TokenEmbedding};
pub use head::{HeadLoss, TiedHead};
pub use kernel::Kernels;
pub use linear::Linear;
pub use norm::{LayerNorm, SavedNorm};
pub use weights::{Initial, ParamId, ParamSpec, Weights};
