//! Times the parts of the work that no program can leave out, each alone and in turn, and prints a line for each
//! round of a part: its name and records/s.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;

use cpu_time::ThreadTime;

use magicbyte::{Compression, Decompressor};
use magicbyte_benches::limits::{Limit, Prepared};
use magicbyte_benches::pass::{Found, pass};

const USAGE: &str = "usage: limits NAME,NAME CODEC_OF_OUTPUT FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS";
const ROUND: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [names, codec, file, records, bytes, warm_up, rounds] = args.as_slice() else {
        return Err(USAGE.into());
    };
    let codec = Compression::ALL.into_iter().find(|c| c.name() == codec).ok_or(USAGE)?;
    let data = std::fs::read(file)?;
    let expected = Found { records: records.parse()?, bytes: bytes.parse()? };
    let found = pass(&data, &mut Decompressor::new())?;
    if found != expected {
        return Err(format!("{found:?} instead of {expected:?}").into());
    }
    let prepared = Prepared::new(&data, codec, found.records, found.bytes)?;
    let mut limits = Vec::new();
    for name in names.split(',') {
        limits.push((name, prepared.named(name)?.ok_or_else(|| format!("no limit named {name}"))?));
    }
    for (_, limit) in &mut limits {
        records_per_second(limit, found.records, Duration::from_secs_f64(warm_up.parse()?))?;
    }
    for _ in 0..rounds.parse()? {
        for (name, limit) in &mut limits {
            writeln!(stdout(), "{name} {:.0}", records_per_second(limit, found.records, ROUND)?)?;
        }
    }
    Ok(())
}

/// Repeats passes for at least `at_least`. Measures CPU time, since other processes may share the core.
fn records_per_second(limit: &mut Limit<'_>, records: u64, at_least: Duration) -> magicbyte::Result<f64> {
    let start = ThreadTime::now();
    let mut passes = 0;
    loop {
        limit.pass()?;
        passes += 1;
        let elapsed = start.elapsed();
        if elapsed >= at_least {
            return Ok((passes * records) as f64 / elapsed.as_secs_f64());
        }
    }
}
