//! Counts the model's floating-point operations, and the share of the device's rate that a step
//! uses.
//!
//! Only the operations of the model itself are counted: two for each weight of a product and each
//! place, twice as many for the backward pass, and the products of attention (Chowdhery et al.
//! 2022, appendix B; masked places included). The work of privacy and of recomputation takes time
//! but is not counted, so the private figure falls with every cost of privacy.

use std::io::Write;
use std::time::Instant;

use network::nn::Kernels;
use network::tensor::Tensor;

use super::settings::{Setting, Trainable};
use super::{Figures, Outcome};

/// Rows and columns of the product that measures the device's rate.
const SIDE: usize = 2048;

/// Shows the rates of both steps, and their share of the rate that a large product reaches on the
/// device.
pub fn utilisation<B: Kernels>(
    ours: &[(&Setting, Figures)],
    device: &B::Device,
    out: &mut impl Write,
) -> Outcome {
    let best = product_rate::<B>(device)?;
    writeln!(out, "\nproduct of {SIDE} × {SIDE} matrices in f32: {:.1} GFLOP/s", best / 1e9)?;
    writeln!(
        out,
        "| setting | plain GFLOP/s | private GFLOP/s | of that product's rate |\n|---|---|---|---|"
    )?;
    for (setting, figures) in ours {
        // If only a part is trained, the backward pass does not cost twice the forward pass.
        if !matches!(setting.trainable, Trainable::All) {
            continue;
        }
        let operations = 3.0 * setting.lot as f64 * forward(setting, figures.targets as f64);
        let [plain, private] = [operations / figures.plain, operations / figures.private];
        writeln!(
            out,
            "| {} | {:.1} | {:.1} | {:.0} % and {:.0} % |",
            setting.name,
            plain / 1e9,
            private / 1e9,
            100.0 * plain / best,
            100.0 * private / best
        )?;
    }
    Ok(())
}

/// Returns the operations of an example's forward pass with `targets` targets.
fn forward(setting: &Setting, targets: f64) -> f64 {
    let [d, layers, t] = [f64::from(setting.d_model), f64::from(setting.layers), setting.context as f64];
    let vocabulary = setting.vocabulary as f64;
    // Operations of a block of self-attention and feed-forward part over some places.
    let block = |places: f64| 2.0 * 12.0 * d * d * places + 4.0 * places * places * d;
    match setting.family {
        "t5" => {
            let crossed = 2.0 * (2.0 * targets + 2.0 * t) * d * d + 4.0 * targets * t * d;
            layers * (block(t) + block(targets) + crossed) + 2.0 * vocabulary * d * targets
        }
        "bert" => layers * block(t) + 2.0 * (vocabulary + d) * d * targets,
        _ => layers * block(t) + 2.0 * vocabulary * d * targets,
    }
}

/// Measures the operations a second of products in f32, one on each worker: the best of six trials.
fn product_rate<B: Kernels>(device: &B::Device) -> Outcome<f64> {
    let side = Tensor::<B, 2>::ones([SIDE, SIDE], device);
    let workers = B::workers();
    let mut least = f64::INFINITY;
    for _ in 0..6 {
        B::sync(device)?;
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| side.clone().matmul(side.clone()));
            }
        });
        B::sync(device)?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok(2.0 * (SIDE as f64).powi(3) * workers as f64 / least)
}
