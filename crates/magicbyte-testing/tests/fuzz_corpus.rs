//! The fuzz targets on stable Rust, over the corpus and over inputs mutated from it with fixed seeds. A
//! failing input is written to a file; keep it as fuzz/corpus/<target>/<name>.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use targets::{TARGETS, Target};

#[global_allocator]
static ALLOCATOR: magicbyte_testing::memory::Counting = magicbyte_testing::memory::Counting;

/// The limit for any input of a few KiB. The targets' own limits are 1 MiB; some hold several results.
const MEMORY: usize = 24 << 20;
const TIME: Duration = Duration::from_secs(2);
/// Takes about 20 seconds in all.
const ROUNDS: u64 = 10_000;

/// Runs the target on the input within the bounds; saves the input if it fails.
fn run(name: &str, target: Target, input: &[u8]) {
    let bounded = || {
        let begun = Instant::now();
        let ((), peak) = magicbyte_testing::memory::measured(|| target(input));
        assert!(peak <= MEMORY, "{peak} bytes for an input of {}", input.len());
        assert!(begun.elapsed() < TIME, "{:?} for an input of {} bytes", begun.elapsed(), input.len());
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(bounded)) {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-failed-{name}"));
        fs::write(&kept, input).unwrap();
        eprintln!("{name} fails on {}", kept.display());
        resume_unwind(panic);
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = magicbyte_testing::repository().join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has no corpus");
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

fn all(work: impl Fn(&'static str, Target) + Sync) {
    std::thread::scope(|scope| {
        for &(name, target) in TARGETS {
            let work = &work;
            scope.spawn(move || work(name, target));
        }
    });
}

#[test]
fn corpus_inputs() {
    all(|name, target| corpus(name).iter().for_each(|input| run(name, target, input)));
}

/// A pseudo-random generator with a fixed seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// A random byte, often one of the values that break sizes and counts.
    fn byte(&mut self) -> u8 {
        match self.below(4) {
            0 => [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff][self.below(7)],
            _ => self.below(256) as u8,
        }
    }

    /// One change: of a byte, a bit, a field, or of the order of bytes.
    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        if input.is_empty() {
            input.push(self.byte());
        }
        let at = self.below(input.len());
        let size = (1 + self.below(16)).min(input.len() - at);
        match self.below(8) {
            0 => input[at] = self.byte(),
            1 => input[at] ^= 1 << self.below(8),
            2 => {
                let byte = self.byte();
                input[at..at + size].fill(byte);
            }
            3 => drop(input.drain(at..at + size)),
            4 => {
                let new: Vec<u8> = (0..size).map(|_| self.byte()).collect();
                input.splice(at..at, new);
            }
            5 => {
                let copied = input[at..at + size].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, copied);
            }
            6 => input.truncate(at),
            // The start of this input and the end of another.
            _ => {
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend(&other[from..]);
            }
        }
    }
}

#[test]
fn mutated_inputs() {
    all(|name, target| {
        let corpus = corpus(name);
        for seed in 0..ROUNDS {
            let mut chance = Chance(seed);
            let mut input = corpus[chance.below(corpus.len())].clone();
            for _ in 0..=chance.below(4) {
                let other = &corpus[chance.below(corpus.len())];
                chance.change(&mut input, other);
            }
            run(name, target, &input);
        }
    });
}
