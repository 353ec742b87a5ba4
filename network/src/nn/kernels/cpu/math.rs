//! Arithmetic on rows that the compiler translates into vector instructions.
//!
//! It uses only +, −, ×, ÷, √ and comparisons in a fixed order. Results have the same bits on every processor, whatever its
//! vector width.

/// Runs a short `work` with the widest vector instructions of the processor.
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Runs a block of code with the widest vector instructions of the processor. The compiler translates a closure of this size separately,
/// without them; so the variables that the block uses are listed with their types, in which `'a` is the lifetime of references.
macro_rules! vectorized_loop {
    ([$($name:ident: $type:ty),* $(,)?] $body:block) => {
        $crate::nn::kernels::cpu::math::vectorized_loop!([$($name: $type),*] -> () $body)
    };
    ([$($name:ident: $type:ty),* $(,)?] -> $output:ty $body:block) => {{
        struct Work<'a> {
            $($name: $type,)*
            lifetime: std::marker::PhantomData<&'a ()>,
        }

        impl pulp::WithSimd for Work<'_> {
            type Output = $output;

            #[inline(always)]
            fn with_simd<S: pulp::Simd>(self, _: S) -> Self::Output {
                let Self { $($name,)* .. } = self;
                $body
            }
        }

        pulp::Arch::new().dispatch(Work { $($name,)* lifetime: std::marker::PhantomData })
    }};
}

pub(super) use vectorized_loop;

const LANES: usize = 16;

/// e^x with an error of at most 2 ulp. x is clamped to −87…88; NaN stays NaN.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const ROUND: f32 = 12_582_912.0; // 1.5·2²³: an integer added to it sits in the low mantissa bits
    const LN_2_HIGH: f32 = 0.693_145_75;
    const LN_2_LOW: f32 = 1.428_606_8e-6;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor: |r| ≤ 0.3466, the first term left out is below 6e-9
    let mut series = 1.0 / 5_040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = series * r + coefficient;
    }
    let exponent = shifted.to_bits().wrapping_add(127) << 23;
    series * f32::from_bits(exponent)
}

/// Σ f(a_i, b_i), in 16 partial sums.
#[inline(always)]
pub fn sum_zip(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_rest, b_rest) = (a_chunks.remainder(), b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] += f(a[lane], b[lane]);
        }
    }
    for (lane, (&a, &b)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[lane] += f(a, b);
    }
    total(lanes)
}

/// Σ a_i
#[inline(always)]
pub fn sum(a: &[f32]) -> f32 {
    sum_zip(a, a, |a, _| a)
}

/// Σ a_i·b_i
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum_zip(a, b, |a, b| a * b)
}

/// The largest element, ignoring NaN.
#[inline(always)]
pub fn max(a: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = a.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = if chunk[lane] > lanes[lane] { chunk[lane] } else { lanes[lane] };
        }
    }
    lanes.into_iter().chain(rest.iter().copied()).fold(f32::NEG_INFINITY, |m, x| if x > m { x } else { m })
}

/// Replaces each x of a row by exp(scale·(x − largest)), and returns the sum.
#[inline(always)]
pub fn exp_row(row: &mut [f32], scale: f32) -> f32 {
    let largest = max(row);
    for value in row.iter_mut() {
        *value = exp((*value - largest) * scale);
    }
    sum(row)
}

#[inline(always)]
fn total(lanes: [f32; LANES]) -> f32 {
    let mut half = [0.0; LANES / 2];
    for lane in 0..LANES / 2 {
        half[lane] = lanes[lane] + lanes[lane + LANES / 2];
    }
    half.into_iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_agrees_with_the_standard_library() {
        let mut worst = 0.0_f64;
        for step in -870_000..=880_000 {
            let x = step as f32 * 1e-4;
            worst = worst.max((f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs());
        }
        assert!(worst < 2.5e-7, "{worst}");
        assert!(exp(f32::NAN).is_nan());
        assert!(exp(f32::NEG_INFINITY) < 2e-38 && exp(f32::INFINITY).is_finite());
    }

    #[test]
    fn sums_and_maxima_cover_every_length() {
        for len in 1..70_usize {
            let row: Vec<f32> = (0..len).map(|i| ((i * 37) % 71) as f32).collect();
            assert_eq!(sum(&row), row.iter().sum::<f32>());
            assert_eq!(max(&row), row.iter().copied().fold(f32::MIN, f32::max));
            assert_eq!(dot(&row, &row), row.iter().map(|x| x * x).sum::<f32>());
        }
    }
}
