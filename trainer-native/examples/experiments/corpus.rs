//! The texts of the experiments, as files beside the plans.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use dp_tokenizer::corpus::{Files, Format, Record, Source, open};
use dp_tokenizer::count::CountOptions;
use dp_tokenizer::release::public_corpus_counts;
use dp_tokenizer::train::{UnigramConfig, WordPieceTraining, unigram, wordpiece};
use mechanisms::Words;
use serde_json::{Value, json};

use super::common::{Outcome, brown, comments, records, word_vocabulary, write};

/// Words of Kerrigan's vocabulary.
const WORDS: usize = 3000;
/// Messages that are read.
const MESSAGES: usize = 24_000;
/// Tokens of the vocabularies of Ponomareva's experiments, and how many of them stand for removed spans.
pub const PIECES: usize = 2000;
pub const SENTINELS: usize = 100;
/// Captions that are public.
const PHRASES: usize = 4_000;
/// Sentences whose tags are known; all others are notes.
const TAGGED: (usize, usize) = (1_500, 1_000);

/// Emotions of a comment: the groups of Demszky et al. 2020 (<https://arxiv.org/abs/2005.00547>), after Ekman.
pub const EMOTIONS: [&str; 7] = ["anger", "disgust", "fear", "joy", "neutral", "sadness", "surprise"];

/// The group of each of the 28 labels of GoEmotions, as its place in [`EMOTIONS`].
const GROUPS: [usize; 28] =
    [3, 3, 0, 0, 3, 3, 6, 6, 3, 5, 0, 1, 5, 3, 2, 3, 5, 3, 3, 2, 3, 3, 6, 3, 5, 5, 6, 4];

/// Characters of a record of Shakespeare's plays, as in the example of `jax_privacy`.
const CHARACTERS: usize = 129;
/// Comments whose emotions are not asked for.
const COMMENTS: usize = 40_000;
/// Paragraphs of novels to train with, and of texts to measure on.
const NOVELS: (usize, usize) = (60_000, 500);

/// Words for the labels of tasks.
pub const ANSWERS: [&str; 6] = ["no", "yes", "one", "two", "three", "four"];

/// A task beside SST-2.
pub struct Task {
    pub name: &'static str,
    pub labels: usize,
    /// The field of the second text, where a record is a pair.
    pub second: Option<&'static str>,
}

/// Tasks beside SST-2. `asks` has the questions of `trec`, each with a sentence that is true of it or not.
pub const TASKS: [Task; 5] = [
    Task { name: "trec", labels: 6, second: None },
    Task { name: "cr", labels: 2, second: None },
    Task { name: "mpqa", labels: 2, second: None },
    Task { name: "subj", labels: 2, second: None },
    Task { name: "asks", labels: 2, second: Some("sentence") },
];

/// What a question of each label of TREC asks for.
const SENTENCES: [&str; 6] = [
    "It asks for a description .",
    "It asks for a thing .",
    "It asks for the meaning of an abbreviation .",
    "It asks for a person or a group .",
    "It asks for a place .",
    "It asks for a number or a date .",
];
/// Words in a row that no sentence to measure on has in common with the others about films.
const RUN: usize = 8;
/// Words that a sentence to be remembered has at least.
const LONG: usize = 18;
/// Sentences to be remembered, how many of them are repeated, and how often these occur.
const REMEMBERED: (usize, usize, usize) = (800, 20, 40);
/// Captions as many as the training texts of ClinSPEn-CC.
const FEW_CAPTIONS: usize = 1_065;

/// Numbers of records. Of messages, the number of users.
pub struct Sizes {
    /// Public captions, and private ones.
    pub phrases: usize,
    pub captions: usize,
    pub brown: usize,
    pub notes: usize,
    pub entities: usize,
    pub films: usize,
    pub remembered: usize,
    pub few_captions: usize,
    pub sentiment: usize,
    /// Records of each of [`TASKS`].
    pub tasks: [usize; TASKS.len()],
    pub reddit: usize,
    pub messages: usize,
    pub users: usize,
    pub emotions: usize,
    pub plays: usize,
    pub comments: usize,
    pub novels: usize,
}

/// Texts of one kind: those to train with and those to measure on.
struct Split {
    train: Vec<String>,
    test: Vec<String>,
}

impl Split {
    /// Without the texts to measure on that are among the others: people wrote some comments twice.
    fn of_different(train: Vec<String>, mut test: Vec<String>) -> Self {
        let text = |record: &String| {
            let record: Value = serde_json::from_str(record).unwrap_or_default();
            record["text"].as_str().map(str::to_lowercase)
        };
        let known: HashSet<_> = train.iter().map(text).collect();
        test.retain(|record| !known.contains(&text(record)));
        Self { train, test }
    }
}

/// All texts, a record each.
struct Texts {
    phrases: Vec<String>,
    captions: Split,
    brown: Split,
    /// Sentences without tags.
    notes: Vec<String>,
    /// Lines of words with tags.
    entities: Split,
    films: Split,
    /// Objects with `label`, `answer` and `text`.
    sentiment: Split,
    tasks: [Split; TASKS.len()],
    reddit: Split,
    /// Objects with `user` and `text`.
    messages: Vec<String>,
    /// Objects with `label` and `text`.
    emotions: Split,
    /// Public messages, to measure on.
    speech: Vec<String>,
    /// Objects with `text`.
    plays: Split,
    comments: Split,
    novels: Split,
    articles: Split,
}

/// Writes the texts that `data` holds.
pub fn read(data: &Path, folder: &Path) -> Outcome<Sizes> {
    let mut sentences = brown(&data.join("brown/brown_plain.tsv.zst"))?;
    sentences.truncate(20_500);
    let test = sentences.drain(..500).collect();
    let opinions = |name: &str| lines_with_labels(&data.join("sentcls").join(name));
    let films = films(&data.join("sentcls/subj.all.zst"))?;
    let (notes, entities) = medicine(data)?;
    let mut phrases = captions(data, "train", PHRASES + 20_000)?;
    let private = phrases.split_off(PHRASES);
    let texts = Texts {
        phrases,
        captions: Split { train: private, test: captions(data, "test_2016_flickr", 200)? },
        brown: Split { train: sentences, test },
        notes,
        entities,
        films,
        sentiment: Split { train: opinions("stsa.binary.train")?, test: opinions("stsa.binary.dev")? },
        tasks: tasks(data)?,
        reddit: Split {
            train: comments(&data.join("goemotions/train.tsv.zst"), 10_000)?,
            test: comments(&data.join("goemotions/test.tsv"), 1_000)?,
        },
        messages: messages(&data.join("irc/irc_train.jsonl.zst"))?,
        plays: plays(&data.join("tinyshakespeare/input.txt.zst"))?,
        comments: {
            let mut all = comments(&data.join("goemotions/train.tsv.zst"), COMMENTS)?;
            let test = comments(&data.join("goemotions/test.tsv"), 1_000)?;
            all.retain(|comment| !test.contains(comment));
            Split { train: all, test }
        },
        novels: novels(&data.join("novels/novels.jsonl.zst"))?,
        articles: Split {
            train: records(&data.join("wikitext2/raw/valid.txt.zst"), Format::Text)?,
            test: records(&data.join("wikitext2/raw/test.txt.zst"), Format::Text)?,
        },
        emotions: Split::of_different(
            emotions(&data.join("goemotions/train.tsv.zst"))?,
            emotions(&data.join("goemotions/test.tsv"))?,
        ),
        speech: speech(data)?,
    };
    texts.write(folder)
}

/// Writes invented texts of a few words, enough of each for a release of words.
pub fn invent(folder: &Path) -> Outcome<Sizes> {
    let words = ["the", "small", "patient", "reads", "a", "book", "about", "fever", "and", "sleeps"];
    let sentence = |number: usize| -> String {
        let word = |place: usize| words[(number * (place + 3) + place * place) % words.len()];
        format!("{} {number}", (0..8).map(word).collect::<Vec<_>>().join(" "))
    };
    let split = |of: &dyn Fn(usize) -> String| Split {
        train: (0..400).map(of).collect(),
        test: (1000..1040).map(of).collect(),
    };
    let tagged = |number: usize| {
        let words: Vec<String> = sentence(number).split(' ').map(str::to_owned).collect();
        let tag = |word: &String| if word == "fever" { "B-Disease" } else { "O" }.to_owned();
        Sentence { tags: words.iter().map(tag).collect(), words }.lines()
    };
    let message = |number: usize| {
        json!({ "user": format!("user {}", number / 2), "text": sentence(number) }).to_string()
    };
    let texts = Texts {
        phrases: split(&|number| {
            json!({ "en": sentence(number + 11_000), "de": sentence(number + 11_003) }).to_string()
        })
        .train,
        captions: split(&|number| json!({ "en": sentence(number), "de": sentence(number + 3) }).to_string()),
        // Public, so in no private text.
        brown: split(&|number| sentence(number + 6000)),
        notes: (2000..2400).map(sentence).collect(),
        entities: split(&tagged),
        films: split(&|number| format!("{} {}, so.", sentence(number + 3000), sentence(number + 5000))),
        sentiment: split(&|number| answered(["0", "1"][number % 2], &sentence(number))),
        tasks: {
            let simple = || split(&|number| answered(["0", "1"][number % 2], &sentence(number)));
            [simple(), simple(), simple(), simple(), asked(&simple())]
        },
        reddit: split(&|number| sentence(number + 4000)),
        messages: (0..400).map(message).collect(),
        emotions: split(&|number| labelled(EMOTIONS[number % 2], &sentence(number))),
        speech: (6000..6040).map(sentence).collect(),
        plays: split(&|number| of_text(&sentence(number + 7000))),
        comments: split(&|number| sentence(number + 8000)),
        novels: split(&|number| of_text(&sentence(number + 9000))),
        articles: split(&|number| sentence(number + 10_000)),
    };
    texts.write(folder)
}

impl Texts {
    #[allow(clippy::too_many_lines, reason = "a table")]
    fn write(&self, folder: &Path) -> Outcome<Sizes> {
        let users: std::collections::BTreeSet<String> =
            self.messages.iter().filter_map(|line| user(line)).collect();
        let remembered = remembered(&self.films);
        let count = remembered.train.len();
        let files = [
            ("phrases.jsonl", self.phrases.clone()),
            ("captions.jsonl", self.captions.train.clone()),
            ("captions-test.jsonl", self.captions.test.clone()),
            ("brown.txt", self.brown.train.clone()),
            ("brown-test.txt", self.brown.test.clone()),
            ("notes.txt", self.notes.clone()),
            ("entities.iob", self.entities.train.clone()),
            ("entities-test.iob", self.entities.test.clone()),
            ("captions-few.jsonl", few(&self.captions.train, FEW_CAPTIONS)),
            ("films.txt", self.films.train.clone()),
            ("films-test.txt", self.films.test.clone()),
            ("remembered.txt", remembered.train),
            ("remembered-test.txt", remembered.test),
            ("sentiment.jsonl", self.sentiment.train.clone()),
            ("sentiment-test.jsonl", self.sentiment.test.clone()),
            ("reddit.txt", self.reddit.train.clone()),
            ("reddit-test.txt", self.reddit.test.clone()),
            ("messages.jsonl", self.messages.clone()),
            ("emotions.jsonl", self.emotions.train.clone()),
            ("emotions-test.jsonl", self.emotions.test.clone()),
            ("speech-test.txt", self.speech.clone()),
            ("plays.jsonl", self.plays.train.clone()),
            ("plays-test.jsonl", self.plays.test.clone()),
            ("comments.txt", self.comments.train.clone()),
            ("comments-test.txt", self.comments.test.clone()),
            ("novels.jsonl", self.novels.train.clone()),
            ("novels-test.jsonl", self.novels.test.clone()),
            ("articles.txt", self.articles.train.clone()),
            ("articles-test.txt", self.articles.test.clone()),
        ];
        files.iter().try_for_each(|(name, texts)| write(&folder.join(name), texts))?;
        for (Task { name, .. }, Split { train, test }) in TASKS.iter().zip(&self.tasks) {
            write(&folder.join(format!("{name}.jsonl")), train)?;
            write(&folder.join(format!("{name}-test.jsonl")), test)?;
        }
        fs::write(folder.join("brown.json"), pieces(&folder.join("brown.txt"))?)?;
        fs::write(folder.join("articles.json"), word_pieces(&folder.join("articles.txt"))?)?;
        fs::write(folder.join("words.json"), word_vocabulary(&self.brown.train, WORDS).to_string())?;
        Ok(Sizes {
            phrases: self.phrases.len(),
            captions: self.captions.train.len(),
            brown: self.brown.train.len(),
            notes: self.notes.len(),
            entities: self.entities.train.len(),
            films: self.films.train.len(),
            remembered: count,
            few_captions: FEW_CAPTIONS.min(self.captions.train.len()),
            sentiment: self.sentiment.train.len(),
            tasks: self.tasks.each_ref().map(|task| task.train.len()),
            reddit: self.reddit.train.len(),
            messages: self.messages.len(),
            users: users.len(),
            emotions: self.emotions.train.len(),
            plays: self.plays.train.len(),
            comments: self.comments.train.len(),
            novels: self.novels.train.len(),
        })
    }
}

/// A vocabulary of public text.
fn pieces(path: &Path) -> Outcome<String> {
    let source = Source::files([path.to_owned()]);
    let counts = public_corpus_counts(&source, Words::ByClass, &CountOptions::default())?;
    vocabulary_of(&counts)
}

/// A `tokenizer.json` for a BERT, of public text.
fn word_pieces(path: &Path) -> Outcome<String> {
    let source = Source::files([path.to_owned()]);
    let counts = public_corpus_counts(&source, Words::ByClass, &CountOptions::default())?;
    let training = WordPieceTraining { vocab_size: PIECES, ..WordPieceTraining::default() };
    Ok(wordpiece(&counts, &training)?.tokenizer.to_json())
}

/// A `tokenizer.json` for a T5.
pub fn vocabulary_of(words: &[(String, f64)]) -> Outcome<String> {
    let config = UnigramConfig { vocab_size: PIECES, sentinels: SENTINELS, ..UnigramConfig::default() };
    Ok(unigram(words, &config)?.tokenizer.to_json())
}

/// Words with their tags.
struct Sentence {
    words: Vec<String>,
    tags: Vec<String>,
}

impl Sentence {
    /// A word and its tag a line; the empty line after a sentence comes with the next line end.
    fn lines(&self) -> String {
        self.words.iter().zip(&self.tags).map(|(word, tag)| format!("{word}\t{tag}\n")).collect()
    }
}

/// The sentences of a file of words and tags.
fn tagged_sentences(path: &Path) -> Outcome<Vec<Sentence>> {
    let further = vec!["text".to_owned(), "label".to_owned()];
    let files = Files { format: Format::Iob, further, ..Files::of([path.to_owned()]) };
    let sentence = |record: Record| {
        let [words, tags] = record.further.try_into().map_err(|_| "a sentence without words or tags")?;
        Ok(Sentence { words, tags })
    };
    opened(files)?.into_iter().map(sentence).collect()
}

fn opened(files: Files) -> Outcome<Vec<Record>> {
    Ok(open(&Source::Files(files))?.collect::<Result<_, _>>()?)
}

/// The first messages of a channel, with their users.
fn messages(path: &Path) -> Outcome<Vec<String>> {
    let user_field = Some("user".to_owned());
    let files = Files { user_field, further: vec!["kind".to_owned()], ..Files::of([path.to_owned()]) };
    let mut messages = Vec::new();
    for record in open(&Source::Files(files))?.take(MESSAGES) {
        let record = record?;
        if record.further.concat() == ["msg"] && !record.text.trim().is_empty() {
            messages.push(json!({ "user": record.user, "text": record.text }).to_string());
        }
    }
    Ok(messages)
}

/// Pairs of captions.
fn captions(data: &Path, name: &str, most: usize) -> Outcome<Vec<String>> {
    let [english, german] = ["en", "de"]
        .map(|language| records(&data.join(format!("multi30k/{name}.{language}.gz")), Format::Text));
    let pair = |(en, de)| json!({ "en": en, "de": de }).to_string();
    Ok(english?.into_iter().zip(german?).map(pair).take(most).collect())
}

/// Medical sentences without their tags, and others with them.
fn medicine(data: &Path) -> Outcome<(Vec<String>, Split)> {
    let tagged = |name: &str| tagged_sentences(&data.join(format!("ner/BC5CDR-IOB/{name}.tsv.zst")));
    let (mut train, mut test, mut notes) = (tagged("train")?, tagged("devel")?, tagged("test")?);
    notes.extend(train.drain(TAGGED.0..));
    notes.extend(test.drain(TAGGED.1..));
    let [train, test] = [train, test].map(|sentences| sentences.iter().map(Sentence::lines).collect());
    Ok((notes.iter().map(|sentence| sentence.words.join(" ")).collect(), Split { train, test }))
}

/// The texts of [`TASKS`]. Where there is no text to measure on, one in ten is.
fn tasks(data: &Path) -> Outcome<[Split; TASKS.len()]> {
    let read = |name: &str| lines_with_labels(&data.join("sentcls").join(name));
    let divided = |name: &str| -> Outcome<Split> {
        let all = read(name)?.into_iter().enumerate();
        let (test, train): (Vec<_>, Vec<_>) = all.partition(|(place, _)| place % 10 == 0);
        let [train, test] = [train, test].map(|part| part.into_iter().map(|(_, record)| record).collect());
        Ok(Split::of_different(train, test))
    };
    let questions = Split::of_different(read("TREC.train.all")?, read("TREC.test.all")?);
    let pairs = asked(&questions);
    Ok([questions, divided("custrev.all")?, divided("mpqa.all")?, divided("subj.all.zst")?, pairs])
}

/// Questions, each with a sentence of [`SENTENCES`]: with its own, or with that of the next question of another label.
fn asked(questions: &Split) -> Split {
    let pairs = |questions: &[String]| -> Vec<String> {
        let questions: Vec<Value> =
            questions.iter().filter_map(|question| serde_json::from_str(question).ok()).collect();
        let place = |question: &Value| question["label"].as_str()?.parse::<usize>().ok();
        let pair = |(at, question): (usize, &Value)| {
            let own = place(question)?;
            let mut others = questions[at..].iter().chain(&questions[..at]).filter_map(place);
            let (is_own, label) = match at % 2 {
                0 => (1, own),
                _ => (0, others.find(|other| *other != own)?),
            };
            let sentence = SENTENCES.get(label)?;
            Some(
                json!({
                    "label": is_own.to_string(), "answer": ANSWERS[is_own], "text": question["text"], "sentence": sentence
                })
                .to_string(),
            )
        };
        questions.iter().enumerate().filter_map(pair).collect()
    };
    Split { train: pairs(&questions.train), test: pairs(&questions.test) }
}

/// Sentences about films; one in twenty is to measure on.
fn films(path: &Path) -> Outcome<Split> {
    let lines = opened(Files { format: Format::Text, ..Files::of([path.to_owned()]) })?;
    let texts = lines.iter().filter_map(|line| Some(line.text.split_once(' ')?.1.to_owned())).enumerate();
    let (test, train): (Vec<_>, Vec<_>) = texts.partition(|(place, _)| place % 20 == 0);
    let [train, mut test] =
        [train, test].map(|part| part.into_iter().map(|(_, text)| text).collect::<Vec<String>>());
    let runs = |text: &str| -> Vec<String> {
        text.split(' ').collect::<Vec<_>>().windows(RUN).map(|run| run.join(" ")).collect()
    };
    let known: HashSet<String> = train.iter().flat_map(|text| runs(text)).collect();
    test.retain(|text| !runs(text).iter().any(|run| known.contains(run)));
    Ok(Split { train, test })
}

/// Sentences of which some occur many times, and others beside the repeated ones with a word more.
fn remembered(films: &Split) -> Split {
    let (most, repeated, times) = REMEMBERED;
    let is_long = |text: &&String| text.split(' ').count() >= LONG;
    let mut train: Vec<String> = films.train.iter().filter(is_long).take(most).cloned().collect();
    let often: Vec<String> = train.iter().take(repeated).cloned().collect();
    let mut test: Vec<String> = films.test.iter().filter(is_long).cloned().collect();
    test.extend(often.iter().map(|text| format!("{text} again")));
    train.extend((1..times).flat_map(|_| often.iter().cloned()));
    Split { train, test }
}

/// The first texts.
fn few(texts: &[String], most: usize) -> Vec<String> {
    texts.iter().take(most).cloned().collect()
}

/// A label, a blank and a text a line. Not all of them are UTF-8.
fn lines_with_labels(path: &Path) -> Outcome<Vec<String>> {
    let lines = opened(Files { format: Format::Text, ..Files::of([path.to_owned()]) })?;
    let pair = |line: &Record| line.text.split_once(' ').map(|(label, text)| answered(label, text));
    Ok(lines.iter().filter_map(pair).collect())
}

/// Comments whose labels are all of one group, with its name.
fn emotions(path: &Path) -> Outcome<Vec<String>> {
    let lines = records(path, Format::Text)?;
    let texts = comments(path, usize::MAX)?;
    if lines.len() != texts.len() {
        return Err(format!("{}: a comment is empty", path.display()).into());
    }
    let group = |line: &str| {
        let labels = line.split('\t').nth(1)?.split(',');
        let mut groups = labels.map(|label| GROUPS.get(label.parse::<usize>().ok()?).copied());
        let first = groups.next()??;
        groups.all(|group| group == Some(first)).then_some(EMOTIONS[first])
    };
    let pairs = lines.iter().zip(&texts);
    Ok(pairs.filter_map(|(line, text)| Some(labelled(group(line)?, text))).collect())
}

/// Long messages of a channel that come after those of [`messages`], and are none of them.
fn speech(data: &Path) -> Outcome<Vec<String>> {
    let plain = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut messages = records(&data.join("irc/irc_train.jsonl.zst"), Format::Jsonl)?.into_iter().map(plain);
    let known: HashSet<String> = messages.by_ref().take(MESSAGES).map(|text| text.to_lowercase()).collect();
    let is_new = |text: &String| text.len() > 20 && !known.contains(&text.to_lowercase());
    Ok(messages.filter(is_new).take(500).collect())
}

/// The plays in runs of [`CHARACTERS`] characters; the last tenth is to measure on.
fn plays(path: &Path) -> Outcome<Split> {
    let text: Vec<char> = records(path, Format::Text)?.join("\n").chars().collect();
    let mut train: Vec<String> =
        text.chunks_exact(CHARACTERS).map(|run| of_text(&run.iter().collect::<String>())).collect();
    let test = train.split_off(train.len() * 9 / 10);
    Ok(Split { train, test })
}

/// Paragraphs from all novels, to train with and to measure on.
fn novels(path: &Path) -> Outcome<Split> {
    let texts = records(path, Format::Jsonl)?;
    let every = texts.len() / (NOVELS.0 + NOVELS.1).min(texts.len()).max(1);
    let mut train: Vec<String> =
        texts.iter().step_by(every.max(1)).take(NOVELS.0 + NOVELS.1).map(|text| of_text(text)).collect();
    let test = train.split_off(train.len().saturating_sub(NOVELS.1));
    Ok(Split { train, test })
}

fn of_text(text: &str) -> String {
    json!({ "text": text }).to_string()
}

fn labelled(label: &str, text: &str) -> String {
    json!({ "label": label, "text": text }).to_string()
}

/// A text with its label, and the word for the label that a model writes.
fn answered(label: &str, text: &str) -> String {
    let answer = label.parse().ok().and_then(|place: usize| ANSWERS.get(place).copied()).unwrap_or_default();
    json!({ "label": label, "answer": answer, "text": text }).to_string()
}

fn user(line: &str) -> Option<String> {
    serde_json::from_str::<Value>(line).ok()?["user"].as_str().map(str::to_owned)
}
