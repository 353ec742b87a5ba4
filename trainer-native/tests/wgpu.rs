//! Runs on a graphics processor or on software Vulkan, if the program was built with `wgpu`.

#![cfg(feature = "wgpu")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::process::Command;

use common::{Bench, refuses_device, tiny_with_vocabulary};
use network::device::{OnDevice, check, on_device};
use network::nn::Kernels;
use network::tensor::{Flex, FlexDevice};
use training::verify::verify_run;

/// The same steps with the same noise give the same weights up to the rounding of 32-bit sums.
#[test]
fn a_run_on_wgpu_ends_where_one_on_the_cpu_does() {
    let bench = Bench::new(&tiny_with_vocabulary());
    let values = |out: &str, device: &str| -> Vec<f32> {
        let model = bench.model(out, &["--test-key", "3", "--device", device]);
        common::values(&model)
    };
    let (cpu, wgpu) = (values("cpu", "cpu"), values("wgpu", "wgpu"));
    let worst = cpu.iter().zip(&wgpu).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-3 && cpu.len() == wgpu.len(), "{worst}");
    assert!(cpu != wgpu, "the sums of two devices are not equal to the last bit: was the other one used?");
    assert_eq!(verify_run(&bench.path("wgpu")).unwrap().steps_done, 10);
    let devices = Command::new(env!("CARGO_BIN_EXE_trainer-native")).arg("devices").output().unwrap();
    // A line about ranks follows in a build with MPI.
    let listing = String::from_utf8(devices.stdout).unwrap();
    let mut lines = listing.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("cpu")), "{listing}");
    assert_eq!(lines.next(), Some("wgpu"), "{listing}");
}

struct Nothing;

impl OnDevice for Nothing {
    type Output = ();
    fn run<B: Kernels>(self, _: B::Device) {}
}

/// The library continues after a panic of its threads, and returns whatever the memory held.
#[test]
fn a_panic_on_any_thread_ends_the_run_at_the_next_step() {
    on_device(plan::Device::Wgpu, Nothing).unwrap();
    assert_eq!(check::<Flex>(&FlexDevice), Ok(()));
    std::thread::spawn(|| panic!("out of memory. Buy more")).join().unwrap_err();
    let lost = check::<Flex>(&FlexDevice).unwrap_err().to_string();
    assert!(lost.contains("out of memory") && lost.contains("--resume"), "{lost}");
}

/// WGSL has no 16-bit brain floats.
#[test]
fn products_of_16_bits_are_refused_before_anything_is_written() {
    let mut plan = common::tiny();
    plan["performance"]["precision"] = serde_json::json!("bf16");
    let bench = Bench::new(&plan);
    let output = bench.command("run", &["--device", "wgpu"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("performance.precision: \"bf16\""), "{said}");
    assert!(!bench.path("run").exists());
}

/// On Linux, `wgpu` uses Vulkan, whose loader looks for drivers at the path in this variable.
#[test]
#[cfg(target_os = "linux")]
fn without_a_driver_wgpu_is_refused_before_anything_is_written() {
    refuses_device("wgpu", ["VK_ICD_FILENAMES", "/nonexistent"], "Vulkan");
}
