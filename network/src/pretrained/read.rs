//! The files of a checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use durable::{FileError, hex, sha256_hex};
use safetensors::tensor::Metadata;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::folder::{config_of, start_of, what_it_is, without_tensors};
use super::{Assigned, CONFIG_FILE_NAME, INDEX_FILE_NAME, MODEL_FILE_NAME, config, names, refused};
use crate::model::Network;
use crate::nn::ParamSpec;
use crate::tensor_file::{NamedTensor, StoredValues};

/// Settings of generation, which name the end tokens too.
const GENERATION_CONFIG_FILE_NAME: &str = "generation_config.json";

/// A checkpoint on the host: its configuration, its tensors in the number formats of their files, and its digest.
#[derive(Debug)]
pub struct PretrainedCheckpoint {
    /// The field of the plan or the option that names the folder.
    field: &'static str,
    folder: PathBuf,
    config: Value,
    tensors: BTreeMap<String, NamedTensor<StoredValues>>,
    sha256: String,
}

impl PretrainedCheckpoint {
    /// Reads `config.json` and `model.safetensors`, or the files that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// [`FileError`] for files that are missing or malformed, tensors of other formats than 16-, 32-
    /// and 64-bit floats, and duplicate tensors.
    pub fn read(folder: &Path) -> Result<Self, FileError> {
        Self::named_by(super::FIELD, folder)
    }

    /// Reads a folder as [`Self::read`] does, if another field or an option names it.
    pub fn named_by(field: &'static str, folder: &Path) -> Result<Self, FileError> {
        let refused = |folder: &Path, what: &dyn std::fmt::Display| refused(field, folder, what);
        if !folder.is_dir() {
            let what = "there is no such folder, and nothing is downloaded here: fetch the model first, and name the folder with its \
                        config.json and model.safetensors";
            return Err(refused(folder, &what));
        }
        let path = folder.join(CONFIG_FILE_NAME);
        if let Some(what) = (!path.exists()).then(|| what_it_is(folder)).flatten() {
            return Err(refused(folder, &what));
        }
        let config_bytes = durable::read(&path)?;
        let config = config_of(folder, &config_bytes).map_err(|what| refused(folder, &what))?;
        let mut tensors = BTreeMap::new();
        let mut digests = sha256_hex(&config_bytes);
        for name in shards(field, folder)? {
            let wrong = |what: String| refused(folder, &format!("{name}: {what}"));
            let shard = Shard::read(&folder.join(&name))?.map_err(wrong)?;
            for tensor in shard.tensors {
                let wrong = format!("tensor {} is there twice", tensor.name);
                if tensors.insert(tensor.name.clone(), tensor).is_some() {
                    return Err(refused(folder, &wrong));
                }
            }
            digests.push_str(&shard.sha256);
        }
        Ok(Self { field, folder: folder.to_owned(), config, tensors, sha256: sha256_hex(digests.as_bytes()) })
    }

    /// Returns the digest of the digests of `config.json` and of each file of tensors, in the order of their names.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the number of tokens of the checkpoint's table, for a tokenizer with `tokenizer`
    /// tokens. The table may be longer than the tokenizer, because some tables are padded to a
    /// round number.
    ///
    /// # Errors
    /// [`FileError::Refused`] if the table is too short, is longer than padding explains, or its size is not given.
    pub fn vocab_size(&self, tokenizer: usize) -> Result<usize, FileError> {
        // Phi-2 pads its 50,295 tokens to 51,200, the most of the families here.
        let is_padded = |size: usize, tokens: usize| size - tokens <= size / 20 || size - tokens <= 1024;
        match self.config["vocab_size"].as_u64().and_then(|size| usize::try_from(size).ok()) {
            Some(size) if size >= tokenizer && is_padded(size, tokenizer) => Ok(size),
            given => {
                let given = given.map_or("no vocab_size".to_owned(), |size| format!("{size} tokens"));
                let what = format!(
                    "{CONFIG_FILE_NAME} has {given}, the plan's tokenizer {tokenizer}; give the checkpoint's own tokenizer"
                );
                Err(refused(self.field, &self.folder, &what))
            }
        }
    }

    /// Refuses a tokenizer of another model: the ids that the checkpoint states for this role, `eos` or `bos`, are neither that of
    /// the tokenizer's token, `own`, nor special in it.
    ///
    /// # Errors
    /// [`FileError::Refused`] with both ids.
    pub fn check_role(
        &self,
        role: &str,
        own: u32,
        is_special: impl Fn(u32) -> bool,
    ) -> Result<(), FileError> {
        let field = format!("{role}_token_id");
        let stated = |config: &Value| -> Vec<u64> {
            let ids = &config[&field];
            ids.as_u64()
                .into_iter()
                .chain(ids.as_array().into_iter().flatten().filter_map(Value::as_u64))
                .collect()
        };
        let mut ids = [stated(&self.config), stated(&self.generation_config()?)].concat();
        // If a model was made without a vocabulary, transformers writes the ids of another one.
        ids.retain(|id| Some(*id) < self.config["vocab_size"].as_u64());
        let is_known = |id: &u64| u32::try_from(*id).is_ok_and(|id| id == own || is_special(id));
        if ids.is_empty() || ids.iter().any(is_known) {
            return Ok(());
        }
        let what = format!(
            "{CONFIG_FILE_NAME} has {field} = {}, which is no special token of the plan's tokenizer, whose own is {own}; give the \
             checkpoint's own tokenizer",
            self.config[&field]
        );
        Err(refused(self.field, &self.folder, &what))
    }

    /// Returns the folder's `generation_config.json`; `null` if it has none.
    ///
    /// # Errors
    /// [`FileError`] for a file that is not JSON.
    pub fn generation_config(&self) -> Result<Value, FileError> {
        Ok(durable::read_json(&self.folder.join(GENERATION_CONFIG_FILE_NAME))?.unwrap_or_default())
    }

    /// Returns `modules.json` and the configuration of the pooling, by which `sentence-transformers` makes an embedding of the hidden states;
    /// `None` if the folder has none, or modules with weights of their own.
    ///
    /// # Errors
    /// [`FileError`] for a file that is not JSON.
    pub fn embedding(&self) -> Result<Option<[Value; 2]>, FileError> {
        const ALLOWED: [(&str, &str); 3] =
            [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")];
        let Some(modules) = durable::read_json::<Value>(&self.folder.join("modules.json"))? else {
            return Ok(None);
        };
        let is_known = |(module, (class, path)): (&Value, (&str, &str))| {
            let last = module["type"].as_str().and_then(|name| name.rsplit('.').next());
            last == Some(class) && module["path"] == path
        };
        let list = modules.as_array().map(Vec::as_slice).unwrap_or_default();
        if !(2..=ALLOWED.len()).contains(&list.len()) || !list.iter().zip(ALLOWED).all(is_known) {
            return Ok(None);
        }
        Ok(durable::read_json(&self.folder.join("1_Pooling/config.json"))?.map(|pooling| [modules, pooling]))
    }

    /// Returns the folder's `config.json`.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// Returns the weights of a network without a head.
    ///
    /// # Errors
    /// As [`Self::weights`].
    pub fn body(&self, network: &Network) -> Result<Vec<NamedTensor>, FileError> {
        Ok(self.assigned(&network.specs(), &network.hf_config(), true)?.in_f32().weights)
    }

    /// Returns the weights of a model with these parameters and this configuration, in 32 bits.
    ///
    /// # Errors
    /// As [`Self::stored_weights`].
    pub fn weights(&self, specs: &[ParamSpec], model: &Value) -> Result<Assigned, FileError> {
        Ok(self.stored_weights(specs, model)?.in_f32())
    }

    /// Returns the weights of a model with these parameters and this configuration.
    ///
    /// # Errors
    /// [`FileError::Refused`] if the configurations differ, with both values; for a tensor that is
    /// missing, unknown, of another shape, or different from the tensor that it is tied to; for a
    /// head with other labels.
    pub fn stored_weights(
        &self,
        specs: &[ParamSpec],
        model: &Value,
    ) -> Result<Assigned<StoredValues>, FileError> {
        let predicts_labels = model["id2label"].is_object();
        let assigned = self.assigned(specs, model, predicts_labels)?;
        if predicts_labels && assigned.drawn.is_empty() {
            config::check_labels(model, &self.config)
                .map_err(|what| refused(self.field, &self.folder, &what))?;
        }
        Ok(assigned)
    }

    fn assigned(
        &self,
        specs: &[ParamSpec],
        model: &Value,
        replaces_head: bool,
    ) -> Result<Assigned<StoredValues>, FileError> {
        let wrong = |what: String| refused(self.field, &self.folder, &what);
        let family = Network::checkpoints().find(|family| model["model_type"] == family.model_type);
        let family = family.ok_or_else(|| wrong("no checkpoint of this family can be read".to_owned()))?;
        config::check(family, model, &self.config).map_err(wrong)?;
        names::assign(family, &self.tensors, specs, replaces_head).map_err(wrong)
    }
}

/// Returns the names of the files that hold tensors.
fn shards(field: &'static str, folder: &Path) -> Result<BTreeSet<String>, FileError> {
    let index = folder.join(INDEX_FILE_NAME);
    if folder.join(MODEL_FILE_NAME).exists() {
        return Ok(BTreeSet::from([MODEL_FILE_NAME.to_owned()]));
    }
    if !index.exists() {
        return Err(refused(field, folder, &without_tensors(folder)));
    }
    let wrong = |what: &dyn std::fmt::Display| refused(field, folder, &format!("{INDEX_FILE_NAME}: {what}"));
    let index: Value = serde_json::from_slice(&durable::read(&index)?).map_err(|error| wrong(&error))?;
    let map = index["weight_map"].as_object().ok_or_else(|| wrong(&"it has no weight_map"))?;
    let shard = |name: &Value| match name.as_str() {
        // It must be a name, not a path, so that nothing outside the folder is read.
        Some(name) if Path::new(name).file_name().is_some_and(|last| last == name) => {
            let is_there = folder.join(name).is_file();
            let missing = || wrong(&format!("{name} is missing; fetch all files of the checkpoint"));
            if is_there { Ok(name.to_owned()) } else { Err(missing()) }
        }
        _ => Err(wrong(&"weight_map names something that is not a file of this folder")),
    };
    map.values().map(shard).collect()
}

/// A file of tensors.
struct Shard {
    tensors: Vec<NamedTensor<StoredValues>>,
    sha256: String,
}

impl Shard {
    /// Reads one tensor after the other, so that the whole file is never in memory as well. The
    /// inner error describes the fault of the file.
    fn read(path: &Path) -> Result<Result<Self, String>, FileError> {
        let storage = |error: std::io::Error| FileError::storage("read", path, &error);
        let mut file = durable::open(path)?;
        let length = file.metadata().map_err(storage)?.len();
        let start = start_of(&mut file).map_err(storage)?;
        let header = start.get(8..).unwrap_or_default();
        let metadata: Metadata = match serde_json::from_slice(header) {
            Ok(metadata) => metadata,
            Err(error) => return Ok(Err(format!("it does not begin as a safetensors file does: {error}"))),
        };
        // The header's own tensors cover this many bytes without a gap; reading it checks that.
        if length.checked_sub(start.len() as u64) != Some(metadata.data_len() as u64) {
            return Ok(Err("the file is not as long as its header says".to_owned()));
        }
        let (mut tensors, mut digest) = (Vec::new(), Sha256::new_with_prefix(&start));
        for name in metadata.offset_keys() {
            let Some(info) = metadata.info(&name) else { continue };
            let length = info.data_offsets.1 - info.data_offsets.0;
            let mut bytes = Vec::new();
            // A sparse file takes no space on disk, whatever length it states.
            if bytes.try_reserve_exact(length).is_err() {
                return Ok(Err(format!("tensor {name} has {length} bytes, more than this machine's memory")));
            }
            bytes.resize(length, 0);
            file.read_exact(&mut bytes).map_err(storage)?;
            digest.update(&bytes);
            // Integer tensors are buffers, such as positions. They cannot have a weight's name.
            let data = StoredValues::new(info.dtype, bytes).unwrap_or_else(|| Vec::new().into());
            tensors.push(NamedTensor { name, shape: info.shape.clone(), data });
        }
        Ok(Ok(Self { tensors, sha256: hex(&digest.finalize()) }))
    }
}
