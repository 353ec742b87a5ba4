//! Banded Toeplitz matrices with little error in prefix sums.
//!
//! The search only affects utility: ε is computed for the matrix that it finds.

/// Largest number of evaluations of the error in a search.
const MAX_EVALUATIONS: usize = 400;

/// Largest number of multiplications of a search: about a tenth of a second.
const MAX_WORK: usize = 100_000_000;

/// Number of corrections that the quasi-Newton method remembers.
const MEMORY: usize = 10;

/// Returns x with C·x = `right`, for the lower-triangular Toeplitz matrix of `coefficients`.
pub(super) fn solve(coefficients: &[f64], right: &[f64]) -> Vec<f64> {
    let mut solution: Vec<f64> = Vec::with_capacity(right.len());
    for value in right {
        let earlier = coefficients[1..].iter().zip(solution.iter().rev());
        let known: f64 = earlier.map(|(c, x)| c * x).sum();
        solution.push((value - known) / coefficients[0]);
    }
    solution
}

/// Returns the coefficients of the square root of the matrix of ones: 1, 1/2, 3/8, …
fn square_root(bands: usize) -> Vec<f64> {
    let mut next = 1.0;
    (1..=bands)
        .map(|band| {
            let now = next;
            next *= (band as f64 - 0.5) / band as f64;
            now
        })
        .collect()
}

/// Returns the coefficients of norm 1 whose prefix sums have the least mean squared error, by L-BFGS from the square
/// root (Nocedal & Wright 2006, *Numerical Optimization*, Algorithm 7.4).
pub(super) fn least_error(steps: usize, bands: usize) -> Vec<f64> {
    let evaluations = (MAX_WORK / (2 * steps * bands + 1)).min(MAX_EVALUATIONS);
    let mut at = normalized(square_root(bands));
    let (mut error, mut slope) = log_error(steps, &at);
    let mut corrections: Vec<Correction> = Vec::new();
    let mut used = 1;
    while used < evaluations {
        let direction = descent(&slope, &corrections);
        let expected = dot(&direction, &slope);
        // This is false also where a slope is no number.
        let descends = expected < -1e-14;
        if !descends {
            break;
        }
        let mut length = 1.0;
        let next = loop {
            let tried: Vec<f64> = at.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            used += 1;
            if tried[0] > 0.0 {
                let (found, its_slope) = log_error(steps, &tried);
                if found <= error + 1e-4 * length * expected {
                    break Some((tried, found, its_slope));
                }
            }
            length *= 0.5;
            if length < 1e-9 || used >= evaluations {
                break None;
            }
        };
        let Some((tried, found, its_slope)) = next else { break };
        let step: Vec<f64> = tried.iter().zip(&at).map(|(new, old)| new - old).collect();
        let change: Vec<f64> = its_slope.iter().zip(&slope).map(|(new, old)| new - old).collect();
        let curvature = dot(&step, &change);
        if curvature > 0.0 {
            corrections.push(Correction { step, change, curvature });
            if corrections.len() > MEMORY {
                corrections.remove(0);
            }
        }
        let gained = error - found;
        (at, error, slope) = (tried, found, its_slope);
        if gained < 1e-12 {
            break;
        }
    }
    normalized(at)
}

/// A step and the change of the slope along it.
struct Correction {
    step: Vec<f64>,
    change: Vec<f64>,
    curvature: f64,
}

/// Returns the quasi-Newton direction.
fn descent(slope: &[f64], corrections: &[Correction]) -> Vec<f64> {
    let mut direction: Vec<f64> = slope.iter().map(|x| -x).collect();
    let mut shares = Vec::with_capacity(corrections.len());
    for past in corrections.iter().rev() {
        let share = dot(&past.step, &direction) / past.curvature;
        add_scaled(&mut direction, &past.change, -share);
        shares.push(share);
    }
    if let Some(last) = corrections.last() {
        let scale = last.curvature / dot(&last.change, &last.change);
        direction.iter_mut().for_each(|x| *x *= scale);
    }
    for (past, share) in corrections.iter().zip(shares.iter().rev()) {
        let back = dot(&past.change, &direction) / past.curvature;
        add_scaled(&mut direction, &past.step, share - back);
    }
    direction
}

/// Returns log(‖c‖²·mean squared error), which does not depend on the scale of c, and its slope.
///
/// With s = C⁻¹·1 and w_t = 1 − t/n, the error is Σ w_t·s_t². Since ds = −C⁻¹(dC)s, its derivative by c_j is −2·Σ_t w_t·s_t·r_{t−j} with
/// r = C⁻¹·s.
fn log_error(steps: usize, coefficients: &[f64]) -> (f64, Vec<f64>) {
    let decoder = solve(coefficients, &vec![1.0; steps]);
    let twice = solve(coefficients, &decoder);
    let weighted: Vec<f64> =
        decoder.iter().enumerate().map(|(at, s)| (1.0 - at as f64 / steps as f64) * s).collect();
    let error = dot(&weighted, &decoder);
    let square = dot(coefficients, coefficients);
    let slope = coefficients.iter().enumerate().map(|(band, c)| {
        let by_error: f64 = weighted[band..].iter().zip(&twice).map(|(w, r)| w * r).sum();
        2.0 * c / square - 2.0 * by_error / error
    });
    (libm::log(square * error), slope.collect())
}

fn normalized(mut coefficients: Vec<f64>) -> Vec<f64> {
    let norm = f64::sqrt(dot(&coefficients, &coefficients));
    coefficients.iter_mut().for_each(|c| *c /= norm);
    coefficients
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(x, y)| x * y).sum()
}

fn add_scaled(sum: &mut [f64], other: &[f64], scale: f64) {
    sum.iter_mut().zip(other).for_each(|(x, y)| *x += scale * y);
}
