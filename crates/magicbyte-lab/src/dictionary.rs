//! The savings of a zstd dictionary. Kafka has no place for a dictionary: nothing can read such batches.

use magicbyte::internals::zstd;
use magicbyte::{Batches, RECORD_BATCH_OVERHEAD, Result};

/// The maximum amount of training data, in bytes.
const TRAINING: usize = 512 << 10;
/// The size in bytes of the pieces that training takes.
const PIECE: usize = 4 << 10;
/// The size of the training data as a multiple of the dictionary's size. zstd advises a hundred, for many small
/// samples.
const SHARE: usize = 16;
/// The minimum size of a dictionary, in bytes.
const SMALLEST: usize = 1 << 10;

/// Batches as they are, compressed by zstd at Kafka's default level with and without a dictionary. The dictionary was
/// trained on other batches of the same window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct DictionaryTrial {
    /// Batches that were compressed.
    pub batches: u64,
    /// Bytes of the dictionary, which is not in `with_it`.
    pub dictionary: u64,
    /// Bytes of these batches without the dictionary.
    pub without_it: u64,
    /// Bytes of these batches with it.
    pub with_it: u64,
}

/// Trains a dictionary on the first half of the uncompressed magic 2 batches in `data`, and tries it on the others. `None` if that is too
/// little for a dictionary.
pub(super) fn try_dictionary(data: &[u8]) -> Option<DictionaryTrial> {
    let mut payloads = Vec::new();
    for batch in Batches::new(data) {
        payloads.push(batch.ok()?.as_bytes().get(RECORD_BATCH_OVERHEAD..)?);
    }
    let (first, second) = payloads.split_at(payloads.len() / 2);
    let mut samples = Vec::new();
    let mut sizes = Vec::new();
    for piece in first.iter().flat_map(|payload| payload.chunks(PIECE)) {
        if samples.len() + piece.len() > TRAINING {
            break;
        }
        samples.extend_from_slice(piece);
        sizes.push(piece.len());
    }
    let size = samples.len() / SHARE;
    if size < SMALLEST {
        return None;
    }
    let dictionary = zstd::train(&samples, &sizes, size)?;
    compare(second, &dictionary).ok()
}

fn compare(payloads: &[&[u8]], dictionary: &[u8]) -> Result<DictionaryTrial> {
    let mut trial = DictionaryTrial { dictionary: dictionary.len() as u64, ..DictionaryTrial::default() };
    let mut plain = zstd::Encoder::new(zstd::DEFAULT_LEVEL)?;
    let mut trained = zstd::Encoder::new(zstd::DEFAULT_LEVEL)?;
    trained.load_dictionary(dictionary)?;
    let mut output = Vec::new();
    let mut left = TRAINING;
    for payload in payloads {
        trial.batches += 1;
        trial.without_it += (RECORD_BATCH_OVERHEAD + plain.compress(payload, &mut output)?) as u64;
        trial.with_it += (RECORD_BATCH_OVERHEAD + trained.compress(payload, &mut output)?) as u64;
        left = left.saturating_sub(payload.len());
        if left == 0 {
            break;
        }
    }
    Ok(trial)
}
