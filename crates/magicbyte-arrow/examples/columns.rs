//! Reads a partition's directory as Arrow batches, and sums the bytes of its values by hour.
//!
//! cargo run -p magicbyte-arrow --example columns -- samples/sensors-0

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMillisecondType;
use magicbyte_arrow::{LogStream, StreamOptions};
use magicbyte_log::{PartitionLog, ReadOptions};

const HOUR: i64 = 3_600_000;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: columns DIRECTORY")?;
    columns(&directory, &mut io::stdout().lock())
}

/// Writes a line for each hour that has records: its start in milliseconds, records, bytes.
///
/// # Errors
/// Damage in the log, and those of `out`.
pub fn columns(directory: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let log = PartitionLog::open(directory)?;
    let options =
        StreamOptions { columns: vec!["timestamp".parse()?, "value".parse()?], ..StreamOptions::default() };
    let mut hours: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
    for batch in LogStream::new(log, ReadOptions::default(), options, Arc::default()) {
        let batch = batch?;
        let times = batch.column(0).as_primitive::<TimestampMillisecondType>();
        let values = batch.column(1).as_binary::<i32>();
        for (time, value) in times.iter().zip(values) {
            let (records, bytes) = hours.entry(time.unwrap_or(-1).div_euclid(HOUR) * HOUR).or_default();
            *records += 1;
            *bytes += value.map_or(0, |value| value.len() as u64);
        }
    }
    for (start, (records, bytes)) in hours {
        writeln!(out, "{start} {records} {bytes}")?;
    }
    Ok(())
}
