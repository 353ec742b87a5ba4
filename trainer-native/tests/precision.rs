//! Products in bfloat16 give nearly the same weights with the same guarantee.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Bench, ledger, tiny, values};
use serde_json::json;
use training::verify::verify_run;

#[test]
fn products_of_16_bits_give_a_run_of_the_same_price_and_nearly_the_same_model() {
    let mut plan = tiny();
    let whole = Bench::new(&plan);
    plan["performance"]["precision"] = json!("bf16");
    let half = Bench::new(&plan);
    let model = |bench: &Bench| values(&bench.model("run", &["--test-key", "3"]));
    let (wide, narrow) = (model(&whole), model(&half));
    let farthest = wide.iter().zip(&narrow).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(farthest > 0.0 && farthest < 0.01, "{farthest}");
    let steps = |bench: &Bench| -> Vec<_> {
        ledger(&bench.path("run")).into_iter().filter(|entry| entry["kind"] == "step").collect()
    };
    assert_eq!(steps(&whole), steps(&half));
    assert!(verify_run(&half.path("run")).is_ok());
}
