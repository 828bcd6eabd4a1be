//! Accounts for every byte and record of a partition's directory, and lists what is lost.
//!
//! cargo run -p magicbyte-log --example account -- samples/archive-0

use std::error::Error;
use std::io::{self, Write};

use magicbyte_log::{PartitionLog, PlanOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("usage: account DIRECTORY")?;
    account(&directory, &mut io::stdout().lock())
}

/// Writes the account of one partition.
///
/// # Errors
/// The errors of the directory, and of `out`.
pub fn account(directory: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let account = PartitionLog::open(directory)?.verify(PlanOptions::default())?;
    writeln!(out, "{}-{}: {} bytes", account.topic, account.partition, account.size)?;
    writeln!(out, "  {} bytes of {} good batches", account.good_bytes, account.good_batches)?;
    writeln!(out, "  {} bytes that could not be read", account.quarantined_bytes)?;
    writeln!(out, "  {} bytes after the last batches", account.tail_bytes)?;
    writeln!(out, "{} records are delivered", account.rows)?;
    writeln!(out, "{} offsets may be lost", account.lost_offsets)?;
    for segment in &account.segments {
        for range in &segment.result.quarantined {
            writeln!(
                out,
                "  {}: bytes {} to {}: {}",
                segment.result.segment, range.start, range.end, range.reason
            )?;
        }
    }
    if !account.balanced {
        return Err("the sum does not add up".into());
    }
    Ok(())
}
