//! Runs several passes in turn, so that other load on the machine affects all of them alike.

use std::io::{Write, stdout};
use std::time::Duration;

use cpu_time::ThreadTime;

use crate::Failure;

const ROUND: Duration = Duration::from_millis(50);

pub struct Turns {
    pub warm_up: Duration,
    pub rounds: u32,
}

/// The timed work: one pass over all batches.
pub trait Pass {
    fn name(&self) -> &str;
    fn pass(&mut self) -> Result<(), Failure>;
}

/// Prints a line for each round: name and records/s.
pub fn in_turn(all: &mut [impl Pass], records: u64, turns: Turns) -> Result<(), Failure> {
    for one in all.iter_mut() {
        records_per_second(one, records, turns.warm_up)?;
    }
    for _ in 0..turns.rounds {
        for one in all.iter_mut() {
            let rate = records_per_second(one, records, ROUND)?;
            writeln!(stdout(), "{} {rate:.0}", one.name())?;
        }
    }
    Ok(())
}

/// Repeats passes for at least `at_least`. Measures CPU time, since other processes may share the core.
fn records_per_second(one: &mut impl Pass, records: u64, at_least: Duration) -> Result<f64, Failure> {
    let start = ThreadTime::now();
    let mut passes = 0;
    loop {
        one.pass().map_err(|error| format!("{}: {error}", one.name()))?;
        passes += 1;
        let elapsed = start.elapsed();
        if elapsed >= at_least {
            return Ok((passes * records) as f64 / elapsed.as_secs_f64());
        }
    }
}
