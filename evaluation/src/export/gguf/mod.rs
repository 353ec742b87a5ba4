//! A model and its tokenizer as one GGUF file, as llama.cpp reads it.
//!
//! # References
//! The format, version 3: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>. Names of tensors and fields:
//! <https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/constants.py>.

mod architecture;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use architecture::Architecture;
use network::tensor_file::{NamedTensor, NumberFormat, PrivacyMark, read_tensors};
use training::RunError;
use training::infer::TextBounds;
use training::store::files;

/// Alignment of tensors in bytes, the format's default.
const ALIGNMENT: usize = 32;

/// Key–value pairs in their encoding.
#[derive(Default)]
struct Pairs {
    count: u64,
    bytes: Vec<u8>,
}

impl Pairs {
    fn put(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.count += 1;
        string(key, &mut self.bytes);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(value);
    }

    fn number(&mut self, key: &str, value: u64) {
        self.put(key, 4, &u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn float(&mut self, key: &str, value: f64) {
        self.put(key, 6, &(value as f32).to_le_bytes());
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.put(key, 7, &[u8::from(value)]);
    }

    fn text(&mut self, key: &str, value: &str) {
        let mut bytes = Vec::new();
        string(value, &mut bytes);
        self.put(key, 8, &bytes);
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        let mut bytes = list_head(8, values.len());
        values.iter().for_each(|value| string(value, &mut bytes));
        self.put(key, 9, &bytes);
    }

    fn floats(&mut self, key: &str, values: &[f32]) {
        let mut bytes = list_head(6, values.len());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.put(key, 9, &bytes);
    }

    fn kinds(&mut self, key: &str, values: &[i32]) {
        let mut bytes = list_head(5, values.len());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        self.put(key, 9, &bytes);
    }
}

fn list_head(kind: u32, length: usize) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((length as u64).to_le_bytes());
    bytes
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn refused(what: String) -> RunError {
    RunError::Refused(format!("--gguf: {what}"))
}

/// What a file says beside the tensors.
pub(super) struct Gguf {
    architecture: Architecture,
    config: Value,
    pairs: Pairs,
    format: NumberFormat,
}

impl Gguf {
    /// Describes the model of a finished run and its tokenizer.
    ///
    /// # Errors
    /// [`RunError::Refused`] with what GGUF cannot say.
    pub fn of_run(run: &Path, format: NumberFormat, mark: &PrivacyMark) -> Result<Self, RunError> {
        let json = |name: &str| -> Result<Value, RunError> {
            let file = run.join(name);
            serde_json::from_slice(&durable::read(&file)?)
                .map_err(|error| RunError::Failed(format!("{}: {error}", file.display())))
        };
        let config = json(files::CONFIG)?;
        let architecture = Architecture::of(&config).map_err(refused)?;
        let mut pairs = Pairs::default();
        pairs.text("general.architecture", architecture.name);
        pairs.text("general.description", &mark.promise);
        if let Some(id) = &mark.id {
            pairs.text("privacy.id", id);
        }
        let [_, file_type] = numbers(format);
        pairs.number("general.file_type", u64::from(file_type));
        pairs.number("general.alignment", ALIGNMENT as u64);
        architecture.fields(&config, &mut pairs).map_err(refused)?;
        vocabulary::write(&json(files::TOKENIZER)?, &config, &TextBounds::of_run(run)?, &mut pairs)
            .map_err(refused)?;
        let template = run.join(files::CHAT_TEMPLATE);
        if template.exists() {
            pairs.text("tokenizer.chat_template", &String::from_utf8_lossy(&durable::read(&template)?));
        }
        Ok(Self { architecture, config, pairs, format })
    }

    /// Writes the file with the tensors of the run.
    ///
    /// # Errors
    /// [`RunError::Refused`] for a tensor that GGUF has no name for; [`RunError::Storage`] if the file cannot be written.
    pub fn write(self, run: &Path, path: &Path) -> Result<(), RunError> {
        let Self { architecture, config, pairs, format } = self;
        let [kind, _] = numbers(format);
        let tensors = read_tensors(&run.join(files::MODEL))?;
        let arranged = tensors.into_iter().map(|tensor| architecture.arranged(tensor, &config));
        let mut tensors = arranged.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        tensors.extend(architecture.further(&config).map_err(refused)?);
        let named = |name: &str| tensors.iter().find(|tensor| tensor.name == name);
        if architecture.needs_head && named("output.weight").is_none() {
            let table = named("token_embd.weight").cloned();
            tensors.extend(table.map(|table| NamedTensor { name: "output.weight".to_owned(), ..table }));
        }
        // llama.cpp keeps vectors in 32 bits.
        let format_of =
            |tensor: &NamedTensor| if tensor.shape.len() > 1 { format } else { NumberFormat::F32 };
        let mut head = b"GGUF".to_vec();
        head.extend(3_u32.to_le_bytes());
        head.extend((tensors.len() as u64).to_le_bytes());
        head.extend(pairs.count.to_le_bytes());
        head.extend(pairs.bytes);
        let mut offset = 0;
        for tensor in &tensors {
            string(&tensor.name, &mut head);
            head.extend((tensor.shape.len() as u32).to_le_bytes());
            // The axis whose values are neighbors comes first.
            head.extend(tensor.shape.iter().rev().flat_map(|size| (*size as u64).to_le_bytes()));
            let wide = format_of(tensor) == NumberFormat::F32;
            head.extend(if wide { 0_u32 } else { kind }.to_le_bytes());
            head.extend((offset as u64).to_le_bytes());
            offset += (tensor.data.len() * if wide { 4 } else { 2 }).next_multiple_of(ALIGNMENT);
        }
        head.resize(head.len().next_multiple_of(ALIGNMENT), 0);
        Ok(durable::write_by(path, |file| {
            file.write_all(&head)?;
            tensors.iter().try_for_each(|tensor| {
                let mut bytes = format_of(tensor).bytes(&tensor.data);
                bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
                file.write_all(&bytes)
            })
        })?)
    }
}

/// The program's numbers for the format of most tensors: of a tensor, and of the file.
fn numbers(format: NumberFormat) -> [u32; 2] {
    match format {
        NumberFormat::F32 => [0, 0],
        NumberFormat::F16 => [1, 1],
        NumberFormat::Bf16 => [30, 32],
    }
}
