use std::fs;
use std::path::{Path, PathBuf};

use dp_tokenizer::unit::Piece;
use plan::{Plan, PlanFile};

use super::*;
use crate::data::{Texts, UnitText, Units};
use crate::disclosure::Private;
use crate::store::ledger::{Randomness, Search};
use crate::store::lineage::Lineage;
use accountant::DpEvent;

/// Three passes of ten batches, and no spare one.
const SHUFFLED: &str = r#"{
    "version": 1, "name": "shuffled", "data": { "source": { "embedded": { "records": 60, "seed": 7 } }, "units": 60 },
    "privacy": { "unit": "record", "relation": "zero_out", "delta": 1e-3, "epsilon": 8.0, "sampling": "shuffle" },
    "tokenizer": "bytes",
    "model": { "family": "gpt2", "d_model": 8, "layers": 1, "heads": 1, "d_ff": 8, "context": 8 },
    "training": { "objective": "causal_lm", "expected_batch_size": 6, "steps": 30, "l2_clip_norm": 1.0,
        "optimizer": { "sgd": {} }, "learning_rate": { "peak": 0.1 } }
}"#;

struct Bench {
    folder: tempfile::TempDir,
    plan: CertifiedPlan,
    lineage: Lineage,
    state: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let file = PlanFile::parse(SHUFFLED).unwrap();
        let plan = Plan::try_from(file).unwrap().certify().unwrap();
        let folder = tempfile::tempdir().unwrap();
        Self { state: folder.path().join("state"), folder, plan, lineage: Lineage::default() }
    }

    fn run(&self) -> PathBuf {
        self.folder.path().join("deep/run")
    }

    fn open(&self, folder: &Path, resume: Option<Resume>) -> Result<RunStore<'_>, RunError> {
        self.open_with(folder, resume, &units(["one", "two"]))
    }

    fn open_with(
        &self,
        folder: &Path,
        resume: Option<Resume>,
        units: &Units,
    ) -> Result<RunStore<'_>, RunError> {
        RunStore::open(&self.open_run(folder, resume, units))
    }

    fn open_run<'plan, 'a>(
        &'plan self,
        folder: &'a Path,
        resume: Option<Resume>,
        units: &'a Units,
    ) -> OpenRun<'plan, 'a>
    where
        'plan: 'a,
    {
        OpenRun {
            folder,
            plan: &self.plan,
            plan_file: SHUFFLED.as_bytes(),
            lineage: &self.lineage,
            mode: RunMode {
                randomness: Randomness::OperatingSystem,
                protected: true,
                device: plan::Device::Cpu,
                arithmetic: plan::Arithmetic::Fast,
                placement: None,
            },
            units,
            public_text: None,
            canaries: None,
            search: None,
            resume,
            state: Some(&self.state),
        }
    }

    /// Returns a run that has begun and has its tokenizer.
    fn begun(&self) -> RunStore<'_> {
        let mut store = self.open(&self.run(), None).unwrap();
        store.save_tokenizer("{}").unwrap();
        store
    }

    /// A run that ended after it charged some steps, with a checkpoint.
    fn stopped(&self, charged: u64, checkpoint: u64) {
        let mut store = self.begun();
        reserve(&mut store, 0..charged);
        store.write_checkpoint(checkpoint, Vec::<NamedTensor>::new()).unwrap();
    }

    fn resumed(&self) -> RunStore<'_> {
        self.open(&self.run(), Some(Resume::Original)).unwrap()
    }

    fn refused(&self, resume: Option<Resume>) -> String {
        self.open(&self.run(), resume).err().expect("a refusal").to_string()
    }
}

fn units<const N: usize>(texts: [&str; N]) -> Units {
    let text = |(unit, text): (u64, &str)| UnitText {
        piece: Piece { unit, text: text.to_owned() },
        begins_record: true,
        ends_record: true,
    };
    let texts = Texts::Kept(Private::new((0..).zip(texts).map(text).collect()));
    Units { texts, tokens: None, labelled: None }
}

fn reserve(store: &mut RunStore<'_>, steps: std::ops::Range<u64>) {
    steps.for_each(|step| store.charge_step(step).unwrap());
}

fn tear(run: &Path) {
    let path = run.join(files::LEDGER);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, text + "{\"sequence\":").unwrap();
}

/// TRUST 5. Both remaining passes of the plan are charged, and then a line is torn. The next
/// process draws with a new key. The rest of its checkpoint's pass is not paid for, so it takes no
/// step.
#[test]
fn after_a_torn_line_that_no_longer_fits_no_step_is_free() {
    let bench = Bench::new();
    bench.stopped(12, 12);
    let mut store = bench.resumed();
    reserve(&mut store, 12..20);
    drop(store);
    tear(&bench.run());
    let store = bench.resumed();
    assert_eq!(store.steps_done(), 12);
    assert_eq!(store.affordable_end().unwrap(), 12);
    let due = store.schedule.due(&bench.plan, 12).unwrap();
    assert_eq!(due, bench.plan.pass_event(12).unwrap(), "nothing that was charged before pays for this step");
    assert!(store.spent().unwrap().unwrap().upper <= bench.plan.epsilon().upper);
}

/// The torn line is charged as a whole pass, and the next step as another.
#[test]
fn after_a_torn_line_neither_it_nor_what_came_before_pays_for_the_next_step() {
    let bench = Bench::new();
    bench.stopped(5, 3);
    tear(&bench.run());
    let mut store = bench.resumed();
    // These steps are in the middle of a pass and may be paid for already.
    reserve(&mut store, 3..5);
    let passes = store.ledger().charges();
    let mut three = self::ledger::Charges::default();
    three.add(&bench.plan.pass_event(0).unwrap(), 3);
    assert_eq!(passes, three, "the first process, the torn line, the second process");
}

/// The torn line belonged to the tokenizer. No step was taken before it, so the pass is charged
/// once.
#[test]
fn a_torn_line_of_the_tokenizer_leaves_a_ledger_that_is_the_plans() {
    let bench = Bench::new();
    drop(bench.open(&bench.run(), None).unwrap());
    tear(&bench.run());
    let mut store = bench.resumed();
    store.save_tokenizer("{}").unwrap();
    reserve(&mut store, 0..10);
    accounting::check_same_plan(&bench.plan, store.ledger()).unwrap();
    let mut one = self::ledger::Charges::default();
    one.add(&bench.plan.pass_event(0).unwrap(), 1);
    assert_eq!(store.ledger().charges(), one);
}

/// A trial has the ε of its search, however many steps its ledger has. Its steps are therefore
/// counted.
#[test]
fn a_trial_that_charges_more_than_its_search_paid_for_is_refused() {
    let bench = Bench::new();
    let trials = DpEvent::SelfComposed { event: Box::new(bench.plan.training_event()), count: 2 };
    let search = Search {
        sweep_sha256: "ab".repeat(32),
        event: DpEvent::Composed { events: vec![trials] },
        vocabulary_sha256: None,
    };
    let (folder, texts) = (bench.run(), units(["one", "two"]));
    let run = OpenRun { search: Some(&search), ..bench.open_run(&folder, None, &texts) };
    let mut store = RunStore::open(&run).unwrap();
    store.save_tokenizer("{}").unwrap();
    reserve(&mut store, 0..30);
    accounting::check_same_plan(&bench.plan, store.ledger()).unwrap();
    reserve(&mut store, 10..11);
    let refusal = accounting::check_same_plan(&bench.plan, store.ledger()).unwrap_err().to_string();
    assert!(refusal.contains("more than a trial of its search"), "{refusal}");
}

#[test]
fn a_ledger_that_another_program_touches_stops_the_run_at_once() {
    type Touch = fn(&Path, &[u8]);
    let touches: [(&str, Touch); 5] = [
        ("removed", |path, _| fs::remove_file(path).unwrap()),
        ("emptied", |path, _| fs::write(path, "").unwrap()),
        ("cut at a line", |path, bytes| {
            let end = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
            fs::write(path, &bytes[..end]).unwrap();
        }),
        ("extended", |path, bytes| fs::write(path, [bytes, b" "].concat()).unwrap()),
        ("replaced by an equal file", |path, bytes| {
            fs::write(path.with_extension("new"), bytes).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
    ];
    for (how, touch) in touches {
        let bench = Bench::new();
        let mut store = bench.begun();
        reserve(&mut store, 0..5);
        let path = bench.run().join(files::LEDGER);
        touch(&path, &fs::read(&path).unwrap());
        let refused = store.charge_step(5);
        assert!(
            matches!(&refused, Err(RunError::Verification(text)) if text.contains("another program")),
            "{how}"
        );
    }
    let bench = Bench::new();
    let mut store = bench.begun();
    reserve(&mut store, 0..5);
    let path = bench.run().join(files::LEDGER);
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(
        matches!(store.complete(5, &[], Vec::new()), Err(RunError::Verification(_))),
        "a flipped bit of the same length"
    );
}

#[cfg(unix)]
#[test]
fn without_its_lock_file_a_run_folder_still_has_one_writer() {
    let bench = Bench::new();
    let store = bench.begun();
    fs::remove_file(bench.run().join(".lock")).unwrap();
    let refused = bench.refused(Some(Resume::Original));
    assert!(refused.contains("another process writes"), "{refused}");
    drop(store);
    drop(bench.resumed());
}

#[test]
fn a_run_resumes_only_where_one_began() {
    let bench = Bench::new();
    let refused = bench.refused(Some(Resume::Original));
    assert!(refused.contains("holds no run") && !bench.run().exists(), "{refused}");
    drop(bench.begun());
    assert!(bench.refused(None).contains("already holds a run"));
}

#[test]
fn a_changed_plan_file_or_training_text_is_not_resumed() {
    let bench = Bench::new();
    drop(bench.begun());
    let lines = || fs::read_to_string(bench.run().join(files::LEDGER)).unwrap().lines().count();
    let before = lines();
    for text in [units(["two", "one"]), units(["one", "tw0"]), units(["one"]), units(["onet", "wo"])] {
        let refused = bench.open_with(&bench.run(), Some(Resume::Original), &text).err().unwrap().to_string();
        assert!(refused.starts_with("data.source") && !refused.contains("one\""), "{refused}");
    }
    let path = bench.run().join(files::PLAN);
    fs::write(&path, SHUFFLED.replace("shuffled", "shuffle_")).unwrap();
    assert!(bench.refused(Some(Resume::Original)).contains("plan.json"));
    fs::write(&path, SHUFFLED).unwrap();
    assert_eq!(lines(), before, "a refusal charges nothing");
    drop(bench.resumed());
}

/// The digest confirms a guess of the text, so nobody else can read it, and two runs on one text
/// have different digests.
#[cfg(unix)]
#[test]
fn the_digest_of_the_text_is_its_owners_alone_and_goes_with_the_checkpoint() {
    use std::os::unix::fs::PermissionsExt;
    let (one, other) = (Bench::new(), Bench::new());
    let mut store = one.begun();
    drop(other.begun());
    let path = one.run().join(files::CORPUS_DIGEST);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_ne!(fs::read(&path).unwrap(), fs::read(other.run().join(files::CORPUS_DIGEST)).unwrap());
    store.remove_checkpoint().unwrap();
    assert!(!path.exists());
}

/// TRUST 11. Neither a copy of the folder nor an older copy that replaces it is accepted as the
/// run.
#[test]
fn a_copied_folder_resumes_only_when_the_user_says_so_and_the_ledger_keeps_it() {
    let bench = Bench::new();
    let mut store = bench.begun();
    reserve(&mut store, 0..3);
    drop(store);
    let (run, backup) = (bench.run(), bench.folder.path().join("backup"));
    let copy = |from: &Path, to: &Path| {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    };
    copy(&run, &backup);
    let refused = bench.open(&backup, Some(Resume::Original)).err().unwrap().to_string();
    assert!(refused.contains("--copied"), "{refused}");
    // A folder with a new name is no copy.
    let renamed = bench.folder.path().join("renamed");
    fs::rename(&run, &renamed).unwrap();
    drop(bench.open(&renamed, Some(Resume::Original)).unwrap());
    fs::rename(&renamed, &run).unwrap();
    // The backup is put back in place of the run, which went on.
    copy(&run, &bench.folder.path().join("latest"));
    fs::remove_dir_all(&run).unwrap();
    copy(&backup, &run);
    assert!(bench.refused(Some(Resume::Original)).contains("--copied"));
    assert!(bench.refused(Some(Resume::Copy)).contains("older state"), "it is not the latest state");
    // The latest state is accepted.
    fs::remove_dir_all(&run).unwrap();
    copy(&bench.folder.path().join("latest"), &run);
    assert!(bench.refused(Some(Resume::Original)).contains("--copied"));
    let store = bench.open(&run, Some(Resume::Copy)).unwrap();
    assert_eq!(store.ledger().copies(), 1);
    drop(store);
    // From now on, this folder is the original.
    assert_eq!(bench.resumed().ledger().copies(), 1);
}

/// The tokenizer whose digest the ledger contains is accepted even under its temporary name. Other
/// files are not.
#[test]
fn only_the_file_that_the_ledger_names_is_taken_for_the_tokenizer() {
    let bench = Bench::new();
    drop(bench.begun());
    let path = bench.run().join(files::TOKENIZER);
    fs::rename(&path, durable::temporary(&path)).unwrap();
    assert_eq!(bench.resumed().tokenizer().unwrap().unwrap(), b"{}");
    assert!(path.exists());
    fs::write(&path, "{ }").unwrap();
    assert!(bench.resumed().tokenizer().is_err());
    let other = Bench::new();
    let store = other.open(&other.run(), None).unwrap();
    fs::write(other.run().join(files::TOKENIZER), "{}").unwrap();
    assert_eq!(store.tokenizer().unwrap(), None, "no line names it");
}
