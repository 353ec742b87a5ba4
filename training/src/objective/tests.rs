use std::collections::BTreeSet;

use super::masks::MaskedLm;
use super::spans::{SpanCorruption, Split};
use super::*;
use network::lengths::{decoder_context, predictions};

const EOS: u32 = 1;

fn stream(index: u32) -> Stream {
    TestRng::from_seed(5).stream(Purpose::Masking, 0, index)
}

fn spans() -> SpanCorruption {
    SpanCorruption { sentinels: (900..1000).collect(), start: 0 }
}

fn masked(next_sentence: bool) -> MaskedLm {
    MaskedLm { classify: 2, separate: 3, mask: 4, vocab_size: 1000, next_sentence, sentence_ends: Vec::new() }
}

fn model(context: usize, decoder_context: Option<usize>) -> plan::Model {
    serde_json::from_value(
        serde_json::json!({ "family": "t5", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8,
        "context": context, "decoder_context": decoder_context }),
    )
    .unwrap()
}

fn training(prefix_split: Option<plan::PrefixSplit>) -> plan::Training {
    serde_json::from_value(
        serde_json::json!({ "objective": "prefix_lm", "l2_clip_norm": 1.0, "optimizer": { "sgd": {} },
        "learning_rate": { "peak": 1.0 }, "prefix_split": prefix_split }),
    )
    .unwrap()
}

fn objective(variant: Variant, context: usize) -> Objective {
    Objective { variant, bos: EOS, eos: EOS, context, unit_is_piece: false }
}

/// Oracle: T5's 512 and 114; and the published 28 sentinels of such a window.
#[test]
fn lengths_of_span_corruption_are_those_of_the_paper() {
    let lengths = corruption_lengths(512);
    assert_eq!([lengths.window, lengths.input, lengths.targets, lengths.spans], [568, 512, 114, 28]);
    for context in 8..600 {
        let lengths = corruption_lengths(context);
        assert!(
            lengths.input <= context
                && decoder_context(plan::Objective::SpanCorruption, &model(context, None)) > 2
        );
    }
}

/// If each run replaces its sentinel, the result is the window: nothing is lost, and nothing is
/// added.
#[test]
fn the_runs_put_back_give_the_window() {
    let lengths = corruption_lengths(64);
    let shape = [64, lengths.targets];
    for length in 2..=lengths.window {
        let text: Vec<u32> = (0..length as u32).map(|token| 10 + token % 7).collect();
        let objective = objective(Variant::SpanCorruption(spans()), 64);
        let Example { input, decoder_input, targets, .. } =
            objective.example(&text, &mut stream(length as u32));
        assert!(input.len() <= shape[0] && targets.len() <= shape[1], "{length}");
        assert_eq!(decoder_input[1..], targets[..targets.len() - 1]);
        assert_eq!((decoder_input[0], input.last(), targets.last()), (0, Some(&EOS), Some(&EOS)));
        let runs: Vec<&[u32]> = targets[..targets.len() - 1].split(|&token| token >= 900).skip(1).collect();
        let mut restored = Vec::new();
        for &token in &input[..input.len() - 1] {
            match token {
                900.. => restored.extend_from_slice(runs[token as usize - 900]),
                _ => restored.push(token),
            }
        }
        assert_eq!(restored, text);
        assert!(runs.iter().all(|run| !run.is_empty()));
    }
}

/// Oracle: 15 % of the tokens are cut out, in runs of 3. Rounding makes it 85 of 568 in 28 runs for every window of
/// that length.
#[test]
fn a_seventh_is_cut_out_and_every_place_about_equally_often() {
    let text: Vec<u32> = (10..578).collect();
    let objective = objective(Variant::SpanCorruption(spans()), 512);
    let mut cut = vec![0_u32; text.len()];
    let draws = 2000;
    for draw in 0..draws {
        let example = objective.example(&text, &mut stream(draw));
        assert_eq!((example.input.len(), example.targets.len()), (512, 114));
        example
            .targets
            .iter()
            .filter(|&&token| token < 900 && token > 9)
            .for_each(|&t| cut[t as usize - 10] += 1);
    }
    assert_eq!(cut.iter().sum::<u32>(), 85 * draws);
    // The first place is always kept and the last always cut; in the middle the share is close to 85/568 ± 5 %.
    assert_eq!((cut[0], cut[567]), (0, draws));
    let middle = cut[100..468].iter().sum::<u32>() as f64 / f64::from(draws) / 368.0;
    assert!((middle / (85.0 / 568.0) - 1.0).abs() < 0.05, "{middle}");
}

#[test]
fn a_prefix_and_its_rest_are_the_window_and_every_cut_occurs() {
    let text: Vec<u32> = (10..30).collect();
    let objective = objective(Variant::PrefixLm { start: 0, split: Split::Random }, 20);
    let mut seen = std::collections::BTreeSet::new();
    for index in 0..600 {
        let example = objective.example(&text, &mut stream(index));
        let (input, targets) = (&example.input[..], &example.targets[..]);
        assert!(input.len() <= 20 && targets.len() <= 20 && input.len() > 1 && targets.len() > 1);
        assert_eq!([&input[..input.len() - 1], &targets[..targets.len() - 1]].concat(), text);
        seen.insert(input.len());
    }
    // Missed with probability 19·(18/19)^600 < 2e-13.
    assert_eq!(seen.len(), 19);
}

/// Oracle: 512 tokens in and 114 out (Ponomareva et al. 2022), each with its end-of-text token.
#[test]
fn a_fixed_split_divides_whole_windows_at_its_place_and_shorter_ones_in_proportion() {
    let split = Split::of(&model(512, Some(114)), &training(None));
    let objective = objective(Variant::PrefixLm { start: 0, split }, 512);
    assert_eq!(objective.window_spec().length, 511 + 113);
    assert_eq!(decoder_context(plan::Objective::PrefixLm, &model(512, Some(114))), 114);
    for length in 2..=624 {
        let text: Vec<u32> = (10..10 + length).collect();
        let example = objective.example(&text, &mut stream(length));
        let [read, written] = [example.input.len() - 1, example.targets.len() - 1];
        assert!(read <= 511 && written <= 113 && read > 0 && written > 0, "{length}: {read} {written}");
        assert!(
            (read as f64 - f64::from(length) * 511.0 / 624.0).abs() <= 0.5 || length < 6,
            "{length}: {read}"
        );
        assert_eq!([&example.input[..read], &example.targets[..written]].concat(), text);
    }
}

/// Oracle: 15 % of 126 tokens are 19. Of these, 80 % are masked, 10 % random and 10 % kept, each
/// within 4.9 standard errors (α = 1e-6), which also rejects 77 %.
#[test]
fn masks_have_the_stated_shares() {
    let text: Vec<u32> = (10..136).collect();
    let objective = objective(Variant::MaskedLm(masked(false)), 128);
    let (mut hidden, mut kept, draws) = (0.0, 0.0, 2000);
    for draw in 0..draws {
        let example = objective.example(&text, &mut stream(draw));
        assert_eq!((example.input.len(), example.positions.len(), example.targets.len()), (128, 19, 19));
        assert_eq!((example.input[0], example.input[127], example.sentence), (2, 3, None));
        for (&place, &target) in example.positions.iter().zip(&example.targets) {
            assert_eq!(target, text[place as usize - 1], "a target is what stood there");
            hidden += f64::from(u8::from(example.input[place as usize] == 4));
            kept += f64::from(u8::from(example.input[place as usize] == target));
        }
    }
    let n = 19.0 * f64::from(draws);
    let off = |count: f64, share: f64| (count / n - share).abs() / (share * (1.0 - share) / n).sqrt();
    // A random token equals the hidden one or the mask itself once in 1000 draws.
    assert!(off(hidden, 0.8 + 1e-4) < 4.9 && off(kept, 0.1 + 1e-4) < 4.9, "{hidden} {kept} of {n}");
    assert!(off(hidden, 0.77) > 4.9, "a wrong share must be rejected");
    assert_eq!(predictions(128), 20);
}

/// PITFALLS 16 and 17: both sentences are halves of the one window, in either order.
#[test]
fn pairs_of_sentences_are_halves_of_one_window() {
    let text: Vec<u32> = (10..60).collect();
    let objective = objective(Variant::MaskedLm(masked(true)), 53);
    let mut labels = [0; 2];
    for index in 0..400 {
        let Example { mut input, segments, positions, targets, sentence, .. } =
            objective.example(&text, &mut stream(index));
        positions.iter().zip(targets).for_each(|(&place, target)| input[place as usize] = target);
        let mut halves = input[1..].split(|&token| token == 3);
        let (first, second) = (halves.next().unwrap(), halves.next().unwrap());
        assert_eq!(segments.iter().filter(|&&segment| segment == 1).count(), second.len() + 1);
        let in_order = if sentence == Some(0) { [first, second] } else { [second, first] };
        assert_eq!(in_order.concat(), text);
        labels[sentence.unwrap() as usize] += 1;
    }
    // Binomial(400, ½): 4.9 standard deviations are 49.
    assert!((151..=249).contains(&labels[0]), "{labels:?}");
}

/// Anil et al. 2021, section 4.1: an example has two sentences. A text of one sentence is divided anywhere, and the end of the text is no
/// place between two.
#[test]
fn pairs_of_sentences_are_divided_after_the_end_of_one() {
    let (end, separate) = (9, 3);
    let ends = MaskedLm { sentence_ends: vec![end], ..masked(true) };
    let places = |text: &[u32]| -> BTreeSet<usize> {
        let firsts = (0..200).map(|index| {
            let Example { input, segments, sentence, .. } = ends.example(text, &mut stream(index));
            let second = segments.iter().filter(|&&segment| segment == 1).count() - 1;
            if sentence == Some(0) { input.len() - 3 - second } else { second }
        });
        firsts.collect()
    };
    assert_eq!(places(&[10, 11, 9, 12, 13, 14, 9, separate]), [3].into());
    assert_eq!(places(&[10, 9, 11, 9, 12]), [2, 4].into());
    assert_eq!(places(&[10, 11, 12, 9, separate]), [1, 2, 3, 4].into());
}

/// PITFALLS 8: masks follow from the key, the step and the unit, so a resumed run draws the same
/// masks, and removing a unit does not change the masks of another.
#[test]
fn masks_depend_on_step_and_unit_alone() {
    let text: Vec<u32> = (10..60).collect();
    let objective = objective(Variant::MaskedLm(masked(false)), 52);
    let rng = TestRng::from_seed(8);
    let examples = |units: &[u64], step| {
        let units =
            units.iter().map(|&unit| SampledUnit { index: unit, windows: vec![text.clone()] }).collect();
        objective.examples(&Private::new(units), 1, step, &rng).for_mechanism().clone()
    };
    let whole = examples(&[3, 4, 9], 7);
    assert_eq!(whole, examples(&[3, 4, 9], 7));
    assert_eq!([whole[0].clone(), whole[2].clone()].to_vec(), examples(&[3, 9], 7));
    assert!(whole[0] != whole[1] && whole[0] != examples(&[3], 8)[0], "masks change with unit and step");
}

/// A window that is repeated has other masks, and a causal model does not see the same window twice.
#[test]
fn random_masks_make_as_many_views_as_the_plan_says_of_one_window() {
    let [one, other]: [Vec<u32>; 2] = [(10..60).collect(), (60..110).collect()];
    let rng = TestRng::from_seed(8);
    let views = |variant, windows: &[&Vec<u32>], views| {
        let windows = windows.iter().map(|window| (*window).clone()).collect();
        let units = Private::new(vec![SampledUnit { index: 3, windows }]);
        let lot = objective(variant, 52).examples(&units, views, 7, &rng);
        assert_eq!(lot.for_mechanism().len(), 1);
        let alone = |view: &Example| Example { further: Vec::new(), dropout_seed: 0, ..view.clone() };
        lot.for_mechanism()[0].views().map(alone).collect::<Vec<Example>>()
    };
    let masked_lm = || Variant::MaskedLm(masked(false));
    let of_one = views(masked_lm(), &[&one], 4);
    let positions: std::collections::HashSet<&Vec<u32>> = of_one.iter().map(|view| &view.positions).collect();
    assert_eq!((of_one.len(), positions.len()), (4, 4));
    assert_eq!(views(masked_lm(), &[&one], 1)[..], of_one[..1]);
    assert_eq!(views(masked_lm(), &[&one, &other], 3).len(), 3);
    assert_eq!(
        views(Variant::CausalLm, &[&one, &other], 3),
        [Example::causal(&one), Example::causal(&other)]
    );
}

#[test]
fn windows_too_short_to_predict_anything_give_empty_examples() {
    for variant in [
        Variant::SpanCorruption(spans()),
        Variant::PrefixLm { start: 0, split: Split::Random },
        Variant::MaskedLm(masked(true)),
    ] {
        let objective = objective(variant, 16);
        for window in [vec![], vec![EOS], vec![7, EOS], vec![7, 8, EOS], vec![7, 8, 9]] {
            let example = objective.example(&window, &mut stream(0));
            assert!(example.input.len() <= 16 && example.targets.len() <= window.len() + 2, "{window:?}");
            assert!(!window.is_empty() && window != [EOS] || example == Example::default());
        }
    }
}

#[test]
fn a_choice_has_the_wanted_size_and_every_place_is_chosen_equally_often() {
    let mut counts = [0_u32; 10];
    for index in 0..4000 {
        let chosen = choose(3, 10, &mut stream(index));
        assert!(chosen.len() == 3 && chosen.is_sorted());
        chosen.into_iter().for_each(|place| counts[place] += 1);
    }
    // Binomial(4000, 0.3): 5.3 standard deviations are 154 (α = 1e-6 over ten places).
    assert!(counts.iter().all(|&count| count.abs_diff(1200) < 154), "{counts:?}");
    assert_eq!(choose(5, 3, &mut stream(0)), [0, 1, 2]);
}

/// Oracle: Ponomareva et al. 2022, section 5.2: 512 tokens of text in and 114 out.
#[test]
fn a_split_in_the_plan_counts_tokens_of_text_alone() {
    let split =
        Split::of(&model(513, Some(115)), &training(Some(plan::PrefixSplit { read: 512, written: 114 })));
    let objective = objective(Variant::PrefixLm { start: 0, split }, 513);
    assert_eq!(objective.window_spec().length, 626);
    let example = objective.example(&(10..636).collect::<Vec<u32>>(), &mut stream(0));
    assert_eq!((example.input.len(), example.targets.len()), (513, 115));
    assert_eq!(objective.fixed_split(), Some([512, 114]));
}

/// The token in question is not shown. The tokens before it are shown, and those after it if the
/// model reads in both directions.
#[test]
fn a_question_shows_the_context_of_a_token_and_not_the_token() {
    let window: Vec<u32> = (10..24).chain([EOS]).collect();
    let prefix = Variant::PrefixLm { start: 0, split: Split::Random };
    for (variant, shows_after) in [
        (Variant::CausalLm, false),
        (prefix, false),
        (Variant::SpanCorruption(spans()), true),
        (Variant::MaskedLm(masked(false)), true),
    ] {
        let objective = objective(variant, 16);
        for place in 1..14 {
            let Some(question) = objective.question(&window, place) else {
                assert!(matches!(objective.variant, Variant::SpanCorruption(_)), "{place}");
                continue;
            };
            assert!(question.input.len() <= 16 && !question.input.contains(&window[place]));
            if !matches!(objective.variant, Variant::SpanCorruption(_)) {
                assert!(question.input.contains(&window[place - 1]));
                let after = place < 13 && question.input.contains(&window[(place + 1).min(13)]);
                assert_eq!(after, shows_after && place < 13, "{:?} {place}", objective.variant);
            }
            // The last prediction is of the token.
            match &objective.variant {
                Variant::CausalLm => assert_eq!(question.input.last(), Some(&window[place - 1])),
                Variant::PrefixLm { .. } => assert_eq!(question.decoder_input, [0]),
                Variant::SpanCorruption(_) => {
                    let last = *question.decoder_input.last().unwrap();
                    assert!(last >= 900 || last == window[place - 1], "{place}");
                }
                _ => assert_eq!(question.input[question.positions[0] as usize], 4),
            }
        }
    }
    let fixed = Variant::PrefixLm { start: 0, split: Split::Fixed { read: 9, written: 5 } };
    let objective = objective(fixed, 16);
    assert!((0..9).all(|place| objective.question(&window, place).is_none()));
    let question = objective.question(&window, 11).unwrap();
    assert_eq!(question.input, [&window[..9], &[EOS]].concat());
    assert_eq!(question.decoder_input, [0, window[9], window[10]]);
}

/// A window of one run predicts its end alone, and a longer one every place but the first.
#[test]
fn a_place_that_training_cuts_out_is_asked_for() {
    let context = 64;
    let longest = corruption_lengths(context).window;
    let objective = objective(Variant::SpanCorruption(spans()), context);
    for (length, first) in [(5, 4), (20, 17), (longest, 1)] {
        let text: Vec<u32> = (10..10 + length as u32).collect();
        for place in 0..length {
            let question = objective.question(&text, place);
            assert_eq!(question.is_some(), place >= first, "{length} {place}");
            assert!(question.is_none_or(|example| example.input.len() <= context));
        }
    }
}

/// Oracle: the ids, roles and side of padding that `transformers` reads (tests/vectors/make_texts.py). A text is trained with the
/// tokens that it gets there, after the end-of-text token where it gets none before it, and with the end-of-text token after it.
#[test]
fn texts_begin_as_in_transformers_and_end_with_the_stated_token() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/texts.json");
    let vectors: serde_json::Value = serde_json::from_slice(&std::fs::read(vectors).unwrap()).unwrap();
    let text = vectors["text"].as_str().unwrap();
    for case in vectors["cases"].as_array().unwrap() {
        let name = &case["name"];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, case["tokenizer"].to_string()).unwrap();
        std::fs::write(folder.path().join("tokenizer_config.json"), case["config"].to_string()).unwrap();
        let given = crate::vocabulary::read_file(&path).unwrap();
        let kept = Tokenizer::from_json(&given.to_json()).unwrap();
        for tokenizer in [given, kept] {
            let (bos, eos) = (begin_of_text(&tokenizer).unwrap(), end_of_text(&tokenizer).unwrap());
            let of_plan = Objective { bos, eos, ..objective(Variant::CausalLm, 100) };
            let record = || crate::data::UnitText {
                piece: dp_tokenizer::unit::Piece { unit: 0, text: text.to_owned() },
                begins_record: true,
                ends_record: true,
            };
            let spec = of_plan.window_spec();
            let trained = crate::data::Dataset::encode(&[record(), record()], &tokenizer, spec);
            let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
            let begins = ids != tokenizer.encode(text);
            let want = match begins && bos != eos {
                true => [ids.clone(), vec![eos], ids, vec![eos]].concat(),
                false => {
                    let own = tokenizer.encode(text);
                    [vec![eos], own.clone(), vec![eos], own, vec![eos]].concat()
                }
            };
            assert_eq!(trained.window(0, 0).unwrap(), want, "{name}");
            let written: serde_json::Value = serde_json::from_str(&tokenizer.to_config_json()).unwrap();
            for role in ["eos", "bos", "pad"] {
                let id = case[role].as_u64().map(|id| id as u32);
                let token = written[format!("{role}_token")].as_str();
                assert!(id.is_none() || token.and_then(|token| tokenizer.id(token)) == id, "{name} {role}");
            }
            assert_eq!(written["padding_side"] == "left", case["padding_side"] == "left", "{name}");
        }
    }
}
