//! Writes tensors to a file whose bytes depend on them alone.

use std::borrow::Cow;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo, View};
use sha2::{Digest, Sha256};

use super::{NamedTensor, NumberFormat, PRIVACY, PRIVACY_ID, PrivacyMark, Values};
use durable::FileError;

/// Writes `model.safetensors` as `transformers` reads it, with a mark. One tensor after the other is laid out in memory.
///
/// # Errors
/// [`FileError::Storage`] if it cannot be written.
pub fn write_model<T: View>(
    path: &Path,
    mut tensors: Vec<(&str, T)>,
    mark: &PrivacyMark,
) -> Result<(), FileError> {
    let header = header(&mut tensors, &model_metadata(mark));
    let header = header.map_err(|error| FileError::storage("write", path, &error))?;
    durable::write_by(path, |file| write_parts(|bytes| file.write_all(bytes), &header, &tensors))
}

/// Writes a safetensors file with these metadata and, as `field`, the SHA-256 of what `digest` has taken and of each tensor as
/// [`digest_tensor`] takes it, in the order of the file. One tensor after the other is laid out in memory, once.
///
/// # Errors
/// [`FileError::Storage`] if it cannot be written.
pub fn write_digested<T: View>(
    path: &Path,
    mut tensors: Vec<(&str, T)>,
    metadata: &[(&str, &str)],
    field: &str,
    mut digest: Sha256,
) -> Result<(), FileError> {
    let storage = |error: io::Error| FileError::storage("write", path, &error);
    let unknown = durable::hex(&[0; 32]);
    let metadata = [&[(field, unknown.as_str())], metadata].concat();
    let header = header(&mut tensors, &metadata).map_err(storage)?;
    // It is the first of the metadata, with which the header begins.
    let place = header.windows(unknown.len()).position(|bytes| bytes == unknown.as_bytes());
    let place = place.ok_or_else(|| storage(io::Error::other("the header lacks a field")))?;
    durable::write_by(path, |file| {
        file.write_all(&(header.len() as u64).to_le_bytes())?;
        file.write_all(&header)?;
        for (name, tensor) in &tensors {
            let values = tensor.data();
            digest_tensor(&mut digest, name, tensor.shape(), &values);
            file.write_all(&values)?;
        }
        file.seek(SeekFrom::Start((size_of::<u64>() + place) as u64))?;
        file.write_all(durable::hex(&digest.finalize()).as_bytes())
    })
}

/// Adds a tensor with these bytes to a digest.
pub fn digest_tensor(digest: &mut Sha256, name: &str, shape: &[usize], bytes: &[u8]) {
    digest.update(format!("{name:?} {shape:?}\n"));
    digest.update(bytes);
}

/// Returns the SHA-256 of the file that [`write_model`] writes.
///
/// # Errors
/// If the tensors cannot be laid out.
pub fn model_sha256<T: View>(mut tensors: Vec<(&str, T)>, mark: &PrivacyMark) -> io::Result<String> {
    let header = header(&mut tensors, &model_metadata(mark))?;
    let mut digest = Sha256::new();
    let update = |bytes: &[u8]| {
        digest.update(bytes);
        Ok(())
    };
    write_parts(update, &header, &tensors)?;
    Ok(durable::hex(&digest.finalize()))
}

fn model_metadata(mark: &PrivacyMark) -> Vec<(&str, &str)> {
    let own = [("format", "pt"), (PRIVACY, mark.promise.as_str())];
    own.into_iter().chain(mark.id.as_deref().map(|id| (PRIVACY_ID, id))).collect()
}

fn write_parts<T: View>(
    mut write: impl FnMut(&[u8]) -> io::Result<()>,
    header: &[u8],
    tensors: &[(&str, T)],
) -> io::Result<()> {
    write(&(header.len() as u64).to_le_bytes())?;
    write(header)?;
    tensors.iter().try_for_each(|(_, tensor)| write(&tensor.data()))
}

/// Orders the tensors, and returns the part of the file before their data.
fn header<T: View>(tensors: &mut [(&str, T)], metadata: &[(&str, &str)]) -> io::Result<Vec<u8>> {
    // The library orders tensors in the same way.
    tensors.sort_by(|(left, a), (right, b)| b.dtype().cmp(&a.dtype()).then(left.cmp(right)));
    let mut end = 0;
    let place = |(name, tensor): &(&str, T)| {
        let first = end;
        end += tensor.data_len();
        let (dtype, shape) = (tensor.dtype(), tensor.shape().to_vec());
        ((*name).to_owned(), TensorInfo { dtype, shape, data_offsets: (first, end) })
    };
    let places = Metadata::new(None, tensors.iter().map(place).collect());
    let places = serde_json::to_string(&places.map_err(io::Error::other)?)?;
    // The library writes metadata in the order of a hash table, but equal weights must give equal
    // files.
    let own: Vec<String> = metadata
        .iter()
        .map(|&(name, text)| format!("\"{name}\":{}", serde_json::Value::from(text)))
        .collect();
    let between = if tensors.is_empty() { "" } else { "," };
    let own = format!("{{\"__metadata__\":{{{}}}{between}", own.join(","));
    let mut header = places.replacen('{', &own, 1).into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// A tensor to be written in a number format.
pub struct Formatted<'a, V = Vec<f32>> {
    /// The tensor.
    pub tensor: &'a NamedTensor<V>,
    /// Format of the file.
    pub format: NumberFormat,
}

impl<V: Values> View for Formatted<'_, V> {
    fn dtype(&self) -> Dtype {
        self.format.of_safetensors()
    }

    fn shape(&self) -> &[usize] {
        &self.tensor.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.format.bytes(&self.tensor.data.on_host()))
    }

    fn data_len(&self) -> usize {
        self.tensor.data.count() * self.dtype().bitsize() / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_weights_always_give_the_same_file() {
        let tensor = NamedTensor {
            name: "a".into(),
            shape: vec![2, 2],
            data: vec![1.0, -2.5, f32::MIN_POSITIVE, 3e30],
        };
        let mark = PrivacyMark { promise: "NOT PRIVATE".to_owned(), id: Some("6f".to_owned()) };
        let folder = tempfile::tempdir().unwrap();
        let written = || {
            let path = folder.path().join("a");
            let view = Formatted { tensor: &tensor, format: NumberFormat::F32 };
            write_model(&path, vec![("a", view)], &mark).unwrap();
            std::fs::read(path).unwrap()
        };
        let file = written();
        for _ in 0..20 {
            assert_eq!(file, written());
        }
        let text = String::from_utf8_lossy(&file);
        assert!(text.contains("\"format\":\"pt\"") && text.contains("\"privacy\":\"NOT PRIVATE\""));
        assert_eq!(PrivacyMark::read(&folder.path().join("a")), Some(mark));
    }
}
