//! Frame, CRC, decompress, every record, touch key and value: as each crate's users do it.

use std::hint::black_box;

use bytes::{Buf, Bytes};
use kafka_protocol::records::RecordBatchDecoder;
use krabka_compression::RecordDecompressionPolicy;
use krabka_protocol::records::{RecordBatchBorrowed, validate_one_v2_batch};
use magicbyte::Decompressor;

use crate::Failure;
use crate::pass::{Found, pass};
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
        "magicbyte" => Box::new(move || Ok(pass(&data, &mut decompressor)?)),
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

fn krabka_iterator(data: &[u8]) -> Result<Found, Failure> {
    let mut found = Found { records: 0, bytes: 0 };
    let mut rest = data;
    while !rest.is_empty() {
        let policy = RecordDecompressionPolicy::default();
        let batch = RecordBatchBorrowed::decode_borrow_with_policy(&mut rest, policy)?;
        for record in &batch {
            let record = record?;
            touch(record.key, record.value, &mut found);
        }
    }
    Ok(found)
}

fn krabka_visitor(data: &[u8]) -> Result<Found, Failure> {
    let mut found = Found { records: 0, bytes: 0 };
    let mut rest = data;
    while !rest.is_empty() {
        let batch = validate_one_v2_batch(rest)?;
        batch.validate_record_summaries_with(RecordDecompressionPolicy::default(), |record| {
            touch(record.key, record.value, &mut found);
        })?;
        rest = &rest[batch.total_len..];
    }
    Ok(found)
}

fn kafka_protocol(mut data: Bytes) -> Result<Found, Failure> {
    let mut found = Found { records: 0, bytes: 0 };
    while data.has_remaining() {
        for record in RecordBatchDecoder::decode(&mut data)?.records {
            touch(record.key.as_deref(), record.value.as_deref(), &mut found);
        }
    }
    Ok(found)
}

fn touch(key: Option<&[u8]>, value: Option<&[u8]>, found: &mut Found) {
    for field in [key, value].into_iter().flatten() {
        black_box(field.first());
        found.bytes += field.len() as u64;
    }
    found.records += 1;
}
