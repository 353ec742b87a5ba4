use super::*;
use crate::{PrivacyRng, Purpose, TestRng};

fn stream(index: u32) -> Stream {
    TestRng::from_seed(11).stream(Purpose::GradientNoise, 0, index)
}

fn draws(std: u64, index: u32, count: usize) -> Vec<i64> {
    let mut values = vec![0; count];
    RoundedGaussian::new(std).unwrap().add_to(&mut stream(index), 0, &mut values);
    values
}

/// Returns Φ̄(numerator/denominator) in double precision, from the fixed-point tail.
fn tail_from(numerator: u64, denominator: u64) -> f64 {
    tail::upper(numerator, denominator, 5).value.minus(&Fixed::of_fraction(&[0; 5]))
}

/// Returns P(Z = k).
fn mass(k: i64, std: u64) -> f64 {
    let k = k.unsigned_abs();
    match k {
        0 => 1.0 - 2.0 * tail_from(1, 2 * std),
        _ => tail_from(2 * k - 1, 2 * std) - tail_from(2 * k + 1, 2 * std),
    }
}

/// Returns χ² against the exact probabilities of the cells −m..=m and the two tails, in standard deviations from its
/// mean.
fn chi_square(sample: &[i64], std: u64, m: i64) -> f64 {
    let n = sample.len() as f64;
    let mut observed = vec![0.0; 2 * m as usize + 3];
    for &z in sample {
        observed[(z.clamp(-m - 1, m + 1) + m + 1) as usize] += 1.0;
    }
    let beyond = tail_from(2 * m as u64 + 1, 2 * std);
    let expected = |cell: usize| match cell as i64 - m - 1 {
        k if k.abs() > m => beyond,
        k => mass(k, std),
    };
    let freedom = observed.len() as f64 - 1.0;
    let statistic: f64 = observed
        .iter()
        .enumerate()
        .map(|(cell, o)| (o - n * expected(cell)).powi(2) / (n * expected(cell)))
        .sum();
    (statistic - freedom) / (2.0 * freedom).sqrt()
}

/// Oracle: the exact probabilities of the cells. Wilson and Hilferty: with 10 to 100 degrees of freedom χ² exceeds its mean by
/// more than 8.3 standard deviations with a probability below 1e-6.
#[test]
fn draws_follow_the_exact_cell_probabilities_and_a_wrong_std_is_rejected() {
    for (std, cells) in [(1, 3), (3, 10), (17, 50)] {
        let sample = draws(std, std as u32, 300_000);
        let right = chi_square(&sample, std, cells);
        assert!(right < 8.3, "{std}: {right}");
        let wrong = chi_square(&sample, std + 1, cells);
        assert!(wrong > 8.3, "{std}: {wrong}");
    }
}

/// Kolmogorov–Smirnov distance to the normal distribution times √n; above 2.69 with probability 1e-6. One unit of 2⁻²⁸
/// standard deviations does not count.
#[test]
fn draws_on_a_fine_grid_are_normal_and_a_wrong_std_is_rejected() {
    let std = (1_u64 << 28) + 12_345;
    let mut sample: Vec<f64> = draws(std, 1, 400_000).into_iter().map(|z| z as f64 / std as f64).collect();
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |scale: f64| {
        let cdf = |x: f64| 0.5 * libm::erfc(-x * scale / std::f64::consts::SQRT_2);
        let at =
            |(i, &x): (usize, &f64)| (cdf(x) - i as f64 / n).abs().max(((i + 1) as f64 / n - cdf(x)).abs());
        sample.iter().enumerate().map(at).fold(0.0, f64::max) * n.sqrt()
    };
    assert!(distance(1.0) < 2.69, "{}", distance(1.0));
    assert!(distance(1.02) > 2.69 && distance(0.98) > 2.69, "σ wrong by 2 % must be rejected");
}

/// If the interval of certainty is as wide as the distance between two edges, every draw is decided in exact
/// arithmetic.
#[test]
fn the_fast_path_and_the_exact_path_draw_the_same_integers() {
    for std in [1, 5, (1 << 28) + 1, RoundedGaussian::MAX_STD] {
        let noise = RoundedGaussian::new(std).unwrap();
        let (mut fast, mut exact) = (vec![0; 3000], vec![0; 3000]);
        noise.add_to(&mut stream(2), 77, &mut fast);
        noise.draw_with_tolerance::<false>(&mut stream(2), 77, &mut exact, 1.0);
        assert_eq!(fast, exact, "{std}");
    }
}

/// Oracle: the place between two neighbouring words at which the integer changes.
#[test]
fn noise_beside_an_edge_is_left_open_and_the_rest_of_its_block_is_not() {
    let noise = RoundedGaussian::new(1 << 28).unwrap();
    let fast = Fast { table: Quantile::table(), std: noise.std as f64, reach: 0.5 - noise.tolerance() };
    let integer = |word: u64| fast.draw::<false>(word, 0).0;
    let (mut low, mut high) = (1 << 60, (1 << 60) + (1 << 40));
    let first = integer(low);
    assert!(integer(high) != first);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if integer(middle) == first { low = middle } else { high = middle }
    }
    for place in [0, 63, 64, 77] {
        let mut words: Vec<u64> =
            (0..100).map(|at| (1 << 61) + (at << 41)).filter(|&word| fast.draw::<false>(word, 0).1).collect();
        let mut drawn = vec![0; words.len()];
        let block = |words: &[u64], noise: &mut [i64]| {
            let fractions = &vec![0; words.len()];
            vectorized(Block::<false> { fast: &fast, words, fractions, noise })
        };
        assert!(words.len() > place && block(&words, &mut drawn));
        let whole: Vec<i64> = words.iter().map(|&word| integer(word)).collect();
        assert_eq!(drawn, whole);
        words[place] = low;
        assert!(!block(&words, &mut drawn), "{place}");
        assert!(
            drawn
                .iter()
                .enumerate()
                .all(|(at, &drawn)| drawn == if at == place { UNCERTAIN } else { whole[at] })
        );
    }
}

/// Draws by importance: a word with j leading zeros after its sign is one of the 2^−j share of
/// largest magnitudes. Oracle: the integer's own interval of the tail holds the word's v, and given
/// the share, v is uniform within it.
#[test]
fn tails_are_exact_to_nine_standard_deviations() {
    let std = (1_u64 << 28) + 99;
    let noise = RoundedGaussian::new(std).unwrap();
    let fast = Fast { table: Quantile::table(), std: std as f64, reach: 0.5 - noise.tolerance() };
    let mut source = stream(3);
    let (mut largest, mut below_half) = (0, 0);
    for zeros in 0..63 {
        for at in 0..8_u64 {
            let word = (source.next_u64() >> 1 | 1 << 62) >> zeros;
            let drawn = match fast.draw::<false>(word, 0) {
                (drawn, true) => drawn,
                (_, false) => noise.exact(&fast, word, 0, source.beyond(at + 8 * zeros)),
            };
            let k = drawn.unsigned_abs();
            let v = word as f64 * 2.0_f64.powi(-64);
            let ends = [tail_from(2 * k + 1, 2 * std), tail_from(2 * k - 1, 2 * std)];
            // v is known to one part in `word`; the cell is as narrow as 2⁻²⁸.
            let slack = 1.0 + 1.0 / word as f64 + 1e-15;
            assert!(ends[0] <= v * slack && v <= ends[1] * slack, "{zeros}: {k}");
            let share = 2.0_f64.powi(-1 - zeros as i32);
            below_half += usize::from(tail_from(2 * k, 2 * std) < 0.75 * share);
            largest = largest.max(k);
        }
    }
    assert!(largest > 9 * std && largest < 10 * std, "{}", largest as f64 / std as f64);
    // 504 draws with probability ½: 4.9 standard deviations are 55.
    assert!((197..=307).contains(&below_half), "{below_half}");
}

/// The numbers agree with the tail at an edge in their first word, in two, in five and in nine.
#[test]
fn as_many_bits_are_drawn_as_it_takes_to_tell_a_number_from_an_edge() {
    let (numerator, denominator) = (2 * 1_234_567 + 1, 2 * (1 << 20));
    let edge = tail::upper(numerator, denominator, MAX_WORDS).value;
    let highest_first: Vec<u64> = edge.fraction().iter().rev().copied().collect();
    for agreeing in [1, 2, 4, 8] {
        for below in [true, false] {
            let mut words = highest_first.clone();
            words[agreeing] = if below { words[agreeing] / 2 } else { words[agreeing] / 2 + (1 << 63) };
            let mut uniform = Uniform { words, rest: stream(4) };
            assert_eq!(uniform.is_below_tail(numerator, denominator), below, "{agreeing}");
        }
    }
}

#[test]
fn an_elements_noise_depends_on_its_index_alone() {
    let noise = RoundedGaussian::new(1 << 28).unwrap();
    let whole = draws(1 << 28, 5, 5000);
    for first in [0, 1, 7, 1023, 1024, 3001] {
        let mut part = vec![10; 1500];
        noise.add_to(&mut stream(5), first, &mut part);
        let want: Vec<i64> = whole[first as usize..][..1500].iter().map(|z| z + 10).collect();
        assert_eq!(part, want, "{first}");
    }
    assert_ne!(whole, draws(1 << 28, 6, 5000));
}

/// Oracle: ChaCha20 written from its specification in Python, and round(std·Q(v)) by mpmath 1.3 with 200 bits. A change would break every stored test run.
#[test]
fn draws_are_frozen() {
    assert_eq!(draws(1 << 28, 0, 6), FROZEN);
}
const FROZEN: [i64; 6] = [-97_802_671, -225_825_107, 263_737_746, 544_479_935, -128_710_269, 416_805_129];

#[test]
fn a_std_out_of_range_is_refused() {
    for bad in [0, RoundedGaussian::MAX_STD + 1, u64::MAX] {
        assert!(RoundedGaussian::new(bad).is_err());
    }
}

/// Draws elements of round(z − a), for `a` in units of 2⁻¹⁶.
fn shifted(std: u64, a: i64, index: u32, count: usize) -> Vec<i64> {
    let mut values = vec![a; count];
    RoundedGaussian::new(std).unwrap().subtract(&mut stream(index), 0, &mut values);
    values
}

/// Returns P(round(z − f) = k) for f = `fraction`·2⁻¹⁶, as a difference of two tails.
fn shifted_mass(k: i64, fraction: i64, std: u64) -> f64 {
    let tail = |edge: i64| match edge >= 0 {
        true => tail_from(edge as u64, std << 17),
        false => 1.0 - tail_from(edge.unsigned_abs(), std << 17),
    };
    let edge = |k: i64| (k << 17) - (1 << 16) + 2 * fraction;
    tail(edge(k)) - tail(edge(k + 1))
}

/// Oracle: the exact probabilities of the cells after the shift. Cells of less than 20 expected draws are left out; with 8 to 60
/// cells χ² exceeds its mean by more than 8.3 standard deviations with a probability below 1e-6.
#[test]
fn shifted_draws_follow_the_exact_cell_probabilities_and_a_wrong_shift_is_rejected() {
    let count = 300_000;
    let distance = |sample: &[i64], std: u64, fraction: i64| {
        let cells = (-60..=60).map(|k| (k, count as f64 * shifted_mass(k, fraction, std)));
        let cells: Vec<(i64, f64)> = cells.filter(|(_, expected)| *expected > 20.0).collect();
        let deviation = |(k, expected): &(i64, f64)| {
            let observed = sample.iter().filter(|z| *z == k).count() as f64;
            (observed - expected).powi(2) / expected
        };
        let freedom = cells.len() as f64;
        (cells.iter().map(deviation).sum::<f64>() - freedom) / (2.0 * freedom).sqrt()
    };
    for (std, fraction, index) in [(1, 21_111, 21), (3, -32_768, 22), (9, 30_000, 23)] {
        let sample = shifted(std, fraction, index, count);
        let right = distance(&sample, std, fraction);
        assert!(right < 8.3, "{std}: {right}");
        let wrong = distance(&sample, std, fraction + if fraction > 0 { -16_384 } else { 16_384 });
        assert!(wrong > 8.3, "{std}: {wrong}");
        let unshifted = distance(&sample, std, 0);
        assert!(unshifted > 8.3, "{std}: {unshifted}");
    }
}

#[test]
fn a_whole_shift_moves_each_draw_by_as_much() {
    for std in [1, 77, (1 << 28) + 1] {
        for whole in [0, 5, -(1 << 33)] {
            let want: Vec<i64> = draws(std, 24, 3000).into_iter().map(|z| z - whole).collect();
            assert_eq!(shifted(std, whole << FRACTION_BITS, 24, 3000), want);
        }
    }
}

/// With an interval as wide as a cell, every draw is decided in exact arithmetic, as for unshifted draws.
#[test]
fn shifted_draws_are_the_same_on_the_fast_and_the_exact_path() {
    for std in [1, 5, (1 << 28) + 1, RoundedGaussian::MAX_STD] {
        let noise = RoundedGaussian::new(std).unwrap();
        let shifts: Vec<i64> = (0..3000).map(|at| at * at * 7919 - (at << 35)).collect();
        let (mut fast, mut exact) = (shifts.clone(), shifts);
        noise.subtract(&mut stream(25), 77, &mut fast);
        noise.draw_with_tolerance::<true>(&mut stream(25), 77, &mut exact, 1.0);
        assert_eq!(fast, exact, "{std}");
    }
}
