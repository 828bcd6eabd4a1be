//! zstd (Kafka's `ZstdCompression`): reads any number of frames, including skippable ones, in one call;
//! Kafka's frames have no content size. Writes one frame.

use zstd_safe::{CCtx, CParameter, DCtx, Strategy};

use crate::compression::output::{Output, at_least, compression_failed, decompression_failed};
use crate::error::{Error, Result};

const FIRST_GUESS: usize = 16 << 10;
const PLAUSIBLE_RATIO: usize = 64;
/// `ZSTD_error_dstSize_tooSmall`, which is part of libzstd's stable interface, as a negative `size_t`.
const TOO_SMALL: usize = 70usize.wrapping_neg();

pub(super) struct Context {
    dctx: Option<DCtx<'static>>,
    /// The size of the last output, rounded up: the first guess for the next one.
    last_size: usize,
}

impl Default for Context {
    fn default() -> Self {
        Self { dctx: None, last_size: FIRST_GUESS }
    }
}

impl Context {
    pub(super) fn decompress(&mut self, payload: &[u8], out: &mut Output<'_>) -> Result<()> {
        let dctx = self.dctx.get_or_insert_with(DCtx::create);
        // One batch of extreme ratio must not cost large buffers for the small ones after it.
        let plausible = self.last_size.min(payload.len().saturating_mul(PLAUSIBLE_RATIO)).max(FIRST_GUESS);
        let mut size = plausible.max(payload.len().saturating_mul(2)).min(out.limit);
        loop {
            // The buffer may be larger than the guess: use all of it, within the limit.
            let limit = out.limit;
            let spare = out.spare(size);
            let available = spare.len().min(limit);
            match dctx.decompress(&mut spare[..available], payload) {
                Ok(written) => {
                    self.last_size = written.next_power_of_two().max(FIRST_GUESS);
                    return out.advance(written);
                }
                Err(TOO_SMALL) if available >= out.limit => return Err(out.limit_exceeded()),
                Err(TOO_SMALL) => size = available.saturating_mul(4).min(out.limit),
                Err(code) => {
                    return Err(decompression_failed(format!("zstd: {}", zstd_safe::get_error_name(code))));
                }
            }
        }
    }
}

/// See [`is_plain`](crate::compression::plain::is_plain): frames up to the end, none of them skippable or
/// with a dictionary. Their content sizes and checksums were checked when the content was read.
pub(super) fn is_plain(payload: &[u8]) -> bool {
    let mut rest = payload;
    while !rest.is_empty() {
        match after_frame(rest) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// The bytes after the first frame of `data` (RFC 8878, 3.1.1); `None` if it is not a plain frame.
fn after_frame(data: &[u8]) -> Option<&[u8]> {
    const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
    const RLE: u32 = 1;
    let (&descriptor, mut rest) = data.strip_prefix(&MAGIC)?.split_first()?;
    let is_single_segment = descriptor & 0b10_0000 != 0;
    if descriptor & 0b11 != 0 {
        return None;
    }
    let size_field = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        code => 1 << code,
    };
    rest = rest.get(size_field + usize::from(!is_single_segment)..)?;
    loop {
        let (&[a, b, c], after) = rest.split_first_chunk()?;
        let block = u32::from_le_bytes([a, b, c, 0]);
        let (kind, size) = (block >> 1 & 0b11, (block >> 3) as usize);
        if kind == RLE && size == 0 {
            return None;
        }
        rest = after.get(if kind == RLE { 1 } else { size }..)?;
        if block & 1 != 0 {
            return rest.get(if descriptor & 0b100 != 0 { 4 } else { 0 }..);
        }
    }
}

#[doc(hidden)]
pub const DEFAULT_LEVEL: i32 = 3;
/// The parameters of level 3 for input of unknown size, as in Kafka, which streams. Given the size of a
/// batch, zstd would choose smaller tables, and the output could be 7 % larger.
const AS_STREAMED: [CParameter; 5] = [
    CParameter::HashLog(17),
    CParameter::ChainLog(16),
    CParameter::SearchLog(1),
    CParameter::MinMatch(5),
    CParameter::Strategy(Strategy::ZSTD_dfast),
];

#[doc(hidden)]
pub struct Encoder(CCtx<'static>);

#[doc(hidden)]
impl Encoder {
    /// `level` is a level of zstd's.
    pub fn new(level: i32) -> Result<Self> {
        let mut cctx = CCtx::create();
        cctx.set_parameter(CParameter::CompressionLevel(level)).map_err(zstd_error)?;
        if level == DEFAULT_LEVEL {
            for parameter in AS_STREAMED {
                cctx.set_parameter(parameter).map_err(zstd_error)?;
            }
        }
        Ok(Self(cctx))
    }

    /// Loads a dictionary, which is then needed to read all further output. Copies the dictionary.
    pub fn load_dictionary(&mut self, dictionary: &[u8]) -> Result<()> {
        self.0.load_dictionary(dictionary).map(drop).map_err(zstd_error)
    }

    pub fn compress(&mut self, data: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        let out = at_least(output, zstd_safe::compress_bound(data.len()));
        self.0.compress2(out, data).map_err(zstd_error)
    }
}

/// A dictionary of at most `size` bytes for content like these samples, which follow each other; `None` if zstd finds them too few.
#[doc(hidden)]
#[must_use]
pub fn train(samples: &[u8], sizes: &[usize], size: usize) -> Option<Vec<u8>> {
    let mut dictionary = vec![0; size];
    let written = zstd_safe::train_from_buffer(&mut dictionary[..], samples, sizes).ok()?;
    dictionary.truncate(written);
    Some(dictionary)
}

#[cold]
fn zstd_error(code: usize) -> Error {
    compression_failed(format!("zstd: {}", zstd_safe::get_error_name(code)))
}
