//! The meaning of each kernel in plain tensor operations: what runs on devices without a fused form, and the oracle of those with one.

use super::{AdamStep, Kernels, NoiseSource};
use crate::tensor::{Backend, DType, IndexingUpdateOp, Int, Tensor, activation, from_host};

pub const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
pub const GELU_CUBIC: f64 = 0.044_715;
/// 1/√(2π)
pub const NORMAL_DENSITY_AT_0: f64 = 0.398_942_280_401_432_7;

pub fn affine<B: Backend>(input: Tensor<B, 2>, weight: Tensor<B, 2>, bias: Tensor<B, 1>) -> Tensor<B, 2> {
    input.matmul(weight) + bias.unsqueeze()
}

pub fn product_bf16<B: Backend, const D: usize>(a: Tensor<B, D>, b: Tensor<B, D>) -> Tensor<B, D> {
    let dtype = a.dtype();
    let [a, b] = [a, b].map(|operand| operand.cast(DType::BF16).cast(dtype));
    a.matmul(b)
}

pub fn normalize<B: Backend>(
    input: Tensor<B, 3>,
    gain: Tensor<B, 1>,
    bias: Tensor<B, 1>,
    epsilon: f64,
) -> [Tensor<B, 3>; 3] {
    let centered = input.clone() - input.mean_dim(2);
    let variance = centered.clone().square().mean_dim(2);
    let reciprocal = (variance + epsilon).sqrt().recip();
    let normalized = centered * reciprocal.clone();
    let output = normalized.clone() * gain.unsqueeze() + bias.unsqueeze();
    [output, normalized, reciprocal]
}

pub fn normalize_backward<B: Backend>(
    grad: Tensor<B, 3>,
    normalized: Tensor<B, 3>,
    reciprocal: Tensor<B, 3>,
    gain: Tensor<B, 1>,
) -> (Tensor<B, 3>, [Tensor<B, 2>; 2]) {
    let params = [sum_positions(normalized.clone() * grad.clone()), sum_positions(grad.clone())];
    let inner = grad * gain.unsqueeze();
    let mean = inner.clone().mean_dim(2);
    let along = (inner.clone() * normalized.clone()).mean_dim(2);
    ((inner - mean - normalized * along) * reciprocal, params)
}

pub fn rms_normalize<B: Backend>(input: Tensor<B, 3>, gain: Tensor<B, 1>, epsilon: f64) -> [Tensor<B, 3>; 3] {
    let reciprocal = (input.clone().square().mean_dim(2) + epsilon).sqrt().recip();
    let normalized = input * reciprocal.clone();
    let output = normalized.clone() * gain.unsqueeze();
    [output, normalized, reciprocal]
}

pub fn rms_normalize_backward<B: Backend>(
    grad: Tensor<B, 3>,
    normalized: Tensor<B, 3>,
    reciprocal: Tensor<B, 3>,
    gain: Tensor<B, 1>,
) -> (Tensor<B, 3>, Tensor<B, 2>) {
    let gain_grads = sum_positions(normalized.clone() * grad.clone());
    let inner = grad * gain.unsqueeze();
    let along = (inner.clone() * normalized.clone()).mean_dim(2);
    ((inner - normalized * along) * reciprocal, gain_grads)
}

pub fn gelu_new<B: Backend>(input: Tensor<B, 3>) -> Tensor<B, 3> {
    let inner = (input.clone() + input.clone().powi_scalar(3) * GELU_CUBIC) * SQRT_2_OVER_PI;
    input * (inner.tanh() + 1.0) * 0.5
}

pub fn gelu_new_backward<B: Backend>(input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
    let square = input.clone().square();
    let inner = input.clone() * (square.clone() * GELU_CUBIC + 1.0) * SQRT_2_OVER_PI;
    let tanh = inner.tanh();
    let slope = (square * (3.0 * GELU_CUBIC) + 1.0) * SQRT_2_OVER_PI;
    let derivative = (tanh.clone() + 1.0) * 0.5 + input * 0.5 * (tanh.square() * (-1.0) + 1.0) * slope;
    grad * derivative
}

pub fn gelu_gate<B: Backend>(gate: Tensor<B, 3>, up: Tensor<B, 3>) -> Tensor<B, 3> {
    gelu_new(gate) * up
}

pub fn gelu_gate_backward<B: Backend>(
    gate: Tensor<B, 3>,
    up: Tensor<B, 3>,
    grad: Tensor<B, 3>,
) -> [Tensor<B, 3>; 2] {
    let up_grad = grad.clone() * gelu_new(gate.clone());
    [gelu_new_backward(gate, grad * up), up_grad]
}

pub fn rotate<B: Backend>(values: Tensor<B, 4>, cos: Tensor<B, 2>, sin: Tensor<B, 2>) -> Tensor<B, 4> {
    let half = values.dims()[3] / 2;
    let (cos, sin) = (cos.unsqueeze::<4>(), sin.unsqueeze::<4>());
    let (first, second) = (values.clone().narrow(3, 0, half), values.narrow(3, half, half));
    let turned = first.clone() * cos.clone() - second.clone() * sin.clone();
    Tensor::cat(vec![turned, second * cos + first * sin], 3)
}

pub fn history<B: Backend>(values: Tensor<B, 3>, length: usize) -> Tensor<B, 3> {
    let [batch, seq, d] = values.dims();
    let zeros = Tensor::zeros([batch, length - 1, d], (&values.device(), values.dtype()));
    let padded = Tensor::cat(vec![zeros, values], 1);
    Tensor::cat((0..length).map(|age| padded.clone().narrow(1, age, seq)).collect(), 2)
}

pub fn history_backward<B: Backend>(grad: Tensor<B, 3>, length: usize) -> Tensor<B, 3> {
    let [batch, seq, width] = grad.dims();
    let d = width / length;
    let padding = Tensor::zeros([batch, length - 1, width], (&grad.device(), grad.dtype()));
    let padded = Tensor::cat(vec![grad, padding], 1);
    let used = |place: usize| padded.clone().narrow(2, place * d, d).narrow(1, length - 1 - place, seq);
    (1..length).fold(used(0), |sum, place| sum + used(place))
}

pub fn causal_softmax<B: Backend>(scores: Tensor<B, 4>, scale: f64) -> Tensor<B, 4> {
    let [_, _, queries, keys] = scores.dims();
    let device = scores.device();
    let future = Tensor::<B, 2, Int>::ones([queries, keys], &device).triu(1).equal_elem(1);
    let masked = (scores * scale).mask_fill(future.unsqueeze(), f32::NEG_INFINITY);
    activation::softmax(masked, 3)
}

pub fn gelu_erf<B: Backend>(input: Tensor<B, 3>) -> Tensor<B, 3> {
    input.clone() * normal_distribution(input)
}

pub fn gelu_erf_backward<B: Backend>(input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 3> {
    let density = (input.clone().square() * (-0.5)).exp() * NORMAL_DENSITY_AT_0;
    grad * (normal_distribution(input.clone()) + input * density)
}

/// Φ(x)
fn normal_distribution<B: Backend>(input: Tensor<B, 3>) -> Tensor<B, 3> {
    ((input * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5
}

pub fn masked_softmax<B: Backend>(
    scores: Tensor<B, 4>,
    bias: Option<Tensor<B, 3>>,
    lengths: Option<Tensor<B, 1, Int>>,
    causal: bool,
    scale: f64,
) -> Tensor<B, 4> {
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
        let future = Tensor::<B, 2, Int>::ones([queries, keys], &device).triu(1).equal_elem(1);
        scores = scores.mask_fill(future.unsqueeze(), f32::NEG_INFINITY);
    }
    activation::softmax(scores, 3)
}

/// With the queries in reverse order, element (query, key) belongs to column query + key. Rows padded to a width of
/// queries + keys and read again with one column less are shifted by one each, which brings it there.
pub fn diagonal_sums<B: Backend>(values: Tensor<B, 4>) -> Tensor<B, 3> {
    let [batch, heads, queries, keys] = values.dims();
    let padding = Tensor::zeros([batch, heads, queries, queries], (&values.device(), values.dtype()));
    let wide = Tensor::cat(vec![values.flip([2]), padding], 3);
    let columns = queries + keys - 1;
    let shifted = wide.reshape([batch, heads, queries * (columns + 1)]).narrow(2, 0, queries * columns);
    shifted.reshape([batch, heads, queries, columns]).sum_dim(2).reshape([batch, heads, columns])
}

pub fn softmax_backward<B: Backend>(
    probabilities: Tensor<B, 4>,
    grad: Tensor<B, 4>,
    scale: f64,
) -> Tensor<B, 4> {
    let along = (probabilities.clone() * grad.clone()).sum_dim(3);
    (grad - along) * probabilities * scale
}

pub fn merge_heads<B: Backend>(parts: Vec<Tensor<B, 4>>) -> Tensor<B, 3> {
    let count = parts.len();
    let [batch, heads, seq, d_head] = parts[0].dims();
    let rows = parts.into_iter().map(|part| part.swap_dims(1, 2)).collect();
    Tensor::cat(rows, 2).reshape([batch, seq, count * heads * d_head])
}

pub fn token_nll<B: Backend>(logits: Tensor<B, 2>, targets: Tensor<B, 1, Int>) -> Tensor<B, 1> {
    let rows = logits.dims()[0];
    activation::log_softmax(logits, 1).gather(1, targets.unsqueeze_dim(1)).reshape([rows]).neg()
}

pub fn cross_entropy_backward<B: Backend>(
    logits: Tensor<B, 2>,
    targets: Tensor<B, 1, Int>,
    weights: Tensor<B, 1>,
) -> Tensor<B, 2> {
    let weights: Tensor<B, 2> = weights.unsqueeze_dim(1);
    let grad = activation::softmax(logits, 1) * weights.clone();
    grad.scatter(1, targets.unsqueeze_dim(1), weights.neg(), IndexingUpdateOp::Add)
}

pub fn sum_positions<B: Backend>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, _, d] = values.dims();
    values.sum_dim(1).reshape([batch, d])
}

pub fn scale_examples<B: Backend>(values: Tensor<B, 3>, factors: Tensor<B, 1>) -> Tensor<B, 3> {
    let batch = factors.dims()[0];
    values * factors.reshape([batch, 1, 1])
}

pub fn weighted_sum<B: Kernels>(values: Tensor<B, 2>, weights: Tensor<B, 1>) -> Tensor<B, 1> {
    let n = values.dims()[1];
    B::product(weights.unsqueeze::<2>(), values).reshape([n])
}

pub fn add_and_divide<B: Backend>(
    values: Tensor<B, 1>,
    noise: &dyn NoiseSource,
    divisor: f64,
) -> Tensor<B, 1> {
    let (device, dtype, length) = (values.device(), values.dtype().into(), values.dims()[0]);
    let mut drawn = vec![f32::NAN; length];
    in_pieces(&mut drawn, |first, piece| noise.fill(first, piece));
    (values + from_host(drawn, [length], dtype, &device)) / divisor
}

/// Elements that are worth a thread of their own.
const SHARE: usize = 1 << 16;

/// Elements of a piece for each core; even.
pub fn share(length: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    length.div_ceil(cores).max(SHARE).next_multiple_of(2)
}

/// Hands pieces with their first element to `work`, one a core.
pub fn in_pieces(values: &mut [f32], work: impl Fn(usize, &mut [f32]) + Sync) {
    let (share, work) = (share(values.len()), &work);
    std::thread::scope(|scope| {
        let mut pieces = values.chunks_mut(share).enumerate();
        let own = pieces.next();
        pieces.for_each(|(at, piece)| drop(scope.spawn(move || work(at * share, piece))));
        own.into_iter().for_each(|(_, piece)| work(0, piece));
    });
}

pub fn adam<B: Backend>(
    [value, grad, first, second]: [Tensor<B, 1>; 4],
    step: &AdamStep,
) -> [Tensor<B, 1>; 3] {
    let [beta1, beta2] = step.betas;
    let first = first * beta1 + grad.clone() * (1.0 - beta1);
    let second = second * beta2 + grad.square() * (1.0 - beta2);
    let size = second.clone() / step.second_bias;
    let scale = match step.noise {
        Some([noise, floor]) => (size - noise).clamp_min(floor).sqrt(),
        None => size.sqrt() + step.epsilon,
    };
    [value * step.kept - first.clone() / scale * step.rate, first, second]
}

pub fn dots<B: Backend>(a: Tensor<B, 2>, b: Tensor<B, 2>) -> Tensor<B, 1> {
    let batch = a.dims()[0];
    (a * b).sum_dim(1).reshape([batch])
}

/// Share of the sum of absolute terms that is added to a squared norm.
///
/// Where the terms of an example nearly cancel, rounding is no longer small beside their sum; it stays small beside
/// this. Rounding of d products in 16 partial sums is about 6e-8·√(d/16) of their absolute sum.
pub const ROUNDING: f64 = 4e-6;

pub fn product_squares<B: Kernels>(input: Tensor<B, 3>, grad: Tensor<B, 3>) -> Tensor<B, 1> {
    let [_, seq, d_in] = input.dims();
    let d_out = grad.dims()[2];
    if seq * (d_in + d_out) < d_in * d_out {
        upper_dots(gram(input.clone(), input), gram(grad.clone(), grad))
    } else {
        let product = flat(B::product(input.transpose(), grad));
        dots(product.clone(), product)
    }
}

pub fn lookup_squares<B: Kernels>(tokens: Tensor<B, 2, Int>, grad: Tensor<B, 3>) -> Tensor<B, 1> {
    let [batch, seq] = tokens.dims();
    let same = tokens.clone().reshape([batch, seq, 1]).equal(tokens.reshape([batch, 1, seq]));
    let same = same.float().cast(grad.dtype());
    upper_dots(gram(grad.clone(), grad), flat(same))
}

pub fn lookup_head_dots<B: Kernels>(
    tokens: Tensor<B, 2, Int>,
    grad: Tensor<B, 3>,
    hidden: Tensor<B, 3>,
    logits_grad: Tensor<B, 3>,
) -> Tensor<B, 1> {
    let [batch, looked_up] = tokens.dims();
    let targets = hidden.dims()[1];
    let columns = tokens.reshape([batch, 1, looked_up]).expand([batch, targets, looked_up]);
    upper_dots(gram(hidden, grad), flat(logits_grad.gather(2, columns)))
}

fn upper_dots<B: Backend>(a: Tensor<B, 2>, b: Tensor<B, 2>) -> Tensor<B, 1> {
    let batch = a.dims()[0];
    let terms = a * b;
    (terms.clone().sum_dim(1) + terms.abs().sum_dim(1) * ROUNDING).reshape([batch])
}

/// Inner products of positions, flat: `[batch, seq, d]` twice → `[batch, seq·seq]`
fn gram<B: Kernels>(a: Tensor<B, 3>, b: Tensor<B, 3>) -> Tensor<B, 2> {
    flat(B::product(a, b.transpose()))
}

fn flat<B: Backend>(values: Tensor<B, 3>) -> Tensor<B, 2> {
    let [batch, rows, columns] = values.dims();
    values.reshape([batch, rows * columns])
}
