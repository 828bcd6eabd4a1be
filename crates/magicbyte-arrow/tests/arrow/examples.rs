//! The example works as described.

#[allow(dead_code, reason = "main is unused here")]
#[path = "../../examples/columns.rs"]
mod columns;

use magicbyte_log::{PartitionLog, PlanOptions};
use magicbyte_testing::data;

#[test]
fn hours_add_up() {
    let directory = data().join("v2_lz4");
    let mut out = Vec::new();
    columns::columns(directory.to_str().unwrap(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let records: u64 = text.lines().map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    let account = PartitionLog::open(&directory).unwrap().verify(PlanOptions::default()).unwrap();
    assert_eq!(records, account.rows, "{text}");
    assert!(records > 0);
}
