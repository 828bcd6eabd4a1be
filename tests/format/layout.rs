//! The fields of a batch: they cover every byte, and have the values that the reader gives.

use magicbyte::layout::{BatchLayout, Field, Section};
use magicbyte::{Batch, Batches, Compression, Decompressor, ErrorKind, RecordsBuilder};
use magicbyte_testing::{files, partitions};

fn layout(batch: &[u8]) -> BatchLayout {
    BatchLayout::new(batch.to_vec().into(), Decompressor::new())
}

/// The fields, and the bytes of both sections.
fn fields(batch: &Batch<'_>) -> (Vec<Field>, [Vec<u8>; 2]) {
    let mut layout = layout(batch.as_bytes());
    let fields = layout.by_ref().collect::<magicbyte::Result<_>>().unwrap();
    (fields, [Section::Stored, Section::Decompressed].map(|section| layout.bytes(section).to_vec()))
}

#[test]
fn fields_cover_every_byte_and_match_the_reader() {
    let mut batches = 0;
    for file in partitions().iter().flat_map(|path| files(path, "log")) {
        let data = std::fs::read(file).unwrap();
        for batch in Batches::new(&data).map_while(Result::ok) {
            let (fields, bytes) = fields(&batch);
            for (section, bytes) in [(Section::Stored, &bytes[0]), (Section::Decompressed, &bytes[1])] {
                let mut end = 0;
                for field in fields.iter().filter(|field| field.section == section) {
                    assert_eq!(field.range.start, end, "{field:?}");
                    end = field.range.end;
                }
                assert_eq!(end, bytes.len());
            }
            let of = |name: &str, section: Section| {
                let bytes = &bytes[section as usize];
                let found = fields.iter().filter(|field| field.name == name && field.section == section);
                found.map(|field| bytes[field.range.clone()].to_vec()).collect::<Vec<_>>()
            };
            let is_compressed = batch.compression().unwrap() != Compression::None;
            let section = if is_compressed { Section::Decompressed } else { Section::Stored };
            let mut decompressor = Decompressor::new();
            let (mut keys, mut values, mut headers) = (vec![], vec![], vec![]);
            for record in batch.records(&mut decompressor).unwrap() {
                let record = record.unwrap();
                keys.extend(record.key().map(<[u8]>::to_vec));
                values.extend(record.value().map(<[u8]>::to_vec));
                headers.extend(record.headers().map(|header| header.key.to_vec()));
            }
            assert_eq!((of("key", section), of("value", section)), (keys, values));
            assert_eq!(of("headerKey", section), headers);
            let crc = fields.iter().find(|field| field.name == "crc").unwrap();
            assert_eq!(crc.number, Some(batch.crc().into()));
            assert_eq!(crc.computed_crc == Some(batch.crc()), batch.verify().is_ok());
            batches += 1;
        }
    }
    assert!(batches > 500);
}

#[test]
fn an_emptied_batch_ends_with_its_header() {
    for codec in Compression::ALL {
        let batch = RecordsBuilder::v2(codec).empty_batch(7, -1).unwrap();
        let fields = layout(&batch).collect::<magicbyte::Result<Vec<_>>>().unwrap();
        let last = fields.last().unwrap();
        assert_eq!((fields.len(), last.name, last.number), (13, "recordsCount", Some(0)), "{codec:?}");
    }
}

#[test]
fn fields_before_damage_are_given() {
    let mut builder = RecordsBuilder::v2(Compression::None);
    builder.append(0, 0, None, Some(b"hello"), &[]).unwrap();
    let batch = builder.build().unwrap();
    for length in 0..batch.len() {
        let mut cut = layout(&batch[..length]);
        let before: Vec<_> = cut.by_ref().map_while(Result::ok).collect();
        assert!(before.iter().all(|field| field.range.end <= length));
        assert!(cut.next().is_none(), "the iterator ends after the error");
    }
    let mut wrong = batch.clone();
    wrong[61] += 2;
    let found: Vec<_> = layout(&wrong).collect();
    let error = found.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::RecordSizeMismatch { declared: 12, consumed: 11 });
    assert_eq!(error.record_index(), Some(0));
    assert_eq!(found.iter().filter(|field| field.is_ok()).count(), 13 + 8);

    let mut longer = batch;
    longer.push(0);
    let found: Vec<_> = layout(&longer).collect();
    assert_eq!(found[found.len() - 2].as_ref().unwrap().name, "rest");
    assert_eq!(found.last().unwrap().as_ref().unwrap_err().kind(), &ErrorKind::RecordsRemaining { bytes: 1 });
}
