//! Compacts a partition and prints the cost: `compact SOURCE TARGET MEMORY NOW`.
//! One line: CPU time and wall time in nanoseconds, records kept, and peak memory in bytes.

use std::path::Path;
use std::time::Instant;

use cpu_time::ProcessTime;

use magicbyte_log::{CompactOptions, CompactRun, compact_partition};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, memory, now] = &arguments[..] else {
        return Err("compact SOURCE TARGET MEMORY NOW".into());
    };
    let options = CompactOptions { now: now.parse()?, ..CompactOptions::default() };
    let run = CompactRun { memory_bytes: memory.parse()?, ..CompactRun::default() };
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let counts = compact_partition(Path::new(source), Path::new(target), &options, &run)?;
    #[allow(clippy::print_stdout, reason = "printing is what this program does")]
    {
        let (cpu, wall) = (cpu.elapsed().as_nanos(), wall.elapsed().as_nanos());
        println!("{cpu} {wall} {} {}", counts.kept, peak_memory()?);
    }
    Ok(())
}

fn peak_memory() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
