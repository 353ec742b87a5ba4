//! Gaussian noise that a graphics processor draws itself, from the same random words as the host's stream.
//!
//! Each invocation computes one block of ChaCha20, which makes eight elements. As on the host, an element's index determines its
//! noise. Sums never leave the device without noise.
//!
//! # Precision
//! The host transforms random words in double precision, which graphics processors lack. WGSL's guarantees for single precision
//! are too weak: the absolute error of `sin` and `cos` may be 2⁻¹¹, and that of `log` near 1 may be 2⁻²¹. This kernel therefore
//! uses only integers and +, −, × (correctly rounded or fused), ÷ (2.5 ulp) and √ (from an inverse root of 2 ulp):
//! * It takes exponent and mantissa of the uniform from the integer's bits, so no tail is cut. It does the same for one minus
//!   the uniform, so a radius near 0 keeps its digits.
//! * Two bits choose the quarter turn and 32 bits the angle within it, where short series are accurate.
//!
//! The noise differs from the host's by less than 4e-6 standard deviations; tests check all exponents of the uniform.
//!
//! # References
//! W3C, "WebGPU Shading Language", <https://www.w3.org/TR/WGSL/#floating-point-accuracy>; Bernstein 2008, "ChaCha, a variant of Salsa20".

use std::f32::consts::{FRAC_PI_2, LN_2, SQRT_2};
use std::ops::Range;

use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime};
use cubecl::prelude::*;

use crate::nn::NoiseSource;
use crate::nn::kernels::portable;
use crate::tensor::{DType, Shape, Tensor, TensorPrimitive};

#[cfg(all(test, feature = "wgpu"))]
mod device_tests;

/// Elements per block of ChaCha20: 16 words, two per element.
const BLOCK: usize = 8;
/// Invocations per workgroup; every implementation of WebGPU allows 256.
const WORKGROUP: u32 = 256;
/// Elements per launch: 2¹⁵ workgroups (a dimension may have 65,535) and 256 MiB (32 bits index it).
const PIECE: usize = BLOCK * WORKGROUP as usize * (1 << 15);
/// Standard deviations for which noise is a normal number of 32 bits. Devices may flush smaller numbers to 0.
const SOUND: Range<f64> = 1e-30..1e30;

/// [`crate::nn::Kernels::add_and_divide`] on the device that holds `values`.
///
/// The result starts as NaN in memory of its own, so it is NaN wherever no invocation wrote.
pub(super) fn add_and_divide<R: CubeRuntime, T: BoolElement>(
    values: Tensor<CubeBackend<R, f32, i32, T>, 1>,
    noise: &dyn NoiseSource,
    divisor: f64,
) -> Tensor<CubeBackend<R, f32, i32, T>, 1> {
    let Some((key, std)) = noise.gaussian() else {
        return portable::add_and_divide(values, noise, divisor);
    };
    let noisy = Tensor::<CubeBackend<R, f32, i32, T>, 1>::full(values.dims(), f32::NAN, &values.device());
    if SOUND.contains(&std) {
        let length = values.dims()[0];
        let sum = into_contiguous(values.into_primitive().tensor());
        let out: CubeTensor<R> = noisy.into_primitive().tensor();
        for first in (0..length).step_by(PIECE) {
            let piece = first..length.min(first + PIECE);
            let [sum, out] = [&sum, &out].map(|tensor| part(tensor, &piece));
            launch(sum, out, key, (first / BLOCK) as u64, [std, divisor]);
        }
        return Tensor::from_primitive(TensorPrimitive::Float(out));
    }
    noisy
}

/// A range of a flat tensor, in the same memory.
fn part<R: CubeRuntime>(tensor: &CubeTensor<R>, piece: &Range<usize>) -> CubeTensor<R> {
    let bytes = |elements: usize| (elements * size_of::<f32>()) as u64;
    let after = tensor.meta.shape()[0] - piece.end;
    let handle = tensor.handle.clone().offset_start(bytes(piece.start)).offset_end(bytes(after));
    let shape = Shape::new([piece.len()]);
    CubeTensor::new_contiguous(tensor.client.clone(), tensor.device.clone(), shape, handle, tensor.dtype)
}

/// out ← (sum + noise) / divisor, with the noise from block `first` of the key's stream on.
fn launch<R: CubeRuntime>(
    sum: CubeTensor<R>,
    out: CubeTensor<R>,
    key: [u32; 8],
    first: u64,
    [std, divisor]: [f64; 2],
) {
    let (client, blocks) = (sum.client.clone(), sum.meta.shape()[0].div_ceil(BLOCK));
    let key = on_device(&sum, &key);
    add_noise::launch(
        &client,
        workgroups(blocks),
        CubeDim::new_1d(WORKGROUP),
        sum.binding().into_array_arg(),
        out.binding().into_array_arg(),
        key.binding().into_array_arg(),
        first as u32,
        (first >> 32) as u32,
        std as f32,
        divisor as f32,
    );
}

fn workgroups(invocations: usize) -> CubeCount {
    CubeCount::Static(invocations.div_ceil(WORKGROUP as usize) as u32, 1, 1)
}

/// Copies words to the device of a tensor.
fn on_device<R: CubeRuntime>(beside: &CubeTensor<R>, words: &[u32]) -> CubeTensor<R> {
    let handle = beside.client.create_from_slice(u32::as_bytes(words));
    let shape = Shape::new([words.len()]);
    CubeTensor::new_contiguous(beside.client.clone(), beside.device.clone(), shape, handle, DType::U32)
}

#[cube(launch)]
fn add_noise(
    sum: &Array<f32>,
    out: &mut Array<f32>,
    key: &Array<u32>,
    first_low: u32,
    first_high: u32,
    std: f32,
    divisor: f32,
) {
    let at = ABSOLUTE_POS * 8;
    if at < out.len() {
        let mut words = Array::<u32>::new(16usize);
        chacha_block(key, first_low, first_high, ABSOLUTE_POS as u32, &mut words);
        #[unroll]
        for pair in 0..4usize {
            let radius = radius(words[4 * pair], words[4 * pair + 1]);
            let (even, odd) = (at + 2 * pair, at + 2 * pair + 1);
            if even < out.len() {
                let unit = on_circle(words[4 * pair + 2], words[4 * pair + 3], true);
                out[even] = (sum[even] + radius * unit * std) / divisor;
            }
            if odd < out.len() {
                let unit = on_circle(words[4 * pair + 2], words[4 * pair + 3], false);
                out[odd] = (sum[odd] + radius * unit * std) / divisor;
            }
        }
    }
}

/// The words of block `first + at` of the key's stream, with nonce 0.
#[cube]
fn chacha_block(key: &Array<u32>, first_low: u32, first_high: u32, at: u32, state: &mut Array<u32>) {
    let low = first_low + at;
    let high = first_high + u32::cast_from(low < at);
    #[unroll]
    for word in 0..16usize {
        state[word] = 0u32;
    }
    add_start(key, low, high, state);
    for _ in 0..10u32 {
        quarter_round(state, 0usize, 4usize, 8usize, 12usize);
        quarter_round(state, 1usize, 5usize, 9usize, 13usize);
        quarter_round(state, 2usize, 6usize, 10usize, 14usize);
        quarter_round(state, 3usize, 7usize, 11usize, 15usize);
        quarter_round(state, 0usize, 5usize, 10usize, 15usize);
        quarter_round(state, 1usize, 6usize, 11usize, 12usize);
        quarter_round(state, 2usize, 7usize, 8usize, 13usize);
        quarter_round(state, 3usize, 4usize, 9usize, 14usize);
    }
    add_start(key, low, high, state);
}

/// Adds the initial state of a block: constants, key, block number and nonce 0.
#[cube]
fn add_start(key: &Array<u32>, low: u32, high: u32, state: &mut Array<u32>) {
    state[0] += 0x6170_7865u32;
    state[1] += 0x3320_646Eu32;
    state[2] += 0x7962_2D32u32;
    state[3] += 0x6B20_6574u32;
    #[unroll]
    for word in 0..8usize {
        state[4 + word] += key[word];
    }
    state[12] += low;
    state[13] += high;
}

#[cube]
fn quarter_round(
    state: &mut Array<u32>,
    #[comptime] a: usize,
    #[comptime] b: usize,
    #[comptime] c: usize,
    #[comptime] d: usize,
) {
    state[a] += state[b];
    state[d] = turn(state[d] ^ state[a], 16u32);
    state[c] += state[d];
    state[b] = turn(state[b] ^ state[c], 12u32);
    state[a] += state[b];
    state[d] = turn(state[d] ^ state[a], 8u32);
    state[c] += state[d];
    state[b] = turn(state[b] ^ state[c], 7u32);
}

/// Rotates the word's bits to the left.
#[cube]
fn turn(word: u32, #[comptime] bits: u32) -> u32 {
    (word << bits) | (word >> comptime!(32 - bits))
}

/// √(−2·ln u) for the uniform u = (k + ½)·2⁻⁵², where k is the upper 52 bits.
#[cube]
fn radius(low: u32, high: u32) -> f32 {
    // u = 2^exponent · mantissa with mantissa in [1, 2), then in (√½, √2]
    let zeros = leading(low, high);
    let mantissa = f32::reinterpret(0x3F80_0000u32 | fraction(low, high, zeros));
    let beyond = mantissa > SQRT_2;
    let mantissa = select(beyond, mantissa * 0.5f32, mantissa);
    let exponent = select(beyond, 11.0f32, 10.0f32) - f32::cast_from(zeros);
    // 1 − u from the complement of the bits: near 1, the mantissa of u has lost its digits
    let zeros = leading(!low, !high);
    let rest = f32::reinterpret(((137u32 - zeros) << 23u32) | fraction(!low, !high, zeros));
    let near_one = exponent == 0.0f32;
    let above = select(near_one, 0.0f32 - rest, mantissa - 1.0f32);
    // ln m = 2·artanh((m−1)/(m+1)); |s| ≤ 0.1716, so the first term left out is below 1e-10
    let s = above / (2.0f32 + above);
    let w = s * s;
    let series = (((w * 0.090_909_09_f32 + 0.111_111_11_f32) * w + 0.142_857_15_f32) * w + 0.2f32) * w
        + 0.333_333_34_f32;
    let logarithm = 2.0f32 * s + 2.0f32 * s * w * series + exponent * LN_2;
    (-2.0f32 * logarithm).sqrt()
}

/// Leading zeros of the 53-bit odd integer 2k + 1 in 64 bits.
#[cube]
fn leading(low: u32, high: u32) -> u32 {
    let upper = high >> 11u32;
    select(upper == 0u32, 32u32 + lower(low, high).leading_zeros(), upper.leading_zeros())
}

/// The lower half of the 53-bit integer 2k + 1.
#[cube]
fn lower(low: u32, high: u32) -> u32 {
    (high << 21u32) | (low >> 11u32) | 1u32
}

/// The 23 bits of 2k + 1 after its first one bit, as the fraction of an f32.
#[cube]
fn fraction(low: u32, high: u32, zeros: u32) -> u32 {
    let upper = high >> 11u32;
    let lower = lower(low, high);
    // Shifts are modulo 32, so the branch that is not chosen is harmless; `zeros` is at least 11.
    let (by, back) = (zeros & 31u32, (32u32 - zeros) & 31u32);
    let first = select(upper == 0u32, lower << by, (upper << by) | (lower >> back));
    (first >> 8u32) & 0x007F_FFFFu32
}

/// A coordinate of a uniform point on the unit circle: the host's cosine or sine.
#[cube]
fn on_circle(low: u32, high: u32, #[comptime] cosine: bool) -> f32 {
    // The angle within its quarter, from 32 bits. Both halves are exact; only their sum is rounded.
    let bits = (high << 2u32) | (low >> 30u32);
    let coarse = (f32::cast_from(bits >> 16u32) - 32_768.0f32) * 1.525_878_9e-5_f32;
    let fine = (f32::cast_from(bits & 0xFFFFu32) + 0.5f32) * 2.328_306_4e-10_f32;
    let x = (coarse + fine) * FRAC_PI_2;
    let w = x * x;
    // Taylor: the first term left out is below 2e-9 for |x| ≤ π/4
    let sin = ((((w * 2.755_731_9e-6_f32 - 1.984_127e-4_f32) * w + 8.333_333e-3_f32) * w - 0.166_666_67_f32)
        * w
        + 1.0f32)
        * x;
    let cos = ((((w * -2.755_732e-7_f32 + 2.480_158_7e-5_f32) * w - 1.388_888_9e-3_f32) * w
        + 0.041_666_668_f32)
        * w
        - 0.5f32)
        * w
        + 1.0f32;
    let exchanged = (high >> 31u32) == 1u32;
    let value = if comptime!(cosine) { select(exchanged, sin, cos) } else { select(exchanged, cos, sin) };
    select((high & 0x4000_0000u32) == 0u32, value, 0.0f32 - value)
}
