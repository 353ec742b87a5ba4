//! Gates, rotary positions and histories of tokens, on slices.

use super::rows::{gate as sigmoid_gate, gate_slope, vectorized};

/// `up` becomes gelu(gate)·up.
pub fn gelu_gate(gate: &[f32], up: &mut [f32]) {
    vectorized(|| {
        for (&x, up) in gate.iter().zip(up) {
            *up *= x * sigmoid_gate(x);
        }
    });
}

/// `gate` and `up` become their gradients.
pub fn gelu_gate_backward(gate: &mut [f32], up: &mut [f32], grad: &[f32]) {
    vectorized(|| {
        for ((gate, up), grad) in gate.iter_mut().zip(up).zip(grad) {
            let x = *gate;
            let open = sigmoid_gate(x);
            *gate = grad * *up * gate_slope(x, open);
            *up = grad * x * open;
        }
    });
}

/// Turns rows of `2·pairs` by the angles of their position, in place.
pub fn rotate(values: &mut [f32], cos: &[f32], sin: &[f32], pairs: usize) {
    let seq = cos.len() / pairs;
    vectorized(|| {
        for (row, values) in values.chunks_exact_mut(2 * pairs).enumerate() {
            let angles = row % seq * pairs..(row % seq + 1) * pairs;
            let (first, second) = values.split_at_mut(pairs);
            let pairs = first.iter_mut().zip(second).zip(&cos[angles.clone()]).zip(&sin[angles]);
            for (((first, second), cos), sin) in pairs {
                let (a, b) = (*first, *second);
                *first = a * cos - b * sin;
                *second = b * cos + a * sin;
            }
        }
    });
}

/// Copies rows of `d` into the histories of their own and the following positions, onto zeros.
pub fn history(values: &[f32], output: &mut [f32], [seq, d, length]: [usize; 3]) {
    for (example, output) in values.chunks_exact(seq * d).zip(output.chunks_exact_mut(seq * length * d)) {
        for (position, history) in output.chunks_exact_mut(length * d).enumerate() {
            let known = length.min(position + 1);
            history[(length - known) * d..]
                .copy_from_slice(&example[(position + 1 - known) * d..(position + 1) * d]);
        }
    }
}

/// Adds the gradients of histories to those of the rows they were copied from, which are zeros.
pub fn history_backward(grad: &[f32], output: &mut [f32], [seq, d, length]: [usize; 3]) {
    vectorized(|| {
        for (grad, output) in grad.chunks_exact(seq * length * d).zip(output.chunks_exact_mut(seq * d)) {
            for (position, history) in grad.chunks_exact(length * d).enumerate() {
                let known = length.min(position + 1);
                let rows = &mut output[(position + 1 - known) * d..(position + 1) * d];
                for (sum, grad) in rows.iter_mut().zip(&history[(length - known) * d..]) {
                    *sum += grad;
                }
            }
        }
    });
}
