//! The work that every decode bench times.

use std::hint::black_box;

use magicbyte::{Batches, Decompressor, Result};

/// What one pass over a set must find, and finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub records: u64,
    /// Of keys and values.
    pub bytes: u64,
}

/// Frame, CRC, decompress, every record, touch key and value.
pub fn pass(data: &[u8], decompressor: &mut Decompressor) -> Result<Found> {
    let mut found = Found { records: 0, bytes: 0 };
    for batch in Batches::new(data) {
        let batch = batch?;
        batch.verify()?;
        for record in batch.records(decompressor)? {
            let record = record?;
            for field in [record.key(), record.value()].into_iter().flatten() {
                black_box(field.first());
                found.bytes += field.len() as u64;
            }
            found.records += 1;
        }
    }
    Ok(found)
}
