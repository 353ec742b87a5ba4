//! CUDA, if the program was built with it. No NVIDIA processor is needed.

#![cfg(feature = "cuda")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

/// There is no driver, or the driver hides every processor.
#[test]
fn without_a_processor_cuda_is_refused_before_anything_is_written() {
    common::refuses_device("cuda", ["CUDA_VISIBLE_DEVICES", "-1"], "NVIDIA");
}
