//! Appends batches to a partition in memory, as a broker does: a batch that a producer sends twice is stored once, and one that
//! comes too early is refused.
//!
//! cargo run -p magicbyte-broker --example append

use std::error::Error;
use std::io::{self, Write};

use magicbyte::{Compression, RecordsBuilder};
use magicbyte_broker::{AppendConfig, PartitionSimulator};

/// Milliseconds since 1970.
const NOW: i64 = 1_700_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    append(&mut io::stdout().lock())
}

/// A batch of an idempotent producer.
fn batch(base_sequence: i32, value: &[u8]) -> magicbyte::Result<Vec<u8>> {
    let mut builder = RecordsBuilder::v2(Compression::Lz4).producer(4711, 0, base_sequence);
    builder.append(0, NOW, None, Some(value), &[])?;
    Ok(builder.build()?.clone())
}

/// Writes the broker's answers.
///
/// # Errors
/// The errors of the batches, and of `out`.
pub fn append(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut partition = PartitionSimulator::new(AppendConfig::default())?;
    partition.set_now(NOW);
    for sequence in [0, 1, 1, 5] {
        match partition.produce(&batch(sequence, b"value")?, 11) {
            Ok(answer) if answer.duplicate => writeln!(out, "sequence {sequence}: is in the log already")?,
            Ok(answer) => writeln!(out, "sequence {sequence}: offset {}", answer.info.last_offset)?,
            Err(error) => writeln!(out, "sequence {sequence}: {error}")?,
        }
    }
    writeln!(out, "the log ends at offset {}", partition.log_end_offset())?;
    Ok(())
}
