//! Reads record batches from a socket as they arrive, as a client does with the records of a fetch
//! response: what is whole is read at once, a cut last batch is normal.
//!
//! cargo run --example read_socket -- 127.0.0.1:9999

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpListener;

use magicbyte::{Batch, Batches, Decompressor};

const STEP: usize = 64 << 10;
/// A broker takes 1 MiB unless told otherwise; who sends more must not fill the memory.
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

/// Hands every batch over as soon as it is whole; returns the bytes of a cut last one.
///
/// The batches borrow one buffer, which grows to the largest batch and a step.
///
/// # Errors
/// Those of the stream, of a batch, and of `each`.
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
