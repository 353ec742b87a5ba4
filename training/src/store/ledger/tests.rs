use std::fs;

use accountant::{DpEvent, NeighboringRelation};
use proptest::prelude::*;

use super::*;

fn header() -> Header {
    Header {
        format: 1,
        id: "12".repeat(16),
        plan_sha256: "ab".repeat(32),
        plan_file_sha256: "cd".repeat(32),
        accountant_version: "1".into(),
        accountant_method: "m".into(),
        relation: NeighboringRelation::AddOrRemoveOne,
        randomness: Randomness::OperatingSystem,
        protected: true,
        public_data: false,
        canaries: None,
        computation: Computation {
            device: plan::Device::Cpu,
            precision: plan::Precision::F32,
            arithmetic: None,
            noise: None,
            placement: None,
        },
        search: None,
        public_stages: Vec::new(),
    }
}

fn event() -> DpEvent {
    DpEvent::PoissonSampledGaussian { sampling_probability: 0.1, noise_multiplier: 1.1 }
}

fn step(step: u64, attempt: u64) -> Entry {
    Entry::Step { step, attempt, event: event() }
}

fn charged(count: u64) -> Charges {
    let mut charges = Charges::default();
    charges.add(&event(), count);
    charges
}

fn tokenizer() -> Entry {
    Entry::Tokenizer { sha256: "ef".repeat(32) }
}

fn six_lines() -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::create(folder.path(), header(), &[], |_| Ok(())).unwrap();
    for entry in [
        tokenizer(),
        step(0, 1),
        step(1, 1),
        Entry::Resume { steps_done: 1, torn_bytes: 0, copied: false, device: None, placement: None },
        step(1, 2),
    ] {
        ledger.append(entry).unwrap();
    }
    let bytes = fs::read(folder.path().join(files::LEDGER)).unwrap();
    (folder, bytes)
}

#[test]
fn what_is_appended_is_read_back_and_every_attempt_is_charged() {
    let (folder, bytes) = six_lines();
    let (ledger, torn) = Ledger::reopen(folder.path()).unwrap();
    assert_eq!(torn, 0);
    assert_eq!(ledger.state().charges(), charged(3));
    assert_eq!((ledger.state().steps_reserved(), ledger.state().reservations()), (2, 3));
    assert_eq!(ledger.state().attempts_of(1), 2);
    assert_eq!(fs::read(folder.path().join(files::LEDGER)).unwrap(), bytes);
}

/// Returns a finished run of one file.
fn completed_with(name: &str) -> Entry {
    let file = FileDigest { name: name.to_owned(), sha256: String::new() };
    Entry::Completed { steps_done: 2, files: vec![file], rounded: vec![] }
}

#[test]
fn skipped_steps_skipped_attempts_second_releases_and_late_lines_are_refused() {
    let (folder, _) = six_lines();
    let (mut ledger, _) = Ledger::reopen(folder.path()).unwrap();
    for wrong in [
        step(3, 1),
        step(1, 2),
        step(1, 4),
        Entry::Header(header()),
        Entry::Release { event: event() },
        Entry::UnprotectedStep { step: 2, attempt: 1 },
        Entry::Completed { steps_done: 3, files: vec![], rounded: vec![] },
        completed_with("../other/model.safetensors"),
        completed_with("snapshots/../../other"),
        completed_with("/dev/zero"),
        completed_with("."),
        completed_with(""),
    ] {
        assert!(ledger.append(wrong.clone()).is_err(), "{wrong:?}");
    }
    ledger.append(Entry::Completed { steps_done: 2, files: vec![], rounded: vec![] }).unwrap();
    assert!(ledger.append(step(2, 1)).is_err());
    assert_eq!(LedgerState::read(folder.path()).unwrap().entries().count(), 7);
}

/// PITFALLS 60.
#[test]
fn batches_that_are_not_charged_skipped_or_repeated_and_a_second_charge_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::create(folder.path(), header(), &[], |_| Ok(())).unwrap();
    let batches = |first, count| Entry::Batches { first, count };
    let texts = || Entry::Texts { event: event() };
    assert!(ledger.append(batches(0, 32)).is_err());
    ledger.append(texts()).unwrap();
    assert!(ledger.append(texts()).is_err() && ledger.append(batches(1, 32)).is_err());
    ledger.append(batches(0, 32)).unwrap();
    for first in [0, 31, 33] {
        assert!(ledger.append(batches(first, 8)).is_err(), "{first}");
    }
    ledger.append(batches(32, 8)).unwrap();
    assert_eq!((ledger.state().batches(), ledger.state().charges()), (40, charged(1)));
}

/// PITFALLS 8, 9: a crash during an append leaves any prefix of the line; the ledger continues after the line before it.
#[test]
fn any_torn_last_line_is_counted_and_removed_and_no_whole_line_is_lost() {
    let (folder, bytes) = six_lines();
    let path = folder.path().join(files::LEDGER);
    let last_start = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    for end in last_start..bytes.len() {
        fs::write(&path, &bytes[..end]).unwrap();
        let (ledger, torn) = Ledger::reopen(folder.path()).unwrap();
        assert_eq!(torn, (end - last_start) as u64);
        assert_eq!(ledger.state().reservations(), 2);
        assert_eq!(fs::read(&path).unwrap(), &bytes[..last_start]);
    }
}

#[test]
fn strict_reading_refuses_a_torn_line() {
    let (folder, bytes) = six_lines();
    fs::write(folder.path().join(files::LEDGER), &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(LedgerState::read(folder.path()).unwrap_err().exit_code(), 1);
}

#[test]
fn a_shortened_or_exchanged_ledger_does_not_continue_the_checkpoints_position() {
    let (folder, bytes) = six_lines();
    let state = LedgerState::read(folder.path()).unwrap();
    let position = state.position();
    assert!(state.continues(&position));
    let shorter = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    let (cut, _) =
        LedgerState::parse_tolerating_torn_end(&bytes[..shorter], Path::new(files::LEDGER)).unwrap();
    assert!(!cut.continues(&position));
    assert!(state.continues(&cut.position()));
    assert!(!state.continues(&LedgerPosition { lines: 0, sha256: position.sha256.clone() }));
    assert!(!state.continues(&LedgerPosition { lines: 6, sha256: "00".repeat(32) }));
}

/// A forger can compute the digests of any lines, so their order is checked as well.
#[test]
fn lines_with_right_digests_that_do_not_follow_one_another_are_refused() {
    let written = |entries: &[Entry]| {
        let (mut bytes, mut previous) = (Vec::new(), entry::NO_PREVIOUS.to_owned());
        for (sequence, entry) in (0..).zip(entries) {
            let (line, digest) = entry::encode(sequence, &previous, entry).unwrap();
            bytes.extend_from_slice(format!("{line}\n").as_bytes());
            previous = digest;
        }
        bytes
    };
    let read = |entries: &[Entry]| {
        LedgerState::parse_tolerating_torn_end(&*written(entries), Path::new(files::LEDGER)).map(|_| ())
    };
    let head = || Entry::Header(header());
    read(&[head(), tokenizer(), step(0, 1), step(1, 1)]).unwrap();
    for wrong in [
        vec![step(0, 1)],
        vec![head(), head()],
        vec![head(), step(1, 1)],
        vec![head(), step(0, 2)],
        vec![head(), step(0, 1), step(0, 1)],
        vec![head(), step(0, 1), step(2, 1)],
        vec![head(), tokenizer(), tokenizer()],
        vec![head(), step(0, 1), Entry::Release { event: event() }],
        vec![head(), Entry::Completed { steps_done: 1, files: vec![], rounded: vec![] }],
    ] {
        let message = read(&wrong).unwrap_err().to_string();
        assert!(message.contains("was altered"), "{wrong:?}: {message}");
    }
}

/// Steps are kept once, so all that a long ledger says of its lines follows from few of them.
#[test]
fn a_long_ledger_keeps_every_entry_and_every_position() {
    let (mut state, mut bytes, mut entries, mut positions) =
        (LedgerState::empty(), Vec::new(), Vec::new(), Vec::new());
    let pass = |step: u64| match step % 7 {
        0 => event(),
        _ => DpEvent::Composed { events: Vec::new() },
    };
    let resume =
        Entry::Resume { steps_done: 1999, torn_bytes: 0, copied: false, device: None, placement: None };
    let first = [Entry::Header(header()), tokenizer()].into_iter();
    let alike = (0..2000).map(|number| step(number, 1));
    let again = [resume, step(1999, 2)];
    let passes = (2000..2600).map(|step| Entry::Step { step, attempt: 1, event: pass(step) });
    for entry in first.chain(alike).chain(again).chain(passes) {
        bytes.extend_from_slice(state.extend(entry.clone()).unwrap().as_bytes());
        entries.push(entry);
        positions.push(state.position());
    }
    let (read, torn) = LedgerState::parse_tolerating_torn_end(&*bytes, Path::new(files::LEDGER)).unwrap();
    assert_eq!((read.position(), torn), (state.position(), 0));
    for state in [&state, &read] {
        assert!(state.entries().map(std::borrow::Cow::into_owned).eq(entries.iter().cloned()));
        assert_eq!((state.steps_reserved(), state.reservations(), state.attempts_of(1999)), (2600, 2601, 2));
        assert_eq!(state.charges(), charged(2001 + (2000..2600).filter(|step| step % 7 == 0).count() as u64));
        for position in
            positions.iter().step_by(83).chain(&positions[1020..1030]).chain(&positions[2040..2060])
        {
            assert!(state.continues(position), "{position:?}");
            let other = LedgerPosition { lines: position.lines + 1, ..position.clone() };
            assert!(!state.continues(&other));
        }
    }
}

proptest! {
    /// Any flipped bit is an error, except one that removes the last line end: it leaves a torn
    /// line.
    #[test]
    fn any_flipped_bit_is_refused(position in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let (_folder, mut bytes) = six_lines();
        let index = position.index(bytes.len());
        bytes[index] ^= 1 << bit;
        let strict = LedgerState::parse_tolerating_torn_end(&*bytes, Path::new(files::LEDGER));
        prop_assert!(strict.is_err() || strict.unwrap().1 > 0, "byte {index} bit {bit}");
    }

    /// Charges never go down as a ledger grows, whatever the order of crashes and resumes.
    #[test]
    fn charges_count_every_reservation(crashes in prop::collection::vec(1_u64..4, 1..12)) {
        let mut state = LedgerState::empty();
        state.extend(Entry::Header(header())).unwrap();
        state.extend(tokenizer()).unwrap();
        let mut total = 0;
        for (index, attempts) in crashes.iter().enumerate() {
            for attempt in 1..=*attempts {
                state.extend(step(index as u64, attempt)).unwrap();
                total += 1;
                prop_assert_eq!(state.charges(), charged(total));
            }
        }
    }
}
