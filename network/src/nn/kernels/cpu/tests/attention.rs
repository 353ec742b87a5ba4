//! Tests of attention in blocks.

use super::super::threads::on_threads;
use super::*;
use crate::tensor::to_host;

/// The same attention with the probabilities held, and its gradients.
fn held(attended: Attended<Flex>, grad: Tensor<Flex, 4>) -> [Tensor<Flex, 4>; 4] {
    let Attended { queries, keys, values, group, lengths, causal, window, scale } = attended;
    let shape @ [batch, kv_heads, rows, _] = queries.dims();
    let scores = queries.clone().matmul(keys.clone().transpose());
    let by_head = [batch, kv_heads * group, rows / group, keys.dims()[2]];
    let mask = Mask { bias: None, lengths, causal, window };
    let probabilities = portable::masked_softmax(scores.clone().reshape(by_head), mask, scale);
    let probabilities = probabilities.reshape(scores.dims());
    let output = probabilities.clone().matmul(values.clone());
    assert_eq!(output.dims(), shape);
    let to_values = probabilities.clone().transpose().matmul(grad.clone());
    let scores = portable::softmax_backward(probabilities, grad.matmul(values.transpose()), scale);
    [output, scores.clone().matmul(keys), scores.transpose().matmul(queries), to_values]
}

/// Oracle: the same attention as products and a softmax, in double precision. Queries fill more than one block, and the last one in part.
#[test]
fn attention_in_blocks_is_that_of_whole_matrices() {
    let mut source = Source::new();
    let lengths: Tensor<Flex, 1, Int> = Tensor::from_data(TensorData::from([1_i32, 97]), &FlexDevice);
    for (queries, keys, group, with_lengths, causal, window) in [
        (150, 150, 1, false, true, None),
        (150, 150, 3, false, true, None),
        (64, 64, 1, false, true, None),
        (5, 150, 2, false, true, None),
        (150, 97, 1, true, false, None),
        (150, 97, 2, false, false, None),
        (150, 150, 2, false, true, Some(2)),
        (150, 150, 1, false, true, Some(70)),
        (150, 150, 1, false, false, Some(40)),
    ] {
        let shapes =
            [[2, 2, group * queries, D], [2, 2, keys, D], [2, 2, keys, D], [2, 2, group * queries, D]];
        // Views of other tensors, as projections are.
        let [of_queries, of_keys, of_values, grad] = shapes.map(|[batch, heads, rows, d]| {
            let (single, double) = source.pair([batch, rows, heads, d]);
            [single.swap_dims(1, 2), double.swap_dims(1, 2)]
        });
        let of = |at: usize| Attended {
            queries: of_queries[at].clone(),
            keys: of_keys[at].clone(),
            values: of_values[at].clone(),
            group,
            lengths: with_lengths.then(|| lengths.clone()),
            causal,
            window,
            scale: 0.3,
        };
        let attended = of(0);
        let blocked = Flex::blocked_attention(&attended).unwrap();
        let [to_queries, to_keys, to_values] = (blocked.backward)(&attended, grad[0].clone());
        let found = [(blocked.forward)(&attended), to_queries, to_keys, to_values];
        for (found, want) in found.into_iter().zip(held(of(1), grad[1].clone())) {
            agree(found, want);
        }
    }
    assert!(Flex::blocked_attention(&of_64(&mut source)).is_none());
}

fn of_64(source: &mut Source) -> Attended<Flex> {
    let [queries, keys, values] = [(); 3].map(|()| source.pair([1, 1, 4, D]).1);
    Attended { queries, keys, values, group: 1, lengths: None, causal: true, window: None, scale: 1.0 }
}

#[test]
fn threads_change_no_bit_of_attention() {
    let mut source = Source::new();
    let [queries, keys, values, grad] = [(); 4].map(|()| source.pair([1, 5, 600, D]).0);
    let attended =
        Attended { queries, keys, values, group: 1, lengths: None, causal: true, window: None, scale: 0.3 };
    let on = |threads: usize| {
        on_threads(threads, || {
            let blocked = Flex::blocked_attention(&attended).unwrap();
            let [to_queries, to_keys, to_values] = (blocked.backward)(&attended, grad.clone());
            [(blocked.forward)(&attended), to_queries, to_keys, to_values].map(to_host)
        })
    };
    let one = on(1);
    assert!([2, 3, 8].into_iter().all(|threads| on(threads) == one));
}
