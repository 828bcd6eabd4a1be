//! Builders: a batch is read back, compared with the simplest way to write it, and built again into used
//! memory.

use magicbyte::convert::Converter;
use magicbyte::{Batches, Compression, Decompressor, Header, RecordsBuilder, encode_varint};

use super::made;

/// Enough for several lz4 blocks, and few enough to be fast.
const MAX_RECORDS: usize = 64;

/// A record to build.
#[derive(Debug, PartialEq)]
struct Made {
    offset: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The first byte chooses codec and magic, the others make the records.
pub fn builder(data: &[u8]) {
    let Some((&head, script)) = data.split_first() else { return };
    let (codec, magic) = (Compression::ALL[usize::from(head % 5)], head / 5 % 3);
    if magic < 2 && codec == Compression::Zstd {
        return;
    }
    let records = records(script, magic);
    let mut builder = match magic {
        0 => RecordsBuilder::v0(codec),
        1 => RecordsBuilder::v1(codec),
        _ => RecordsBuilder::v2(codec),
    };
    let batch = build(&mut builder, &records, Vec::new());
    assert_eq!(read(&batch), records);
    if magic == 2 && codec == Compression::None && !records.is_empty() {
        assert_eq!(batch, plain(&records));
    }
    // Into memory that was used before, and after other bytes.
    let mut used = vec![0xff; batch.len() / 2];
    used.clear();
    assert_eq!(build(&mut builder, &records, used), batch);
    let appended = build(&mut builder, &records, b"before".to_vec());
    assert_eq!((&appended[..6], &appended[6..]), (&b"before"[..], &batch[..]));
    if magic == 2 {
        recompress(&batch, &records, Compression::ALL[usize::from(head / 15) % 5]);
    }
}

fn build(builder: &mut RecordsBuilder, records: &[Made], mut out: Vec<u8>) -> Vec<u8> {
    for record in records {
        let headers: Vec<_> =
            record.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.append(record.offset, record.timestamp, key, value, &headers).unwrap();
    }
    builder.build_into(&mut out).unwrap();
    out
}

/// In another codec the records are the same, and uncompressed again, so are the bytes.
fn recompress(batch: &[u8], records: &[Made], codec: Compression) {
    let convert = |codec: Compression, data: &[u8]| {
        let mut out = Vec::new();
        let mut converter = Converter::to_codec(codec, None).unwrap();
        for batch in Batches::new(data) {
            converter.recompress(&batch.unwrap(), &mut out).unwrap();
        }
        out
    };
    let packed = convert(codec, batch);
    assert_eq!(read(&packed), records);
    assert_eq!(convert(Compression::None, &packed), convert(Compression::None, batch));
}

fn read(data: &[u8]) -> Vec<Made> {
    let mut decompressor = Decompressor::new();
    let mut records = Vec::new();
    let mut batches = Batches::new(data);
    for batch in &mut batches {
        let batch = batch.unwrap();
        batch.verify().unwrap();
        for record in batch.records(&mut decompressor).unwrap() {
            let record = record.unwrap();
            let owned = |data: Option<&[u8]>| data.map(<[u8]>::to_vec);
            records.push(Made {
                offset: record.offset(),
                timestamp: record.timestamp(),
                key: owned(record.key()),
                value: owned(record.value()),
                headers: record.headers().map(|h| (h.key.to_vec(), owned(h.value))).collect(),
            });
        }
    }
    assert_eq!(batches.remaining(), 0);
    records
}

/// Six bytes per record choose its fields, the steps of offset and timestamp, and the sizes of key and value.
fn records(script: &[u8], magic: u8) -> Vec<Made> {
    let (mut offset, mut timestamp) = (0, 1_700_000_000_000);
    let mut made = Vec::new();
    for (index, step) in script.chunks_exact(6).take(MAX_RECORDS).enumerate() {
        let [kind, gap, wait, key, value, scale] = *step else { unreachable!("six bytes each") };
        offset += 1 + i64::from(gap) * i64::from(kind >> 7);
        timestamp += i64::from(wait as i8) << (scale & 15);
        let content = |size: usize, salt: u64| match kind >> 4 & 1 {
            0 => made::noise(salt, size),
            _ => vec![salt as u8; size],
        };
        let sized = |null: bool, size: usize, salt: u64| (!null).then(|| content(size, salt));
        let value_size = usize::from(value) << (scale >> 4 & 3);
        let headers = if magic == 2 { usize::from(kind >> 2 & 3) } else { 0 };
        made.push(Made {
            offset,
            timestamp: if magic == 0 { -1 } else { timestamp.max(-1) },
            key: sized(kind & 1 != 0, key.into(), index as u64),
            value: sized(kind & 2 != 0, value_size, index as u64 + 7),
            headers: (0..headers)
                .map(|nth| (content(usize::from(key) / 4, nth as u64), sized(nth == 1, value.into(), 3)))
                .collect(),
        });
    }
    made
}

/// A batch of magic 2, written byte by byte as the format is documented.
fn plain(records: &[Made]) -> Vec<u8> {
    let (first, last) = (&records[0], &records[records.len() - 1]);
    let mut out = first.offset.to_be_bytes().to_vec();
    out.extend([0; 4]);
    out.extend((-1i32).to_be_bytes());
    out.extend([2, 0, 0, 0, 0, 0, 0]);
    out.extend(((last.offset - first.offset) as i32).to_be_bytes());
    out.extend(first.timestamp.to_be_bytes());
    out.extend(records.iter().map(|record| record.timestamp).max().unwrap().to_be_bytes());
    out.extend([0xff; 14]);
    out.extend((records.len() as i32).to_be_bytes());
    for record in records {
        let mut body = vec![0];
        encode_varint(record.timestamp - first.timestamp, &mut body);
        encode_varint(record.offset - first.offset, &mut body);
        nullable(record.key.as_deref(), &mut body);
        nullable(record.value.as_deref(), &mut body);
        encode_varint(record.headers.len() as i64, &mut body);
        for (key, value) in &record.headers {
            nullable(Some(key), &mut body);
            nullable(value.as_deref(), &mut body);
        }
        nullable(Some(&body), &mut out);
    }
    made::seal(&mut out);
    out
}

fn nullable(data: Option<&[u8]>, out: &mut Vec<u8>) {
    encode_varint(data.map_or(-1, |data| data.len() as i64), out);
    out.extend(data.unwrap_or_default());
}
