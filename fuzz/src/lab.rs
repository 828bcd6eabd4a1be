//! The laboratory: what batches cost, and the experimental magic 3.

use magicbyte::{Batch, Batches, Compression, Decompressor};
use magicbyte_lab::cost::{Cost, Format, Tally};

use super::made::seal;
use super::walk::{LIMIT, read};

/// Counts the bytes of batches: those that the input is, and a magic 2 batch with valid length and CRC made of it.
pub fn cost(data: &[u8]) {
    for batch in Batches::new(data).map_while(Result::ok) {
        count(&batch);
    }
    let mut made = data.to_vec();
    made.resize(data.len().max(61), 0);
    made[16] = 2;
    seal(&mut made);
    count(&Batches::new(&made).next().unwrap().unwrap());
}

/// The fields add up to the batch, and a batch that cannot be read adds nothing.
fn count(batch: &Batch<'_>) {
    let mut decompressor = Decompressor::with_limit(LIMIT);
    let mut tally = Tally::default();
    let counted = tally.add(batch, &mut decompressor);
    let (rows, error) = read(batch, &mut decompressor);
    if counted.is_err() {
        assert_eq!(tally, Tally::default());
        assert!(error.is_some(), "the batch can be read: {counted:?}");
        return;
    }
    assert_eq!(error, None);
    assert_eq!(tally.records, rows.len() as u64);
    assert_eq!(tally.stored, batch.size_in_bytes() as u64);
    for format in [Format::Magic0, Format::Magic1, Format::Kip931] {
        // No sum overflows.
        let _ = Cost::of(&tally, format).total();
    }
    if batch.magic() == 2 && batch.compression() == Ok(Compression::None) {
        let total = Cost::of(&tally, Format::Magic2).total() + tally.padding;
        assert_eq!(total, batch.size_in_bytes() as u64);
    }
}

/// The first two bytes choose ideas and codec, the third what the others are: an experimental batch from its attributes on, or a magic 2
/// batch to encode.
pub fn magic3(data: &[u8]) {
    use magicbyte_magic3::{Encoder, Ideas, frames};

    let Some((&[first, second, kind], content)) = data.split_first_chunk::<3>() else { return };
    let bits = i16::from_be_bytes([first, second]);
    let _ = frames(data).count();
    if kind & 1 == 0 {
        let mut batch = vec![0; 21];
        batch[16] = 3;
        batch.extend([first, second]);
        batch.extend(content);
        seal(&mut batch);
        experimental(&batch);
        return;
    }
    let mut plain = content.to_vec();
    plain.resize(content.len().max(61), 0);
    plain[16] = 2;
    plain[22] &= !7;
    seal(&mut plain);
    let ideas = Ideas::from_bits(bits & 0x1f80).unwrap();
    let codec = Compression::ALL[usize::from(kind >> 1) % 5];
    let batch = Batches::new(&plain).next().unwrap().unwrap();
    let mut encoded = Vec::new();
    let mut encoder = Encoder::new(ideas, codec, None).unwrap();
    if encoder.encode(batch.as_v2().unwrap(), &mut encoded).is_err() {
        assert!(read(&batch, &mut Decompressor::with_limit(LIMIT)).1.is_some(), "a good batch is refused");
        return;
    }
    let back = experimental(&encoded);
    // Headers that are stored once may exceed the limit in each record.
    if let Some(back) = back {
        let again = Batches::new(&back).next().unwrap().unwrap();
        let mut decompressor = Decompressor::with_limit(LIMIT);
        assert_eq!(read(&again, &mut decompressor), read(&batch, &mut Decompressor::with_limit(LIMIT)));
    }
}

/// Reads an experimental batch in all ways; returns it as magic 2.
fn experimental(batch: &[u8]) -> Option<Vec<u8>> {
    use magicbyte_magic3::{Validator, frames, to_magic_2};

    assert_eq!(frames(batch).map(Result::unwrap).collect::<Vec<_>>(), [batch]);
    assert!(Batches::new(batch).next().unwrap().is_err(), "no other reader takes it");
    let mut back = Vec::new();
    let converted = to_magic_2(batch, &mut Decompressor::with_limit(LIMIT), &mut back);
    let validated = Validator::new().with_limit(LIMIT).validate(batch);
    if converted.is_err() {
        assert!(back.is_empty(), "an error leaves the output as it was");
        return None;
    }
    let v2 = Batches::new(&back).next().unwrap().unwrap();
    v2.verify().unwrap();
    let (rows, error) = read(&v2, &mut Decompressor::with_limit(LIMIT));
    if error.is_none()
        && let Ok(validated) = validated
    {
        assert_eq!(validated.records as usize, rows.len());
        assert_eq!(validated.null_keys as usize, rows.iter().filter(|row| row.key.is_none()).count());
    }
    Some(back)
}
