//! Batches built from records in memory, as the users of each crate do it. The peers' records are converted
//! to the peers' own structures before the clock starts.

use bytes::{Bytes, BytesMut};
use kafka_protocol::records as kafka;
use krabka_compression::{CompressionType, RecordDecompressionPolicy};
use krabka_protocol::records as krabka;
use magicbyte::{Compression, RecordsBuilder};

use crate::Failure;
use crate::rows::{self, Row};
use crate::turns::Pass;

pub struct Writer<'a> {
    name: String,
    batches: usize,
    build: Build<'a>,
}

/// Builds the batch with this index, and passes its bytes on.
type Build<'a> = Box<dyn FnMut(usize, &mut dyn FnMut(&[u8])) -> Result<(), Failure> + 'a>;

pub fn named<'a>(names: &str, codec: &str, batches: &'a [Vec<Row>]) -> Result<Vec<Writer<'a>>, Failure> {
    let codec = Compression::ALL.into_iter().find(|c| c.name() == codec).ok_or("no such codec")?;
    names.split(',').map(|name| writer(name, codec, batches)).collect()
}

fn writer<'a>(name: &str, codec: Compression, batches: &'a [Vec<Row>]) -> Result<Writer<'a>, Failure> {
    let build = match name {
        "magicbyte" => magicbyte(codec, batches),
        "krabka-protocol" => krabka_protocol(codec, batches)?,
        "kafka-protocol" => kafka_protocol(codec, batches),
        _ => return Err(format!("no writer named {name}").into()),
    };
    Ok(Writer { name: name.to_owned(), batches: batches.len(), build })
}

impl Pass for Writer<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn pass(&mut self) -> Result<(), Failure> {
        for batch in 0..self.batches {
            (self.build)(batch, &mut |_| ())?;
        }
        Ok(())
    }
}

/// Checks that the other side reads the same records; prints the bytes of a pass to standard error.
pub fn check(writer: &mut Writer<'_>, batches: &[Vec<Row>]) -> Result<(), Failure> {
    let mut written = Vec::new();
    for batch in 0..writer.batches {
        (writer.build)(batch, &mut |bytes| written.extend_from_slice(bytes))?;
    }
    let read = if writer.name == "magicbyte" { by_krabka(&written) } else { rows::by_magicbyte(&written) };
    if read.map_err(|error| format!("what {} wrote: {error}", writer.name))? != batches {
        return Err(format!("{} wrote different records", writer.name).into());
    }
    eprintln!("{} {}", writer.name, written.len());
    Ok(())
}

fn by_krabka(mut data: &[u8]) -> Result<Vec<Vec<Row>>, Failure> {
    let mut batches = Vec::new();
    while !data.is_empty() {
        let policy = RecordDecompressionPolicy::default();
        let batch = krabka::RecordBatchBorrowed::decode_borrow_with_policy(&mut data, policy)?;
        let (offset, timestamp) = (batch.header().base_offset.get(), batch.header().base_timestamp.get());
        let mut rows = Vec::new();
        for record in &batch {
            let record = record?;
            rows.push(Row {
                offset: offset + i64::from(record.offset_delta),
                timestamp: timestamp + record.timestamp_delta,
                key: record.key.unwrap_or_default().to_vec(),
                value: record.value.unwrap_or_default().to_vec(),
            });
        }
        batches.push(rows);
    }
    Ok(batches)
}

fn magicbyte(codec: Compression, batches: &[Vec<Row>]) -> Build<'_> {
    let (mut builder, mut out) = (RecordsBuilder::v2(codec), Vec::new());
    Box::new(move |batch, take| {
        for row in &batches[batch] {
            builder.append(row.offset, row.timestamp, Some(&row.key), Some(&row.value), &[])?;
        }
        out.clear();
        builder.build_into(&mut out)?;
        take(&out);
        Ok(())
    })
}

fn krabka_protocol(codec: Compression, batches: &[Vec<Row>]) -> Result<Build<'static>, Failure> {
    let codec = match codec {
        Compression::None => CompressionType::None,
        Compression::Gzip => CompressionType::Gzip,
        Compression::Snappy => CompressionType::Snappy,
        Compression::Lz4 => CompressionType::Lz4,
        Compression::Zstd => CompressionType::Zstd,
    };
    let attributes = krabka::Attributes::default().with_compression(codec);
    let batches: Vec<_> =
        batches.iter().map(|rows| krabka_batch(rows, attributes)).collect::<Result<_, _>>()?;
    Ok(Box::new(move |batch, take| {
        take(&batches[batch].encode_to_bytes()?);
        Ok(())
    }))
}

fn krabka_batch(rows: &[Row], attributes: krabka::Attributes) -> Result<krabka::RecordBatch, Failure> {
    let (first, last) = rows.first().zip(rows.last()).ok_or("a batch without records")?;
    let record = |row: &Row| {
        Ok(krabka::Record {
            timestamp_delta: row.timestamp - first.timestamp,
            offset_delta: i32::try_from(row.offset - first.offset)?,
            key: Some(Bytes::copy_from_slice(&row.key)),
            value: Some(Bytes::copy_from_slice(&row.value)),
            ..krabka::Record::default()
        })
    };
    Ok(krabka::RecordBatch {
        base_offset: first.offset,
        partition_leader_epoch: -1,
        attributes,
        last_offset_delta: i32::try_from(last.offset - first.offset)?,
        base_timestamp: first.timestamp,
        max_timestamp: rows.iter().map(|row| row.timestamp).max().unwrap_or(first.timestamp),
        records: rows.iter().map(record).collect::<Result<_, Failure>>()?,
        ..krabka::RecordBatch::default()
    })
}

fn kafka_protocol(codec: Compression, batches: &[Vec<Row>]) -> Build<'static> {
    let compression = match codec {
        Compression::None => kafka::Compression::None,
        Compression::Gzip => kafka::Compression::Gzip,
        Compression::Snappy => kafka::Compression::Snappy,
        Compression::Lz4 => kafka::Compression::Lz4,
        Compression::Zstd => kafka::Compression::Zstd,
    };
    let batches: Vec<Vec<_>> = batches
        .iter()
        .map(|rows| rows.iter().zip(kafka::NO_SEQUENCE..).map(kafka_record).collect())
        .collect();
    let options = kafka::RecordEncodeOptions { version: 2, compression };
    let mut out = BytesMut::new();
    Box::new(move |batch, take| {
        out.clear();
        kafka::RecordBatchEncoder::encode(&mut out, &batches[batch], &options)?;
        take(&out);
        Ok(())
    })
}

/// Sequences must rise with the offsets; otherwise each record becomes a batch of its own.
fn kafka_record((row, sequence): (&Row, i32)) -> kafka::Record {
    kafka::Record {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: kafka::NO_PARTITION_LEADER_EPOCH,
        producer_id: kafka::NO_PRODUCER_ID,
        producer_epoch: kafka::NO_PRODUCER_EPOCH as i16,
        timestamp_type: kafka::TimestampType::Creation,
        offset: row.offset,
        sequence,
        timestamp: row.timestamp,
        key: Some(Bytes::copy_from_slice(&row.key)),
        value: Some(Bytes::copy_from_slice(&row.value)),
        headers: Default::default(),
    }
}
