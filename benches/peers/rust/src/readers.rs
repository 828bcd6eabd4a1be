//! Frame, CRC, decompress, every record, touch key and value, as the users of each crate do it.

use bytes::{Buf, Bytes};
use kafka_protocol::records::RecordBatchDecoder;
use krabka_compression::RecordDecompressionPolicy;
use krabka_protocol::records::{RecordBatchBorrowed, validate_one_v2_batch};
use magicbyte::{Batches, Decompressor};

use crate::Failure;
use crate::pass::{Found, Touched};
use crate::turns::Pass;

pub struct Reader {
    name: String,
    expected: Found,
    read: Box<dyn FnMut() -> Result<Found, Failure>>,
}

pub fn named(names: &str, data: &Bytes, expected: Found) -> Result<Vec<Reader>, Failure> {
    names.split(',').map(|name| reader(name, data.clone(), expected)).collect()
}

fn reader(name: &str, data: Bytes, expected: Found) -> Result<Reader, Failure> {
    let mut decompressor = Decompressor::new();
    let read: Box<dyn FnMut() -> Result<Found, Failure>> = match name {
        "magicbyte" => Box::new(move || magicbyte_iterator(&data, &mut decompressor)),
        "krabka-protocol iterator" => Box::new(move || krabka_iterator(&data)),
        "krabka-protocol visitor" => Box::new(move || krabka_visitor(&data)),
        "kafka-protocol" => Box::new(move || kafka_protocol(data.clone())),
        _ => return Err(format!("no reader named {name}").into()),
    };
    Ok(Reader { name: name.to_owned(), expected, read })
}

impl Pass for Reader {
    fn name(&self) -> &str {
        &self.name
    }

    fn pass(&mut self) -> Result<(), Failure> {
        let found = (self.read)()?;
        if found == self.expected {
            Ok(())
        } else {
            Err(format!("{found:?} instead of {:?}", self.expected).into())
        }
    }
}

/// With the iterator, like the others; the program compared with Java uses `visit`.
fn magicbyte_iterator(data: &[u8], decompressor: &mut Decompressor) -> Result<Found, Failure> {
    let mut touched = Touched::default();
    for batch in Batches::new(data) {
        let batch = batch?;
        batch.verify()?;
        for record in batch.records(decompressor)? {
            let record = record?;
            touched.record(record.key(), record.value());
        }
    }
    Ok(touched.found())
}

fn krabka_iterator(data: &[u8]) -> Result<Found, Failure> {
    let mut touched = Touched::default();
    let mut rest = data;
    while !rest.is_empty() {
        let policy = RecordDecompressionPolicy::default();
        let batch = RecordBatchBorrowed::decode_borrow_with_policy(&mut rest, policy)?;
        for record in &batch {
            let record = record?;
            touched.record(record.key, record.value);
        }
    }
    Ok(touched.found())
}

fn krabka_visitor(data: &[u8]) -> Result<Found, Failure> {
    let mut touched = Touched::default();
    let mut rest = data;
    while !rest.is_empty() {
        let batch = validate_one_v2_batch(rest)?;
        batch.validate_record_summaries_with(RecordDecompressionPolicy::default(), |record| {
            touched.record(record.key, record.value);
        })?;
        rest = &rest[batch.total_len..];
    }
    Ok(touched.found())
}

fn kafka_protocol(mut data: Bytes) -> Result<Found, Failure> {
    let mut touched = Touched::default();
    while data.has_remaining() {
        for record in RecordBatchDecoder::decode(&mut data)?.records {
            touched.record(record.key.as_deref(), record.value.as_deref());
        }
    }
    Ok(touched.found())
}
