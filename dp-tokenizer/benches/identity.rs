//! Measures the comparison of texts: its cost beside reading, how often different corpora are taken for one text, and
//! whether a planted overlap is found.
//!
//! Corpora are those of `../shared/data`; without it, only invented notes are measured. One author's novels are a corpus. With a
//! number of records as an argument, only their time and memory are measured: 10 million are 2 GB in the system's temporary folder. With
//! `overlaps` as an argument, only the corpora are compared.

#![allow(clippy::print_stdout, reason = "a bench talks to its user")]

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dp_tokenizer::corpus::{Files, Format, LineFiles, Source, open};
use dp_tokenizer::identity::{
    EqualPhrases, Key, Overlap, Passage, Reading, Share, Sketch, TELLING_WORDS, compare, compare_shares,
};

/// The number of records in the measurement of time and memory, unless an argument says how many.
const RECORDS: u64 = 1_000_000;

type Texts = Vec<String>;

/// Two parts of one corpus.
type Parts = (&'static str, [Texts; 2]);

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let records = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    if !std::env::args().any(|argument| argument == "overlaps") {
        cost(folder.path(), records.unwrap_or(RECORDS))?;
    }
    if records.is_some() {
        return Ok(());
    }
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if !data.is_dir() {
        println!("{} is absent: false alarms are not measured", data.display());
        return Ok(());
    }
    let corpora = corpora(&data)?;
    false_alarms(&corpora);
    planted(&corpora);
    short_records(&corpora, &parts_of_corpora(&data)?);
    Ok(())
}

/// Writes invented notes, and returns the size of the file in bytes.
fn write_notes(path: &Path, records: u64) -> Result<u64, Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    for note in open(&Source::Embedded { records, seed: 7 })? {
        writeln!(out, "{}", serde_json::json!({ "text": note?.text }))?;
    }
    out.into_inner()?;
    Ok(std::fs::metadata(path)?.len())
}

/// Measures reading a private text of `records` records and comparing it with a public one.
fn cost(folder: &Path, records: u64) -> Result<(), Box<dyn Error>> {
    let path = folder.join("private.jsonl");
    let bytes = write_notes(&path, records)?;
    let private = LineFiles::of(&Source::files([path])).ok_or("lines can be read alone")?;
    let read_private = |reading: &mut Reading<'_>| -> Result<(), dp_tokenizer::corpus::CorpusError> {
        let (number, stretches) = reading.stretch();
        let mut records = private.share_of(&private.sizes()?, number, stretches)?;
        while let Some(record) = records.next() {
            if !records.is_in_share() {
                reading.end_stretch();
            }
            if !reading.wants() {
                break;
            }
            reading.take(Passage::record(&record?.1.text));
        }
        Ok(())
    };
    // Where memory is at stake, the public text has as many hashes as are held at once.
    let public = if records > RECORDS { 58_000 } else { 10_000 };
    let read_public = |reading: &mut Reading<'_>| {
        let text = |n: u64| (0..60).map(|word| format!("p{n}w{word} ")).collect::<String>();
        (0..public).for_each(|n| reading.take(Passage::record(&text(n))));
        Ok(())
    };
    println!(
        "{records} private records of {:.0} MB, {public} public records, {} threads",
        bytes as f64 / 1e6,
        Share::whole().threads
    );
    let key = Key::new([3, 4]);
    let alone = Share { threads: 1, ..Share::whole() };
    let with = |share: Share| {
        timed(|| {
            compare_shares(&key, share, &read_public, &read_private, &mut |own| own.map(|own| vec![own]))
        })
    };
    for round in 1..=if records > RECORDS { 1 } else { 3 } {
        let reading = timed(|| {
            let texts = private.records()?.map(|record| record.map(|(_, record)| record.text.len()));
            texts.sum::<Result<usize, _>>()
        })?;
        let comparing = timed(|| compare(&key, &read_public, &read_private))?;
        let (on_one, half) = (with(alone)?, with(Share { processes: 2, ..alone })?);
        let sketching = timed(|| Sketch::new(1 << 16).read(&key, alone, &read_private))?;
        println!(
            "round {round}: reading {reading:.2} s, reading and comparing {comparing:.2} s, on one thread {on_one:.2} s, one rank of \
             two {half:.2} s, reading and sketching {sketching:.2} s"
        );
    }
    if let Some(peak) = peak_memory() {
        println!("peak memory {:.0} MB", peak as f64 / 1e6);
    }
    if records <= RECORDS {
        let texts = private.records()?.map(|record| record.map(|(_, record)| record.text));
        in_memory(&texts.collect::<Result<_, _>>()?, &key);
    }
    Ok(())
}

/// Measures the comparison of a text in memory, as where one process trains.
fn in_memory(private: &Texts, key: &Key) {
    let public: Texts = private.iter().take(1).cloned().collect();
    for threads in [1, Share::whole().threads] {
        let share = Share { threads, ..Share::whole() };
        let start = Instant::now();
        let read = |texts: &Texts, reading: &mut Reading<'_>| {
            texts.iter().for_each(|text| reading.take(Passage::record(text)));
            Ok::<(), Infallible>(())
        };
        let compared = compare_shares(
            key,
            share,
            &|reading| read(&public, reading),
            &|reading| read(private, reading),
            &mut |own| own.map(|own| vec![own]),
        );
        let records = compared.map_or(0, |overlap| overlap.private.records);
        println!(
            "in memory: {threads} threads compare {records} records in {:.2} s",
            start.elapsed().as_secs_f64()
        );
    }
}

/// Returns the seconds that `work` took.
fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<f64, E> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}

/// Returns the part of each record that `text` gives.
fn records(path: &Path, format: Format, text: fn(&str) -> &str) -> Result<Texts, Box<dyn Error>> {
    let files = Files { format, ..Files::of([path.to_owned()]) };
    let texts = open(&Source::Files(files))?.map(|record| record.map(|record| text(&record.text).to_owned()));
    Ok(texts.collect::<Result<_, _>>()?)
}

fn first_column(text: &str) -> &str {
    text.split('\t').next().unwrap_or(text)
}

fn last_column(text: &str) -> &str {
    text.rsplit('\t').next().unwrap_or(text)
}

fn after_label(text: &str) -> &str {
    text.split_once(' ').map_or(text, |(_, text)| text)
}

/// Returns parts of one corpus as its authors divided it, of which one is trained on and another evaluated.
fn parts_of_corpora(data: &Path) -> Result<Vec<Parts>, Box<dyn Error>> {
    type Part = fn(&str) -> &str;
    let whole: Part = |text| text;
    let parts: [(&str, [&str; 2], Part); 6] = [
        ("goemotions, dev", ["goemotions/train.tsv.zst", "goemotions/dev.tsv"], first_column),
        ("goemotions, test", ["goemotions/train.tsv.zst", "goemotions/test.tsv"], first_column),
        ("wikitext, test", ["wikitext2/raw/valid.txt.zst", "wikitext2/raw/test.txt.zst"], whole),
        ("film reviews, test", ["sentcls/stsa.binary.train", "sentcls/stsa.binary.test"], after_label),
        ("questions, test", ["sentcls/TREC.train.all", "sentcls/TREC.test.all"], after_label),
        ("captions, German, 2017", ["multi30k/train.de.gz", "multi30k/test_2017_flickr.de.gz"], whole),
    ];
    let mut all = Vec::new();
    for (name, paths, part) in parts {
        let [one, other] = paths.map(|path| records(&data.join(path), Format::Text, part));
        all.push((name, [one?, other?]));
    }
    Ok(all)
}

fn corpora(data: &Path) -> Result<BTreeMap<String, Texts>, Box<dyn Error>> {
    let mut all: BTreeMap<String, Texts> = BTreeMap::new();
    let novels =
        Files { user_field: Some("user".to_owned()), ..Files::of([data.join("novels/novels.jsonl.zst")]) };
    for record in open(&Source::Files(novels))? {
        let record = record?;
        let author = record.user.unwrap_or_default();
        all.entry(format!("novels of {author}")).or_default().push(record.text);
    }
    let mut add =
        |name: &str, path: &str, format: Format, text: fn(&str) -> &str| -> Result<(), Box<dyn Error>> {
            all.insert(name.to_owned(), records(&data.join(path), format, text)?);
            Ok(())
        };
    add("irc", "irc/irc_train.jsonl.zst", Format::Auto, |text| text)?;
    add("brown", "brown/brown_plain.tsv.zst", Format::Text, last_column)?;
    add("goemotions", "goemotions/train.tsv.zst", Format::Text, first_column)?;
    add("wikitext", "wikitext2/raw/valid.txt.zst", Format::Text, |text| text)?;
    add("shakespeare", "tinyshakespeare/input.txt.zst", Format::Text, |text| text)?;
    add("captions, English", "multi30k/train.en.gz", Format::Text, |text| text)?;
    add("captions, German", "multi30k/train.de.gz", Format::Text, |text| text)?;
    add("film reviews", "sentcls/stsa.binary.train", Format::Text, after_label)?;
    add("questions", "sentcls/TREC.test.all", Format::Text, after_label)?;
    add("customer reviews", "sentcls/custrev.all", Format::Text, after_label)?;
    add("opinions", "sentcls/mpqa.all", Format::Text, after_label)?;
    add("botchan", "tokenizers/sp/botchan.txt", Format::Text, |text| text)?;
    add("wagahai", "tokenizers/sp/wagahaiwa_nekodearu.txt", Format::Text, |text| text)?;
    add("biomedical", "ner/BC5CDR-IOB/train.tsv.zst", Format::Iob, |text| text)?;
    Ok(all)
}

fn overlap(public: &[String], private: &[String]) -> Overlap {
    let read = |texts: &[String], reading: &mut Reading<'_>| {
        texts.iter().for_each(|text| reading.take(Passage::record(text)));
        Ok::<(), Infallible>(())
    };
    let compared =
        compare(&Key::new([5, 6]), &|reading| read(public, reading), &|reading| read(private, reading));
    match compared {
        Ok(overlap) => overlap,
        Err(error) => match error {},
    }
}

fn false_alarms(corpora: &BTreeMap<String, Texts>) {
    let names: Vec<&String> = corpora.keys().collect();
    let (mut pairs, mut refused) = (0, 0);
    let mut largest = [0.0_f64; 2];
    for (place, public) in names.iter().enumerate() {
        for private in &names[..place] {
            let found = overlap(&corpora[*public], &corpora[*private]);
            pairs += 1;
            for side in [found.public, found.private] {
                largest[0] = largest[0].max(side.shared_runs as f64 / side.runs.max(1) as f64);
                largest[1] = largest[1].max(side.equal as f64 / side.records.max(1) as f64);
            }
            if let Err(sharing) = found.check(EqualPhrases::Refused) {
                refused += 1;
                println!("refused: {public} against {private}: {sharing}: {found:?}");
            }
        }
    }
    println!(
        "{refused} of {pairs} pairs of different corpora refused; at most {:.2} % of runs are shared, and {:.1} % of records \
         are equal",
        100.0 * largest[0],
        100.0 * largest[1]
    );
}

/// Plants a hundredth of the records of each corpus in every other one.
fn planted(corpora: &BTreeMap<String, Texts>) {
    let mut rng = fastrand::Rng::with_seed(1);
    let (mut pairs, mut missed) = (0, 0);
    for (name, private) in corpora {
        for public in ["brown", "wikitext", "goemotions"] {
            if name == public {
                continue;
            }
            let mut text = corpora[public].clone();
            for _ in 0..text.len().div_ceil(100) {
                let place = rng.usize(..text.len());
                text.insert(place, private[rng.usize(..private.len())].clone());
            }
            pairs += 1;
            if overlap(&text, private).check(EqualPhrases::Refused).is_ok() {
                missed += 1;
                println!("missed: 1 % of {name} in {public}");
            }
        }
    }
    println!("{missed} of {pairs} planted overlaps missed");
}

/// The records of a text with fewer than eight words, and the words of the text.
struct Short {
    records: HashMap<String, u64>,
    words: HashMap<String, u64>,
    /// The number of all records.
    count: u64,
}

impl Short {
    fn of(texts: &[String]) -> Self {
        let ends_word =
            |c: char| c.is_whitespace() || (c.is_ascii_punctuation() && !matches!(c, '.' | ':' | '\'' | '`'));
        let mut short = Self { records: HashMap::new(), words: HashMap::new(), count: 0 };
        for text in texts {
            let letters = |word: &str| word.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
            let words: Vec<String> =
                text.split(ends_word).map(letters).filter(|word: &String| !word.is_empty()).collect();
            short.count += u64::from(!words.is_empty());
            if (1..TELLING_WORDS as usize).contains(&words.len()) {
                *short.records.entry(words.join(" ")).or_default() += 1;
            }
            words.into_iter().for_each(|word| *short.words.entry(word).or_default() += 1);
        }
        short
    }

    /// Counts equal pairs of records of two words or more within the text.
    fn equal_pairs(&self) -> f64 {
        let equal = self.records.iter().filter(|(record, _)| record.contains(' '));
        equal.map(|(_, count)| (count * (count - 1)) as f64).sum()
    }
}

/// A short record that occurs in both texts.
struct Equal {
    words: usize,
    letters: usize,
    /// The information of the record, as if words were independent, beyond that of a choice among all pairs of records.
    bits: f64,
    /// The number of its occurrences in each text.
    counts: [u64; 2],
}

fn equal_records([one, other]: [&Short; 2]) -> Vec<Equal> {
    let [of_one, of_other] = [one, other].map(|text| text.words.values().sum::<u64>());
    let all_pairs = ((one.count * other.count) as f64).log2();
    let frequency = |word: &str| {
        let count = |text: &Short| text.words.get(word).copied().unwrap_or(0);
        (count(one) + count(other)) as f64 / (of_one + of_other) as f64
    };
    let equal = |(record, count): (&String, &u64)| {
        let words = || record.split(' ');
        Some(Equal {
            words: words().count(),
            letters: words().map(|word| word.chars().count()).sum(),
            bits: -words().map(|word| frequency(word).log2()).sum::<f64>() - all_pairs,
            counts: [*count, *other.records.get(record)?],
        })
    };
    one.records.iter().filter_map(equal).collect()
}

/// The condition for an equal record to count as a copy.
type Criterion = fn(&Equal) -> bool;

/// Possible criteria for equal records of fewer than eight words to count as copies.
const CRITERIA: [(&str, Criterion); 8] = [
    ("2 words, once in both", |one| one.words >= 2 && one.counts == [1, 1]),
    ("3 words, once in both", |one| one.words >= 3 && one.counts == [1, 1]),
    ("10 bits beyond chance", |one| one.bits >= 10.0),
    ("15 bits beyond chance", |one| one.bits >= 15.0),
    ("10 bits, once in both", |one| one.bits >= 10.0 && one.counts == [1, 1]),
    ("18 letters", |one| one.letters >= 18),
    ("18 letters, once in both", |one| one.letters >= 18 && one.counts == [1, 1]),
    ("22 letters", |one| one.letters >= 22),
];

/// Returns, for each criterion, the larger share of a text's records that it counts, in percent. The last figure is the
/// number of equal pairs of records of two words or more over the most that the Cauchy–Schwarz inequality allows, from
/// equal pairs within the texts.
fn measures(texts: [&Short; 2]) -> [f64; CRITERIA.len() + 1] {
    let equal = equal_records(texts);
    let share = |criterion: Criterion| {
        let counted =
            |side: usize| equal.iter().filter(|one| criterion(one)).map(|one| one.counts[side]).sum::<u64>();
        (0..2).map(|side| 100.0 * counted(side) as f64 / texts[side].count.max(1) as f64).fold(0.0, f64::max)
    };
    let pairs: f64 =
        equal.iter().filter(|one| one.words >= 2).map(|one| (one.counts[0] * one.counts[1]) as f64).sum();
    let most = texts.map(|text| text.equal_pairs().max(1.0)).iter().product::<f64>().sqrt();
    std::array::from_fn(|place| CRITERIA.get(place).map_or(pairs / most, |(_, criterion)| share(*criterion)))
}

/// Shows whether a criterion tells copied records of about three words from coincidences: what it counts in different
/// corpora, in parts of one corpus, and where a hundredth of a text of at least 2,000 records was copied.
fn short_records(corpora: &BTreeMap<String, Texts>, parts: &[Parts]) {
    let names: Vec<&String> = corpora.keys().collect();
    let short: Vec<Short> = corpora.values().map(|texts| Short::of(texts)).collect();
    let largest = |all: &[[f64; CRITERIA.len() + 1]], place: usize| {
        all.iter().map(|one| one[place]).fold(0.0, f64::max)
    };
    let natural: Vec<_> = (0..names.len()).flat_map(|one| (0..one).map(move |other| [one, other])).collect();
    let natural: Vec<_> = natural.into_iter().map(|pair| measures(pair.map(|place| &short[place]))).collect();
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, texts)| (name, measures([&Short::of(&texts[0]), &Short::of(&texts[1])])))
        .collect();
    let mut rng = fastrand::Rng::with_seed(1);
    let (opinions, of_opinions) =
        (&corpora["opinions"], &short[names.iter().position(|name| *name == "opinions").unwrap_or(0)]);
    let mut copied = Vec::new();
    for (name, texts) in corpora.iter().filter(|(name, texts)| *name != "opinions" && texts.len() >= 2_000) {
        for _ in 0..3 {
            let some = (0..texts.len().div_ceil(100)).map(|_| opinions[rng.usize(..opinions.len())].clone());
            let text: Texts = texts.iter().cloned().chain(some).collect();
            copied.push((name, measures([&Short::of(&text), of_opinions])));
        }
    }
    println!(
        "percent of records that a criterion counts: different corpora, parts of one corpus (which), 1 % of opinions copied (where)"
    );
    for place in 0..=CRITERIA.len() {
        let criterion = CRITERIA.get(place).map_or("equal pairs / bound", |(name, _)| name);
        let by = |one: &[f64; CRITERIA.len() + 1], other: &[f64; CRITERIA.len() + 1]| {
            one[place].total_cmp(&other[place])
        };
        let part = parts.iter().max_by(|one, other| by(&one.1, &other.1));
        let copy = copied.iter().min_by(|one, other| by(&one.1, &other.1));
        if let (Some((which, of_part)), Some((place_of, of_copy))) = (part, copy) {
            println!(
                "{criterion:>24}: at most {:.3}, at most {:.3} ({which}), at least {:.3} ({place_of})",
                largest(&natural, place),
                of_part[place],
                of_copy[place]
            );
        }
    }
    for (which, of_part) in &parts {
        println!("{which}: {of_part:.3?}");
    }
}
