//! Builds the record batches of a produce request and sends them: batches of up to 16 KiB, as a
//! producer fills them (`batch.size`), with one buffer for all. A larger value gets a batch of its own.
//!
//! cargo run --example produce -- 127.0.0.1:9999 first second third

use std::error::Error;
use std::io::Write;
use std::net::TcpStream;
use std::time::{SystemTime, UNIX_EPOCH};

use magicbyte::{Compression, RecordsBuilder};

const BATCH_SIZE: usize = 16 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().ok_or("usage: produce ADDRESS VALUE...")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
    let values: Vec<_> = args.collect();
    let sent = produce(&mut TcpStream::connect(address)?, now, values.iter().map(String::as_bytes))?;
    eprintln!("{sent} bytes");
    Ok(())
}

/// Writes `values` as records of an idempotent producer; returns the number of bytes.
///
/// In a produce request, the offsets of each batch start at 0, and sequences continue from batch to batch.
///
/// # Errors
/// The errors of the stream, and of records that Kafka forbids.
pub fn produce<'a>(
    out: &mut impl Write,
    timestamp: i64,
    values: impl IntoIterator<Item = &'a [u8]>,
) -> Result<usize, Box<dyn Error>> {
    let mut builder = RecordsBuilder::v2(Compression::Lz4).producer(4711, 0, 0).max_size_in_bytes(BATCH_SIZE);
    let (mut payload, mut sent) = (Vec::new(), 0);
    let mut send = |builder: &mut RecordsBuilder| -> Result<(), Box<dyn Error>> {
        payload.clear();
        builder.build_into(&mut payload)?;
        sent += payload.len();
        Ok(out.write_all(&payload)?)
    };
    for value in values {
        while !builder.try_append(builder.next_offset(), timestamp, None, Some(value), &[])? {
            send(&mut builder)?;
        }
    }
    send(&mut builder)?;
    Ok(sent)
}
