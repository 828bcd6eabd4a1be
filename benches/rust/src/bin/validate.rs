//! Validates the batches of a file as a producer's appends, one by one and repeatedly, and prints records/s
//! for each round: the counterpart of `Validate` in `benches/java`.

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Duration;

use cpu_time::ThreadTime;

use magicbyte::state::AppendOrigin;
use magicbyte::{Batches, Compression, Decompressor};
use magicbyte_benches::pass::{Found, pass};
use magicbyte_broker::{Append, AppendConfig, AppendValidator, TargetCompression};

const USAGE: &str = "usage: validate TARGET_CODEC|producer FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS";
const ROUND: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, file, records, bytes, warm_up, rounds] = args.as_slice() else { return Err(USAGE.into()) };
    let compression = match Compression::ALL.into_iter().find(|codec| codec.name() == target) {
        Some(codec) => TargetCompression::Codec(codec, None),
        None if target == "producer" => TargetCompression::Producer,
        None => return Err(USAGE.into()),
    };
    let data = std::fs::read(file)?;
    let expected = Found { records: records.parse()?, bytes: bytes.parse()? };
    let found = pass(&data, &mut Decompressor::new())?;
    if found != expected {
        return Err(format!("{found:?} instead of {expected:?}").into());
    }
    let mut batches: Vec<Vec<u8>> = Vec::new();
    for batch in Batches::new(&data) {
        batches.push(batch?.as_bytes().to_vec());
    }
    let timestamp_after_max_ms = i64::MAX;
    let config = AppendConfig { compression, timestamp_after_max_ms, ..AppendConfig::default() };
    let mut bench = Bench { validator: AppendValidator::new(config)?, batches, buffer: Vec::new() };
    if bench.pass()? != expected.records {
        return Err("another number of records".into());
    }
    bench.records_per_second(Duration::from_secs_f64(warm_up.parse()?))?;
    for _ in 0..rounds.parse()? {
        writeln!(stdout(), "{:.0}", bench.records_per_second(ROUND)?)?;
    }
    Ok(())
}

struct Bench {
    validator: AppendValidator,
    batches: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Bench {
    /// Validates all batches for at least `at_least`. Measures CPU time, since other processes may share the core.
    fn records_per_second(&mut self, at_least: Duration) -> Result<f64, Box<dyn Error>> {
        let start = ThreadTime::now();
        let mut records = 0;
        loop {
            records += self.pass()?;
            let elapsed = start.elapsed();
            if elapsed >= at_least {
                return Ok(records as f64 / elapsed.as_secs_f64());
            }
        }
    }

    /// Validates all batches once, as a producer sends them; returns the number of records.
    fn pass(&mut self) -> Result<u64, Box<dyn Error>> {
        let Self { validator, batches, buffer } = self;
        let in_place = validator.config().compression == TargetCompression::Producer;
        let mut next_offset = 0;
        for batch in batches {
            let records = if in_place {
                batch
            } else {
                // A rewritten batch replaces the one that was sent.
                buffer.clear();
                buffer.extend_from_slice(batch);
                &mut *buffer
            };
            records[..8].fill(0);
            let append = Append { origin: AppendOrigin::Client, next_offset, leader_epoch: 7, now: 0 };
            let info = validator.validate(records, &append)?.ok_or("no batch")?;
            next_offset = info.last_offset + 1;
        }
        Ok(next_offset as u64)
    }
}
