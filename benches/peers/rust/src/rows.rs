//! The records to write, read from a file of batches.

use magicbyte::{Batches, Decompressor};

use crate::Failure;
use crate::pass::{Found, pass};

#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    pub offset: i64,
    pub timestamp: i64,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// The rows of each batch.
pub fn read(data: &[u8], expected: Found) -> Result<Vec<Vec<Row>>, Failure> {
    let found = pass(data, &mut Decompressor::new())?;
    if found != expected {
        return Err(format!("{found:?} instead of {expected:?}").into());
    }
    by_magicbyte(data)
}

pub fn by_magicbyte(data: &[u8]) -> Result<Vec<Vec<Row>>, Failure> {
    let mut decompressor = Decompressor::new();
    let mut batches = Vec::new();
    for batch in Batches::new(data) {
        let batch = batch?;
        batch.verify()?;
        let mut rows = Vec::new();
        for record in batch.records(&mut decompressor)? {
            let record = record?;
            let [key, value] = [record.key(), record.value()].map(|field| field.unwrap_or_default().to_vec());
            rows.push(Row { offset: record.offset(), timestamp: record.timestamp(), key, value });
        }
        batches.push(rows);
    }
    Ok(batches)
}
