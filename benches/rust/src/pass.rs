//! The work that every decode bench times.

use std::hint::black_box;

use magicbyte::{Batches, Decompressor, Result};

/// The records and bytes that a pass must find, or has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    pub records: u64,
    /// Of keys and values together.
    pub bytes: u64,
}

/// What a pass has counted so far.
#[derive(Default)]
pub struct Touched {
    records: u64,
    bytes: u64,
    /// The sum of the first bytes, so that each is really read, as in the Java bench.
    sum: u64,
}

impl Touched {
    #[inline]
    pub fn record(&mut self, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.records += 1;
        self.field(key);
        self.field(value);
    }

    #[inline]
    fn field(&mut self, field: Option<&[u8]>) {
        if let Some(field) = field {
            self.sum += u64::from(field.first().copied().unwrap_or_default());
            self.bytes += field.len() as u64;
        }
    }

    pub fn found(self) -> Found {
        black_box(self.sum);
        Found { records: self.records, bytes: self.bytes }
    }
}

/// Frame, CRC, decompress, every record, touch key and value: with `visit`, as hot loops do.
pub fn pass(data: &[u8], decompressor: &mut Decompressor) -> Result<Found> {
    let mut touched = Touched::default();
    for batch in Batches::new(data) {
        let batch = batch?;
        batch.verify()?;
        batch.records(decompressor)?.visit(|record| touched.record(record.key(), record.value()))?;
    }
    Ok(touched.found())
}
