//! Words and noise of a graphics processor (or a software Vulkan) against the host's.

use burn_wgpu::{Wgpu, WgpuDevice, WgpuRuntime};
use mechanisms::{GaussianMechanism, PrivacyRng, Purpose, Stream, TestRng};

use super::*;
use crate::dp::{ClippedSum, add_noise_and_average};
use crate::nn::{Initial, Kernels, ParamSpec};
use crate::tensor::{Flex, FlexDevice, FloatDType, to_host, to_host_f64};

type Cube = CubeTensor<WgpuRuntime>;

fn stream(step: u64, index: u32) -> Stream {
    TestRng::from_seed(5).stream(Purpose::GradientNoise, step, index)
}

fn tensor(values: &[f32]) -> Tensor<Wgpu, 1> {
    Tensor::from_data(values, &WgpuDevice::default())
}

fn cube(values: Tensor<Wgpu, 1>) -> Cube {
    values.into_primitive().tensor()
}

fn read(tensor: Cube) -> Vec<f32> {
    to_host(Tensor::<Wgpu, 1>::from_primitive(TensorPrimitive::Float(tensor)))
}

/// The blocks that invocations make of a key.
#[cube(launch)]
fn keystream(key: &Array<u32>, out: &mut Array<u32>, first_low: u32, first_high: u32) {
    let at = ABSOLUTE_POS * 16;
    if at < out.len() {
        let mut words = Array::<u32>::new(16usize);
        chacha_block(key, first_low, first_high, ABSOLUTE_POS as u32, &mut words);
        #[unroll]
        for word in 0..16usize {
            out[at + word] = words[word];
        }
    }
}

/// Oracle: the host's words, which are `rand_chacha`'s; over several workgroups, the carry into the counter's upper
/// half, and streams that differ in their step, their index or both.
#[test]
fn words_are_the_words_of_the_host() {
    const BLOCKS: usize = 600;
    for (step, index) in [(0, 0), (0, 1), (17, 0), (u64::MAX, u32::MAX)] {
        for first in [0, 7, (1_u64 << 32) - 300, (1 << 40) + 1] {
            let beside = cube(tensor(&[0.0]));
            let key = on_device(&beside, &stream(step, index).key());
            let out = on_device(&beside, &[0; 16 * BLOCKS]);
            keystream::launch(
                &beside.client,
                workgroups(BLOCKS),
                CubeDim::new_1d(WORKGROUP),
                key.binding().into_array_arg(),
                out.clone().binding().into_array_arg(),
                first as u32,
                (first >> 32) as u32,
            );
            let bytes = beside.client.read_one(out.handle).unwrap();
            let mut host = stream(step, index);
            host.seek(16 * first);
            let mut words = u32::from_bytes(&bytes).iter();
            assert!(
                words.len() == 16 * BLOCKS && words.all(|&word| word == host.next_u32()),
                "{step} {index} {first}"
            );
        }
    }
}

/// Pairs of standard normals of given words, four a pair.
#[cube(launch)]
fn transform(words: &Array<u32>, out: &mut Array<f32>) {
    let at = ABSOLUTE_POS * 2;
    if at < out.len() {
        let radius = radius(words[2 * at], words[2 * at + 1]);
        out[at] = radius * on_circle(words[2 * at + 2], words[2 * at + 3], true);
        out[at + 1] = radius * on_circle(words[2 * at + 2], words[2 * at + 3], false);
    }
}

/// The host's formula, by the logarithm, sine and cosine of the standard library.
fn normals(radius: u64, angle: u64) -> [f64; 2] {
    let unit = |bits: u64| ((2 * (bits >> 12) + 1) as f64) * 2.0_f64.powi(-53);
    let (sin, cos) = ((unit(angle << 2) - 0.5) * std::f64::consts::FRAC_PI_2).sin_cos();
    let (first, second) = if angle >> 63 == 1 { (sin, cos) } else { (cos, sin) };
    let signed = (-2.0 * unit(radius).ln()).sqrt() * if (angle >> 62) & 1 == 1 { -1.0 } else { 1.0 };
    [signed * first, signed * second]
}

/// Over all exponents of u and of 1 − u, the smallest and the largest one, and every eighth of a turn.
#[test]
fn the_transform_keeps_its_digits_in_both_tails_of_the_uniform() {
    let mut source = stream(3, 0);
    let mut radii = vec![0, u64::MAX, 1 << 12, !(1 << 12), 0xB504_F333_F9DE_6484, 0xB504_F333_F9DE_6000];
    for shift in 0..=52 {
        let mut one = || [source.next_u64() >> shift, !(source.next_u64() >> shift)];
        radii.extend((0..40).flat_map(|_| one()));
    }
    let edges: Vec<u64> =
        (0..4).flat_map(|quarter| [quarter << 62, (quarter << 62) | (u64::MAX >> 2)]).collect();
    let angle =
        |at: usize| if at.is_multiple_of(3) { edges[at / 3 % 8] } else { stream(4, at as u32).next_u64() };
    let pairs: Vec<[u64; 2]> =
        radii.into_iter().enumerate().map(|(at, radius)| [radius, angle(at)]).collect();
    let words: Vec<u32> =
        pairs.iter().flatten().flat_map(|&bits| [bits as u32, (bits >> 32) as u32]).collect();
    let out = cube(tensor(&vec![f32::NAN; 2 * pairs.len()]));
    transform::launch(
        &out.client,
        workgroups(pairs.len()),
        CubeDim::new_1d(WORKGROUP),
        on_device(&out, &words).binding().into_array_arg(),
        out.clone().binding().into_array_arg(),
    );
    let got = read(out);
    for (got, [radius, angle]) in got.chunks(2).zip(pairs) {
        let want = normals(radius, angle);
        let worst = (f64::from(got[0]) - want[0]).abs().max((f64::from(got[1]) - want[1]).abs());
        // Relative to the radius: small figures keep their digits too.
        let length = want[0].hypot(want[1]);
        assert!(worst < 1e-6 * length, "{radius:x} {angle:x}: {got:?}, {want:?}");
    }
}

fn host(stream: Stream, first: usize, length: usize, std: f64) -> Vec<f64> {
    let (mut stream, mut out) = (stream, vec![0.0; length]);
    stream.seek(2 * first as u64);
    stream.fill_gaussian_f64(&mut out, std);
    out
}

fn worst(got: &[f32], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let distance = |(got, want): (&f32, &f64)| {
        let distance = (f64::from(*got) - want).abs();
        if distance.is_nan() { f64::INFINITY } else { distance }
    };
    got.iter().zip(want).map(distance).fold(0.0, f64::max)
}

/// (Σz − 0, Σz² − n, Σz⁴ − 3n, Σ of products of a pair) over their standard deviations; 4.9 is α = 1e-6.
fn moments(values: &[f32], std: f64) -> [f64; 4] {
    let root = (values.len() as f64).sqrt();
    let sum = |of: &dyn Fn(f64) -> f64| values.iter().map(|&z| of(f64::from(z) / std)).sum::<f64>();
    let pairs: f64 = values.chunks_exact(2).map(|z| f64::from(z[0]) * f64::from(z[1]) / (std * std)).sum();
    [
        sum(&|z| z) / root,
        sum(&|z| z * z - 1.0) / (root * 2.0_f64.sqrt()),
        sum(&|z| z.powi(4) - 3.0) / (root * 96.0_f64.sqrt()),
        pairs / (root / 2.0_f64.sqrt()),
    ]
}

/// More than a million elements, no multiple of a block or a workgroup.
#[test]
fn noise_is_the_noise_of_the_host_and_a_wrong_std_is_rejected() {
    const LENGTH: usize = (1 << 21) + 8 * 31 + 5;
    let std = 2.5;
    let zeros = Tensor::<Wgpu, 1>::zeros([LENGTH], &WgpuDevice::default());
    let noise = Keyed { stream: stream(1, 2).key(), std };
    let got = to_host(Wgpu::add_and_divide(zeros, &noise, 1.0));
    let want = host(stream(1, 2), 0, LENGTH, std);
    let worst = worst(&got, &want) / std;
    println!("farthest from the host's: {worst:e} standard deviations");
    assert!(worst < 4e-6, "{worst:e}");
    assert!(want.iter().any(|z| z.abs() > 4.5 * std), "the tails are in it");
    assert!(got.iter().all(|&z| z != 0.0));
    let right = moments(&got, std);
    assert!(right.iter().all(|moment| moment.abs() < 4.9), "{right:?}");
    let wrong = moments(&got, 0.97 * std);
    assert!(wrong[1] > 4.9 && wrong[2] > 4.9, "σ wrong by 3 % must be rejected: {wrong:?}");
}

/// A source of which a device is told no more than the key.
struct Keyed {
    stream: [u32; 8],
    std: f64,
}

impl NoiseSource for Keyed {
    fn fill(&self, _: usize, _: &mut [f32]) {
        panic!("the device draws the noise itself");
    }
    fn gaussian(&self) -> Option<([u32; 8], f64)> {
        Some((self.stream, self.std))
    }
}

#[test]
fn noise_is_added_before_the_division_at_every_length() {
    for length in [0, 1, 7, 8, 9, 2047, 2048, 2049] {
        let sums: Vec<f32> = (0..length).map(|at| at as f32 / 64.0 - 9.0).collect();
        let noise = Keyed { stream: stream(6, 0).key(), std: 0.75 };
        let got = to_host(Wgpu::add_and_divide(tensor(&sums), &noise, 48.0));
        let noise = host(stream(6, 0), 0, length, 0.75);
        let want: Vec<f64> =
            sums.iter().zip(noise).map(|(&sum, noise)| (f64::from(sum) + noise) / 48.0).collect();
        assert!(worst(&got, &want) < 1e-6, "{length}");
    }
}

/// Pieces as [`add_and_divide`] makes them of a tensor that one launch cannot hold, and places beyond 2³² bytes and elements.
#[test]
fn pieces_continue_the_stream_and_what_no_launch_wrote_stays_nan() {
    let (length, piece) = (64 * 5 + 3, 64);
    let ones = cube(tensor(&vec![1.0; length]));
    let out = cube(Tensor::full([length], f32::NAN, &WgpuDevice::default()));
    for first in (0..length).step_by(piece).filter(|&first| first != 128) {
        let range = first..length.min(first + piece);
        let [ones, out] = [&ones, &out].map(|tensor| part(tensor, &range));
        launch(ones, out, stream(0, 0).key(), (first / BLOCK) as u64, [1.0, 1.0]);
    }
    let (got, want) = (read(out), host(stream(0, 0), 0, length, 1.0));
    let want: Vec<f64> = want.into_iter().map(|noise| 1.0 + noise).collect();
    assert!(got[128..192].iter().all(|value| value.is_nan()));
    assert!(worst(&got[..128], &want[..128]).max(worst(&got[192..], &want[192..])) < 4e-6);
    for first in [1_usize << 30, (1 << 35) - 16, 3 << 40] {
        let out = cube(tensor(&[f32::NAN; 40]));
        launch(cube(tensor(&[0.0; 40])), out.clone(), stream(0, 9).key(), (first / BLOCK) as u64, [1.0, 1.0]);
        assert!(worst(&read(out), &host(stream(0, 9), first, 40, 1.0)) < 4e-6, "{first}");
    }
}

/// Of an operand of 24 bits none is lost; matrix units that take 10 would give 1.
#[test]
fn products_of_norms_and_sums_keep_all_digits_of_their_operands() {
    fn check<B: Kernels>() {
        let fine = 1.0 + 2.0_f32.powi(-20);
        let (rows, columns) = (Tensor::<B, 2>::full([64, 32], fine, &B::Device::default()), 48);
        let ones = Tensor::<B, 2>::eye(32, &B::Device::default()).slice([0..32, 0..32]);
        let wide = Tensor::cat(vec![ones.clone(), ones], 1).narrow(1, 0, columns);
        assert!(to_host(B::product(rows, wide)).iter().all(|&value| value == fine));
    }
    check::<Wgpu>();
    #[cfg(feature = "cuda")]
    if crate::device::probe::cuda().is_ok() {
        check::<burn_cuda::Cuda>();
    }
}

#[test]
fn a_std_that_the_device_cannot_hold_gives_nan() {
    for std in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-39, 1e39] {
        let noise = Keyed { stream: stream(0, 0).key(), std };
        let got = to_host(Wgpu::add_and_divide(tensor(&[1.0; 11]), &noise, 1.0));
        assert!(got.len() == 11 && got.iter().all(|value| value.is_nan()), "{std}: {got:?}");
    }
}

/// The path of a training step: each parameter and step has its own noise, the host's, in every element.
#[test]
fn gradients_get_the_noise_that_the_cpu_gives_them() {
    fn private<B: Kernels>(step: u64, device: &B::Device) -> Vec<Vec<f64>> {
        let spec = |&length: &usize| ParamSpec {
            name: String::new(),
            shape: vec![length],
            initial: Initial::Constant(0.0),
        };
        let specs: Vec<ParamSpec> = [100, 1, 70_003].iter().map(spec).collect();
        let sum = ClippedSum::<B>::zero(&specs, 0.5, FloatDType::F32, device).bounded().unwrap();
        let mechanism = GaussianMechanism::new(2.0).unwrap();
        let gradient = add_noise_and_average(sum, &mechanism, 16.0, step, &TestRng::from_seed(1));
        gradient.into_parts().into_iter().map(to_host_f64).collect()
    }
    let [there, later] = [3, 4].map(|step| private::<Wgpu>(step, &WgpuDevice::default()));
    let here = private::<Flex>(3, &FlexDevice);
    for ((there, later), here) in there.iter().zip(&later).zip(&here) {
        assert!(
            there.iter().zip(here).all(|(there, here)| (there - here).abs() < 4e-6 / 16.0 && *there != 0.0)
        );
        assert!(there.iter().zip(later).all(|(there, later)| there != later));
    }
    assert_ne!(there[0], there[2][..100]);
}
