//! Decodes a file of batches repeatedly, and prints records/s for each round: the counterpart of
//! `Decode` in `benches/java`.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;

use cpu_time::ThreadTime;

use magicbyte::Decompressor;
use magicbyte_benches::pass::{Found, pass};

const USAGE: &str = "usage: decode FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS";
const ROUND: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, records, bytes, warm_up, rounds] = args.as_slice() else { return Err(USAGE.into()) };
    let data = std::fs::read(file)?;
    let expected = Found { records: records.parse()?, bytes: bytes.parse()? };
    let mut decompressor = Decompressor::new();
    records_per_second(&data, expected, Duration::from_secs_f64(warm_up.parse()?), &mut decompressor)?;
    for _ in 0..rounds.parse()? {
        let rate = records_per_second(&data, expected, ROUND, &mut decompressor)?;
        writeln!(stdout(), "{rate:.0}")?;
    }
    Ok(())
}

/// Passes over `data` for at least `at_least`. Measures CPU time, since other processes may share the core.
fn records_per_second(
    data: &[u8],
    expected: Found,
    at_least: Duration,
    decompressor: &mut Decompressor,
) -> Result<f64, Box<dyn Error>> {
    let start = ThreadTime::now();
    let mut records = 0;
    loop {
        let found = pass(data, decompressor)?;
        if found != expected {
            return Err(format!("{found:?} instead of {expected:?}").into());
        }
        records += found.records;
        let elapsed = start.elapsed();
        if elapsed >= at_least {
            return Ok(records as f64 / elapsed.as_secs_f64());
        }
    }
}
