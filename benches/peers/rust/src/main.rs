//! Reads or writes a file of batches repeatedly with several crates in turn, in one process, and prints a
//! line for each round of a crate: its name and records/s.  A crate that does not find every record and byte
//! of the file ends the program with an error.

#[allow(dead_code, reason = "only the bench_* examples call `pass`")]
#[path = "../../../rust/src/pass.rs"]
mod pass;
mod readers;
mod rows;
mod turns;
mod writers;

use std::error::Error;
use std::time::Duration;

use pass::Found;
use turns::{Turns, in_turn};

const USAGE: &str = "usage: peers read NAME,NAME FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS\n       \
                     peers write CODEC NAME,NAME FILE RECORDS BYTES WARM_UP_SECONDS ROUNDS";

pub type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["read", names, file, records, bytes, warm_up, rounds] => {
            let (data, expected) = (std::fs::read(file)?.into(), found(records, bytes)?);
            in_turn(&mut readers::named(names, &data, expected)?, expected.records, turns(warm_up, rounds)?)
        }
        ["write", codec, names, file, records, bytes, warm_up, rounds] => {
            let (data, expected) = (std::fs::read(file)?, found(records, bytes)?);
            let batches = rows::read(&data, expected)?;
            let mut writers = writers::named(names, codec, &batches)?;
            for writer in &mut writers {
                writers::check(writer, &batches)?;
            }
            in_turn(&mut writers, expected.records, turns(warm_up, rounds)?)
        }
        _ => Err(USAGE.into()),
    }
}

fn found(records: &str, bytes: &str) -> Result<Found, Failure> {
    Ok(Found { records: records.parse()?, bytes: bytes.parse()? })
}

fn turns(warm_up: &str, rounds: &str) -> Result<Turns, Failure> {
    Ok(Turns { warm_up: Duration::from_secs_f64(warm_up.parse()?), rounds: rounds.parse()? })
}
