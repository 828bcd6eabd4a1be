//! A broker's treatment of batches: appends, and a partition in memory.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod append;
mod simulator;
mod support;

#[allow(dead_code, reason = "main is unused here")]
#[path = "../../examples/append.rs"]
mod example;

#[test]
fn the_example_works_as_described() {
    let mut out = Vec::new();
    example::append(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[..3],
        ["sequence 0: offset 0", "sequence 1: offset 1", "sequence 1: is in the log already"]
    );
    assert!(lines[3].starts_with("sequence 5: ") && lines[3].contains("sequence 5"), "{text}");
    assert_eq!(lines[4], "the log ends at offset 2");
}
