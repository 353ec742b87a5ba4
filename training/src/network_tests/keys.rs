//! Tables of the keys of a file, each changed one at a time, as a script beside `tests/vectors` records what `transformers` makes of them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Returns the record in `tests/vectors` or, where TRANSFORMERS_PYTHON names a Python with `transformers`, has the script make a new one.
pub(crate) fn record(file: &str, script: &str) -> Value {
    let vectors = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors"));
    let read = |path: &Path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let Some(python) = std::env::var_os("TRANSFORMERS_PYTHON") else {
        eprintln!("TRANSFORMERS_PYTHON names no Python with transformers: its recorded answers are compared");
        return read(&vectors.join(file));
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    assert!(Command::new(python).arg(script).arg(&path).current_dir(vectors).status().unwrap().success());
    read(&path)
}

/// How many changes have which outcome.
#[derive(Default)]
pub(crate) struct Table {
    files: usize,
    keys: usize,
    equal: usize,
    named: usize,
    refused_there: usize,
    wrong: Vec<String>,
}

impl Table {
    /// Compares the changes of one file, `base["config"]`. `of_change` takes the changed key, the changed file and the outcome in
    /// `transformers`, which did not refuse it. Its error is the key
    /// if this program does otherwise and names it, and else what it does.
    pub fn compare(
        &mut self,
        name: &str,
        base: &Value,
        mut of_change: impl FnMut(&str, &Value, &Value) -> Result<(), String>,
    ) {
        self.files += 1;
        match of_change("", &base["config"], &Value::from("same")) {
            Ok(()) => {}
            Err(usual) => self.wrong.push(format!("{name}, unchanged: {usual}")),
        }
        let mut last = "";
        for change in base["changes"].as_array().unwrap() {
            let (key, outcome, value) = (change[0].as_str().unwrap(), &change[1], change.get(2));
            self.keys += usize::from(key != last);
            last = key;
            if outcome == "refused" {
                self.refused_there += 1;
                continue;
            }
            let mut config = base["config"].clone();
            match value {
                Some(value) => config[key] = value.clone(),
                None => drop(config.as_object_mut().unwrap().remove(key)),
            }
            match of_change(key, &config, outcome) {
                Ok(()) => self.equal += 1,
                Err(message) if message == key => self.named += 1,
                Err(own) => {
                    self.wrong.push(format!("{name}: {key} = {value:?}: {own}, transformers: {outcome}"))
                }
            }
        }
    }

    /// Prints the counts.
    ///
    /// # Panics
    /// If any change has another effect than in `transformers` and is not named, or too few changes are equal or named.
    pub fn check(self, least_equal: usize, least_named: usize) {
        let Self { files, keys, equal, named, refused_there, wrong } = self;
        eprintln!(
            "{files} files, {keys} keys: {equal} changes with equal results, {named} named here, {refused_there} refused by transformers"
        );
        assert!(wrong.is_empty(), "{} changes:\n{}", wrong.len(), wrong.join("\n"));
        assert!(equal > least_equal && named > least_named, "{equal} {named}");
    }
}
