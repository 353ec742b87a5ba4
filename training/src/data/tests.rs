use std::collections::HashSet;
use std::path::{Path, PathBuf};

use dp_tokenizer::corpus::{self, Files, LineFiles, Source};
use dp_tokenizer::tokens::TokenDataset;
use dp_tokenizer::tokens::{PartPlace, TokenWriter};
use dp_tokenizer::unit::{Piece, PrivacyUnit};
use mechanisms::{PrivacyRng, Purpose, TestRng};
use proptest::prelude::*;
use tokenizer::Tokenizer;

use super::divided::Divided;
use super::text_index::read_text;
use super::*;
use crate::RunError;
use crate::disclosure::Private;
use crate::dp::{TrainingData, TrainingSet};
use crate::objective::Objective;
use crate::ranks::threads::on_ranks;
use crate::ranks::{Ranks, Share};
use network::Example;

/// Trains a small public vocabulary with byte fallback.
fn tokenizer() -> (Tokenizer, u32) {
    let words = [("\u{2581}alpha".to_owned(), 5.0), ("\u{2581}gamma".to_owned(), 3.0)];
    let config = dp_tokenizer::train::UnigramConfig { vocab_size: 380, ..Default::default() };
    let tokenizer = dp_tokenizer::train::unigram(&words, &config).unwrap().tokenizer;
    let eos = tokenizer.eos_id().unwrap();
    (tokenizer, eos)
}

fn causal(eos: u32, context: usize) -> WindowSpec {
    WindowSpec { bos: eos, eos, length: context, overlaps: true, marks_pieces: false }
}

fn parts(texts: &[(u64, &str)]) -> Vec<UnitText> {
    texts
        .iter()
        .map(|&(unit, text)| UnitText {
            piece: Piece { unit, text: text.to_owned() },
            begins_record: true,
            ends_record: true,
        })
        .collect()
}

/// PITFALLS 17: windows are disjoint in their targets, cover the unit, and never hold another unit's token.
#[test]
fn every_token_of_a_unit_is_a_target_exactly_once_and_in_its_own_unit() {
    let (tokenizer, eos) = tokenizer();
    let texts = ["a", "bb", "cccc", "dddddddd", "e e e e e e e e e e e e"];
    let numbered: Vec<(u64, &str)> = texts.iter().enumerate().map(|(i, &text)| (i as u64, text)).collect();
    for context in [2, 3, 4, 100] {
        let dataset = Dataset::encode(&parts(&numbered), &tokenizer, causal(eos, context));
        assert_eq!(dataset.units(), texts.len());
        for (unit, text) in texts.iter().enumerate() {
            let mut targets = Vec::new();
            for window in 0..dataset.windows_of(unit) {
                let window = dataset.window(unit, window).unwrap();
                assert!(window.len() >= 2 && window.len() <= context + 1);
                targets.extend_from_slice(&window[1..]);
            }
            let mut expected = tokenizer.encode(text);
            expected.push(eos);
            assert_eq!(targets, expected, "unit {unit}, context {context}");
        }
    }
}

/// The windows that training reads of a unit are full, cover it, and differ.
#[test]
fn windows_of_a_unit_that_has_several_are_full_and_leave_out_no_token() {
    let (tokenizer, eos) = tokenizer();
    let text: String = ('a'..='z').collect();
    for (length, context) in
        [(1, 4), (4, 4), (5, 4), (7, 4), (8, 4), (9, 4), (26, 3), (26, 25), (26, 26), (26, 1)]
    {
        let dataset = Dataset::encode(&parts(&[(0, &text[..length])]), &tokenizer, causal(eos, context));
        let windows: Vec<Vec<u32>> =
            (0..dataset.windows_of(0)).map(|at| dataset.full_window(0, at).unwrap()).collect();
        let expected = [vec![eos], tokenizer.encode(&text[..length]), vec![eos]].concat();
        let targets = expected.len() - 1;
        assert_eq!(windows.len(), targets.div_ceil(context), "{length} {context}");
        assert!(windows.iter().all(|window| window.len() == targets.min(context) + 1), "{length} {context}");
        assert_eq!(windows.iter().collect::<HashSet<_>>().len(), windows.len(), "{length} {context}");
        // Letters occur once, so a window's place follows from its first target.
        let begins: Vec<usize> = windows
            .iter()
            .map(|window| (0..=targets).find(|&at| expected[at..].starts_with(window)).unwrap())
            .collect();
        assert_eq!((begins[0], begins[begins.len() - 1] + targets.min(context)), (0, targets));
        assert!(begins.windows(2).all(|pair| pair[1] - pair[0] <= context), "{begins:?}");
    }
}

#[test]
fn records_of_one_user_are_one_unit_wherever_they_stand() {
    let (tokenizer, eos) = tokenizer();
    let dataset = Dataset::encode(&parts(&[(0, "a"), (1, "b"), (0, "c")]), &tokenizer, causal(eos, 100));
    let of = |text: &str| tokenizer.encode(text);
    assert_eq!(dataset.units(), 2);
    assert_eq!(dataset.window(0, 0).unwrap(), [vec![eos], of("a"), vec![eos], of("c"), vec![eos]].concat());
}

fn choices(step: u64) -> mechanisms::Stream {
    TestRng::from_seed(3).stream(Purpose::Window, step, 0)
}

/// A unit contributes one window, however many it owns: the sensitivity of the step is one clipped
/// gradient.
#[test]
fn a_sampled_unit_contributes_exactly_one_of_its_windows_and_any_of_them() {
    let (tokenizer, eos) = tokenizer();
    let long = "abcdefghijklmnopqrstuvwxyz".repeat(4);
    let dataset = Dataset::encode(&parts(&[(0, &long)]), &tokenizer, causal(eos, 8));
    assert!(dataset.windows_of(0) > 10);
    let mut seen = HashSet::new();
    for step in 0..400 {
        let drawn = choose(&Private::new(vec![0]), |_| dataset.windows_of(0), 1, &mut choices(step));
        let windows = dataset.read(&drawn).unwrap();
        assert_eq!(windows.for_mechanism().len(), 1);
        assert_eq!(windows.for_mechanism()[0].windows.len(), 1);
        seen.insert(windows.for_mechanism()[0].windows[0].clone());
    }
    // Oracle: a window is missed with probability below 14·(13/14)^400 < 2e-12.
    let all = (0..dataset.windows_of(0)).map(|window| dataset.full_window(0, window).unwrap());
    assert_eq!(seen.len(), all.collect::<HashSet<_>>().len());
}

/// With views, a unit contributes as many different windows as it has, up to the plan's number. It still has a single
/// place in the lot.
#[test]
fn a_sampled_unit_contributes_no_window_twice_and_no_more_than_the_plan_says() {
    let (tokenizer, eos) = tokenizer();
    // No window's text occurs twice.
    let [long, short] = [(0..36).map(|at| format!("{at:03}")).collect::<String>(), "abcdefghij".to_owned()];
    let dataset = Dataset::encode(&parts(&[(0, &long), (1, &short), (2, &long)]), &tokenizer, causal(eos, 8));
    let windows_of = [0, 1, 2].map(|unit| dataset.windows_of(unit));
    assert!(windows_of[0] > 10 && windows_of[1] == 2);
    for step in 0..50 {
        let sampled = |share| {
            let number_of = |unit| windows_of[unit as usize];
            let lot = choose(&Private::new(vec![0, 1, 2]), number_of, 4, &mut choices(step));
            dataset.read(&own(lot, share)).unwrap()
        };
        let lot = sampled(Share::WHOLE).for_mechanism().clone();
        let sizes: Vec<(u64, usize)> = lot.iter().map(|unit| (unit.index, unit.windows.len())).collect();
        assert_eq!(sizes, [(1, 2), (0, 4), (2, 4)]);
        for SampledUnit { index, windows } in &lot {
            let distinct: HashSet<&Vec<u32>> = windows.iter().collect();
            let of_unit: Vec<Vec<u32>> = (0..windows_of[*index as usize])
                .map(|at| dataset.full_window(*index as usize, at).unwrap())
                .collect();
            assert!(distinct.len() == windows.len() && windows.iter().all(|window| of_unit.contains(window)));
        }
        let shares = [0, 1].map(|rank| sampled(Share { rank, count: 2, physical_batch: 2 }));
        assert_eq!(shares.map(|own| own.for_mechanism().clone()).concat(), lot);
    }
}

/// A record of several owners counts once for each of them, however many windows it has: its windows are no examples of their own.
#[test]
fn a_record_of_several_owners_is_one_example_however_long_it_is() {
    let text = r#"{
        "version": 1, "name": "a", "data": { "source": { "path": "a.jsonl" }, "owners_field": "of", "units": 5 },
        "privacy": {
            "unit": "owner", "relation": "zero_out", "delta": 1e-2, "noise_multipliers": { "training": 1.0 },
            "sampling": { "poisson_of_examples": { "examples": 5, "examples_per_unit": 4 } }
        },
        "tokenizer": "bytes",
        "model": { "family": "gpt2", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 8 },
        "training": {
            "objective": "causal_lm", "expected_batch_size": 5, "steps": 40, "l2_clip_norm": 1.0,
            "optimizer": { "sgd": {} }, "learning_rate": { "peak": 0.1 }
        }
    }"#;
    let plan =
        plan::PlanFile::parse(text).and_then(plan::Plan::try_from).and_then(plan::Plan::certify).unwrap();
    let tokenizer = Tokenizer::bytes(&["<eos>".to_owned(), "</s>".to_owned()]).unwrap();
    let objective = Objective::new(plan.plan(), &tokenizer, None).unwrap();
    let long = "abcdefghijklmnopqrstuvwxyz".repeat(4);
    let records: Vec<(u64, &str)> = (0..5).map(|record| (record, long.as_str())).collect();
    let dataset = Dataset::encode(&parts(&records), &tokenizer, objective.window_spec());
    assert!(dataset.windows_of(0) > 10);
    let mut data =
        TrainingData::new(plan.plan(), TrainingSet::Windows(Box::new(dataset)), objective).unwrap();
    let rng = TestRng::from_seed(5);
    // Each step samples everything, with probability 1.
    let mut lots = (0..40).map(|step| data.sample_lot(&plan, step, Share::WHOLE, &rng).unwrap());
    assert!(lots.all(|lot| lot.for_mechanism().len() == 5));
}

/// Returns the lots of a plan for 400 units in batches of 40. Text declared public is drawn in the same way,
/// uncertified.
fn lots(sampling: &str, relation: &str, steps: u64, private: bool) -> Vec<Vec<u64>> {
    let (visibility, noise) =
        if private { ("private", r#", "noise_multipliers": { "training": 1.0 }"#) } else { ("public", "") };
    let text = format!(
        r#"{{
            "version": 1, "name": "a", "data": {{ "source": {{ "path": "a.txt" }}, "units": 400, "visibility": "{visibility}" }},
            "privacy": {{ "unit": "record", "relation": "{relation}", "delta": 1e-5, "sampling": {sampling}{noise} }},
            "tokenizer": "bytes",
            "model": {{ "family": "gpt2", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 8 }},
            "training": {{ "objective": "causal_lm", "expected_batch_size": 40, "steps": {steps}, "l2_clip_norm": 1.0,
                "optimizer": {{ "sgd": {{}} }}, "learning_rate": {{ "peak": 0.1 }} }}
        }}"#
    );
    let plan =
        plan::PlanFile::parse(&text).and_then(plan::Plan::try_from).and_then(plan::Plan::certify).unwrap();
    let (rng, mut sampler) = (TestRng::from_seed(11), BatchSampler::default());
    (0..steps).map(|step| sampler.draw(&plan, step, 400, &rng).unwrap().for_mechanism().clone()).collect()
}

/// Returns the distance of the sizes' mean and variance from those of Poisson sampling, in standard
/// errors.
fn distance_from_poisson(lots: &[Vec<u64>]) -> f64 {
    let (n, q, draws) = (400.0_f64, 0.1_f64, lots.len() as f64);
    let mean = lots.iter().map(|lot| lot.len() as f64).sum::<f64>() / draws;
    let variance = lots.iter().map(|lot| (lot.len() as f64 - mean).powi(2)).sum::<f64>() / draws;
    let expected = n * q * (1.0 - q);
    let of_mean = (mean - n * q).abs() / (expected / draws).sqrt();
    of_mean.max((variance - expected).abs() / (expected * (2.0 / draws).sqrt()))
}

/// PITFALLS 1: the drawn sizes are Binomial(n, q), as the event says; other ways of drawing are rejected by the same test.
#[test]
fn drawn_sizes_have_the_mean_and_variance_of_poisson_sampling() {
    // Five standard errors are two-sided 6e-7 of 2000 nearly normal draws.
    assert!(distance_from_poisson(&lots("\"poisson\"", "add_or_remove_one", 2000, true)) < 5.0);
    assert!(distance_from_poisson(&lots("\"shuffle\"", "zero_out", 2000, true)) > 5.0);
    assert!(distance_from_poisson(&lots("\"fixed_size\"", "zero_out", 2000, false)) > 5.0);
    let cut = r#"{ "truncated_poisson": { "largest_batch": 42 } }"#;
    assert!(distance_from_poisson(&lots(cut, "zero_out", 2000, false)) > 5.0);
}

/// Every unit takes part once in each pass, and the next pass has another order.
#[test]
fn a_pass_takes_every_unit_once() {
    for (sampling, relation) in [("\"shuffle\"", "replace_one"), ("\"balls_in_bins\"", "add_or_remove_one")] {
        let lots = lots(sampling, relation, 20, true);
        for pass in lots.chunks(10) {
            let mut units = pass.concat();
            units.sort_unstable();
            assert_eq!(units, (0..400).collect::<Vec<_>>());
        }
        assert_ne!(lots[0], lots[10]);
    }
}

#[test]
fn no_truncated_batch_is_larger_than_the_plan_says_and_fixed_ones_have_its_size() {
    // The mean is 40 and the standard deviation 6: one batch in 17 reaches 50, so that none of 200 does with
    // probability 1e-5 under this fixed key.
    let cut = lots(r#"{ "truncated_poisson": { "largest_batch": 50 } }"#, "replace_one", 200, true);
    assert_eq!(cut.iter().map(Vec::len).max(), Some(50));
    assert!(lots("\"fixed_size\"", "replace_one", 20, true).iter().all(|lot| lot.len() == 40));
}

/// Oracle: the lots of one process, whose text is in memory. What the ranks compute together are its examples in their order.
#[test]
fn lots_are_those_of_one_process_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let (source, _) = text_of_users(folder.path());
    let tokenizer = Tokenizer::bytes(&["<eos>".to_owned(), "</s>".to_owned()]).unwrap();
    for (unit, units, sampling) in [
        (PrivacyUnit::Record, 400, "\"poisson\""),
        (PrivacyUnit::User, 40, "\"poisson\""),
        (PrivacyUnit::User, 40, r#"{ "poisson_of_examples": { "examples": 120, "examples_per_unit": 3 } }"#),
    ] {
        let plan = format!(
            r#"{{
                "version": 1, "name": "a", "data": {{ "source": {{ "path": "a.jsonl" }}, "units": {units}, "user_field": "who" }},
                "privacy": {{ "unit": "{unit}", "relation": "add_or_remove_one", "delta": 1e-5, "sampling": {sampling},
                    "noise_multipliers": {{ "training": 1.0 }} }},
                "tokenizer": "bytes",
                "model": {{ "family": "gpt2", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 8 }},
                "training": {{ "objective": "causal_lm", "expected_batch_size": 20, "steps": 4, "l2_clip_norm": 1.0,
                    "optimizer": {{ "sgd": {{}} }}, "learning_rate": {{ "peak": 0.1 }} }}
            }}"#
        );
        let plan = plan::PlanFile::parse(&plan)
            .and_then(plan::Plan::try_from)
            .and_then(plan::Plan::certify)
            .unwrap();
        let lots = |units: Units, share: Share| {
            let objective = Objective::new(plan.plan(), &tokenizer, None).unwrap();
            let dataset = Dataset::new(units, &tokenizer, objective.window_spec()).unwrap();
            let mut data =
                TrainingData::new(plan.plan(), TrainingSet::Windows(Box::new(dataset)), objective).unwrap();
            let mut lot = |step| data.sample_lot(&plan, step, share, &TestRng::from_seed(5)).unwrap();
            (0..4).map(|step| lot(step).into_mechanism()).collect::<Vec<_>>()
        };
        let kept = Texts::Kept(Private::new(texts_of(&source, unit)));
        let whole = lots(Units { texts: kept, tokens: None, labelled: None }, Share::WHOLE);
        assert!(whole.iter().all(|lot| lot.len() > 5));
        for count in 1..=4 {
            let found = on_ranks(count, |ranks| lots(in_files(&source, unit, ranks), ranks.share(2)));
            for (step, lot) in whole.iter().enumerate() {
                for (rank, found) in found.iter().enumerate() {
                    let share = Share { rank, count, physical_batch: 2 };
                    let want =
                        (0..).zip(lot).filter(|(place, _)| share.has(*place)).map(|(_, example)| example);
                    assert!(found[step].iter().eq(want), "{unit:?}, {sampling}, step {step}, {count} ranks");
                }
            }
        }
    }
}

proptest! {
    /// Removing a unit takes its window out of the lot of a step and leaves what every other unit owns as it was.
    #[test]
    fn removing_a_unit_changes_no_other_units_windows(removed in 0_usize..6, context in 2_usize..6) {
        let (tokenizer, eos) = tokenizer();
        let texts = ["alpha", "be", "gamma gamma", "d", "epsilon", "zeta zeta zeta"];
        let all: Vec<(u64, &str)> = texts.iter().enumerate().map(|(i, &text)| (i as u64, text)).collect();
        let mut fewer = all.clone();
        fewer.remove(removed);
        let whole = Dataset::encode(&parts(&all), &tokenizer, causal(eos, context));
        let neighbor = Dataset::encode(&parts(&fewer), &tokenizer, causal(eos, context));
        prop_assert_eq!(neighbor.units() + 1, whole.units());
        for unit in (0..texts.len()).filter(|&unit| unit != removed) {
            let place = unit - usize::from(unit > removed);
            prop_assert_eq!(neighbor.windows_of(place), whole.windows_of(unit));
            for window in 0..whole.windows_of(unit) {
                prop_assert_eq!(neighbor.window(place, window).unwrap(), whole.window(unit, window).unwrap());
            }
        }
    }
}

/// Splits a record as the unit of `n` words does.
fn pieces_of(text: &str, n: u32) -> Vec<UnitText> {
    let record = dp_tokenizer::corpus::Record::of_text(text);
    let pieces =
        dp_tokenizer::unit::UnitAssigner::new(PrivacyUnit::Words(n)).unwrap().assign(record).unwrap();
    let last = pieces.len() - 1;
    let marked = |(at, piece)| UnitText { piece, begins_record: at == 0, ends_record: at == last };
    pieces.into_iter().enumerate().map(marked).collect()
}

proptest! {
    /// TRUST 2: where a unit is a piece of words, dropping one leaves the tokens of every other piece as they were, the
    /// last piece of the record included.
    #[test]
    fn dropping_a_piece_of_a_record_changes_no_other_piece(
        words in prop::collection::vec("[a-z]{1,5}", 4..24), n in 1_u32..4, drop: prop::sample::Index, overlaps: bool,
    ) {
        let (tokenizer, eos) = tokenizer();
        let spec = WindowSpec { bos: eos, eos, length: 5, overlaps, marks_pieces: true };
        let pieces = pieces_of(&words.join(" "), n);
        let dropped = drop.index(pieces.len());
        let kept = pieces.iter().enumerate().filter(|(at, _)| *at != dropped);
        let kept: String = kept.map(|(_, text)| text.piece.text.as_str()).collect();
        let neighbor = if kept.is_empty() { Vec::new() } else { pieces_of(&kept, n) };
        let windows = |pieces: &[UnitText]| {
            let data = Dataset::encode(pieces, &tokenizer, spec);
            (0..data.units())
                .map(|unit| (0..data.windows_of(unit)).map(|at| data.window(unit, at).unwrap()).collect())
                .collect::<Vec<Vec<Vec<u32>>>>()
        };
        let mut all = windows(&pieces);
        all.remove(dropped);
        prop_assert_eq!(windows(&neighbor), all);
    }
}

/// PITFALLS 17: without a token carried over, windows share nothing at all.
#[test]
fn windows_that_carry_nothing_over_are_disjoint_and_cover_the_unit() {
    let (tokenizer, eos) = tokenizer();
    for length in [1, 3, 8, 100] {
        let cut = WindowSpec { bos: eos, eos, length, overlaps: false, marks_pieces: false };
        let dataset = Dataset::encode(&parts(&[(0, "abcdefgh abc"), (1, "x")]), &tokenizer, cut);
        for (unit, text) in ["abcdefgh abc", "x"].into_iter().enumerate() {
            let windows: Vec<Vec<u32>> =
                (0..dataset.windows_of(unit)).map(|window| dataset.window(unit, window).unwrap()).collect();
            assert!(windows.iter().all(|window| !window.is_empty() && window.len() <= length));
            assert_eq!(windows.concat(), [tokenizer.encode(text), vec![eos]].concat());
        }
    }
}

proptest! {
    /// A token file gives the windows that its text would give, for every kind of window and cut of records.
    #[test]
    fn a_token_file_gives_the_windows_of_its_text(
        records in prop::collection::vec((0_u64..5, "[a-z ]{0,12}", any::<bool>(), any::<bool>()), 1..12),
        length in 1_usize..7,
        overlaps: bool,
        marks_pieces: bool,
    ) {
        let (tokenizer, eos) = tokenizer();
        // Units are numbered in order of appearance.
        let mut seen = Vec::new();
        let numbered: Vec<UnitText> = records
            .into_iter()
            .map(|(name, text, begins_record, ends_record)| {
                let known = seen.iter().position(|&other| other == name);
                let unit = known.unwrap_or_else(|| { seen.push(name); seen.len() - 1 }) as u64;
                UnitText { piece: Piece { unit, text }, begins_record, ends_record }
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tokens");
        let vocab_size = tokenizer.vocab_size() as u64;
        let mut writer = TokenWriter::create(&path, PrivacyUnit::User, [0; 32], vocab_size).unwrap();
        for part in &numbered {
            let tokens = tokenizer.encode(&part.piece.text);
            let UnitText { piece, begins_record, ends_record } = part;
            let place = PartPlace { unit: piece.unit, begins_record: *begins_record, ends_record: *ends_record };
            writer.push(place, &tokens).unwrap();
        }
        writer.finish().unwrap();
        let cut = WindowSpec { bos: eos, eos, length, overlaps, marks_pieces };
        let units = Units {
            texts: Texts::none(),
            tokens: Some(Private::new(TokenDataset::open(&path).unwrap())),
            labelled: None,
        };
        let mut of_text = Dataset::encode(&numbered, &tokenizer, cut);
        let mut of_file = Dataset::new(units, &tokenizer, cut).unwrap();
        for dataset in [&mut of_text, &mut of_file] {
            dataset.add_units(&[vec![1, 2], vec![3]]);
        }
        prop_assert_eq!(of_text.units(), of_file.units());
        prop_assert_eq!(of_text.all_windows().unwrap(), of_file.all_windows().unwrap());
        // These replace the two units that were added and one unit before them.
        let before = of_text.units();
        for dataset in [&mut of_text, &mut of_file] {
            dataset.replace_units(&[vec![], vec![4; 3], vec![5, 6]]);
        }
        prop_assert_eq!([of_text.units(), of_file.units()], [before; 2]);
        prop_assert_eq!(of_text.all_windows().unwrap(), of_file.all_windows().unwrap());
        prop_assert_eq!(of_text.windows_of(before - 3), 0);
    }
}

/// Writes texts of users whose records lie apart, in lines, in a table and in a folder. Returns their source and the file of lines.
fn text_of_users(folder: &Path) -> (Source, PathBuf) {
    let [lines, table] = ["a.jsonl", "b.csv"].map(|name| folder.join(name));
    let text = |n: usize| format!("alpha {}gamma {n}", "é ".repeat(n % 7));
    let line = |n: usize| format!("{{\"who\":\"u{}\",\"text\":\"{}\"}}\n\n", n % 40, text(n));
    let row = |n: usize| format!("u{},\"{}\nof two lines\"\n", n % 40, text(n));
    std::fs::write(&lines, (0..300).map(line).collect::<String>()).unwrap();
    std::fs::write(&table, format!("who,text\n{}", (300..400).map(row).collect::<String>())).unwrap();
    let files = Files { user_field: Some("who".to_owned()), ..Files::of([lines.clone(), table]) };
    (Source::Files(files), lines)
}

fn in_files(source: &Source, unit: PrivacyUnit, ranks: &Ranks) -> Units {
    let text = read_text(LineFiles::of(source).unwrap(), unit, ranks).unwrap();
    Units { texts: Texts::InFiles(Box::new(Private::new(text))), tokens: None, labelled: None }
}

/// Oracle: the same text in memory. Each rank reads its own share alone.
#[test]
fn text_in_its_files_has_the_windows_of_text_in_memory_on_any_number_of_ranks() {
    let (tokenizer, eos) = tokenizer();
    let folder = tempfile::tempdir().unwrap();
    let (source, lines) = text_of_users(folder.path());
    let whole = std::fs::read_to_string(&lines).unwrap();
    for unit in [PrivacyUnit::Record, PrivacyUnit::User, PrivacyUnit::Words(2)] {
        let marks_pieces = matches!(unit, PrivacyUnit::Words(_));
        let spec = WindowSpec { bos: eos, eos, length: 5, overlaps: true, marks_pieces };
        let kept = texts_of(&source, unit);
        let in_memory = Dataset::encode(&kept, &tokenizer, spec);
        let texts = Texts::Kept(Private::new(kept));
        let digest = Units { texts, tokens: None, labelled: None }.keyed_digest(b"key");
        let drawn = |unit: u64| {
            let places = (0..in_memory.windows_of(unit as usize)).rev().collect();
            DrawnUnit { unit, index: unit, places }
        };
        let lot = Private::new((0..in_memory.units() as u64).rev().map(drawn).collect::<Vec<_>>());
        for count in [1, 2, 3, 4, 9] {
            let found = on_ranks(count, |ranks| {
                let units = in_files(&source, unit, ranks);
                let digest = units.keyed_digest(b"key");
                let mut dataset = Dataset::new(units, &tokenizer, spec).unwrap();
                dataset.measure(&(0..dataset.units() as u64).collect::<Vec<_>>()).unwrap();
                let lot = Private::new(lot.for_mechanism().clone());
                let sampled = dataset.read_lot(lot, ranks.share(3)).unwrap().into_mechanism();
                (dataset.units(), digest, sampled)
            });
            for (rank, (units, digest_in_files, sampled)) in found.into_iter().enumerate() {
                assert_eq!(
                    (units, &digest_in_files),
                    (in_memory.units(), &digest),
                    "{unit:?}, {count} ranks"
                );
                let share = Share { rank, count, physical_batch: 3 };
                let want = in_memory.read(&own(Private::new(lot.for_mechanism().clone()), share)).unwrap();
                assert!(sampled == *want.for_mechanism(), "{unit:?}, {count} ranks");
            }
        }
        std::fs::write(&lines, whole.replacen("alpha", "omega", 1)).unwrap();
        let changed = on_ranks(2, |ranks| in_files(&source, unit, ranks).keyed_digest(b"key"));
        std::fs::write(&lines, &whole).unwrap();
        assert!(changed.iter().all(|changed| *changed != digest), "{unit:?}");
    }
    let changed = on_ranks(1, |ranks| {
        let units = in_files(&source, PrivacyUnit::Record, ranks);
        let mut dataset = Dataset::new(units, &tokenizer, causal(eos, 100)).unwrap();
        std::fs::write(&lines, whole.replacen("alpha", "omega", 1)).unwrap();
        (dataset.measure(&[1]).is_ok(), dataset.measure(&[0]).unwrap_err().to_string())
    });
    assert!(changed[0].0 && changed[0].1.contains("was changed while the run read it"), "{changed:?}");
}

/// No rank reads the text of another, whatever their number.
#[test]
fn ranks_together_read_a_text_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let line = |n: usize| format!("{{\"text\":\"{n} {}\"}}\n", "word ".repeat(n % 100));
    std::fs::write(&path, (0..20_000).map(line).collect::<String>()).unwrap();
    let size = path.metadata().unwrap().len();
    for count in [1, 2, 3, 4] {
        let read = on_ranks(count, |ranks| {
            let files = Files::of([path.clone()]);
            let progress = files.progress.clone();
            in_files(&Source::Files(files), PrivacyUnit::Record, ranks);
            progress.bytes()
        });
        let total: u64 = read.iter().sum();
        assert!(total as f64 <= 1.1 * size as f64, "{count} ranks read {read:?} of {size} bytes");
        let most = read.iter().max().copied().unwrap_or(0);
        assert!(most as f64 <= 1.1 * size as f64 / count as f64 + 65_536.0, "{count} ranks: {read:?}");
    }
}

/// A refused record has its number in the whole text, and all ranks end.
#[test]
fn a_refused_record_is_named_by_its_number_in_the_whole_text_on_any_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, (1..=200).map(|n| format!("text {n}\n\n")).collect::<String>()).unwrap();
    for count in [1, 3, 50] {
        let found = on_ranks(count, |ranks| {
            let files = LineFiles::of(&Source::files([path.clone()])).unwrap();
            let read = Divided::read(files, PrivacyUnit::Record, ranks, |number, record| {
                if record.text == "text 170" {
                    return Err(RunError::Refused(format!("record {number} is refused")));
                }
                Ok(Vec::new())
            });
            read.map(drop).unwrap_err()
        });
        assert!(found[0].to_string().contains("record 170 is refused"), "{count} ranks: {}", found[0]);
        assert!(found.iter().all(|error| error.exit_code() == 2));
    }
}

/// Ranks with copies of a text that differ would train on a mixture of them.
#[test]
fn ranks_with_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = |rank: usize, changed: usize| {
        let path = folder.path().join(format!("{rank}.txt"));
        let line = |n: usize| format!("line {n} {}\n", if rank == 1 && n == changed { "x" } else { "y" });
        std::fs::write(&path, (0..1000).map(line).collect::<String>()).unwrap();
        Source::files([path])
    };
    for (changed, is_refused) in [(1000, false), (500, true)] {
        let sources = [0, 1].map(|rank| text(rank, changed));
        let found = on_ranks(2, |ranks| {
            let files = LineFiles::of(&sources[ranks.rank()]).unwrap();
            read_text(files, PrivacyUnit::Record, ranks).map(drop).map_err(|error| error.to_string())
        });
        let said = found[0].clone().err().is_some_and(|error| error.contains("differ from those of rank 0"));
        assert_eq!(said, is_refused, "{found:?}");
    }
}

fn texts_of(source: &Source, unit: PrivacyUnit) -> Vec<UnitText> {
    let mut texts = Vec::new();
    let mut take = |text| {
        texts.push(text);
        Ok(())
    };
    super::unit_text::each_text(corpus::open(source).unwrap(), unit, "", &mut take).unwrap();
    texts
}

/// Writes records of users with a label each, in lines and in a table. Returns their fields, their source and the file of lines.
fn labelled_text(folder: &Path) -> (LabelledFields, Source, PathBuf) {
    let (lines, table) = (folder.join("a.jsonl"), folder.join("b.csv"));
    let line =
        |n: usize| format!("{{\"who\":\"u{}\",\"label\":\"l{}\",\"text\":\"t {n}\"}}\n\n", n % 7, n % 3);
    let row = |n: usize| format!("l{},\"t\n{n}\",u{}\n", n % 3, n % 7);
    std::fs::write(&lines, (0..30).map(line).collect::<String>()).unwrap();
    std::fs::write(&table, format!("label,text,who\n{}", (30..60).map(row).collect::<String>())).unwrap();
    let user_field = Some("who".to_owned());
    let source = Source::Files(Files { user_field, ..Files::of([lines.clone(), table]) });
    let plan = plan::PlanFile::parse(include_str!("../../../plan/tests/fixtures/tiny.json")).unwrap();
    let labels = ["l0", "l1", "l2"].map(str::to_owned).into_iter().zip(0..).collect();
    let objective = plan::Objective::SequenceClassification;
    let fields = LabelledFields {
        objective,
        data: plan.data,
        labels,
        labels_field: "training.labels",
        written: None,
        answers: true,
        public: false,
    };
    (fields, source, lines)
}

/// Oracle: the same records in memory. A user's records lie apart.
#[test]
fn labelled_records_in_their_files_are_the_examples_of_those_in_memory_and_a_changed_file_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let (fields, source, lines) = labelled_text(folder.path());
    let check = |_: u64, _: &LabelledRecord| Ok(());
    let example = |record: &LabelledRecord| Example {
        input: record.text.bytes().map(u32::from).collect(),
        ..Example::default()
    };
    let labels_of = |records: &LabelledRecords| {
        let mut labels = Vec::new();
        records.for_each(|record| labels.push((record.unit, record.answer.clone()))).unwrap();
        labels
    };
    let in_files = |unit, ranks: &Ranks| {
        LabelledRecords::in_files(fields.clone(), source.clone(), unit, &check, ranks).unwrap().unwrap()
    };
    for unit in [PrivacyUnit::Record, PrivacyUnit::User] {
        let (records, units) = LabelledRecords::open(&fields, source.clone(), unit, &check).unwrap();
        let (labels, digest) = (labels_of(&records), records.digest());
        let every: Vec<u64> = (0..units).rev().collect();
        for count in [1, 2, 3] {
            on_ranks(count, |ranks| {
                let share = ranks.share(3);
                let (records, _) = LabelledRecords::open(&fields, source.clone(), unit, &check).unwrap();
                let kept = LabelledSet::new(records, example);
                let (records, of_files) = in_files(unit, ranks);
                assert_eq!((of_files, records.digest()), (units, digest));
                assert_eq!(labels_of(&records), labels);
                let mut set = LabelledSet::new(records, example);
                assert_eq!(set.units(), kept.units());
                set.measure(&(0..units).collect::<Vec<_>>()).unwrap();
                for step in 0..5 {
                    let [a, b] = [&kept, &set].map(|set| {
                        let lot = Private::new(every.clone());
                        let drawn =
                            choose(&lot, |unit| set.examples_of(unit as usize), 2, &mut choices(step));
                        set.read_lot(drawn, share, step, &TestRng::from_seed(3)).unwrap().into_mechanism()
                    });
                    assert!(a == b && (count > 1 || a.len() == kept.units()), "{unit:?}, {count} ranks");
                }
            });
        }
    }
    let (records, _) = in_files(PrivacyUnit::Record, &Ranks::alone());
    let mut set = LabelledSet::new(records, example);
    let text = std::fs::read_to_string(&lines).unwrap().replacen("\"l1\"", "\"l2\"", 1);
    std::fs::write(&lines, text).unwrap();
    let mut sampled = |unit| {
        set.measure(&[unit]).unwrap();
        let drawn = choose(&Private::new(vec![unit]), |_| 1, 1, &mut choices(0));
        let sampled = set.read_lot(drawn, Share::WHOLE, 0, &TestRng::from_seed(3));
        sampled.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(sampled(0), Ok(()));
    assert!(sampled(1).is_err_and(|error| error.contains("was changed while the run read it")));
}
