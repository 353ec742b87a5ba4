//! Writes scalars as a TensorBoard event file: length-prefixed records of the `Event` protocol buffer.
//!
//! The file depends only on the scalars. TensorBoard's wall time is the step number in seconds, so that the file does
//! not depend on a clock and a run with a test key writes the same bytes again.

use crc::{CRC_32_ISCSI, Crc};

const CASTAGNOLI: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Returns the record that begins a file and names its version.
pub(super) fn preamble() -> Vec<u8> {
    let mut event = Vec::new();
    field_bytes(&mut event, 3, b"brain.Event:2");
    record(&event)
}

/// Returns the scalars of a step as one record, each by its tag. Absent ones are left out.
pub(super) fn scalars(step: u64, values: &[(&str, Option<f64>)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in values {
        let Some(value) = *value else { continue };
        let mut entry = Vec::new();
        field_bytes(&mut entry, 1, tag.as_bytes());
        // Field 2, four bytes: `simple_value`.
        entry.push(2 << 3 | 5);
        entry.extend((value as f32).to_le_bytes());
        field_bytes(&mut summary, 1, &entry);
    }
    // Field 1, eight bytes: `wall_time`.
    let mut event = vec![1 << 3 | 1];
    event.extend((step as f64).to_le_bytes());
    // Field 2, a varint: `step`.
    event.push(2 << 3);
    varint(&mut event, step);
    field_bytes(&mut event, 5, &summary);
    record(&event)
}

fn field_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns a record of TensorFlow's format: length, checksum of the length, the data, checksum of the data.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut bytes = length.to_vec();
    bytes.extend(masked(&length));
    bytes.extend(data);
    bytes.extend(masked(data));
    bytes
}

/// Rotates and shifts a checksum as the format does, because a checksum of data that contains checksums is weak.
fn masked(data: &[u8]) -> [u8; 4] {
    CASTAGNOLI.checksum(data).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disclosure::Released;
    use crate::store::metrics::MetricsLine;

    /// Oracle: the bytes that TensorBoard 2.21's own `RecordWriter` and `Event` write for the same
    /// values.
    #[test]
    fn records_are_those_of_tensorboards_own_writer() {
        let hex = |bytes: &[u8]| durable::hex(bytes);
        assert_eq!(hex(&preamble()), "0f000000000000006d532b091a0d627261696e2e4576656e743a32fc985129");
        let metric = MetricsLine {
            step: 300,
            learning_rate: Released::from_plan(0.5),
            gradient_to_noise: Released::from_mechanism(None),
            l2_clip_norm: Released::from_mechanism(None),
            epsilon: Released::from_plan(Some(1.25)),
            evaluation_nll: Released::from_public_text(None),
        };
        assert_eq!(
            hex(&scalars(metric.step, &metric.scalars())),
            concat!(
                "4b0000000000000087099996090000000000c0724010ac022a3d0a1c0a15",
                "707269766163792f657073696c6f6e5f7570706572150000a03f0a1d0a16",
                "747261696e696e672f6c6561726e696e675f72617465150000003f9562d12b"
            )
        );
    }
}
