//! Rebuilds the batches of a file repeatedly, and prints records/s for each round; at the end, on standard
//! error, the number of bytes of one pass, which are written to OUT if it is given. The counterpart of `Encode`
//! in `benches/java`.

use std::error::Error;
use std::io::{Write, stderr, stdout};
use std::time::Duration;

use cpu_time::ThreadTime;

use magicbyte::{Batches, Compression, Decompressor, RecordsBuilder};
use magicbyte_benches::pass::{Found, pass};

const USAGE: &str = "usage: encode CODEC FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS [OUT]";
const ROUND: Duration = Duration::from_millis(50);

struct Row {
    offset: i64,
    timestamp: i64,
    key: Vec<u8>,
    value: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [codec, file, records, bytes, warm_up, rounds, out @ ..] = args.as_slice() else {
        return Err(USAGE.into());
    };
    let codec = Compression::ALL.into_iter().find(|c| c.name() == codec).ok_or(USAGE)?;
    let data = std::fs::read(file)?;
    let expected = Found { records: records.parse()?, bytes: bytes.parse()? };
    found(&data, expected)?;
    let batches = read(&data)?;

    let mut builder = RecordsBuilder::v2(codec);
    let mut written = Vec::new();
    for rows in &batches {
        build(&mut builder, rows, &mut written)?;
    }
    found(&written, expected)?;
    if let Some(out) = out.first() {
        std::fs::write(out, &written)?;
    }

    let warm_up = Duration::from_secs_f64(warm_up.parse()?);
    records_per_second(&batches, expected, warm_up, &mut builder)?;
    for _ in 0..rounds.parse()? {
        writeln!(stdout(), "{:.0}", records_per_second(&batches, expected, ROUND, &mut builder)?)?;
    }
    writeln!(stderr(), "{}", written.len())?;
    Ok(())
}

fn found(data: &[u8], expected: Found) -> Result<(), Box<dyn Error>> {
    let found = pass(data, &mut Decompressor::new())?;
    if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}").into()) }
}

fn read(data: &[u8]) -> magicbyte::Result<Vec<Vec<Row>>> {
    let mut decompressor = Decompressor::new();
    let mut batches = Vec::new();
    for batch in Batches::new(data) {
        let mut rows = Vec::new();
        batch?.records(&mut decompressor)?.visit(|record| {
            let [key, value] = [record.key(), record.value()].map(|field| field.unwrap_or_default().to_vec());
            rows.push(Row { offset: record.offset(), timestamp: record.timestamp(), key, value });
        })?;
        batches.push(rows);
    }
    Ok(batches)
}

fn build(builder: &mut RecordsBuilder, rows: &[Row], out: &mut Vec<u8>) -> magicbyte::Result<()> {
    for row in rows {
        builder.append(row.offset, row.timestamp, Some(&row.key), Some(&row.value), &[])?;
    }
    builder.build_into(out)?;
    Ok(())
}

/// Builds all batches for at least `at_least`. Measures CPU time, since other processes may share the core.
fn records_per_second(
    batches: &[Vec<Row>],
    expected: Found,
    at_least: Duration,
    builder: &mut RecordsBuilder,
) -> magicbyte::Result<f64> {
    let start = ThreadTime::now();
    let mut records = 0;
    let mut out = Vec::new();
    loop {
        for rows in batches {
            out.clear();
            build(builder, rows, &mut out)?;
        }
        records += expected.records;
        let elapsed = start.elapsed();
        if elapsed >= at_least {
            return Ok(records as f64 / elapsed.as_secs_f64());
        }
    }
}
