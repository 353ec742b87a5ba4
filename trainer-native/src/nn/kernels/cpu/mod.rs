//! The CPU backend's fused kernels: tensors are opened as slices, in place where nothing else holds them.

mod attention;
mod decoder;
mod gram;
mod math;
mod rms;
mod rows;
mod update;

use super::{AdamStep, Kernels, NoiseSource, portable};
use crate::tensor::{DType, Flex, FlexTensor, Int, Tensor, TensorPrimitive};

impl Kernels for Flex {
    fn workers() -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    /// Teaches glibc's allocator to keep large blocks: it hands blocks beyond a threshold back to the system, which
    /// then clears every page again for the next tensor (a fifth of a step's time), but raises the threshold to the
    /// largest block it has seen freed, up to 32 MiB (mallopt(3)). Other allocators lose nothing by it.
    fn warm_up() {
        const LARGEST: usize = (32 << 20) - (64 << 10);
        drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGEST)));
    }

    fn affine(input: Tensor<Self, 2>, weight: Tensor<Self, 2>, bias: Tensor<Self, 1>) -> Tensor<Self, 2> {
        if input.dtype() != DType::F32 {
            return portable::affine(input, weight, bias);
        }
        let mut output = open(input.matmul(weight));
        rows::add_row(output.storage_mut(), open(bias).storage());
        close(output)
    }

    fn normalize(
        input: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
        bias: Tensor<Self, 1>,
        epsilon: f64,
    ) -> [Tensor<Self, 3>; 3] {
        if input.dtype() != DType::F32 {
            return portable::normalize(input, gain, bias, epsilon);
        }
        let shape @ [batch, seq, _] = input.dims();
        let (mut normalized, gain, bias) = (open(input), open(gain), open(bias));
        let (mut output, mut reciprocal) = (empty(shape), empty([batch, seq, 1]));
        let out = output.storage_mut();
        rows::normalize(
            normalized.storage_mut(),
            out,
            reciprocal.storage_mut(),
            gain.storage(),
            bias.storage(),
            epsilon as f32,
        );
        [close(output), close(normalized), close(reciprocal)]
    }

    fn normalize_backward(
        grad: Tensor<Self, 3>,
        normalized: Tensor<Self, 3>,
        reciprocal: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
    ) -> (Tensor<Self, 3>, [Tensor<Self, 2>; 2]) {
        if grad.dtype() != DType::F32 {
            return portable::normalize_backward(grad, normalized, reciprocal, gain);
        }
        let shape @ [batch, seq, d] = grad.dims();
        let (grad, normalized, reciprocal, gain) =
            (open(grad), open(normalized), open(reciprocal), open(gain));
        let mut input_grad = empty(shape);
        let (mut gain_grads, mut bias_grads) = (empty([batch, d]), empty([batch, d]));
        let from = rows::NormGrads {
            grad: grad.storage(),
            normalized: normalized.storage(),
            reciprocal: reciprocal.storage(),
            gain: gain.storage(),
            seq,
        };
        rows::normalize_backward(
            &from,
            input_grad.storage_mut(),
            gain_grads.storage_mut(),
            bias_grads.storage_mut(),
        );
        (close(input_grad), [close(gain_grads), close(bias_grads)])
    }

    fn rms_normalize(input: Tensor<Self, 3>, gain: Tensor<Self, 1>, epsilon: f64) -> [Tensor<Self, 3>; 3] {
        if input.dtype() != DType::F32 {
            return portable::rms_normalize(input, gain, epsilon);
        }
        let shape @ [batch, seq, _] = input.dims();
        let (mut normalized, gain) = (open(input), open(gain));
        let (mut output, mut reciprocal) = (empty(shape), empty([batch, seq, 1]));
        rms::normalize(
            normalized.storage_mut(),
            output.storage_mut(),
            reciprocal.storage_mut(),
            gain.storage(),
            epsilon as f32,
        );
        [close(output), close(normalized), close(reciprocal)]
    }

    fn rms_normalize_backward(
        grad: Tensor<Self, 3>,
        normalized: Tensor<Self, 3>,
        reciprocal: Tensor<Self, 3>,
        gain: Tensor<Self, 1>,
    ) -> (Tensor<Self, 3>, Tensor<Self, 2>) {
        if grad.dtype() != DType::F32 {
            return portable::rms_normalize_backward(grad, normalized, reciprocal, gain);
        }
        let [batch, seq, d] = grad.dims();
        let (mut grad, normalized, reciprocal, gain) =
            (open(grad), open(normalized), open(reciprocal), open(gain));
        let mut gain_grads = empty([batch, d]);
        let from = rms::Saved {
            normalized: normalized.storage(),
            reciprocal: reciprocal.storage(),
            gain: gain.storage(),
            seq,
        };
        rms::normalize_backward(&from, grad.storage_mut(), gain_grads.storage_mut());
        (close(grad), close(gain_grads))
    }

    fn gelu_new(input: Tensor<Self, 3>) -> Tensor<Self, 3> {
        if input.dtype() != DType::F32 {
            return portable::gelu_new(input);
        }
        let mut output = empty(input.dims());
        rows::gelu(open(input).storage(), output.storage_mut());
        close(output)
    }

    fn gelu_new_backward(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 3> {
        if input.dtype() != DType::F32 {
            return portable::gelu_new_backward(input, grad);
        }
        let mut grad = open(grad);
        rows::gelu_backward(open(input).storage(), grad.storage_mut());
        close(grad)
    }

    fn gelu_gate(gate: Tensor<Self, 3>, up: Tensor<Self, 3>) -> Tensor<Self, 3> {
        if gate.dtype() != DType::F32 {
            return portable::gelu_gate(gate, up);
        }
        let mut up = open(up);
        decoder::gelu_gate(open(gate).storage(), up.storage_mut());
        close(up)
    }

    fn gelu_gate_backward(
        gate: Tensor<Self, 3>,
        up: Tensor<Self, 3>,
        grad: Tensor<Self, 3>,
    ) -> [Tensor<Self, 3>; 2] {
        if grad.dtype() != DType::F32 {
            return portable::gelu_gate_backward(gate, up, grad);
        }
        let (mut gate, mut up) = (open(gate), open(up));
        decoder::gelu_gate_backward(gate.storage_mut(), up.storage_mut(), open(grad).storage());
        [close(gate), close(up)]
    }

    fn rotate(values: Tensor<Self, 4>, cos: Tensor<Self, 2>, sin: Tensor<Self, 2>) -> Tensor<Self, 4> {
        if values.dtype() != DType::F32 {
            return portable::rotate(values, cos, sin);
        }
        let pairs = cos.dims()[1];
        let mut values = open(values);
        decoder::rotate(values.storage_mut(), open(cos).storage(), open(sin).storage(), pairs);
        close(values)
    }

    fn history(values: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3> {
        if values.dtype() != DType::F32 {
            return portable::history(values, length);
        }
        let [batch, seq, d] = values.dims();
        let mut output = empty([batch, seq, length * d]);
        decoder::history(open(values).storage(), output.storage_mut(), [seq, d, length]);
        close(output)
    }

    fn history_backward(grad: Tensor<Self, 3>, length: usize) -> Tensor<Self, 3> {
        if grad.dtype() != DType::F32 {
            return portable::history_backward(grad, length);
        }
        let [batch, seq, width] = grad.dims();
        let d = width / length;
        let mut output = empty([batch, seq, d]);
        decoder::history_backward(open(grad).storage(), output.storage_mut(), [seq, d, length]);
        close(output)
    }

    fn causal_softmax(scores: Tensor<Self, 4>, scale: f64) -> Tensor<Self, 4> {
        if scores.dtype() != DType::F32 {
            return portable::causal_softmax(scores, scale);
        }
        let seq = scores.dims()[3];
        let mut scores = open(scores);
        rows::causal_softmax(scores.storage_mut(), seq, scale as f32);
        close(scores)
    }

    fn gelu_erf(input: Tensor<Self, 3>) -> Tensor<Self, 3> {
        if input.dtype() != DType::F32 {
            return portable::gelu_erf(input);
        }
        let mut output = empty(input.dims());
        attention::gelu(open(input).storage(), output.storage_mut());
        close(output)
    }

    fn gelu_erf_backward(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 3> {
        if input.dtype() != DType::F32 {
            return portable::gelu_erf_backward(input, grad);
        }
        let mut grad = open(grad);
        attention::gelu_backward(open(input).storage(), grad.storage_mut());
        close(grad)
    }

    fn masked_softmax(
        scores: Tensor<Self, 4>,
        bias: Option<Tensor<Self, 3>>,
        lengths: Option<Tensor<Self, 1, Int>>,
        causal: bool,
        scale: f64,
    ) -> Tensor<Self, 4> {
        if scores.dtype() != DType::F32 {
            return portable::masked_softmax(scores, bias, lengths, causal, scale);
        }
        let [_, heads, queries, keys] = scores.dims();
        let (mut scores, bias, lengths) = (open(scores), bias.map(open), lengths.map(open_int));
        let sight = attention::AttentionMask {
            bias: bias.as_ref().map(FlexTensor::storage),
            lengths: lengths.as_ref().map(FlexTensor::storage),
            causal,
            scale: scale as f32,
            heads,
            queries,
            keys,
        };
        attention::masked_softmax(scores.storage_mut(), &sight);
        close(scores)
    }

    fn diagonal_sums(values: Tensor<Self, 4>) -> Tensor<Self, 3> {
        if values.dtype() != DType::F32 {
            return portable::diagonal_sums(values);
        }
        let [batch, heads, queries, keys] = values.dims();
        let mut sums = empty([batch, heads, queries + keys - 1]);
        attention::diagonal_sums(open(values).storage(), queries, keys, sums.storage_mut());
        close(sums)
    }

    fn softmax_backward(
        probabilities: Tensor<Self, 4>,
        grad: Tensor<Self, 4>,
        scale: f64,
    ) -> Tensor<Self, 4> {
        if grad.dtype() != DType::F32 {
            return portable::softmax_backward(probabilities, grad, scale);
        }
        let seq = grad.dims()[3];
        let mut grad = open(grad);
        rows::softmax_backward(open(probabilities).storage(), grad.storage_mut(), seq, scale as f32);
        close(grad)
    }

    fn merge_heads(parts: Vec<Tensor<Self, 4>>) -> Tensor<Self, 3> {
        if parts[0].dtype() != DType::F32 {
            return portable::merge_heads(parts);
        }
        let [batch, heads, seq, d_head] = parts[0].dims();
        let width = parts.len() * heads * d_head;
        let mut output = empty([batch, seq, width]);
        for (at, part) in parts.into_iter().enumerate() {
            let (part, first) = (open(part), at * heads * d_head);
            rows::merge_heads(part.storage(), [heads, seq, d_head], output.storage_mut(), width, first);
        }
        close(output)
    }

    fn token_nll(logits: Tensor<Self, 2>, targets: Tensor<Self, 1, Int>) -> Tensor<Self, 1> {
        if logits.dtype() != DType::F32 {
            return portable::token_nll(logits, targets);
        }
        let mut nll = empty(targets.dims());
        rows::token_nll(open(logits).storage_mut(), open_int(targets).storage(), nll.storage_mut());
        close(nll)
    }

    fn cross_entropy_backward(
        logits: Tensor<Self, 2>,
        targets: Tensor<Self, 1, Int>,
        weights: Tensor<Self, 1>,
    ) -> Tensor<Self, 2> {
        if logits.dtype() != DType::F32 {
            return portable::cross_entropy_backward(logits, targets, weights);
        }
        let mut logits = open(logits);
        rows::cross_entropy_backward(
            logits.storage_mut(),
            open_int(targets).storage(),
            open(weights).storage(),
        );
        close(logits)
    }

    fn sum_positions(values: Tensor<Self, 3>) -> Tensor<Self, 2> {
        if values.dtype() != DType::F32 {
            return portable::sum_positions(values);
        }
        let [batch, seq, d] = values.dims();
        let mut sums = empty([batch, d]);
        rows::sum_positions(open(values).storage(), seq, d, sums.storage_mut());
        close(sums)
    }

    fn scale_examples(values: Tensor<Self, 3>, factors: Tensor<Self, 1>) -> Tensor<Self, 3> {
        if values.dtype() != DType::F32 {
            return portable::scale_examples(values, factors);
        }
        let mut values = open(values);
        rows::scale_examples(values.storage_mut(), open(factors).storage());
        close(values)
    }

    fn weighted_sum(values: Tensor<Self, 2>, weights: Tensor<Self, 1>) -> Tensor<Self, 1> {
        if values.dtype() != DType::F32 {
            return portable::weighted_sum(values, weights);
        }
        let mut sum = empty([values.dims()[1]]);
        rows::weighted_sum(open(values).storage(), open(weights).storage(), sum.storage_mut());
        close(sum)
    }

    fn add_and_divide(values: Tensor<Self, 1>, noise: &dyn NoiseSource, divisor: f64) -> Tensor<Self, 1> {
        if values.dtype() != DType::F32 {
            return portable::add_and_divide(values, noise, divisor);
        }
        let mut values = open(values);
        update::add_and_divide(values.storage_mut(), noise, divisor as f32);
        close(values)
    }

    fn adam([value, grad, first, second]: [Tensor<Self, 1>; 4], step: &AdamStep) -> [Tensor<Self, 1>; 3] {
        if value.dtype() != DType::F32 {
            return portable::adam([value, grad, first, second], step);
        }
        let [mut value, grad, mut first, mut second] = [value, grad, first, second].map(open);
        let moving = [value.storage_mut(), first.storage_mut(), second.storage_mut()];
        update::adam(moving, grad.storage(), step);
        [value, first, second].map(close)
    }

    fn dots(a: Tensor<Self, 2>, b: Tensor<Self, 2>) -> Tensor<Self, 1> {
        if a.dtype() != DType::F32 {
            return portable::dots(a, b);
        }
        let mut dots = empty([a.dims()[0]]);
        rows::dots(open(a).storage(), open(b).storage(), dots.storage_mut());
        close(dots)
    }

    fn product_squares(input: Tensor<Self, 3>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> {
        let [batch, seq, d_in] = input.dims();
        let d_out = grad.dims()[2];
        // Here the Gram form costs half: one triangle.
        if input.dtype() != DType::F32 || seq * (d_in + d_out) / 2 >= d_in * d_out {
            return portable::product_squares(input, grad);
        }
        let mut squares = empty([batch]);
        gram::gram_dots(open(input).storage(), open(grad).storage(), seq, squares.storage_mut());
        close(squares)
    }

    fn lookup_squares(tokens: Tensor<Self, 2, Int>, grad: Tensor<Self, 3>) -> Tensor<Self, 1> {
        if grad.dtype() != DType::F32 {
            return portable::lookup_squares(tokens, grad);
        }
        let [batch, seq] = tokens.dims();
        let mut squares = empty([batch]);
        gram::lookup_squares(open_int(tokens).storage(), open(grad).storage(), seq, squares.storage_mut());
        close(squares)
    }

    fn lookup_head_dots(
        tokens: Tensor<Self, 2, Int>,
        grad: Tensor<Self, 3>,
        hidden: Tensor<Self, 3>,
        logits_grad: Tensor<Self, 3>,
    ) -> Tensor<Self, 1> {
        if grad.dtype() != DType::F32 {
            return portable::lookup_head_dots(tokens, grad, hidden, logits_grad);
        }
        let (batch, targets) = (tokens.dims()[0], hidden.dims()[1]);
        let products = open(hidden.matmul(grad.transpose()));
        let (tokens, logits_grad, mut dots) = (open_int(tokens), open(logits_grad), empty([batch]));
        let (logits_grad, products) = (logits_grad.storage(), products.storage());
        gram::at_tokens(tokens.storage(), logits_grad, products, targets, dots.storage_mut());
        close(dots)
    }
}

/// A tensor whose storage is exactly its elements in row-major order.
fn open<const D: usize>(tensor: Tensor<Flex, D>) -> FlexTensor {
    let tensor = tensor.into_primitive().tensor();
    tensor.to_contiguous()
}

fn open_int<const D: usize>(tensor: Tensor<Flex, D, Int>) -> FlexTensor {
    tensor.into_primitive().to_contiguous()
}

fn close<const D: usize>(tensor: FlexTensor) -> Tensor<Flex, D> {
    Tensor::from_primitive(TensorPrimitive::Float(tensor))
}

fn empty<const D: usize>(shape: [usize; D]) -> FlexTensor {
    FlexTensor::empty(shape.into(), DType::F32)
}

#[cfg(test)]
mod tests;
