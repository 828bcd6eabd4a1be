//! Reads record batches from a socket as they arrive, as a client does with the records of a fetch
//! response: each batch is read as soon as it is whole, and the last one may be cut.
//!
//! cargo run --example read_socket -- 127.0.0.1:9999

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpListener;

use magicbyte::{Batch, Batches, Decompressor};

const STEP: usize = 64 << 10;
/// A broker accepts 1 MiB by default; a sender of more must not exhaust memory.
const MAX_BATCH: u64 = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: read_socket ADDRESS")?;
    let (stream, _) = TcpListener::bind(address)?.accept()?;
    let mut out = io::stdout().lock();
    let cut = read(stream, |batch, decompressor| {
        batch.verify()?;
        for record in batch.records(decompressor)? {
            let record = record?;
            writeln!(out, "{} {}", record.offset(), record.value().unwrap_or(b"null").escape_ascii())?;
        }
        Ok(())
    })?;
    if cut > 0 {
        writeln!(out, "{cut} bytes of a cut batch at the end")?;
    }
    Ok(())
}

/// Calls `each` with every batch as soon as it is whole; returns the number of bytes of a cut last batch.
///
/// The batches borrow one buffer, which grows to the largest batch and one step.
///
/// # Errors
/// From the stream, from a batch, and from `each`.
pub fn read(
    mut stream: impl Read,
    mut each: impl FnMut(Batch<'_>, &mut Decompressor) -> Result<(), Box<dyn Error>>,
) -> Result<usize, Box<dyn Error>> {
    let mut decompressor = Decompressor::new();
    let (mut buffer, mut filled) = (Vec::new(), 0);
    loop {
        if buffer.len() - filled < STEP {
            buffer.resize(filled + STEP, 0);
        }
        let arrived = stream.read(&mut buffer[filled..])?;
        if arrived == 0 {
            return Ok(filled);
        }
        filled += arrived;
        let mut batches = Batches::new(&buffer[..filled]);
        for batch in batches.by_ref() {
            each(batch?, &mut decompressor)?;
        }
        if batches.needed() > MAX_BATCH {
            return Err(format!("a batch that lacks {} bytes", batches.needed()).into());
        }
        let whole = filled - batches.remaining();
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
}
