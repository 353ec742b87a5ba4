//! A newcomer's first commands: a plan proposed for a text, a dry run, training, and the list of runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const SECRET: &str = "Xylophonist";

fn run(folder: &Path, arguments: &str) -> Output {
    let words = arguments.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_trainer-native")).current_dir(folder).args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a command that succeeds and shows nothing of the text.
fn ok(folder: &Path, arguments: &str) -> (String, String) {
    let output = run(folder, arguments);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{arguments}: {err}");
    assert!(!out.contains(SECRET) && !err.contains(SECRET), "{arguments}: {out}{err}");
    (out, err)
}

fn refused(folder: &Path, arguments: &str) -> String {
    let output = run(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments}: {}", text(&output.stderr));
    text(&output.stderr)
}

fn plan(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("plan.json")).unwrap()).unwrap()
}

/// Writes a table of messages, most of which are by one user.
fn messages(folder: &Path) {
    let row = |place: usize| {
        let user = if place < 150 { 0 } else { place };
        format!("{place},u{user},\"{SECRET} {place} says hello, again\"\n")
    };
    let table = "id,author,body\n".to_owned() + &(0..300).map(row).collect::<String>();
    std::fs::write(folder.join("messages.csv"), table).unwrap();
}

#[test]
fn a_plan_proposed_for_a_table_of_messages_runs_and_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    messages(folder);
    let (out, err) =
        ok(folder, "init messages.csv --units 150 --unit user --epsilon 8 --steps 2 --batch-size 8");
    assert!(out.contains("trainer-native train --plan plan.json --dry-run"), "{out}");
    assert!(err.contains("NOT PRIVATE") && err.contains("one of them 150"), "{err}");
    let data = &plan(folder)["data"];
    assert_eq!((&data["text_field"], &data["user_field"]), (&"body".into(), &"author".into()));

    let (out, _) = ok(folder, "train --plan plan.json --dry-run");
    assert!(out.contains("ε ≤ ") && out.contains("runs/messages (new)"), "{out}");
    assert!(!folder.join("runs").exists());

    let (_, err) = ok(folder, "train --plan plan.json --test-key 7 --quiet --log-file log.txt");
    assert_eq!(err, "");
    let log = std::fs::read_to_string(folder.join("log.txt")).unwrap();
    assert!(log.contains("NOT PRIVATE: --test-key") && log.contains("step 2/2: ε ≤ "), "{log}");

    let (out, _) = ok(folder, "train --plan plan.json --dry-run");
    assert!(out.contains("holds a run"), "{out}");
    std::fs::create_dir(folder.join("runs/other")).unwrap();
    let (out, _) = ok(folder, "runs");
    assert_eq!(out.trim(), "messages  finished, NOT PRIVATE");
    let listed: Value = serde_json::from_str(&ok(folder, "runs --json").0).unwrap();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 1);
    assert_eq!(listed["runs"][0]["state"], "finished");
}

fn save(folder: &Path, plan: &Value) {
    std::fs::write(folder.join("plan.json"), plan.to_string()).unwrap();
}

/// Oracle: the sizes in the header of the trained model's file.
#[test]
fn the_vocabulary_of_a_public_tokenizer_counts_in_what_a_plan_needs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    messages(folder);
    ok(folder, "init messages.csv --units 150 --unit user --epsilon 8 --steps 1 --batch-size 8");
    let mut plan = plan(folder);
    plan["tokenizer"] = json!({ "train": { "model": "unigram", "vocab_size": 700, "release": "sips", "byte_fallback": true } });
    save(folder, &plan);
    ok(folder, "train --plan plan.json --test-key 7 --quiet --log-file log.txt");
    let model = std::fs::read(folder.join("runs/messages/model.safetensors")).unwrap();
    let length = u64::from_le_bytes(model[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&model[8..8 + length]).unwrap();
    let sizes = header.as_object().unwrap().values().filter_map(|tensor| tensor["shape"].as_array());
    let parameters: u64 = sizes.map(|shape| shape.iter().map(|n| n.as_u64().unwrap()).product::<u64>()).sum();

    // The file is as written by a library without marks. The vocabulary of a private run would be
    // refused here.
    let own = std::fs::read_to_string(folder.join("runs/messages/tokenizer.json")).unwrap();
    let mut public: Value = serde_json::from_str(&own).unwrap();
    public["model"].as_object_mut().unwrap().remove("privacy");
    std::fs::write(folder.join("public.json"), public.to_string()).unwrap();
    plan["tokenizer"] = json!({ "public": { "path": "public.json", "made_from": "public_text" } });
    plan["name"] = "public".into();
    save(folder, &plan);
    let json = |arguments: &str| -> Value { serde_json::from_str(&ok(folder, arguments).0).unwrap() };
    assert_eq!(json("train --plan plan.json --dry-run --json")["parameters"], parameters);
    assert_eq!(json("scaling --plan plan.json --json")["trained_parameters"], parameters);

    // Oracle: by hand. Two blocks have a matrix of 128 × 3·128 each, for which an adapter of rank 4
    // has two matrices.
    plan["model"]["trainable"] = json!({ "lora": { "rank": 4, "alpha": 4.0, "targets": ["c_attn"] } });
    plan["model"]["initial"] = json!({ "checkpoint": "unread" });
    plan["model"]["checkpoint_made_from"] = json!("public_text");
    save(folder, &plan);
    assert_eq!(json("scaling --plan plan.json --json")["trained_parameters"], 2 * 4 * (128 + 3 * 128));
    std::fs::remove_file(folder.join("public.json")).unwrap();
    let message = refused(folder, "scaling --plan plan.json");
    assert!(message.contains("public.json: there is no such file") && message.contains("give --vocab-size"));
    assert!(refused(folder, "scaling --plan plan.json --vocab-size 0").contains("--vocab-size: 0"));
}

/// Types `answers` on a terminal. Returns the exit code and what the terminal shows.
fn on_terminal(folder: &Path, arguments: &str, answers: &str) -> (Option<i32>, String) {
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_trainer-native"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]).current_dir(folder);
    let mut terminal = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    terminal.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    let output = terminal.wait_with_output().unwrap();
    (output.status.code(), text(&output.stdout))
}

#[test]
fn questions_are_asked_again_after_a_wrong_answer_and_nothing_is_written_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    messages(folder);
    let (code, shown) = on_terminal(folder, "init messages.csv", "nobody\nbody\n-\nuser\n\n0\n300\n-1\n4\n");
    assert_eq!(code, Some(0), "{shown}");
    for refused in ["no field \"nobody\"", "no field names the user", "units \"0\"", "ε \"-1\""] {
        assert!(shown.contains(refused), "{refused}: {shown}");
    }
    let plan = plan(folder);
    assert_eq!((&plan["data"]["text_field"], &plan["data"]["units"]), (&"body".into(), &300.into()));
    assert_eq!(plan["privacy"]["epsilon"], 4.0);
    assert_eq!(plan["privacy"]["unit"], "record");
    let (code, shown) = on_terminal(folder, "init messages.csv --out none.json", "");
    assert_eq!(code, Some(2), "{shown}");
    assert!(
        shown.contains("no answer; nothing was written") && !folder.join("none.json").exists(),
        "{shown}"
    );
}

#[test]
fn a_folder_of_notes_is_a_text_whose_files_are_records() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for place in 0..40 {
        let path = folder.join(format!("notes/ward{}/{place}.txt", place % 3));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{SECRET} seen.\nNo fever on day {place}.\n")).unwrap();
    }
    // Public text of another content.
    std::fs::write(folder.join("public.txt"), "A public sentence of a few words.\n").unwrap();
    ok(
        folder,
        "init notes --units 40 --unit record --epsilon 4 --steps 2 --batch-size 8 --evaluation public.txt",
    );
    let (out, _) = ok(folder, "--plan plan.json --test-key 7");
    assert!(out.contains("2 of 2 steps, ε ≤ "), "{out}");
    std::fs::write(folder.join("notes/scan.pdf"), "%PDF").unwrap();
    let message = refused(folder, "--plan plan.json --out runs/again");
    assert!(message.contains("files that are not .txt") && message.lines().count() == 1, "{message}");
}

#[test]
fn fields_inside_fields_are_proposed_and_wrong_ones_refused_with_those_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let line = |place: usize| format!("{{\"id\": {place}, \"note\": {{\"text\": \"{SECRET} {place}\"}}}}\n");
    std::fs::write(folder.join("notes.jsonl"), (0..30).map(line).collect::<String>()).unwrap();
    std::fs::write(folder.join("empty.csv"), "").unwrap();
    ok(folder, "init notes.jsonl --units 30 --unit record --epsilon 4");
    assert_eq!(plan(folder)["data"]["text_field"], "note.text");
    for (arguments, words) in [
        ("init notes.jsonl --units 30 --unit record --epsilon 4", "plan.json exists"),
        (
            "init notes.jsonl --out a.json --text-field body --units 30 --epsilon 4",
            "fields of the text: id, note.text",
        ),
        ("init notes.jsonl --out a.json --unit user --units 30 --epsilon 4", "--user-field"),
        ("init notes.jsonl --out a.json --unit record --units 30", "--epsilon: give an upper limit"),
        ("init notes.jsonl --out a.json --unit record --units 30 --epsilon -1", "privacy.epsilon"),
        ("init notes.jsonl --out a.json --unit record --units 30 --epsilon 4 --delta 0.5", "privacy.delta"),
        ("init missing.csv --out a.json", "there is no such file"),
        ("init empty.csv --out a.json", "the file is empty"),
        ("runs missing", "missing"),
    ] {
        let message = refused(folder, arguments);
        assert!(message.contains(words) && message.lines().count() == 1, "{arguments}: {message}");
        assert!(!message.contains(SECRET));
    }
    let asked = text(&run(folder, "init notes.jsonl --out a.json --unit record --epsilon 4").stderr);
    assert!(
        asked.contains("NOT PRIVATE") && asked.contains("it has 30 units") && asked.contains("--units"),
        "{asked}"
    );
}

/// Comments as GoEmotions has them: no header line, and several labels of some.
fn comments(folder: &Path, name: &str, records: usize) {
    let row = |place: usize| {
        let label = ["joy", "anger,joy", "anger"][place % 3];
        format!("{SECRET} number {place} is {label} today\t{label}\te{place}\n")
    };
    std::fs::write(folder.join(name), (0..records).map(row).collect::<String>()).unwrap();
}

#[test]
fn comments_without_a_header_become_synthetic_records_whose_quality_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    comments(folder, "train.tsv", 400);
    let columns = "--columns text,label,id --unit record --units 400 --epsilon 8 --steps 2 --batch-size 32";
    let message = refused(folder, &format!("init train.tsv {columns}"));
    assert!(message.contains("--task: ") && message.contains("synthesis"), "{message}");
    let asked = format!("init train.tsv {columns} --task synthesis --labels joy,anger");
    let (out, err) = ok(folder, &format!("{asked} --label-separator ,"));
    for line in
        ["task       synthesis", "label \"label\"", "steps on texts of released words", "time       about"]
    {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert!(!err.contains("labels that --labels does not list"), "{err}");
    let (_, err) = ok(folder, &format!("{asked} --out other.json"));
    assert!(err.contains("1 labels that --labels does not list"), "{err}");

    let (out, _) = ok(folder, "train --plan plan.json --test-key 7");
    assert!(out.contains("2 of 2 steps"), "{out}");
    ok(folder, "synthesize runs/train --count 30 --tokens 12 --out synthetic.jsonl");
    let written = std::fs::read_to_string(folder.join("synthetic.jsonl")).unwrap();
    let labels = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["label"].clone());
    assert!(
        labels.clone().count() == 30 && labels.into_iter().all(|label| label == "joy" || label == "anger")
    );
    let real: String = (0..30).map(|place| format!("a fine day {place}\tjoy,anger\te{place}\n")).collect();
    std::fs::write(folder.join("real.tsv"), real).unwrap();
    let options = "--columns text,label,id --label-field label --label-separator ,";
    let (out, _) = ok(folder, &format!("quality synthetic.jsonl --reference real.tsv {options}"));
    assert!(out.contains("total variation"), "{out}");
}

#[test]
fn columns_task_and_labels_are_asked_for_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    comments(folder, "train.tsv", 40);
    let answers = "text,label\ntext,label,id\nclassify\nsynthesis\n\n\njoy,anger\n\n40\n\n";
    let (code, shown) = on_terminal(folder, "init train.tsv", answers);
    assert_eq!(code, Some(0), "{shown}");
    for words in [
        "Names of all 3",
        "name all 3",
        "task \"classify\"",
        "anger,joy",
        "1 labels that --labels does not list",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let plan = plan(folder);
    assert_eq!(plan["data"]["columns"], json!(["text", "label", "id"]));
    assert_eq!(plan["data"]["label_histogram"]["labels"], json!(["joy", "anger"]));
    assert_eq!(
        (&plan["data"]["text_field"], &plan["data"]["target_field"]),
        (&"label".into(), &"text".into())
    );
}

#[test]
fn every_program_writes_its_completions_and_manual() {
    let folder = tempfile::tempdir().unwrap();
    let (script, _) = ok(folder.path(), "completions bash");
    assert!(script.contains("--physical-batch"));
    ok(folder.path(), "man pages");
    let page = std::fs::read_to_string(folder.path().join("pages/trainer-native-verify.1")).unwrap();
    assert!(page.contains(".TH") && folder.path().join("pages/trainer-native.1").is_file());
}
