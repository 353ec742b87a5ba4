//! Tests with one text under another name, in another form, or in parts.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tokenizer::Tokenizer;

use dp_tokenizer::corpus::Source;
use dp_tokenizer::tokens::encode_corpus;
use dp_tokenizer::unit::PrivacyUnit;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::common::{Bench, on_public_text, stderr, tiny};

/// A plan on a training text and a public one, both files or folders.
fn plan(training: &[&str], public: Option<&str>) -> Value {
    let mut plan = tiny();
    plan["data"] = json!({ "source": { "paths": training }, "units": 300 });
    plan["training"]["steps"] = json!(6);
    plan.as_object_mut().unwrap().remove("evaluation");
    if let Some(public) = public {
        plan["evaluation"] = json!({ "source": { "path": public }, "every": 6 });
    }
    plan
}

/// Checks for exit code 2, one line that names the field, nothing written and nothing quoted.
fn assert_refused(case: &str, output: &Output, folder: &Path, wants: &[&str]) {
    let message = stderr(output);
    let lines = message.lines().filter(|line| line.starts_with("trainer-native:")).count();
    assert_eq!((output.status.code(), lines), (Some(2), 1), "{case}: {message}");
    assert!(wants.iter().all(|want| message.contains(want)), "{case}: {message}");
    assert!(!message.contains("cough") && !folder.join("run").exists(), "{case}: {message}");
}

fn note(n: usize) -> String {
    format!(
        "Visit {n}: seen on ward {n} with a cough, étage {n}, for {n} days, then sent home with {n} tablets and advice {n}."
    )
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|n| note(n) + "\n").collect()
}

/// A folder with a note in each file.
fn write_notes(folder: &Path, numbers: std::ops::Range<usize>) {
    fs::create_dir_all(folder).unwrap();
    numbers.for_each(|n| fs::write(folder.join(format!("n{n}.txt")), note(n)).unwrap());
}

/// A1: each of these would count every unit twice.
#[cfg(unix)]
#[test]
fn a_text_that_is_named_twice_in_any_way_is_refused() {
    /// The name of the case, the paths, and a function that creates them.
    type Case<'a> = (&'a str, &'a [&'a str], &'a dyn Fn(&Bench));
    let cases: [Case<'_>; 6] = [
        ("a folder in it", &["p", "p/n"], &|bench| write_notes(&bench.path("p/n"), 0..20)),
        ("a file in it", &["p", "p/n3.txt"], &|_| ()),
        ("its copy", &["p", "q"], &|bench| write_notes(&bench.path("q"), 0..150)),
        ("its lines", &["p", "q.txt"], &|bench| fs::write(bench.path("q.txt"), lines(0..150)).unwrap()),
        ("a link within", &["p"], &|bench| {
            std::os::unix::fs::symlink("n3.txt", bench.path("p/z.txt")).unwrap()
        }),
        ("a copy within", &["p"], &|bench| write_notes(&bench.path("p/again"), 0..150)),
    ];
    for (case, paths, make) in cases {
        let bench = Bench::new(&plan(paths, None));
        write_notes(&bench.path("p"), 0..150);
        make(&bench);
        assert_refused(case, &bench.run("run", &[]), bench.folder.path(), &["data.source", "the same text"]);
    }
}

/// A2: a folder and a file in it are the same text, whichever of them is trained on.
#[test]
fn a_file_of_a_folder_is_its_text() {
    for (training, public) in [("notes", "notes/n7.txt"), ("notes/n7.txt", "notes")] {
        let bench = Bench::new(&plan(&[training], Some(public)));
        fs::create_dir(bench.path("notes")).unwrap();
        for n in 0..20 {
            // A record of a folder is a whole file, and one of a file is a line.
            fs::write(bench.path(&format!("notes/n{n}.txt")), note(n).replace(", ", ",\n")).unwrap();
        }
        assert_refused(
            public,
            &bench.run("run", &[]),
            bench.folder.path(),
            &["evaluation.source", "the training text"],
        );
    }
}

/// A5 and similar cases: another spelling, order, division, compression and format.
#[test]
fn a_text_in_another_form_is_the_same_text() {
    let all = |change: &dyn Fn(usize) -> String| (0..300).map(change).collect::<String>();
    let words: Vec<String> = lines(0..300).split_whitespace().map(str::to_owned).collect();
    let cut = |size: usize| words.chunks(size).map(|part| part.join(" ") + "\n").collect::<String>();
    let forms = [
        ("case", "public.txt", lines(0..300).to_uppercase()),
        ("decomposed", "public.txt", lines(0..300).replace('é', "e\u{301}")),
        ("one mark more", "public.txt", lines(0..300).replace(" for", " — for")),
        ("blanks", "public.txt", lines(0..300).replace(' ', "\u{A0} ")),
        ("no accents", "public.txt", lines(0..300).replace('é', "e")),
        ("another order", "public.txt", all(&|n| note(299 - n) + "\n")),
        ("shorter lines", "public.txt", cut(7)),
        ("longer lines", "public.txt", cut(60)),
        ("invisible letters", "public.txt", lines(0..300).replace('e', "e\u{3164}")),
        ("hyphens for blanks, in other lines", "public.txt", cut(7).replace(' ', "-")),
        ("digits of another script", "public.txt", {
            let arabic = |c: char| c.to_digit(10).and_then(|n| char::from_u32(0x660 + n)).unwrap_or(c);
            lines(0..300).chars().map(arabic).collect()
        }),
        ("a byte order mark", "public.txt", format!("\u{FEFF}{}", lines(0..300))),
        ("JSON", "public.jsonl", all(&|n| format!("{}\n", json!({ "n": n, "text": note(n) })))),
        ("a table", "public.csv", format!("n,text\n{}", all(&|n| format!("{n},\"{}\"\n", note(n))))),
        ("a few records among others", "public.txt", lines(1_000..1_900) + &lines(17..20)),
        ("half of a record", "public.txt", {
            let half = note(17);
            lines(1_000..1_400) + half.split_at(half.len() / 2 + 12).0 + "\n"
        }),
    ];
    for (case, name, text) in forms {
        let bench = Bench::new(&plan(&["train.txt"], Some(name)));
        fs::write(bench.path("train.txt"), lines(0..300)).unwrap();
        fs::write(bench.path(name), text).unwrap();
        assert_refused(
            case,
            &bench.run("run", &[]),
            bench.folder.path(),
            &["evaluation.source", "shares text"],
        );
    }
    let bench = Bench::new(&plan(&["train.txt"], Some("public.txt")));
    fs::write(bench.path("train.txt"), lines(0..300)).unwrap();
    fs::write(bench.path("public.txt"), lines(1_000..1_050)).unwrap();
    bench.model("run", &["--test-key", "1"]);
    let certificate = fs::read_to_string(bench.path("run/certificate.md")).unwrap();
    for sentence in [
        "At most 1 in 1,000 records of either text",
        "runs of 13 words (20 characters in scripts without blanks)",
        "from 8 words or 18 letters on, are equal",
        "private records of fewer than 8 words and 18 letters may be in the evaluation text",
    ] {
        assert!(certificate.contains(sentence), "{certificate}");
    }
    assert!(!certificate.contains("share no"), "{certificate}");
}

/// A4: scripts without blanks between words.
#[test]
fn a_text_without_blanks_is_compared_by_its_characters() {
    let alphabets = [
        "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏",
        "いろはにほへとちりぬるをわかよたれそつねならむ",
        "กขคงจฉชซญดตถทธนบปผฝพฟมยรลวสหอ",
    ];
    for alphabet in alphabets {
        let alphabet: Vec<char> = alphabet.chars().collect();
        let record = |n: usize| {
            let mut state = n as u64 + 1;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                alphabet[(state >> 33) as usize % alphabet.len()]
            };
            (0..40).map(|_| next()).chain(['\n']).collect::<String>()
        };
        let text = |numbers: std::ops::Range<usize>| numbers.map(record).collect::<String>();
        let bench = Bench::new(&plan(&["train.txt"], Some("public.txt")));
        fs::write(bench.path("train.txt"), text(0..300)).unwrap();
        fs::write(bench.path("public.txt"), text(500..900) + &text(10..14)).unwrap();
        assert_refused("unspaced", &bench.run("run", &[]), bench.folder.path(), &["shares text"]);
        fs::write(bench.path("public.txt"), text(500..900)).unwrap();
        bench.model("run", &["--test-key", "1"]);
    }
}

/// A5: a token file has the text of its tokens.
#[test]
fn the_text_of_a_token_file_is_known_beside_it() {
    let mut plan = plan(&["train.tokens"], Some("public.txt"));
    plan["data"]["source"] = json!({ "path": "train.tokens" });
    plan["tokenizer"] = json!({ "public": { "path": "tokenizer.json", "made_from": "public_text" } });
    let bench = Bench::new(&plan);
    let tokenizer = Tokenizer::bytes(&["</s>".to_owned()]).unwrap().to_json();
    fs::write(bench.path("tokenizer.json"), &tokenizer).unwrap();
    fs::write(bench.path("train.txt"), lines(0..300)).unwrap();
    let digest = Sha256::digest(tokenizer.as_bytes()).into();
    let source = Source::files([bench.path("train.txt")]);
    let tokenizer = Tokenizer::bytes(&["</s>".to_owned()]).unwrap();
    encode_corpus(&source, PrivacyUnit::Record, &tokenizer, digest, &bench.path("train.tokens"), 1).unwrap();
    for text in [lines(0..300).replace(' ', "  "), lines(0..300).to_lowercase(), lines(900..950) + &note(7)] {
        fs::write(bench.path("public.txt"), text).unwrap();
        assert_refused(
            "tokens",
            &bench.run("run", &[]),
            bench.folder.path(),
            &["evaluation.source", "shares text"],
        );
    }
}

/// A5: pairs whose texts are swapped, and short records in another order.
#[test]
fn pairs_that_change_places_are_the_same_pairs() {
    let mut plan = plan(&["train.csv"], Some("public.csv"));
    plan["data"]["second_text_field"] = json!("more");
    plan["training"]["objective"] = json!("sequence_classification");
    plan["training"]["labels"] = json!(["a", "b"]);
    plan["model"]["family"] = json!("bert");
    plan["tokenizer"] = json!("bytes");
    let bench = Bench::new(&plan);
    let rows = |order: &dyn Fn(usize) -> usize, swapped: bool| -> String {
        let row = |n: usize| match swapped {
            false => format!("cough {n},Fever of {n},a\n"),
            true => format!("fever of {n},Cough {n}!,b\n"),
        };
        "text,more,label\n".to_owned() + &(0..300).map(|n| row(order(n))).collect::<String>()
    };
    fs::write(bench.path("train.csv"), rows(&|n| n, false)).unwrap();
    fs::write(bench.path("public.csv"), rows(&|n| n * 7 % 300, true)).unwrap();
    assert_refused(
        "pairs",
        &bench.run("run", &[]),
        bench.folder.path(),
        &["evaluation.source", "shares text"],
    );
}

/// A3: a conversation is compared by its messages, independent of its JSON form.
#[test]
fn conversations_in_another_spelling_are_the_same_conversations() {
    const TEMPLATE: &str =
        "{% for message in messages %}[{{ message.role }}]{{ message.content }}</s>{% endfor %}";
    let mut plan = plan(&["train.jsonl"], Some("public.jsonl"));
    plan["data"]["text_field"] = json!("messages");
    plan["training"]["objective"] = json!("chat");
    plan["tokenizer"] = json!({ "public": { "path": "base/tokenizer.json", "made_from": "public_text" } });
    let turns = |n: usize| [("user", note(n)), ("assistant", format!("Take {n} tablets, twice on day {n}."))];
    let plain = |n: usize| {
        let messages = turns(n).map(|(role, content)| json!({ "role": role, "content": content }));
        json!({ "messages": messages }).to_string() + "\n"
    };
    let respelt = |n: usize| {
        let escaped = |text: &str| text.replace('é', "\\u00e9");
        let turns = turns(n).map(|(role, content)| {
            format!("{{ \"content\" : \"{}\",  \"role\":\"{role}\" }}", escaped(&content))
        });
        format!("{{\"messages\": [{}]}}\n", turns.join(" , "))
    };
    let table = |n: usize| {
        let messages = turns(n).map(|(role, content)| json!({ "role": role, "content": content }));
        format!("\"{}\"\n", json!(messages).to_string().replace('"', "\"\""))
    };
    let text = |numbers: std::ops::Range<usize>, line: &dyn Fn(usize) -> String| {
        numbers.map(line).collect::<String>()
    };
    for (name, public) in [
        ("public.jsonl", text(0..300, &respelt)),
        ("public.jsonl", text(900..1_000, &plain) + &text(40..42, &respelt)),
        ("public.csv", "messages\n".to_owned() + &text(0..300, &table)),
    ] {
        plan["evaluation"]["source"] = json!({ "path": name });
        let bench = Bench::new(&plan);
        fs::create_dir(bench.path("base")).unwrap();
        fs::write(
            bench.path("base/tokenizer.json"),
            Tokenizer::bytes(&["</s>".to_owned()]).unwrap().to_json(),
        )
        .unwrap();
        fs::write(bench.path("base/chat_template.jinja"), TEMPLATE).unwrap();
        fs::write(bench.path("base/tokenizer_config.json"), "{\"eos_token\": \"</s>\"}").unwrap();
        fs::write(bench.path("train.jsonl"), text(0..300, &plain)).unwrap();
        fs::write(bench.path(name), public).unwrap();
        assert_refused(
            name,
            &bench.run("run", &[]),
            bench.folder.path(),
            &["evaluation.source", "shares text"],
        );
    }
}

/// A6: a rehearsal on the private text would choose settings that depend on it, without a charge.
#[test]
fn a_rehearsal_on_the_private_text_is_refused() {
    let mut plan = plan(&["train.txt"], Some("public.txt"));
    plan["tokenizer"] = json!("bytes");
    let bench = Bench::new(&plan);
    fs::write(bench.path("train.txt"), lines(0..300)).unwrap();
    fs::write(bench.path("public.txt"), lines(1_000..1_050)).unwrap();
    fs::write(bench.path("copy.txt"), lines(0..300).to_uppercase()).unwrap();
    for public in ["train.txt", "copy.txt"] {
        let output = Command::new(env!("CARGO_BIN_EXE_trainer-native"))
            .current_dir(bench.folder.path())
            .args(["rehearse", "--plan", "plan.json", "--out", "run", "--public", public])
            .output()
            .unwrap();
        assert_refused(public, &output, bench.folder.path(), &["--public", "training text"]);
    }
}

/// Records of three words, which a text has here and there. Parts of one corpus have some in common by chance.
#[test]
fn copies_of_phrases_are_refused_unless_the_plan_accepts_them() {
    let mut plan = plan(&["train.txt"], Some("public.txt"));
    plan["tokenizer"] = json!("bytes");
    let bench = Bench::new(&plan);
    let phrases = "Uncommonly delightful neighbors!\nInexplicable administrative delays\n";
    fs::write(bench.path("train.txt"), lines(0..300) + phrases).unwrap();
    fs::write(bench.path("public.txt"), lines(1_000..1_050) + &phrases.to_lowercase()).unwrap();
    let found = "of fewer than 8 words but of 18 letters or more, are equal, the first of them record 51";
    let accepts = "\"accept_equal_phrases\": true in evaluation accepts them";
    assert_refused(
        "run",
        &bench.run("run", &[]),
        bench.folder.path(),
        &["evaluation.source", found, accepts],
    );
    let rehearse = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        command.current_dir(bench.folder.path()).args(["rehearse", "--plan", "plan.json", "--out", "run"]);
        command.args(["--public", "public.txt", "--write", "plan.json"]).args(options).output().unwrap()
    };
    let folder = bench.folder.path();
    assert_refused(
        "rehearse",
        &rehearse(&[]),
        folder,
        &["--public", found, "--accept-equal-phrases accepts them"],
    );
    assert_refused("accepted", &rehearse(&["--accept-equal-phrases"]), folder, &["the file exists"]);
    plan["evaluation"]["accept_equal_phrases"] = json!(true);
    fs::write(bench.path("plan.json"), plan.to_string()).unwrap();
    bench.model("run", &["--test-key", "1"]);
    let certificate = fs::read_to_string(bench.path("run/certificate.md")).unwrap();
    let accepted = "fewer than 8 words, which the plan accepts (evaluation.accept_equal_phrases), may be";
    assert!(certificate.contains(accepted), "{certificate}");
}

/// Neither run of two has the texts of the other, and the certificate of the second says so.
#[test]
fn evaluation_text_of_one_stage_may_be_the_training_text_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.txt"), lines(0..300)).unwrap();
    fs::write(at("b.txt"), lines(1_000..1_300)).unwrap();
    let sentence = "ε does not cover text that another stage evaluates";
    for (name, texts, from) in
        [("first", ["a.txt", "b.txt"], None), ("second", ["b.txt", "a.txt"], Some("first"))]
    {
        let mut plan = plan(&[texts[0]], Some(texts[1]));
        plan["tokenizer"] = json!("bytes");
        if from.is_some() {
            plan["model"]["initial"] = json!({ "checkpoint": "first" });
            plan["model"]["checkpoint_made_from"] = json!("disjoint_units");
            plan["tokenizer"] =
                json!({ "public": { "path": "first/tokenizer.json", "made_from": "disjoint_units" } });
        }
        fs::write(at("plan.json"), plan.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        command.arg("--plan").arg(at("plan.json")).arg("--out").arg(at(name)).args(["--test-key", "1"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let certificate = fs::read_to_string(at(name).join("certificate.md")).unwrap();
        assert_eq!(certificate.contains(sentence), from.is_some(), "{certificate}");
    }
}

/// B2: an earlier stage, however far back, used the text without noise, as public text.
#[test]
fn text_that_an_earlier_stage_called_public_is_not_private_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |name: &str, plan: &Value| {
        fs::write(at(&format!("{name}.json")), plan.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer-native"));
        command
            .arg("--plan")
            .arg(at(&format!("{name}.json")))
            .arg("--out")
            .arg(at(name))
            .args(["--test-key", "1"]);
        command.output().unwrap()
    };
    let stage = |text: &str, from: Option<&str>, is_public: bool| {
        let mut plan = plan(&[text], None);
        plan["tokenizer"] = json!("bytes");
        if let Some(from) = from {
            plan["model"]["initial"] = json!({ "checkpoint": from });
            plan["model"]["checkpoint_made_from"] = json!("public_text");
            plan["tokenizer"] =
                json!({ "public": { "path": format!("{from}/tokenizer.json"), "made_from": "public_text" } });
        }
        if is_public { on_public_text(&plan) } else { plan }
    };
    fs::write(at("a.txt"), lines(0..300)).unwrap();
    fs::write(at("copy.csv"), "text\n".to_owned() + &lines(0..300).replace(", ", " ").to_uppercase())
        .unwrap();
    fs::write(at("b.txt"), lines(1_000..1_300)).unwrap();
    fs::write(at("c.txt"), lines(2_000..2_300)).unwrap();
    for (name, plan) in
        [("first", stage("a.txt", None, true)), ("second", stage("b.txt", Some("first"), true))]
    {
        let output = run(name, &plan);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    for (text, from) in
        [("a.txt", "first"), ("copy.csv", "first"), ("copy.csv", "second"), ("b.txt", "second")]
    {
        let output = run("run", &stage(text, Some(from), false));
        assert_refused(
            from,
            &output,
            folder.path(),
            &["data.source", "declared public and used without noise"],
        );
    }
    let output = run("run", &stage("c.txt", Some("second"), false));
    assert!(output.status.success(), "{}", stderr(&output));
    let certificate = fs::read_to_string(at("run/certificate.md")).unwrap();
    assert!(certificate.contains("used text without noise, as public text"), "{certificate}");
}
