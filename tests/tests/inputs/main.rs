//! Bad input to the three programs: exit code 2, one line that says what is wrong and how to fix it, and no private text.
//!
//! `cargo xtask campaign inputs --minutes M` then goes on with random changes of good inputs for M minutes.

#![allow(clippy::print_stdout, reason = "a campaign reports its figures")]

mod plans;
mod texts;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::{Outcome, Workplace, altered, program_path, tiny_plan, trainer_path};

/// A word of every private text. No message may contain it.
const SECRET: &str = "xylophonist";

static ACCOUNTANT: LazyLock<PathBuf> = LazyLock::new(|| program_path("accountant"));
static TOKENIZER: LazyLock<PathBuf> = LazyLock::new(|| program_path("dp-tokenizer"));

/// Runs a program in `place`; it must end within a minute.
fn run(place: &Workplace, program: &std::path::Path, arguments: &[&str]) -> Outcome {
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    while child.try_wait().expect("a process").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{arguments:?} hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.wait_with_output().expect("its output").into()
}

/// Checks that a refusal is one clear line.
fn assert_clear(outcome: &Outcome, what: &str) {
    let Outcome { stderr, .. } = outcome;
    assert_eq!(outcome.code, 2, "{what}: {stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{what}: not one line: {stderr}");
    assert!(stderr.len() > 30 && stderr.len() < 1200, "{what}: {} bytes: {stderr}", stderr.len());
    assert!(!stderr.contains(SECRET) && !stderr.contains("99887766"), "{what}: private text: {stderr}");
    assert!(!stderr.contains("panicked"), "{what}: {stderr}");
}

fn assert_refused(outcome: &Outcome, what: &str, word: &str) {
    assert_clear(outcome, what);
    assert!(outcome.stderr.contains(word), "{what}: «{word}» is not in: {}", outcome.stderr);
    assert_eq!(outcome.stdout, "", "{what}");
}

#[test]
fn bad_plans_are_refused_in_one_line() {
    let place = Workplace::new();
    let table = plans::table();
    for (plan, word) in &table {
        let outcome = place.train(plan, &[]);
        assert_refused(&outcome, &plan.to_string(), word);
        assert!(!place.path("run").exists(), "{plan} left files");
    }
    let texts = plans::texts();
    for (text, word) in &texts {
        place.write("plan.json", text);
        let what = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
        assert_refused(&place.trainer(["verify", "plan.json"]), &what, word);
        assert_refused(&place.trainer(["--plan", "plan.json", "--out", "run"]), &what, word);
    }
    assert!(table.len() + texts.len() >= 120, "{}", table.len());
    println!("plans: {} refused in one line", table.len() + texts.len());
}

#[test]
fn bad_texts_are_refused_in_one_line_and_never_quoted() {
    let table = texts::table();
    for (name, bytes, word) in &table {
        let place = Workplace::new();
        place.write(name, bytes);
        let plan = altered(tiny_plan(), &[("/data/source", json!({ "path": name }))]);
        assert_refused(&place.train(&plan, &[]), name, word);
        assert!(!place.path("run").exists(), "{name} left files");
        for cost in [&["--public"][..], &["--epsilon", "1", "--delta", "1e-6"]] {
            let arguments = [&["train", "--input", name, "--vocab-size", "400", "--out", "v"], cost].concat();
            assert_refused(&run(&place, &TOKENIZER, &arguments), name, word);
        }
    }
    println!("texts: {} refused by two programs", table.len());
}

#[test]
fn bad_arguments_are_refused_in_one_line() {
    let place = Workplace::new();
    place.write("plan.json", tiny_plan().to_string());
    place.write("text.txt", format!("a {SECRET}\n"));
    place.write("bad.json", "{\"model\": 5}");
    place.write("bad.model", "no model");
    std::fs::copy(VOCABULARY, place.path("small.model")).expect("a tokenizer");
    place.write("model.safetensors", [0xF0, 0, 0, 0, 0, 0, 0, 0, b'{']);
    let cases = |program: &std::path::Path, table: &[(&str, &str)]| {
        for (line, word) in table {
            let arguments: Vec<&str> = line.split_whitespace().collect();
            assert_refused(&run(&place, program, &arguments), line, word);
        }
        table.len()
    };
    place.write("empty.csv", "");
    std::fs::create_dir(place.path("vocabulary")).expect("a folder");
    place.write("vocabulary/privacy.json", "{}");
    let count = cases(trainer_path(), TRAINER_LINES) + cases(&ACCOUNTANT, ACCOUNTANT_LINES);
    println!("arguments: {} refused", count + cases(&TOKENIZER, TOKENIZER_LINES));
    place.write("notes.csv", format!("id,note\n1,a {SECRET}\n"));
    let first = cases(trainer_path(), FIRST_TRAINER_LINES) + cases(&ACCOUNTANT, FIRST_ACCOUNTANT_LINES);
    let first = first + cases(&TOKENIZER, FIRST_TOKENIZER_LINES);
    assert!(first >= 100, "{first}");
    println!("first commands: {first} answered");
}

const TRAINER_LINES: &[(&str, &str)] = &[
    ("--plan none.json --out run", "none.json"),
    ("--plan . --out run", "is a folder"),
    ("--plan /dev/zero --out run", "is no file"),
    ("--plan plan.json --out run --resume", "holds no run"),
    ("--plan plan.json --out run --copied", "--resume"),
    ("--plan plan.json --out run --device tpu", "tpu"),
    ("--plan plan.json --out run --test-key -1", "-1"),
    ("--plan plan.json --out run --physical-batch 0", "physical-batch"),
    ("--plan plan.json --out text.txt/run", "text.txt"),
    ("--out run", "--plan"),
    ("plan.json", "--plan plan.json"),
    ("trian plan.json", "trian"),
    ("verify none", "none"),
    ("verify model.safetensors", "neither a run folder nor a plan"),
    ("verify text.txt", "neither a run folder nor a plan"),
    ("report none", "is not a run folder"),
    ("report .", "is not a run folder"),
    ("export none --out e", "is not a run folder"),
    ("export . --out e --dtype int8", "int8"),
    ("generate none", "is not a run folder"),
    ("generate . --tokens -3", "-3"),
    ("generate . --temperature cold", "cold"),
    ("eval none --text text.txt", "is not a run folder"),
    ("eval .", "--text"),
    ("audit --plan plan.json --out run --canaries 0", "canaries"),
    ("audit --plan plan.json --out run --canaries -5", "-5"),
    ("audit --plan plan.json --out run --confidence 2", "confidence"),
];

const ACCOUNTANT_LINES: &[(&str, &str)] = &[
    ("epsilon --noise-multiplier 1 --steps 1 --delta 1e-5", "--batch-size"),
    ("epsilon --sampling-probability 2 --noise-multiplier 1 --steps 1 --delta 1e-5", "sampling_probability"),
    (
        "epsilon --sampling-probability -0.1 --noise-multiplier 1 --steps 1 --delta 1e-5",
        "sampling_probability",
    ),
    (
        "epsilon --sampling-probability nan --noise-multiplier 1 --steps 1 --delta 1e-5",
        "sampling_probability",
    ),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 0 --steps 1 --delta 1e-5", "noise_multiplier"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier -1 --steps 1 --delta 1e-5", "noise_multiplier"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier inf --steps 1 --delta 1e-5", "noise_multiplier"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 0 --delta 1e-5", "1e6"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps -1 --delta 1e-5", "1e6"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 1.5 --delta 1e-5", "1e6"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 1 --delta 0", "0 < delta < 1"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 1 --delta 1", "0 < delta < 1"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 1 --delta -1e-5", "0 < delta < 1"),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 1", "--delta"),
    (
        "epsilon --batch-size 256 --dataset-size 60000 --noise-multiplier 1 --steps 1 --delta 0.5",
        "1 / --dataset-size",
    ),
    (
        "epsilon --batch-size 256 --dataset-size 100 --noise-multiplier 1 --steps 1 --delta 1e-5",
        "at most --dataset-size",
    ),
    (
        "epsilon --sampling-probability 0.1 --sampling lottery --noise-multiplier 1 --steps 1 --delta 1e-5",
        "lottery",
    ),
    (
        "epsilon --sampling-probability 0.1 --noise-multiplier 1e-6 --steps 1000 --delta 1e-5 --timeout 1",
        "--timeout",
    ),
    ("epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 1 --delta 1e-5 --group 0", "group"),
    ("noise --sampling-probability 0.1 --steps 1000 --epsilon 0 --delta 1e-5", "epsilon"),
    ("noise --sampling-probability 0.1 --steps 1000 --epsilon -1 --delta 1e-5", "epsilon"),
    ("noise --sampling-probability 0.1 --steps 1000 --epsilon nan --delta 1e-5", "epsilon"),
    ("events none.json --delta 1e-5", "none.json"),
    ("events text.txt --delta 1e-5", "allowed"),
    ("events . --delta 1e-5", "events are UTF-8 JSON"),
    ("epsilom", "epsilon"),
];

const TOKENIZER_LINES: &[(&str, &str)] = &[
    ("train --embedded --out v", "--epsilon"),
    ("train --epsilon 1 --delta 1e-6 --out v", "no text: give --input"),
    ("train --public", "--out"),
    ("train --embedded --epsilon 0 --delta 1e-6 --out v", "epsilon"),
    ("train --embedded --epsilon -1 --delta 1e-6 --out v", "epsilon"),
    ("train --embedded --epsilon nan --delta 1e-6 --out v", "epsilon"),
    ("train --embedded --epsilon 1 --delta 0 --out v", "delta"),
    ("train --embedded --epsilon 1 --delta 0.5 --out v", "one over the number of units"),
    ("train --embedded --epsilon 1 --delta 1e-6 --public --out v", "--public"),
    ("train --public --input none.txt --out v", "none.txt"),
    ("train --public --input . --out v", "is a folder"),
    ("train --public --input no*.txt --out v", "no file has such a name"),
    ("train --embedded --public --vocab-size -3 --out v", "-3"),
    ("train --embedded --public --unit words:0 --out v", "words:N"),
    ("train --embedded --public --unit people --out v", "people"),
    ("train --embedded --public --model gpt --out v", "gpt"),
    ("train --embedded --public --memory 1K --out v", "32M"),
    ("train --embedded --public --threads 0 --out v", "0"),
    ("train --embedded --public --out text.txt/v", "text.txt/v"),
    ("train --public --counts text.txt --out v", "a word, a tab"),
    ("encode --tokenizer none.json", "none.json"),
    ("encode --tokenizer bad.json", "bad.json"),
    ("encode --tokenizer bad.model", "bad.model"),
    ("encode --tokenizer small.model --input none.txt", "none.txt"),
    ("encode --tokenizer small.model --input text.txt --out text.txt", "is the input"),
    ("encode --tokenizer text.unknown", "text.unknown"),
    ("decode --tokenizer none.json", "none.json"),
    ("inspect --tokenizer bad.json", "bad.json"),
    ("convert --tokenizer bad.json --out b.model", "bad.json"),
    ("convert --tokenizer small.model --out small.model --overwrite", "is the input"),
    ("convert --tokenizer text.txt --out a.bin", "text.txt: the vocabulary lacks"),
    ("frain", "train"),
];

/// What people type who come from other programs, or have not read the documentation.
const FIRST_TRAINER_LINES: &[(&str, &str)] = &[
    ("train plan.json", "trainer-native --plan plan.json"),
    ("text.txt", "trainer-native init text.txt"),
    ("vocabulary", "trainer-native verify vocabulary"),
    ("--epochs 3", "training.steps"),
    ("train --num-train-epochs 3", "training.steps"),
    ("--plan plan.json --max_steps 100", "training.steps"),
    ("--plan plan.json --target-epsilon 3", "privacy.epsilon"),
    ("--plan plan.json --epsilon 3", "an option of `init`"),
    ("--plan plan.json --delta 1e-6", "an option of"),
    ("--plan plan.json --target_delta 1e-6", "privacy.delta"),
    ("--plan plan.json --noise-multiplier 1", "privacy.noise_multipliers"),
    ("--plan plan.json --max_grad_norm 1", "training.l2_clip_norm"),
    ("--plan plan.json --batch-size 64", "an option of `init`"),
    ("--plan plan.json --lot-size=64", "training.expected_batch_size"),
    ("--plan plan.json --per_device_train_batch_size 8", "training.expected_batch_size"),
    ("--plan plan.json --gradient-accumulation-steps 4", "--physical-batch"),
    ("--plan plan.json --lr 1e-3", "training.learning_rate.peak"),
    ("train --learning-rate 1e-3", "training.learning_rate.peak"),
    ("--plan plan.json --optimizer adam", "training.optimizer"),
    ("--plan plan.json --lora-r 8", "model.trainable"),
    ("--plan plan.json --accountant prv", "certified by the project's accountant"),
    ("prv", "accountant epsilon"),
    ("--plan plan.json --model gpt2", "init` --checkpoint"),
    ("--model_name_or_path gpt2", "init` --checkpoint"),
    ("--dataset text.txt", "init FILE"),
    ("--train_file text.txt", "init FILE"),
    ("--plan plan.json --output_dir run", "--out DIR"),
    ("--plan plan.json --secure-mode", "secure random numbers"),
    ("--plan plan.json --seed 1", "--test-key"),
    ("--plan plan.json --fp16", "--device"),
    ("--plan plan.json --max_seq_length 128", "model.context"),
    ("--plan plan.json --resume_from_checkpoint run", "--resume"),
    ("evaluate run", "trainer-native eval"),
    ("test run", "trainer-native eval"),
    ("fit plan", "--plan PLAN.json"),
    ("tokenize text.txt", "dp-tokenizer"),
    ("sample run", "trainer-native generate"),
    ("infer run", "trainer-native generate"),
    ("merge run", "trainer-native export"),
    ("plan text.txt", "init FILE"),
    ("verify vocabulary", "trainer-native history vocabulary --delta D"),
    ("init empty.csv --units 5 --out new.json", "the file is empty"),
    ("init text.txt --checkpoint bert-base-uncased --out new.json", "hf download bert-base-uncased"),
    (
        "init text.txt --checkpoint meta-llama/Llama-3.2-1B --out new.json",
        "hf download meta-llama/Llama-3.2-1B",
    ),
    ("report . --out x.pdf", "end in .html or .md"),
    ("report . --out report", "end in .html or .md"),
    ("history vocabulary", "train the vocabulary again"),
    ("runs none", "none"),
    ("init none.txt --out new.json", "none.txt"),
    ("init text.txt --units 1 --epsilon 4 --prior text.txt --out new.json", "fewer than 500 units"),
    ("train text.txt", "trainer-native init text.txt"),
    ("eval run text.txt", "--text"),
    ("predict run text.txt", "--input"),
    ("advise plan.json", "--plan plan.json"),
    ("rehearse plan.json", "--plan plan.json"),
    ("sweep plan.json", "--plan plan.json"),
    ("--config plan.json", "--plan PLAN.json"),
    ("train -p plan.json", "--plan PLAN.json"),
    ("version", "--version"),
    ("resume run", "--resume"),
    ("certify plan.json", "verify PLAN.json"),
    ("validate plan.json", "verify PLAN.json"),
    ("download gpt2", "hf download"),
    ("describe gpt2", "hf download gpt2"),
    ("list", "trainer-native runs"),
    ("ls", "trainer-native runs"),
    ("status", "trainer-native runs"),
    ("compare a b", "trainer-native runs"),
    ("delete run", "ledger.jsonl"),
    ("report run --pdf", "print the page"),
    ("report run --statement --out x.pdf", "ends in .html"),
    ("finetune text.txt", "--checkpoint DIR"),
    ("quantize run", "--gguf"),
    ("export run --format gguf --out x", "--gguf"),
    ("export run --out x --push-to-hub", "nothing is uploaded"),
    ("export run --out x --licence MIT", "apache-2.0"),
    ("serve run", "export RUN"),
    ("synthesize run --n 10 --out x", "--count"),
    ("init text.txt --label label", "--label-field"),
    ("init text.txt --text_column note", "--text-field"),
    ("init text.txt --lora", "model.trainable"),
    ("init https://example.org/a.csv --out new.json", "a.csv"),
    ("init *.csv --out new.json", "there is no such file"),
    ("init text.txt --task summaries", "text-to-text"),
    ("init text.txt --units 1 --epsilon 1 --out new.json --task chat", "--checkpoint"),
    ("init text.txt --units many --out new.json", "many"),
    ("verify vocabulary/privacy.json", "trainer-native history"),
    ("history none", "none"),
    ("history .", "vocabulary"),
];

const FIRST_ACCOUNTANT_LINES: &[(&str, &str)] = &[
    ("prv", "accountant epsilon"),
    ("rdp", "accountant epsilon"),
    ("compute_dp_sgd_privacy", "accountant epsilon"),
    ("epsilon --sigma 1 --steps 1 --delta 1e-5", "--noise-multiplier"),
    ("epsilon --noise 1 --steps 1 --delta 1e-5", "--noise-multiplier"),
    ("epsilon --sample-rate 0.01 --noise-multiplier 1 --steps 1 --delta 1e-5", "--sampling-probability"),
    ("epsilon --n 60000 --batch-size 256 --noise-multiplier 1 --steps 1 --delta 1e-5", "--dataset-size"),
    (
        "epsilon --batch-size 256 --dataset-size 60000 --noise-multiplier 1 --epochs 0 --delta 1e-5",
        "--epochs",
    ),
    ("noise --batch-size 256 --dataset-size 60000 --target-epsilon 3 --steps 10 --delta 1e-5", "--epsilon"),
    ("noise --batch-size 256 --dataset-size 60000 --epsilon 3 --steps 10 --target_delta 1e-5", "--delta"),
    ("--noise-multiplier 1", "an option of `epsilon`"),
    ("compute-epsilon", "accountant epsilon"),
    ("get-noise-multiplier", "accountant noise"),
    ("verify run", "trainer-native verify"),
    (
        "epsilon --accountant zcdp --batch-size 256 --dataset-size 60000 --noise-multiplier 1 --steps 1 --delta 1e-5",
        "exact, pld, rdp",
    ),
    (
        "epsilon --alphas 2 --batch-size 256 --dataset-size 60000 --noise-multiplier 1 --steps 1 --delta 1e-5",
        "its orders itself",
    ),
];

const FIRST_TOKENIZER_LINES: &[(&str, &str)] = &[
    ("--epsilon 3 --input text.txt", "an option of `train`"),
    ("train text.txt --out v", "--input"),
    ("train --files text.txt --out v", "--input"),
    ("train --model-prefix v", "--out DIR"),
    ("train --model_type bpe", "--model"),
    ("train --vocab 1000", "--vocab-size"),
    ("train --special-tokens <s>", "--special-token"),
    ("tokenize text.txt", "dp-tokenizer encode"),
    ("detokenize", "dp-tokenizer decode"),
    ("text.txt", "train --input text.txt"),
    ("encode text.txt", "--input FILE"),
    ("inspect vocabulary", "--tokenizer FILE"),
    ("decode 1 2 3", "without its option"),
    ("train --input text.txt --algorithm bpe --public --out v", "--model"),
    ("convert --tokenizer v --to gguf", "--out"),
    ("load v", "inspect --tokenizer"),
    ("merge a b", "--extend PUBLIC"),
    ("download gpt2", "--tokenizer"),
    ("version", "--version"),
    ("train --input notes.csv --public --out v", "--text-field"),
];

/// A result that is lost is a failure, not a success, also of help.
#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_are_failures() {
    let place = Workplace::new();
    let lost = |program: &std::path::Path, line: &str| {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).current_dir(place.path("")).stdin(Stdio::null()).stdout(full);
        let output = command.stderr(Stdio::piped()).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
    };
    let epsilon = "epsilon --sampling-probability 0.1 --noise-multiplier 1 --steps 1 --delta 1e-5";
    for line in [epsilon, "--help", "completions bash"] {
        lost(&ACCOUNTANT, line);
    }
    place.write("plan.json", tiny_plan().to_string());
    for line in ["verify plan.json", "verify --help", "devices"] {
        lost(trainer_path(), line);
    }
    let inspect = format!("inspect --tokenizer {VOCABULARY}");
    for line in [inspect.as_str(), "--help", "--version"] {
        lost(&TOKENIZER, line);
    }
}

/// Random changes of a good plan and of good texts: accepted, or refused in one clear line.
#[test]
fn random_changes_of_good_inputs_are_accepted_or_refused_in_one_line() {
    let minutes: Option<f64> = std::env::var("CAMPAIGN_MINUTES").ok().and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs_f64(60.0 * minutes.unwrap_or(60.0));
    let most = minutes.map_or(60, |_| u64::MAX);
    let seed =
        minutes.map_or(7, |_| std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64 | 1));
    let (mut draws, mut cases, mut accepted) = (Draws(fastrand::Rng::with_seed(seed)), 0, 0);
    let place = Workplace::new();
    while cases < most && Instant::now() < until {
        cases += 1;
        let (outcome, what) = if draws.below(2) == 0 {
            let mut plan = tiny_plan();
            (0..=draws.below(2)).for_each(|_| draws.change(&mut plan));
            place.write("plan.json", plan.to_string());
            (run(&place, trainer_path(), &["verify", "plan.json"]), plan.to_string())
        } else {
            let name = ["text.jsonl", "text.txt", "text.txt.gz"][draws.below(3) as usize];
            let bytes = draws.text();
            place.write(name, &bytes);
            let arguments =
                ["encode", "--tokenizer", VOCABULARY, "--input", name, "--out", "t.tokens", "--overwrite"];
            (run(&place, &TOKENIZER, &arguments), format!("{name}: {bytes:?}"))
        };
        if outcome.code == 0 {
            accepted += 1;
        } else {
            assert_clear(&outcome, &what);
        }
    }
    println!("random changes: {accepted} accepted, {} refused in one line", cases - accepted);
}

const VOCABULARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tokenizer/tests/fixtures/small.model");

/// Pseudo-random choices.
struct Draws(fastrand::Rng);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0.u64(..n)
    }

    /// Replaces, removes or renames something in a plan.
    fn change(&mut self, value: &mut Value) {
        let inside = self.below(4) > 0;
        match value {
            Value::Object(fields) if inside && !fields.is_empty() => {
                let name =
                    fields.keys().nth(self.below(fields.len() as u64) as usize).cloned().unwrap_or_default();
                match self.below(8) {
                    0 => drop(fields.remove(&name)),
                    1 => {
                        let field = fields.remove(&name).unwrap_or_default();
                        fields.insert(format!("{name}s"), field);
                    }
                    _ => self.change(&mut fields[&name]),
                }
            }
            other => *other = self.value(),
        }
    }

    fn value(&mut self) -> Value {
        let numbers = [0.0, 1.0, -1.0, 0.5, 1e-9, 1e9, 64.0, 3.0];
        match self.below(9) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(""),
            3 => json!(["words", "../x", "é\n", "poisson", "none.json"][self.below(5) as usize]),
            4 => json!([self.below(9)]),
            5 => json!({}),
            6 => json!(self.below(1000)),
            _ => json!(numbers[self.below(numbers.len() as u64) as usize]),
        }
    }

    /// Lines of text or JSON with some bytes changed.
    fn text(&mut self) -> Vec<u8> {
        let line = match self.below(2) {
            0 => format!("a {SECRET} plays\n"),
            _ => format!("{{\"text\": \"a {SECRET} plays\"}}\n"),
        };
        let mut bytes = line.repeat(1 + self.below(20) as usize).into_bytes();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len() as u64) as usize;
            match self.below(3) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, self.below(256) as u8),
            }
        }
        bytes
    }
}
