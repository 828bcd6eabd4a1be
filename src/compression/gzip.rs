//! gzip as Kafka's `GzipCompression` reads it through `java.util.zip.GZIPInputStream`: a sequence of members;
//! anything else after a member is ignored. The writer produces one member, with the header of
//! `java.util.zip.GZIPOutputStream` and a DEFLATE stream of libdeflate's.
//!
//! A single member as Kafka writes it is decompressed by libdeflate in one call. Any other input is read as a
//! stream by flate2, from which all errors come.

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{CompressionLvl, Compressor};
use memchr::memmem;

use crate::bytes::checksum::crc32;
use crate::bytes::cursor::Cursor;
use crate::compression::output::{Output, at_least, compression_failed, decompression_failed};
use crate::error::{Error, Result};

const TRAILER: usize = 8;
/// Java looks for another member only if more than 18 bytes follow. (The smallest member has 20: a header of
/// 10, an empty stream of 2, a trailer of 8.)
const JAVA_IGNORES_UP_TO: usize = 18;
const FIRST_STEP: usize = 16 << 10;
/// The first bytes of every member: magic, and DEFLATE as the method.
const MEMBER: [u8; 3] = [0x1f, 0x8b, 8];
/// Beyond this ratio the size in the trailer is not trusted: memory is allocated as the stream is read.
const PLAUSIBLE_RATIO: usize = 64;
/// libdeflate's fast loop stops this far from the end of its output.
const FAST_LOOP_MARGIN: usize = 320;

#[derive(Default)]
pub(super) struct Context {
    whole: Option<libdeflater::Decompressor>,
    stream: Option<Decompress>,
}

impl Context {
    pub(super) fn decompress(&mut self, payload: &[u8], out: &mut Output<'_>) -> Result<()> {
        match self.one_member(payload, out) {
            Some(written) => out.advance(written),
            None => self.members(payload, out),
        }
    }

    /// Decompresses a payload that is one member without header fields, and checks CRC and size; returns the
    /// bytes written. `None` if the payload is, or might be, anything else.
    fn one_member(&mut self, payload: &[u8], out: &mut Output<'_>) -> Option<usize> {
        const NO_FIELDS: u8 = 0;
        if !payload.starts_with(&MEMBER) || payload.get(3) != Some(&NO_FIELDS) {
            return None;
        }
        // The size in the trailer if this is one member; only a hint.
        let stored_size = payload.last_chunk::<4>()?;
        let size = u32::from_le_bytes(*stored_size) as usize;
        if size > out.limit.min(payload.len().saturating_mul(PLAUSIBLE_RATIO)) {
            return None;
        }
        let whole = self.whole.get_or_insert_default();
        let written = whole.gzip_decompress(payload, out.spare(size + FAST_LOOP_MARGIN)).ok()?;
        // libdeflate does not report where the member ended, so another one may follow. But a member ends
        // with the size of its content, now known, and the next one begins with MEMBER: if these seven bytes
        // do not occur, there is no other.
        let mut starts = memmem::find_iter(payload, &MEMBER);
        let is_only_member = written == size && !starts.any(|at| payload[..at].ends_with(stored_size));
        is_only_member.then_some(written)
    }

    /// Any number of members.
    fn members(&mut self, payload: &[u8], out: &mut Output<'_>) -> Result<()> {
        let mut rest = skip_header(payload).map_err(|_| decompression_failed("gzip: not a gzip header"))?;
        loop {
            let start = out.filled;
            rest = self.inflate(rest, out)?;
            let Some((trailer, after)) = rest.split_at_checked(TRAILER) else {
                return Err(decompression_failed("gzip: the trailer is truncated"));
            };
            let written = &out.buffer[start..out.filled];
            let crc = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
            let size = u32::from_le_bytes([trailer[4], trailer[5], trailer[6], trailer[7]]);
            if crc != crc32(written) || size != written.len() as u32 {
                return Err(decompression_failed("gzip: CRC or size in the trailer is wrong"));
            }
            if after.len() <= JAVA_IGNORES_UP_TO {
                return Ok(());
            }
            match skip_header(after) {
                Ok(next) => rest = next,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Inflates one DEFLATE stream; returns the input after it.
    fn inflate<'a>(&mut self, input: &'a [u8], out: &mut Output<'_>) -> Result<&'a [u8]> {
        let stream = self.stream.get_or_insert_with(|| Decompress::new(false));
        stream.reset(false);
        let start = out.filled;
        loop {
            let consumed = stream.total_in() as usize;
            // One byte beyond the limit is enough to detect that it is exceeded.
            let step = (out.filled - start).max(FIRST_STEP).min(out.allowance().saturating_add(1));
            let spare = out.spare(step);
            let before = stream.total_out();
            // The backend's own message depends on the size of the output slice.
            let status = stream
                .decompress(&input[consumed..], spare, FlushDecompress::None)
                .map_err(|_| decompression_failed("gzip: the compressed data is invalid"))?;
            let written = (stream.total_out() - before) as usize;
            let has_space = written < spare.len();
            out.advance(written)?;
            match status {
                Status::StreamEnd => return Ok(&input[stream.total_in() as usize..]),
                Status::Ok | Status::BufError if !has_space => {}
                Status::Ok if stream.total_in() as usize > consumed || written > 0 => {}
                _ => return Err(decompression_failed("gzip: the stream is truncated")),
            }
        }
    }
}

/// Parses a member's header (RFC 1952, 2.3); returns what follows it.
fn skip_header(member: &[u8]) -> Result<&[u8]> {
    const FHCRC: u8 = 2;
    const FEXTRA: u8 = 4;
    const FNAME: u8 = 8;
    const FCOMMENT: u8 = 16;
    let invalid = || -> Error { decompression_failed("gzip: not a gzip header") };
    let mut cursor = Cursor::new(member);
    let fixed = cursor.take(10)?;
    if fixed[..3] != MEMBER {
        return Err(invalid());
    }
    let flags = fixed[3];
    if flags & FEXTRA != 0 {
        let size = cursor.take(2)?;
        cursor.take(usize::from(u16::from_le_bytes([size[0], size[1]])))?;
    }
    for text in [FNAME, FCOMMENT] {
        if flags & text != 0 {
            while cursor.i8()? != 0 {}
        }
    }
    if flags & FHCRC != 0 {
        let expected = crc32(&member[..cursor.position()]) as u16;
        let stored = cursor.take(2)?;
        if u16::from_le_bytes([stored[0], stored[1]]) != expected {
            return Err(invalid());
        }
    }
    Ok(&member[cursor.position()..])
}

/// See [`is_plain`](crate::compression::plain::is_plain): one member without header fields, and nothing after
/// it.
pub(super) fn is_plain(payload: &[u8], content: &[u8]) -> bool {
    const FLAGS: usize = 3;
    let Some((header, rest)) = payload.split_at_checked(HEADER.len()) else { return false };
    if header[..FLAGS] != MEMBER || header[FLAGS] != 0 {
        return false;
    }
    let mut trailer = [0; TRAILER];
    trailer[..4].copy_from_slice(&crc32(content).to_le_bytes());
    trailer[4..].copy_from_slice(&(content.len() as u32).to_le_bytes());
    // The member ends where this trailer first occurs: a member before it could only be empty, with a trailer
    // of zeros.
    let empty_before = memmem::find_iter(rest, &MEMBER).any(|at| rest[..at].ends_with(&[0; TRAILER]));
    !empty_before && memmem::find(rest, &trailer).is_some_and(|at| at + TRAILER == rest.len())
}

/// DEFLATE, no flags, no time, no extra flags, unknown system: as the JDK has written it since 16.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// zlib's default level, which Kafka's -1 means.
const DEFAULT_LEVEL: i32 = 6;

/// libdeflate compresses a batch in one call, a third faster than zlib and to no larger a size.
pub(super) struct Encoder(Compressor);

impl Encoder {
    /// `level` is 1 to 9, or -1 for the default; returns `None` for any other.
    pub(super) fn new(level: i32) -> Option<Self> {
        let level = if level == -1 { DEFAULT_LEVEL } else { level };
        Some(Self(Compressor::new(CompressionLvl::new(level).ok()?)))
    }

    pub(super) fn compress(&mut self, data: &[u8], output: &mut Vec<u8>) -> Result<usize> {
        let bound = self.0.deflate_compress_bound(data.len());
        let out = at_least(output, HEADER.len() + bound + TRAILER);
        out[..HEADER.len()].copy_from_slice(&HEADER);
        let written = self
            .0
            .deflate_compress(data, &mut out[HEADER.len()..])
            .map_err(|error| compression_failed(format!("gzip: {error}")))?;
        let end = HEADER.len() + written;
        out[end..end + 4].copy_from_slice(&crc32(data).to_le_bytes());
        out[end + 4..end + TRAILER].copy_from_slice(&(data.len() as u32).to_le_bytes());
        Ok(end + TRAILER)
    }
}
