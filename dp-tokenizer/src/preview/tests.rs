use super::*;
use mechanisms::{TestRng, Words};

fn settings() -> Settings {
    Settings {
        text_field: None,
        user_field: None,
        unit: PrivacyUnit::Record,
        words: Words::ByClass,
        method: ReleaseMethod::Sips.into(),
        noise_multiplier: 2.0,
        threshold_delta: 1e-6,
        vocab_size: 500,
        sentence: None,
    }
}

/// Word i stands in about 2000/i lines.
fn text() -> String {
    let line = |n: usize| {
        (1..60)
            .filter(|i| n.is_multiple_of(*i))
            .map(|i| format!(" word{}", "q".repeat(i)))
            .collect::<String>()
    };
    (1..2000).map(|n| line(n) + "\n").collect()
}

#[test]
fn what_survives_is_what_the_release_gives_and_everything_else_is_lost() {
    let papers = [Paper::Hoory2021, Paper::Ponomareva2022];
    let papers = papers.map(|paper| Method::Paper(PaperHistogram { paper, words: 8 }));
    for method in ReleaseMethod::GENERAL.map(Method::Planned).into_iter().chain(papers) {
        let settings = Settings { method, noise_multiplier: 8.0, ..settings() };
        let rng = TestRng::from_seed(3);
        let seen = preview_with(text().as_bytes(), &settings, &rng).unwrap();
        let records = text().lines().map(str::to_owned).collect::<Vec<_>>();
        let units = (0..).zip(records).map(|(unit, text)| Ok(crate::unit::Piece { unit, text }));
        let released = release::release(units, Words::ByClass, &config(&settings).unwrap(), &rng).unwrap();
        assert_eq!(seen.released_words as usize, released.words.iter().filter(|w| w.0.len() > 5).count());
        assert_eq!((seen.units, seen.distinct_words), (1999, 59));
        assert_eq!(seen.survival.iter().map(|bin| bin.words).sum::<u64>(), 59);
        assert_eq!(seen.survival.iter().map(|bin| bin.released).sum::<u64>(), seen.released_words);
        assert!(seen.coverage > 0.3 && seen.coverage < 1.0, "{}", seen.coverage);
        assert!(seen.lost.iter().all(|(word, _)| !seen.kept.contains(word)));
    }
}

#[test]
fn the_curve_rises_with_the_count_and_agrees_with_many_releases() {
    // Each unit has one word, so that the curve is exact for the first round that sees it.
    let text = "alpha\n".repeat(90) + &"beta\n".repeat(20);
    let mut settings = settings();
    settings.noise_multiplier = 10.0;
    let config = config(&settings).unwrap();
    let curve = |units: f64| probability(&settings, &config, units, 1).unwrap().unwrap();
    assert!(curve(10.0) < curve(50.0) && curve(50.0) < curve(90.0) && curve(2000.0) > 0.999);
    let times = 400;
    let kept = (0..times)
        .filter(|&seed| {
            let rng = TestRng::from_seed(seed);
            let units = (0..)
                .zip(text.lines())
                .map(|(unit, text)| Ok(crate::unit::Piece { unit, text: text.to_owned() }));
            release::release(units, Words::ByClass, &config, &rng)
                .unwrap()
                .words
                .iter()
                .any(|word| word.0 == "alpha")
        })
        .count();
    let (expected, times) = (curve(90.0), times as f64);
    let tolerance = 4.9 * (expected * (1.0 - expected) / times).sqrt(); // α = 1e-6
    let share = kept as f64 / times;
    assert!(expected > 0.05 && expected < 0.95, "the test must be able to fail: {expected}");
    assert!((share - expected).abs() < tolerance, "{share} against {expected}");
    assert!((share - curve(70.0)).abs() > tolerance, "a wrong count must be rejected");
}

#[test]
fn lines_of_json_give_texts_and_users() {
    let line = |user: &str, text: &str| format!("{{\"text\": \"{text}\", \"user\": \"{user}\"}}\n");
    let text = (0..600).map(|n| line(&format!("u{}", n / 2), "shared words here")).collect::<String>();
    let settings = Settings {
        text_field: Some("text".into()),
        user_field: Some("user".into()),
        unit: PrivacyUnit::User,
        ..settings()
    };
    let seen = preview_with(text.as_bytes(), &settings, &TestRng::from_seed(1)).unwrap();
    assert_eq!(seen.units, 300);
    assert_eq!(seen.released_words, 3);
    assert_eq!(seen.after.concat().replace('▁', " "), "shared words here");
}

#[test]
fn no_text_binary_and_broken_text_are_named() {
    let refused = |bytes: &[u8], settings: &Settings| {
        preview_with(bytes, settings, &TestRng::from_seed(1)).unwrap_err().to_string()
    };
    assert!(refused(b"", &settings()).contains("no record"));
    assert!(refused(b"\n \n", &settings()).contains("no record"));
    assert!(refused(&[1, 2, 0, 255], &settings()).contains("no text"));
    let json = Settings { text_field: Some("text".into()), ..settings() };
    assert!(refused(b"plain words", &json).contains("line 1"));
    assert!(refused(b"one line alone", &settings()).contains("no words"));
    let wrong = Settings { noise_multiplier: 0.0, ..settings() };
    assert!(refused(b"text", &wrong).contains("noise multiplier"));
}
