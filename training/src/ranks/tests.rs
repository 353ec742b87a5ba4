use super::threads::{ended_on_ranks, on_ranks};
use super::*;
use network::nn::{Initializer, ParamSpec};

fn specs(lengths: &[usize]) -> Vec<ParamSpec> {
    let spec = |&length: &usize| ParamSpec {
        name: length.to_string(),
        shape: vec![1, length],
        initial: Initializer::Constant(0.0),
    };
    lengths.iter().map(spec).collect()
}

#[test]
fn a_failure_on_any_rank_is_one_on_all_and_the_first_says_which() {
    for failing in 0..3 {
        let found = on_ranks(3, |ranks| {
            let own = || Err(RunError::Refused("no such file".to_owned()));
            ranks.agree(if ranks.rank() == failing { own() } else { Ok(7) }).unwrap_err()
        });
        let shown = found[0].to_string();
        assert!(shown.contains("no such file"), "{shown}");
        assert_eq!(shown.contains(&format!("rank {failing} of 3")), failing > 0, "{shown}");
        assert!(found[1..].iter().all(|error| matches!(error, RunError::Elsewhere { code: 2 })));
        assert!(found.iter().all(|error| error.exit_code() == 2));
    }
    assert!(on_ranks(3, |ranks| ranks.agree(Ok(())).is_ok()).into_iter().all(|agreed| agreed));
}

/// A rank that computes for hours must not keep the reason from the user.
#[test]
fn a_rank_that_failed_ends_all_ranks_if_another_takes_long_and_waits_for_it_otherwise() {
    for (failing, longest, want) in
        [(0, PATIENCE * 5, vec![(0, 2)]), (1, PATIENCE * 5, vec![(1, 2)]), (1, Duration::ZERO, Vec::new())]
    {
        let (_, ended) = ended_on_ranks(2, |ranks| {
            let refusal = || Err(RunError::Refused("no such file".to_owned()));
            if ranks.rank() != failing {
                std::thread::sleep(longest);
            }
            ranks.agree::<()>(if ranks.rank() == failing { refusal() } else { Ok(()) })
        });
        assert_eq!(ended, want);
    }
}

/// The longest message takes two rounds, and some are empty.
#[test]
fn each_rank_receives_what_every_rank_sent_to_it() {
    for count in [1, 2, 3] {
        let message = |from: usize, to: usize| {
            vec![(10 * from + to) as u8; (from * to) * (MAX_ROUND_LENGTH / count / 3 + 7)]
        };
        let received = on_ranks(count, |ranks| {
            let sent: Vec<Vec<u8>> = (0..count).map(|to| message(ranks.rank(), to)).collect();
            ranks.all_to_all(&sent)
        });
        for (to, received) in received.into_iter().enumerate() {
            assert!(received.into_iter().enumerate().all(|(from, bytes)| bytes == message(from, to)));
        }
    }
}

/// The longest message takes three rounds, and some are empty. After a failure the ranks still make the same calls.
#[test]
fn the_first_rank_collects_the_bytes_of_all_even_if_one_fails() {
    for (count, failing) in [(1, None), (3, None), (3, Some(0)), (3, Some(2))] {
        let message = |rank: usize| vec![rank as u8 + 1; rank * (MAX_ROUND_LENGTH / count + 7)];
        let lengths: Vec<u64> = (0..count).map(|rank| message(rank).len() as u64).collect();
        let collected = on_ranks(count, |ranks| {
            let (own, mut at) = (message(ranks.rank()), 0);
            let fill = |bytes: &mut [u8]| {
                bytes.copy_from_slice(&own[at..at + bytes.len()]);
                at += bytes.len();
                if failing == Some(ranks.rank()) { Err("failed") } else { Ok(()) }
            };
            let mut all = vec![Vec::new(); count];
            let outcome = ranks.collect_bytes(&lengths, fill, |rank, bytes| {
                all[rank].extend_from_slice(bytes);
                Ok(())
            });
            assert_eq!(ranks.total(1), count as i128);
            (outcome, all)
        });
        for (rank, (outcome, all)) in collected.into_iter().enumerate() {
            assert_eq!(outcome.is_err(), failing == Some(rank));
            let whole = rank == 0 && failing.is_none();
            let want = |of: usize| if whole { message(of) } else { Vec::new() };
            assert!(failing.is_some() || (0..count).all(|of| all[of] == want(of)));
        }
    }
}

#[test]
fn the_first_ranks_outcome_and_values_are_those_of_all() {
    let outcomes = on_ranks(3, |ranks| {
        let failed = || RunError::Failed("full disk".to_owned());
        let own = if ranks.is_first() { Err(failed()) } else { Ok(None::<u8>) };
        (
            ranks.outcome_of_first(own).unwrap_err().exit_code(),
            ranks.of_first(ranks.rank() as u64 + 5).unwrap(),
        )
    });
    assert_eq!(outcomes, [(1, 5); 3]);
}

/// Messages are cut into parts, and ranks send different lengths.
#[test]
fn bytes_of_any_length_reach_every_rank() {
    let lengths = [0, 1, MAX_MESSAGE_LENGTH + 3];
    let bytes = |rank: usize| -> Vec<u8> { (0..lengths[rank]).map(|at| (at * 7 + rank) as u8).collect() };
    for (all, first) in on_ranks(3, |ranks| {
        let first = ranks.broadcast(if ranks.is_first() { bytes(2) } else { Vec::new() });
        let mut key = [ranks.rank() as u8 + 9; 32];
        ranks.broadcast_in_place(&mut key);
        assert_eq!(key, [9; 32]);
        (ranks.exchange(&bytes(ranks.rank())), first)
    }) {
        assert!(all == [bytes(0), bytes(1), bytes(2)] && first == bytes(2));
    }
}

#[test]
fn totals_are_exact_and_any_is_a_disjunction() {
    let large = i128::from(u64::MAX) * 3;
    assert_eq!(on_ranks(2, |ranks| ranks.total(large - ranks.rank() as i128)), [2 * large - 1; 2]);
    assert_eq!(on_ranks(2, |ranks| ranks.any(ranks.rank() == 1)), [true; 2]);
    assert_eq!(on_ranks(2, |ranks| ranks.any(false)), [false; 2]);
    let differing =
        on_ranks(3, |ranks| ranks.check_same(&[(ranks.rank() / 2) as u8], "other bytes").unwrap_err());
    assert!(
        matches!(&differing[0], RunError::Refused(said) if said.contains("rank 2 of 3") && said.ends_with("other bytes"))
    );
    assert!(on_ranks(3, |ranks| ranks.check_same(b"equal", "").is_ok()).into_iter().all(|same| same));
}

/// Parameters have odd lengths, and there are more ranks than elements of some parameters.
#[test]
fn every_element_is_in_one_piece_and_comes_back_to_its_place() {
    for (lengths, count) in [(vec![5, 1, 12], 1), (vec![5, 1, 12], 4), (vec![2, 0, 1], 5), (vec![1000, 3], 3)]
    {
        let specs: Arc<[ParamSpec]> = specs(&lengths).into();
        let number = |param: usize, at: usize| (1000 * param + at) as i64;
        let parts: Vec<Vec<i64>> = lengths
            .iter()
            .enumerate()
            .map(|(param, &n)| (0..n).map(|at| number(param, at)).collect())
            .collect();
        let whole = on_ranks(count, |ranks| {
            let shards = Shards::new(ranks.clone(), Arc::clone(&specs), Grain::Elements);
            let own = shards.sum(&parts);
            for (piece, sums) in shards.pieces().iter().zip(&own) {
                let want = piece.range.clone().map(|at| count as i64 * number(piece.param, at));
                assert!(sums.iter().copied().eq(want));
            }
            let elements: usize = shards.specs().iter().map(ParamSpec::len).sum();
            let floats = own.iter().map(|sums| sums.iter().map(|sum| *sum as f32).collect()).collect();
            (elements, shards.gather(floats))
        });
        let largest = whole.iter().map(|(elements, _)| *elements).max();
        assert_eq!(largest, Some(lengths.iter().sum::<usize>().div_ceil(count)), "a rank keeps 1/P");
        for (_, gathered) in &whole {
            let want = parts.iter().map(|part| part.iter().map(|value| (count as i64 * value) as f32));
            assert!(gathered.iter().zip(want).all(|(got, want)| got.iter().copied().eq(want)));
        }
    }
}

/// A matrix of 130 rows has blocks of 3 rows; vectors are not cut, and vectors of the same length
/// follow each other. Oracle: the definition of [`block_rows`].
#[test]
fn blocks_of_rows_are_not_cut_and_stretches_differ_by_at_most_a_block() {
    let matrix = ParamSpec { shape: vec![130, 7], ..specs(&[910]).remove(0) };
    let vector = ParamSpec { shape: vec![40], ..specs(&[40]).remove(0) };
    let params: Arc<[ParamSpec]> = vec![vector.clone(), matrix.clone(), vector].into();
    // Half a block at either end of a rank's rows, and of its vectors.
    let slack = 3 * 7 + 40;
    for count in [1, 2, 3, 7, 60] {
        let pieces = on_ranks(count, |ranks| {
            let shards = Shards::new(ranks.clone(), Arc::clone(&params), Grain::Blocks);
            let specs = shards.specs().iter().map(ParamSpec::len).sum::<usize>();
            (shards.pieces().to_vec(), specs)
        });
        let mut next = vec![0; params.len()];
        for (pieces, elements) in pieces {
            assert!(elements.abs_diff(990 / count) <= slack, "{elements} of 990 for one of {count} ranks");
            for piece in pieces {
                let (block, end) = (
                    block_rows(&params[piece.param]) * row_length(&params[piece.param]),
                    &mut next[piece.param],
                );
                assert_eq!(piece.range.start, *end);
                *end = piece.range.end;
                assert!(*end % block == 0 || *end == params[piece.param].len(), "{piece:?}");
            }
        }
        assert_eq!(next, [40, 910, 40]);
    }
    assert_eq!(block_rows(&matrix), 3);
}

/// Oracle: the sum of whole parameters. Stretches are of 64 values, so that some parameters are in several, and some stretches hold
/// several parameters.
#[test]
fn divided_sums_are_the_sums_of_whole_parameters_in_any_order_of_these() {
    let spec = |shape: &[usize]| ParamSpec {
        name: String::new(),
        shape: shape.to_vec(),
        initial: network::nn::Initializer::Constant(0.0),
    };
    let params: Vec<ParamSpec> =
        [&[70, 3][..], &[5], &[1], &[0], &[70, 3], &[9, 40], &[11]].into_iter().map(spec).collect();
    let orders = [vec![0, 1, 2, 3, 4, 5, 6], vec![5, 6, 4, 2, 1, 0], vec![2, 0, 6, 5, 1, 4]];
    for (grain, order) in [Grain::Elements, Grain::Blocks]
        .into_iter()
        .flat_map(|grain| orders.iter().map(move |order| (grain, order)))
    {
        for count in 1..=5 {
            let same = on_ranks(count, |ranks| {
                let shards = Shards::new(ranks.clone(), params.clone().into(), grain);
                let value =
                    |param: usize, at: usize| (1 + ranks.rank() as i64) * (1000 * param as i64 + at as i64);
                let part =
                    |(param, spec): (usize, &ParamSpec)| (0..spec.len()).map(|at| value(param, at)).collect();
                let whole: Vec<Vec<i64>> = params.iter().enumerate().map(part).collect();
                let mut sum = DividedSum::zero(ranks, shards.elements());
                // Twice, and zeros in between.
                for _ in 0..2 {
                    let mut stretch = 0;
                    let mut send = |integers| {
                        sum.add(stretch, integers);
                        stretch += 1;
                    };
                    let mut stretches = Stretches::new(&mut send);
                    for &param in order {
                        stretches.push(whole[param].len(), |range, integers| {
                            integers.copy_from_slice(&whole[param][range])
                        });
                    }
                    assert_eq!(stretches.finish(), shards.elements());
                    (0..sum.stretches()).for_each(|stretch| sum.add_zeros(stretch));
                }
                assert!(sum.fits());
                let twice: Vec<Vec<i64>> = shards
                    .sum(&whole)
                    .into_iter()
                    .map(|piece| piece.into_iter().map(|value| 2 * value).collect())
                    .collect();
                sum.into_pieces(&shards, order) == twice
            });
            assert!(same.iter().all(|same| *same), "{count} ranks, {grain:?}, {order:?}");
        }
    }
}

/// A sum beyond the range is noticed by the rank that has it.
#[test]
fn a_divided_sum_that_does_not_fit_is_noticed() {
    let fits = on_ranks(2, |ranks| {
        let mut sum = DividedSum::zero(ranks, 3);
        for _ in 0..3 {
            sum.add(0, vec![0, 1 << 60, if ranks.is_first() { -1 << 60 } else { 0 }]);
        }
        sum.fits()
    });
    assert_eq!(fits, [false, true]);
}
