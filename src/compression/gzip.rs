//! gzip as `java.util.zip.GZIPInputStream` reads it: members one after another; whatever follows
//! a member and is no member is ignored. Written is one member, with the header of
//! `java.util.zip.GZIPOutputStream`, its DEFLATE stream by libdeflate.
//!
//! One member as Kafka writes it is read by libdeflate, too, in one call; whatever is not certainly that is
//! read again as a stream by flate2, which alone says what is wrong.

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{CompressionLvl, Compressor};
use memchr::memmem;

use crate::bytes::checksum::crc32;
use crate::bytes::cursor::Cursor;
use crate::compression::output::{Output, decompression_failed};
use crate::compression::output::{at_least, compression_failed};
use crate::error::{Error, Result};

const TRAILER: usize = 8;
/// The smallest member: 10 bytes of header, 2 of an empty stream, 8 of trailer. Java looks for
/// another member only if more than 18 bytes follow.
const JAVA_IGNORES_UP_TO: usize = 18;
const FIRST_STEP: usize = 16 << 10;
/// How every member begins: magic, and DEFLATE as the method.
const MEMBER: [u8; 3] = [0x1f, 0x8b, 8];
/// More than that is a bomb or a lie: it gets its memory as the stream goes on.
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

    /// The content of a payload that is one member without header fields, CRC and size checked;
    /// `None` where the payload is, or could be, anything else.
    fn one_member(&mut self, payload: &[u8], out: &mut Output<'_>) -> Option<usize> {
        const NO_FIELDS: u8 = 0;
        if !payload.starts_with(&MEMBER) || payload.get(3) != Some(&NO_FIELDS) {
            return None;
        }
        // The trailer's size, if this is one member: no more than a hint.
        let stored_size = payload.last_chunk::<4>()?;
        let size = u32::from_le_bytes(*stored_size) as usize;
        if size > out.limit.min(payload.len().saturating_mul(PLAUSIBLE_RATIO)) {
            return None;
        }
        let whole = self.whole.get_or_insert_default();
        let written = whole.gzip_decompress(payload, out.spare(size + FAST_LOOP_MARGIN)).ok()?;
        // What libdeflate does not tell is where the member ended, so whether another one follows. But a
        // member ends with the size of its content, which is known now, and the next one begins with
        // MEMBER: where these seven bytes stand nowhere, there is no other.
        let mut beginnings = memmem::find_iter(payload, &MEMBER);
        let alone = written == size && !beginnings.any(|at| payload[..at].ends_with(stored_size));
        alone.then_some(written)
    }

    /// Any number of members.
    fn members(&mut self, payload: &[u8], out: &mut Output<'_>) -> Result<()> {
        let mut rest = skip_header(payload).map_err(|_| decompression_failed("gzip: not a gzip header"))?;
        loop {
            let start = out.filled;
            rest = self.inflate(rest, out)?;
            let Some((trailer, behind)) = rest.split_at_checked(TRAILER) else {
                return Err(decompression_failed("gzip: the trailer is cut"));
            };
            let written = &out.buffer[start..out.filled];
            let crc = u32::from_le_bytes([trailer[0], trailer[1], trailer[2], trailer[3]]);
            let size = u32::from_le_bytes([trailer[4], trailer[5], trailer[6], trailer[7]]);
            if crc != crc32(written) || size != written.len() as u32 {
                return Err(decompression_failed("gzip: CRC or size in the trailer is wrong"));
            }
            if behind.len() <= JAVA_IGNORES_UP_TO {
                return Ok(());
            }
            match skip_header(behind) {
                Ok(next) => rest = next,
                Err(_) => return Ok(()),
            }
        }
    }

    /// Inflates one DEFLATE stream; returns the input behind it.
    fn inflate<'a>(&mut self, input: &'a [u8], out: &mut Output<'_>) -> Result<&'a [u8]> {
        let stream = self.stream.get_or_insert_with(|| Decompress::new(false));
        stream.reset(false);
        let start = out.filled;
        loop {
            let consumed = stream.total_in() as usize;
            // One byte beyond the limit is enough to know that it is passed.
            let step = (out.filled - start).max(FIRST_STEP).min(out.allowance().saturating_add(1));
            let spare = out.spare(step);
            let before = stream.total_out();
            // The backend's own words depend on how much room it had.
            let status = stream
                .decompress(&input[consumed..], spare, FlushDecompress::None)
                .map_err(|_| decompression_failed("gzip: the compressed data is invalid"))?;
            let written = (stream.total_out() - before) as usize;
            let room = written < spare.len();
            out.advance(written)?;
            match status {
                Status::StreamEnd => return Ok(&input[stream.total_in() as usize..]),
                Status::Ok | Status::BufError if !room => {}
                Status::Ok if stream.total_in() as usize > consumed || written > 0 => {}
                _ => return Err(decompression_failed("gzip: the stream is cut")),
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

/// See [`super::is_plain`]: one member, without header fields, to the end.
pub(super) fn is_plain(payload: &[u8], content: &[u8]) -> bool {
    const FLAGS: usize = 3;
    let Some((header, rest)) = payload.split_at_checked(HEADER.len()) else { return false };
    if header[..FLAGS] != MEMBER || header[FLAGS] != 0 {
        return false;
    }
    let mut trailer = [0; TRAILER];
    trailer[..4].copy_from_slice(&crc32(content).to_le_bytes());
    trailer[4..].copy_from_slice(&(content.len() as u32).to_le_bytes());
    // The member ends where this first occurs: a member before it can only be an empty one, which ends
    // with zeros.
    let empty_before = memmem::find_iter(rest, &MEMBER).any(|at| rest[..at].ends_with(&[0; TRAILER]));
    !empty_before && memmem::find(rest, &trailer).is_some_and(|at| at + TRAILER == rest.len())
}

/// DEFLATE, no flags, no time, no extra flags, unknown system: what a JDK from 16 on writes.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// zlib's default level, which Kafka's -1 stands for.
const DEFAULT_LEVEL: i32 = 6;

/// libdeflate takes a batch in one call: a third faster than zlib, and no larger.
pub(super) struct Encoder(Compressor);

impl Encoder {
    /// `level` is 1 to 9, or -1 for the default; `None` for another.
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
