//! A private step that several ranks take together.

use super::*;
use crate::ranks::threads::on_ranks;
use crate::ranks::{Grain, Ranks, Shards};
use network::nn::Kernels;
use network::tensor::to_host;

const CLIP_NORM: f64 = 0.5;
const SIGMA: f64 = 2.0;

/// How ranks compute a step.
#[derive(Clone, Copy, Debug)]
struct Way {
    sizes: Sizes,
    arithmetic: Arithmetic,
    recompute: bool,
}

/// Sums that ranks add up after each micro-batch.
fn divided() -> Way {
    Way { sizes: small(), arithmetic: Arithmetic::Fast, recompute: false }
}

/// The gradient that ranks release together, in units of the clipped sum, with its figures.
fn gradient(way: Way, examples: &[Example], rows: usize, ranks: &Ranks) -> (Vec<f64>, f64) {
    let (model, weights) = model(way.sizes, 12);
    let step = DpStep {
        noise: GaussianMechanism::new(SIGMA).unwrap(),
        l2_clip_norm: CLIP_NORM,
        expected_batch_size: 8.0,
        learning_rate: 0.0,
        step: 3,
    };
    let shards = Shards::new(ranks.clone(), weights.specs().into(), Grain::Elements);
    let share = ranks.share(rows);
    let own: Vec<Example> = examples
        .iter()
        .enumerate()
        .filter(|(place, _)| share.has(*place))
        .map(|(_, own)| own.clone())
        .collect();
    // So few parameters that a rank keeps the whole sum.
    let is_divided = way.sizes.d_model > 4 && ranks.are_several();
    assert_eq!(shards.divide_sums(), is_divided);
    let lot = Lot { shards: Some(&shards), recompute: way.recompute, ..lot(&model, &own, rows) };
    let summation = Summation { clipping: Clipping::Flat, arithmetic: way.arithmetic };
    let rng = TestRng::from_seed(2);
    let (gradient, _) =
        private_gradient(&model, &weights, &lot, &step, summation, &mut Carried::default(), &rng).unwrap();
    let to_noise = gradient.to_noise();
    let whole = shards.gather(gradient.into_parts().into_iter().map(to_host).collect());
    (whole.into_iter().flatten().map(|value| f64::from(value) * 8.0).collect(), to_noise)
}

/// PITFALLS 10: the owner of a part adds noise of full size to it, once. Lots are empty on one rank, on most, and on all.
#[test]
fn total_noise_has_variance_sigma_squared_c_squared_for_any_number_of_ranks_and_a_wrong_one_is_rejected() {
    for ranks in 1..=4 {
        let found = on_ranks(ranks, |ranks| gradient(divided(), &[], 4, ranks).0);
        let n = found[0].len() as f64;
        let ratio = found[0].iter().map(|z| z * z).sum::<f64>() / n / (SIGMA * CLIP_NORM).powi(2);
        // χ²/n has standard deviation √(2/n); 4.9 of them are α = 1e-6.
        let tolerance = 4.9 * (2.0 / n).sqrt();
        assert!((ratio - 1.0).abs() < tolerance, "{ranks}: {ratio}");
        // Noise of σ√P or σ/√P for each rank, as in systems that count their ranks wrongly.
        for wrong in [2.0, 0.5, ranks as f64, 1.0 / ranks as f64].into_iter().filter(|wrong| *wrong != 1.0) {
            assert!((ratio * wrong - 1.0).abs() > tolerance, "{wrong}");
        }
        assert!(found.iter().all(|other| *other == found[0]));
    }
}

#[test]
fn ranks_release_the_bits_that_one_process_releases_also_where_some_have_no_examples() {
    // Nine examples in micro-batches of 4 fill three ranks, and the fourth has none. In
    // micro-batches of 16, one rank has all examples.
    let views: Vec<Example> = ragged_lot().chunks(2).map(|unit| Example::of_views(unit.to_vec())).collect();
    let whole = Way { sizes: Sizes { d_model: 4, heads: 1, d_ff: 4, layers: 1, ..small() }, ..divided() };
    // An embedding that an example's whole gradient gives in several parts, and a matrix of several rows of tiles.
    let sizes = Sizes { vocab_size: 600, ..small() };
    let in_tiles = Way { sizes, arithmetic: Arithmetic::Exact, recompute: false };
    let ways = [
        divided(),
        Way { recompute: true, ..divided() },
        whole,
        in_tiles,
        Way { recompute: true, ..in_tiles },
    ];
    for way in ways {
        for (examples, rows) in
            [(&ragged_lot(), 4), (&ragged_lot(), 16), (&ragged_lot(), 1), (&Vec::new(), 4), (&views, 2)]
        {
            let alone = on_ranks(1, |ranks| gradient(way, examples, rows, ranks)).remove(0);
            for count in 2..=4 {
                let together = on_ranks(count, |ranks| gradient(way, examples, rows, ranks));
                assert!(together.iter().all(|found| *found == alone), "{way:?}, {count} ranks, {rows} rows");
            }
        }
    }
}

/// If a sum does not fit on one rank, all ranks refuse it: no rank waits for another.
#[test]
fn an_overflow_on_one_rank_ends_the_step_on_all() {
    let specs =
        [ParamSpec { name: String::new(), shape: vec![9], initial: network::nn::Initializer::Constant(0.0) }];
    for count in [1, 3] {
        let outcomes = on_ranks(count, |ranks| {
            let shards = Shards::new(ranks.clone(), specs.to_vec().into(), Grain::Elements);
            let sum = GridSum::zero(&specs, 1.0, 2.0_f64.powi(-20)).finish().unwrap();
            let mut parts = sum.parts.clone();
            parts[0][4] = if ranks.rank() == count - 1 { i64::MIN } else { 1 };
            shared::sum_of_all(Ok(ClippedSum { parts, ..sum }), &shards).err()
        });
        assert_eq!(outcomes, vec![Some(StepError::Overflow); count]);
    }
}

/// Returns the errors of ranks that divide the sum of these examples, all of which are in one micro-batch of the last rank.
fn errors_of_rounds(
    model: &Network,
    weights: &Weights<Flex>,
    examples: &[Example],
    summing: &summing::Summing<'_>,
    count: usize,
) -> Vec<Option<StepError>> {
    on_ranks(count, |ranks| {
        let shards = Shards::new(ranks.clone(), weights.specs().into(), Grain::Elements);
        assert!(shards.divide_sums());
        let own = if ranks.rank() == count - 1 { examples } else { &[] };
        let lot = Lot { shards: Some(&shards), ..lot(model, own, examples.len()) };
        shared::sum_in_rounds(summing, weights, &lot, &shards).err()
    })
}

/// A device rounds gradients below 2⁵¹ grid steps. It refuses larger ones. Those just beyond are so small that no other check refuses them.
#[test]
fn a_gradient_beyond_the_grid_on_one_rank_ends_a_divided_sum_on_all() {
    let (model, weights) = model(small(), 12);
    let examples = &ragged_lot()[..1];
    let summing_at =
        |grid_step| summing::Summing::new(&model, fast(Clipping::Flat), CLIP_NORM, grid_step).unwrap();
    let zero = GridSum::zero(weights.specs(), CLIP_NORM, 2.0_f64.powi(-40));
    let lot = lot(&model, examples, examples.len());
    let whole = summing::clipped_sum(&summing_at(2.0_f64.powi(-40)), &weights, &lot, zero).unwrap();
    let largest = whole.parts.iter().flatten().map(|integer| integer.unsigned_abs()).max().unwrap();
    // The largest gradient has this number of bits at this grid step.
    let grid_step_for = |bits: i32| 2.0_f64.powi(largest.ilog2() as i32 + 1 - 40 - bits);
    for (bits, error) in [(51, None), (52, Some(StepError::Overflow))] {
        let found = errors_of_rounds(&model, &weights, examples, &summing_at(grid_step_for(bits)), 2);
        assert_eq!(found, vec![error; 2], "{bits} bits");
    }
}

/// Each of 512 gradients fits, and their sum does, but those of as many examples on each thread of 32 ranks might not.
#[test]
fn integers_beyond_a_ranks_share_of_the_range_end_a_divided_sum_on_all() {
    const RANKS: usize = 32;
    let (clip_norm, grid_step) = (1.999 * 2.0_f64.powi(-10), 2.0_f64.powi(-60));
    let (model, weights) = model(Sizes { context: 1, ..small() }, 12);
    let exact = Summation { clipping: Clipping::Flat, arithmetic: Arithmetic::Exact };
    let summing = summing::Summing::new(&model, exact, clip_norm, grid_step).unwrap();
    // The first group is that of one thread. The groups of other threads have no targets.
    let workers = <Flex as Kernels>::workers();
    let mut examples = vec![Example::causal(&[3, 4]); 512];
    examples.resize(512 * workers, Example::causal(&[]));
    let zero = GridSum::zero(weights.specs(), clip_norm, grid_step);
    let whole =
        summing::clipped_sum(&summing, &weights, &lot(&model, &examples, examples.len()), zero).unwrap();
    let largest = whole.parts.iter().flatten().map(|integer| integer.unsigned_abs()).max().unwrap();
    assert!(largest > (1 << 62) / (RANKS * workers) as u64 && largest < 1 << 62, "{largest}");
    let found = errors_of_rounds(&model, &weights, &examples, &summing, RANKS);
    assert_eq!(found, vec![Some(StepError::Overflow); RANKS]);
    let few = errors_of_rounds(&model, &weights, &examples[..1], &summing, RANKS);
    assert_eq!(few, vec![None; RANKS]);
}
