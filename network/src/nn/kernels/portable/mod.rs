//! The definition of each kernel in plain tensor operations. Backends without a fused kernel run it, and it is the oracle of
//! those that have one.

mod activation;
mod attention;
mod context;
mod factors;
mod ghost_norm;
mod linear;
mod loss;
mod norm;
mod update;

pub use activation::{
    GELU_CUBIC, NORMAL_DENSITY_AT_0, SQRT_2_OVER_PI, gelu_erf, gelu_erf_backward, gelu_gate,
    gelu_gate_backward, gelu_new, gelu_new_backward, silu_gate, silu_gate_backward, silu_slope,
};
pub use attention::{
    cached_attention, causal_softmax, diagonal_sums, masked_softmax, merge_heads, rotate, softmax_backward,
    write_position,
};
pub use context::{context_concat, context_concat_backward};
pub use factors::add_factors;
pub use ghost_norm::{ROUNDING, dots, lookup_head_dots, lookup_squares, product_squares};
pub use linear::{affine, product_bf16, scale_examples, sum_positions, weighted_sum};
pub use loss::{cross_entropy_backward, token_nll};
pub use norm::{normalize, normalize_backward, rms_normalize, rms_normalize_backward};
pub use update::{
    Stretch, Truncation, adam, add_on_grid, add_rounded, add_truncated, add_truncated_values, piece_length,
    square_sum, square_sum_of,
};
