//! Folders of runs, statements of vocabularies and findings from an untrusted source.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Hostile, Other, nested};

const VERIFY: &str = "verify {}/run";
const HISTORY: &str = "history --delta 1e-6 --timeout 5 {}/vocabulary";

/// The commands that read a run's folder.
const COMMANDS: [&str; 6] = [
    VERIFY,
    "history --delta 1e-6 {}/run",
    "report {}/run --out {}/report.html",
    "export {}/run --out {}/exported",
    "generate {}/run --tokens 1",
    "--quiet --plan {}/plan.json --out {}/run --resume",
];

/// Commands that load a model, and the one that writes the certificate again.
const READ_NO_CERTIFICATE: [&str; 2] = [COMMANDS[4], COMMANDS[5]];

fn altered(run: &Path) -> Vec<Hostile> {
    let ledger = fs::read_to_string(run.join("ledger.jsonl")).unwrap();
    let lines: Vec<&str> = ledger.lines().collect();
    let model = fs::read(run.join("model.safetensors")).unwrap();
    let deep = nested("[", "", "]", 1_000_000);
    let ledgers = [
        ("an empty ledger", String::new()),
        ("a ledger of one line of 50 MB", "a".repeat(50_000_000)),
        ("a ledger of lists in lists", deep.clone() + "\n"),
        ("a ledger of 5 million blank lines", "\n".repeat(5_000_000)),
        ("a ledger without its header", lines[1..].join("\n") + "\n"),
        ("a ledger with a line twice", format!("{}\n{}\n", lines[0], lines[0])),
        ("a ledger with half its lines", lines[..lines.len() / 2].join("\n") + "\n"),
        ("a ledger with half a line", ledger[..ledger.len() - 100].to_owned()),
        ("a ledger with a line of 50 MB at its end", ledger.clone() + &"a".repeat(50_000_000)),
        ("a ledger without line ends", lines.concat()),
    ];
    let files: [(&str, &str, Vec<u8>); 10] = [
        ("a plan of lists in lists", "plan.json", deep.clone().into()),
        ("half a plan", "plan.json", b"{\"version\": 1".to_vec()),
        ("a certificate of lists in lists", "certificate.json", deep.clone().into()),
        ("a certificate of 50 MB", "certificate.json", vec![b' '; 50_000_000]),
        ("a certificate of 50 MB in words", "certificate.md", vec![b'a'; 50_000_000]),
        ("a model of 8 bytes", "model.safetensors", vec![0xFF; 8]),
        ("half a model", "model.safetensors", model[..model.len() / 2].to_vec()),
        ("a configuration of lists in lists", "config.json", deep.clone().into()),
        ("a tokenizer of lists in lists", "tokenizer.json", deep.clone().into()),
        ("metrics of lists in lists", "metrics.jsonl", deep.into()),
    ];
    let ledgers = ledgers.into_iter().map(|(name, text)| (name, "ledger.jsonl", text.into_bytes()));
    ledgers
        .chain(files)
        .flat_map(|(name, file, bytes)| {
            COMMANDS.map(|command| {
                let name = format!("{name}: {}", command.split(' ').next().unwrap_or_default());
                let hostile =
                    Hostile::new(name.as_str(), command, "").file(&format!("run/{file}"), bytes.clone());
                // A crash leaves such an end, and these commands do not rely on the certificate or
                // the metrics.
                let is_read = file == "metrics.jsonl" && command.starts_with("generate")
                    || file.starts_with("certificate") && READ_NO_CERTIFICATE.contains(&command)
                    || name.starts_with("a ledger with a line of 50 MB") && command == COMMANDS[5];
                if is_read { hostile.or_read() } else { hostile.or_false() }
            })
        })
        .collect()
}

/// Pipes, devices and holes in place of files.
fn no_files() -> Vec<Hostile> {
    let others =
        [("a pipe", Other::Pipe), ("a device", Other::LinkTo("/dev/zero")), ("a hole", Other::Hole(1 << 42))];
    let files = [
        "plan.json",
        "ledger.jsonl",
        "certificate.json",
        "certificate.md",
        "model.safetensors",
        "config.json",
        "tokenizer.json",
    ];
    let all = others.iter().flat_map(|other| files.iter().map(move |file| (other, file)));
    let of_runs = all.flat_map(|((name, other), file)| {
        COMMANDS[..4].iter().map(move |command| {
            let name = format!("{name} as {file}: {}", command.split(' ').next().unwrap_or_default());
            let hostile = Hostile::new(name, command, "").other(&format!("run/{file}"), *other);
            // Reading a hole takes time proportional to its length, as verifying a model does.
            hostile.or_false()
        })
    });
    let statements = others.iter().map(|(name, other)| {
        Hostile::new(format!("{name} as privacy.json"), HISTORY, "privacy.json")
            .file("vocabulary/other", "")
            .other("vocabulary/privacy.json", *other)
    });
    of_runs.chain(statements).collect()
}

/// A ledger with correct digests of these entries, as they are written.
fn ledger(entries: &[String]) -> String {
    use sha2::{Digest, Sha256};
    let (mut all, mut previous) = (String::new(), "0".repeat(64));
    for (sequence, entry) in entries.iter().enumerate() {
        let body = format!("{{\"sequence\":{sequence},\"previous\":\"{previous}\",\"entry\":{entry}}}");
        previous = Sha256::digest(body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        all += &format!("{},\"sha256\":\"{previous}\"}}\n", &body[..body.len() - 1]);
    }
    all
}

/// Ledgers of an attacker who knows how a ledger is signed.
fn signed(run: &Path) -> Vec<Hostile> {
    let whole = fs::read_to_string(run.join("ledger.jsonl")).unwrap();
    let entry = |line: &str| {
        let body = line.rsplit_once(",\"sha256\":\"").unwrap().0;
        body.split_once("\"entry\":").unwrap().1.to_owned()
    };
    let entries: Vec<String> = whole.lines().map(entry).collect();
    assert_eq!(ledger(&entries), whole, "the signature is that of the program");
    let own = &entries[entries.iter().position(|entry| entry.contains("\"step\"")).unwrap()];
    let event = own.split_once("\"event\":").unwrap().1.strip_suffix('}').unwrap();
    let step = |step: u64, attempt: u64, event: &str| {
        format!(r#"{{"kind":"step","step":{step},"attempt":{attempt},"event":{event}}}"#)
    };
    let completed =
        |steps: u64, files: &str| format!(r#"{{"kind":"completed","steps_done":{steps},"files":[{files}]}}"#);
    let deep = nested(r#"{"type":"composed","events":["#, "", "]}", 50);
    let composed = |count: u64| format!(r#"{{"type":"self_composed","event":{event},"count":{count}}}"#);
    let file = r#"{"name":"../../../etc/passwd","sha256":""}"#;
    let parent = |number: u64| {
        format!(
            r#"{{"kind":"parent","name":"a","id":"{number}","sha256":"{number:064}","made_from":"same_units","unit":"record","relation":"add_or_remove_one","not_private_because":[],"charges":[]}}"#
        )
    };
    [
        ("a step of 2^64 - 1", vec![step(u64::MAX, 1, event)]),
        ("an attempt of 2^64 - 1", vec![step(0, u64::MAX, event)]),
        ("events in events", vec![step(0, 1, &deep)]),
        ("a step of 2^64 - 1 steps", vec![step(0, 1, &composed(u64::MAX))]),
        ("a step twice at once", vec![step(0, 1, &composed(2)), step(0, 2, event)]),
        ("2^64 - 1 steps done", vec![completed(u64::MAX, "")]),
        (
            "a million counts",
            vec![format!(
                r#"{{"kind":"label_counts","counts":[{}1]}}"#,
                "9223372036854775807,".repeat(1_000_000)
            )],
        ),
        ("a million files", vec![completed(0, &vec![file; 1_000_000].join(","))]),
        ("100,000 earlier stages", (0..100_000).map(parent).collect()),
        (
            "100,000 resumed processes",
            vec![r#"{"kind":"resume","steps_done":0,"torn_bytes":18446744073709551615}"#.to_owned(); 100_000],
        ),
        ("100,000 steps", (0..100_000).map(|at| step(at, 1, event)).collect()),
        ("100,000 attempts of a step", (1..=100_000).map(|at| step(0, at, event)).collect()),
    ]
    .into_iter()
    .flat_map(|(name, more)| {
        let all: Vec<String> = std::iter::once(entries[0].clone()).chain(more).collect();
        [VERIFY, COMMANDS[1]].map(|command| {
            let name = format!("{name}: {}", command.split(' ').next().unwrap_or_default());
            Hostile::new(name, command, "").file("run/ledger.jsonl", ledger(&all)).or_false()
        })
    })
    .collect()
}

/// Statements of vocabularies.
fn statements() -> Vec<Hostile> {
    let statement = |name: &str, event: Value| {
        let text = json!({ "private": true, "reason": "", "id": "0".repeat(32), "event": event, "unit": "record",
            "relation": "add_or_remove_one", "tokenizer_sha256": null });
        Hostile::new(name, HISTORY, "vocabulary").file("vocabulary/privacy.json", text.to_string()).or_read()
    };
    let gaussian = |noise: f64| json!({ "type": "gaussian", "noise_multiplier": noise });
    let sampled = |probability: f64, noise: f64| json!({ "type": "poisson_sampled_gaussian", "sampling_probability": probability, "noise_multiplier": noise });
    let many = |event: Value, count: u64| json!({ "type": "self_composed", "event": event, "count": count });
    let all_of = |events: Vec<Value>| json!({ "type": "composed", "events": events });
    let text = |name: &str, text: String| {
        Hostile::new(name, HISTORY, "privacy.json").file("vocabulary/privacy.json", text)
    };
    vec![
        statement("2^64 - 1 steps", many(sampled(0.5, 1.0), u64::MAX)),
        statement("2^64 - 1 steps of almost no noise", many(sampled(1e-9, 1e-9), u64::MAX)),
        statement("a noise of 1e-300", gaussian(1e-300)),
        statement("a noise of 1e300", gaussian(1e300)),
        statement("a negative noise", gaussian(-1.0)),
        statement(
            "1,000 different events",
            all_of((1..=1000).map(|at| sampled(0.001 * f64::from(at) / 2.0, 1.0)).collect()),
        ),
        statement("events in events", (0..60).fold(gaussian(1.0), |inner, _| many(inner, 2))),
        statement("100,000 events", all_of(vec![gaussian(1.0); 100_000])),
        text("lists in lists", nested("[", "", "]", 1_000_000)),
        text(
            "events in events in events",
            format!("{{\"event\":{}}}", nested(r#"{"type":"composed","events":["#, "", "]}", 100_000)),
        ),
        text("a unit of 10 MB", json!({ "private": true, "unit": "a".repeat(10_000_000) }).to_string()),
    ]
}

fn findings() -> Vec<Hostile> {
    let report = |name: &str, text: String| {
        Hostile::new(name, "report {}/run --out {}/report.html --findings {}/found.json", "found.json")
            .file("found.json", text)
    };
    let own: Vec<String> = (0..100_000).map(|at| format!("{{\"{at}\":1}}")).collect();
    let wide: Vec<String> = (0..200_000).map(|at| format!("\"{at}\":{{\"a\":1}}")).collect();
    vec![
        report("lists in lists", nested("[", "", "]", 1_000_000)),
        report("100,000 objects of a field of their own", own.join("\n")),
        report("the same in a list", format!("[{}]", own.join(","))),
        report("the same in a field", format!("{{\"a\":[{}]}}", own.join(","))),
        report("a list of an object of 200,000 objects", format!("[{{{}}}]", wide.join(","))),
        report(
            "figures of 1e308",
            json!({ "epsilon": 1e308, "epsilon_lower": -1e308, "points": [[1e308, -1e308], [0, 0]] })
                .to_string(),
        )
        .or_read(),
    ]
}

pub(crate) fn all(run: &Path) -> Vec<Hostile> {
    [altered(run), no_files(), signed(run), statements(), findings()].into_iter().flatten().collect()
}
