//! Prints offset, timestamp, key and value of every record of a segment file, with this crate alone.
//!
//! cargo run --example read_segment -- samples/orders-0/00000000000000000000.log

use std::error::Error;
use std::io::{self, Write};

use magicbyte::{Batches, Decompressor};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: read_segment FILE.log")?;
    print(&std::fs::read(path)?, &mut io::BufWriter::new(io::stdout().lock()))
}

/// Writes a line for each record of a segment.
///
/// # Errors
/// Damage in the segment, and those of `out`.
pub fn print(segment: &[u8], out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut decompressor = Decompressor::new();
    let mut batches = Batches::new(segment);
    for batch in batches.by_ref() {
        let batch = batch?;
        batch.verify()?;
        for record in batch.records(&mut decompressor)? {
            let record = record?;
            let text = |bytes: Option<&[u8]>| bytes.map_or("null".into(), |b| b.escape_ascii().to_string());
            let (key, value) = (text(record.key()), text(record.value()));
            writeln!(out, "{} {} {key} {value}", record.offset(), record.timestamp())?;
        }
    }
    if batches.remaining() > 0 {
        writeln!(out, "{} bytes of a cut batch at the end", batches.remaining())?;
    }
    Ok(())
}
