//! A segment whose file has any name: somebody sent it, or saved it from `lost+found`. Its first batch gives
//! its base offset.

use std::io;

use magicbyte::internals::{Frame, LOG_OVERHEAD};
use magicbyte::{Batch, Compression, RECORD_BATCH_OVERHEAD};

use crate::storage::open_file::OpenFile;

/// The base offset of a segment of `size` bytes, by its first batch. 0 if that is a wrapper, whose header has
/// only its last offset. None unless the file begins with a batch that another batch, zeros or the end of the
/// file follow.
///
/// # Errors
/// The errors of the system or of the store.
pub(crate) fn base_offset_of_content(file: &OpenFile, size: u64) -> io::Result<Option<i64>> {
    let header = read(file, 0)?;
    let Ok(batch) = Batch::from_header(&header, 0) else { return Ok(None) };
    let Some(length) = size_of(&header) else { return Ok(None) };
    let first = batch.stored_offset();
    if first < 0 || length > size {
        return Ok(None);
    }
    let next = read(file, length)?;
    let follows = Batch::from_header(&next, length).is_ok_and(|next| next.stored_offset() > first);
    if !follows && next.iter().any(|&byte| byte != 0) {
        return Ok(None);
    }
    let is_wrapper = batch.magic() < 2 && batch.compression() != Ok(Compression::None);
    Ok(Some(if is_wrapper { 0 } else { first }))
}

fn size_of(header: &[u8]) -> Option<u64> {
    match Frame::read(header).ok()? {
        Frame::Whole { size } => Some(size as u64),
        Frame::Cut { needed } => (header.len() > LOG_OVERHEAD).then_some(header.len() as u64 + needed),
    }
}

/// Reads the header at this position, or as much of it as the file has.
fn read(file: &OpenFile, position: u64) -> io::Result<Vec<u8>> {
    let mut header = vec![0; RECORD_BATCH_OVERHEAD];
    let filled = file.fill(&mut header, position)?;
    header.truncate(filled);
    Ok(header)
}
