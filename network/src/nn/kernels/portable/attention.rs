//! Softmax with masks, rotary positions and the layout of heads.

use crate::nn::{CachedKeys, Mask};
use crate::tensor::{Backend, Bool, Int, Tensor, TensorData, activation};

pub fn rotate<B: Backend>(values: Tensor<B, 4>, cos: Tensor<B, 2>, sin: Tensor<B, 2>) -> Tensor<B, 4> {
    let half = values.dims()[3] / 2;
    let (cos, sin) = (cos.unsqueeze::<4>(), sin.unsqueeze::<4>());
    let (first, second) = (values.clone().narrow(3, 0, half), values.narrow(3, half, half));
    let turned = first.clone() * cos.clone() - second.clone() * sin.clone();
    Tensor::cat(vec![turned, second * cos + first * sin], 3)
}

pub fn causal_softmax<B: Backend>(scores: Tensor<B, 4>, scale: f64) -> Tensor<B, 4> {
    let [_, _, queries, keys] = scores.dims();
    let future = future(queries, keys, &scores.device());
    activation::softmax((scores * scale).mask_fill(future, f32::NEG_INFINITY), 3)
}

/// Whether a key comes after a query. The last query belongs to the last key. `[1, 1, queries, keys]`
fn future<B: Backend>(queries: usize, keys: usize, device: &B::Device) -> Tensor<B, 4, Bool> {
    let first = (keys - queries + 1) as i64;
    Tensor::<B, 2, Int>::ones([queries, keys], device).triu(first).equal_elem(1).unsqueeze()
}

pub fn masked_softmax<B: Backend>(scores: Tensor<B, 4>, mask: Mask<B>, scale: f64) -> Tensor<B, 4> {
    let Mask { bias, lengths, causal, window } = mask;
    let shape @ [batch, _, queries, keys] = scores.dims();
    let device = scores.device();
    let mut scores = scores * scale;
    if let Some(bias) = bias {
        scores = scores + bias.unsqueeze();
    }
    if let Some(lengths) = lengths {
        let places = Tensor::<B, 1, Int>::arange(0..keys as i64, &device).reshape([1, keys]);
        let padding =
            places.expand([batch, keys]).greater_equal(lengths.reshape([batch, 1]).expand([batch, keys]));
        let padding = padding.reshape([batch, 1, 1, keys]).expand(shape);
        scores = scores.mask_fill(padding, f32::NEG_INFINITY);
    }
    if causal {
        scores = scores.mask_fill(future(queries, keys, &device), f32::NEG_INFINITY);
    }
    if let Some(window) = window {
        // A finite number: a query in the padding may see no key, and its row must be no NaN.
        scores = scores.mask_fill(distant(queries, keys, window, &device), -1e30);
    }
    activation::softmax(scores, 3)
}

/// Whether a key is `window` or more places from a query. The last query belongs to the last key. `[1, 1, queries, keys]`
fn distant<B: Backend>(queries: usize, keys: usize, window: usize, device: &B::Device) -> Tensor<B, 4, Bool> {
    let (ones, own) = (Tensor::<B, 2, Int>::ones([queries, keys], device), (keys - queries) as i64);
    let before = ones.clone().tril(own - window as i64);
    (before + ones.triu(own + window as i64)).equal_elem(1).unsqueeze()
}

pub fn softmax_backward<B: Backend>(
    probabilities: Tensor<B, 4>,
    grad: Tensor<B, 4>,
    scale: f64,
) -> Tensor<B, 4> {
    let along = (probabilities.clone() * grad.clone()).sum_dim(3);
    (grad - along) * probabilities * scale
}

/// Sums along diagonals. With the queries in reverse order, element (query, key) belongs to column
/// query + key of the result. Rows are padded to a width of queries + keys and then read with one
/// column less, which shifts each row by one more than the row before it.
pub fn diagonal_sums<B: Backend>(values: Tensor<B, 4>) -> Tensor<B, 3> {
    let [batch, heads, queries, keys] = values.dims();
    let padding = Tensor::zeros([batch, heads, queries, queries], (&values.device(), values.dtype()));
    let wide = Tensor::cat(vec![values.flip([2]), padding], 3);
    let columns = queries + keys - 1;
    let shifted = wide.reshape([batch, heads, queries * (columns + 1)]).narrow(2, 0, queries * columns);
    shifted.reshape([batch, heads, queries, columns]).sum_dim(2).reshape([batch, heads, columns])
}

pub fn merge_heads<B: Backend>(parts: Vec<Tensor<B, 4>>) -> Tensor<B, 3> {
    let count = parts.len();
    let [batch, heads, seq, d_head] = parts[0].dims();
    let rows = parts.into_iter().map(|part| part.swap_dims(1, 2)).collect();
    Tensor::cat(rows, 2).reshape([batch, seq, count * heads * d_head])
}

pub fn cached_attention<B: Backend>(
    queries: Tensor<B, 4>,
    CachedKeys { kept, used, bias, window, cap }: CachedKeys<'_, B>,
    scale: f64,
) -> Tensor<B, 3> {
    let ([rows, heads, _, d_head], device) = (queries.dims(), queries.device());
    let kv_heads = kept[0].dims()[1];
    let longest = used.iter().copied().max().unwrap_or(0);
    let [keys, values] = kept.map(|part| part.narrow(2, 0, longest));
    let lengths: Vec<i32> = used.iter().map(|&used| used as i32).collect();
    let lengths = Tensor::<B, 1, Int>::from_data(TensorData::new(lengths, [rows]), &device);
    let queries = queries.reshape([rows, kv_heads, heads / kv_heads, d_head]);
    let mut scores = queries.matmul(keys.transpose()).reshape([rows, heads, 1, longest]) * scale;
    if let Some(cap) = cap {
        scores = (scores / cap).tanh() * cap;
    }
    if let Some(bias) = bias {
        scores = scores + bias.narrow(2, 0, longest).swap_dims(0, 1).unsqueeze_dim(2);
    }
    if let Some(window) = window {
        let places = Tensor::<B, 1, Int>::arange(0..longest as i64, &device).reshape([1, longest]);
        let first = lengths.clone().sub_scalar(window as i32).reshape([rows, 1]);
        let before = places.expand([rows, longest]).lower(first.expand([rows, longest]));
        let before = before.reshape([rows, 1, 1, longest]).expand([rows, heads, 1, longest]);
        scores = scores.mask_fill(before, f32::NEG_INFINITY);
    }
    let mask = Mask { bias: None, lengths: Some(lengths), causal: false, window: None };
    let probabilities = masked_softmax(scores, mask, 1.0);
    let context = probabilities.reshape([rows, kv_heads, heads / kv_heads, longest]).matmul(values);
    context.reshape([rows, 1, heads * d_head])
}

pub fn write_position<B: Backend>(mut kept: Tensor<B, 4>, new: Tensor<B, 4>, at: &[usize]) -> Tensor<B, 4> {
    let [_, heads, _, d_head] = kept.dims();
    for (row, &at) in at.iter().enumerate() {
        kept =
            kept.slice_assign([row..row + 1, 0..heads, at..at + 1, 0..d_head], new.clone().narrow(0, row, 1));
    }
    kept
}
