//! Tests of the kernels that only generation uses.

use super::*;

#[test]
fn wide_products_on_any_number_of_threads() {
    let mut source = Source::new();
    let (rows, rows64) = source.pair([3, 600]);
    let (weight, weight64) = source.pair([601, 600]);
    for threads in [1, 2, 3, 1000] {
        let product = linear::wide_product(rows.clone(), weight.clone().transpose(), threads);
        agree(product, rows64.clone().matmul(weight64.clone().transpose()));
    }
}

/// Rows use different numbers of keys. Keys beyond these are never read.
#[test]
fn attention_to_kept_keys_and_values() {
    let mut source = Source::new();
    let used = [SEQ, 1, 3];
    for (kv_heads, with_bias, window, cap) in [
        (4, false, None, None),
        (2, true, None, None),
        (4, true, Some(2), None),
        (1, false, Some(3), Some(0.7)),
    ] {
        let (queries, queries64) = source.pair([3, 4, 1, D]);
        let (keys, keys64) = source.pair([3, kv_heads, SEQ + 2, D]);
        let (values, values64) = source.pair([3, kv_heads, SEQ + 2, D]);
        let (bias, bias64) = source.pair([4, 3, SEQ]);
        let (bias, bias64) = (with_bias.then_some(bias), with_bias.then_some(bias64));
        let fused = Flex::cached_attention(
            queries,
            CachedKeys { kept: [keys, values], used: &used, bias, window, cap },
            0.2,
        );
        let cached = CachedKeys { kept: [keys64, values64], used: &used, bias: bias64, window, cap };
        agree(fused, portable::cached_attention(queries64, cached, 0.2));
    }
}

#[test]
fn each_rows_new_position_is_written_to_its_place() {
    let mut source = Source::new();
    let (kept, kept64) = source.pair([3, 2, SEQ, D]);
    let (new, new64) = source.pair([3, 2, 1, D]);
    let shared = kept.clone();
    agree(
        Flex::write_position(kept, new, &[4, 0, 2]),
        portable::write_position(kept64.clone(), new64, &[4, 0, 2]),
    );
    assert_eq!(to_host_f64(shared), to_host_f64(kept64), "what another holds must not change");
}
