//! Compacts a partition and tells what it took: `bench_compact SOURCE TARGET MEMORY NOW`.
//! One line: CPU and wall nanoseconds, records kept and superseded.

use std::path::Path;
use std::time::Instant;

use cpu_time::ProcessTime;
use magicbyte::log::{CompactOptions, compact_partition};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, target, memory, now] = &arguments[..] else {
        return Err("bench_compact SOURCE TARGET MEMORY NOW".into());
    };
    let options = CompactOptions { now: now.parse()?, ..CompactOptions::default() };
    let (wall, cpu) = (Instant::now(), ProcessTime::now());
    let counts = compact_partition(Path::new(source), Path::new(target), &options, None, memory.parse()?)?;
    #[allow(clippy::print_stdout, reason = "it is what the program is for")]
    {
        let (cpu, wall) = (cpu.elapsed().as_nanos(), wall.elapsed().as_nanos());
        println!("{cpu} {wall} {} {}", counts.kept, counts.superseded);
    }
    Ok(())
}
