//! An object of compressed or encrypted chunks, read as the segment that it was made of: any position, chunk by chunk.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::open_file::{Composed, OpenFile, read_range};
use crate::storage::tiered::manifest::Manifest;

/// An open object. Memory: one chunk, and another one while it is restored.
#[derive(Debug)]
pub(super) struct Chunked {
    manifest: Arc<Manifest>,
    object: OpenFile,
    /// For messages.
    name: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last chunk that was read.
    chunk: Option<(u64, Vec<u8>)>,
    /// Chunks that cannot be restored, and why.
    damaged: BTreeMap<u64, String>,
}

impl Chunked {
    pub(super) fn new(manifest: Arc<Manifest>, object: OpenFile, name: String) -> Self {
        Self { manifest, object, name, state: Mutex::default() }
    }

    fn load(&self, state: &mut State, number: u64) -> io::Result<()> {
        if state.chunk.as_ref().is_some_and(|(loaded, _)| *loaded == number) {
            return Ok(());
        }
        state.chunk = None;
        let stored = self.manifest.chunks.stored(number);
        let original = self.manifest.chunks.original(number);
        let size = (original.end - original.start) as usize;
        let chunk = read_range(&self.object, &stored)?.and_then(|part| restore(&self.manifest, part, size));
        let chunk = chunk.unwrap_or_else(|why| {
            let Range { start, end } = stored;
            let message =
                format!("chunk {number} of {}, bytes {start}..{end} of the object: {why}", self.name);
            state.damaged.entry(number).or_insert(message);
            Vec::new()
        });
        state.chunk = Some((number, chunk));
        Ok(())
    }
}

/// Decrypts and decompresses a chunk that has `size` bytes then.
fn restore(manifest: &Manifest, mut part: Vec<u8>, size: usize) -> Result<Vec<u8>, String> {
    if let Some(encryption) = &manifest.encryption {
        encryption.decrypt(&mut part)?;
    }
    if manifest.is_compressed {
        let mut chunk = vec![0; size];
        let length = zstd_safe::decompress(&mut chunk[..], &part)
            .map_err(|code| format!("zstd: {}", zstd_safe::get_error_name(code)))?;
        chunk.truncate(length);
        part = chunk;
    }
    match part.len() {
        length if length == size => Ok(part),
        length => Err(format!("it holds {length} bytes, expected {size}")),
    }
}

impl Composed for Chunked {
    /// The bytes of a damaged chunk are zeros.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let chunks = &self.manifest.chunks;
        if position >= chunks.original_size || buffer.is_empty() {
            return Ok(0);
        }
        let number = chunks.chunk_at(position);
        let range = chunks.original(number);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.load(&mut state, number)?;
        let length = buffer.len().min((range.end - position) as usize);
        let at = (position - range.start) as usize;
        match state.chunk.as_ref().and_then(|(_, chunk)| chunk.get(at..at + length)) {
            Some(bytes) => buffer[..length].copy_from_slice(bytes),
            None => buffer[..length].fill(0),
        }
        Ok(length)
    }

    fn read_through(&self, range: &Range<u64>) {
        let chunks = &self.manifest.chunks;
        let end = range.end.min(chunks.original_size);
        if range.start < end {
            let first = chunks.stored(chunks.chunk_at(range.start));
            let last = chunks.stored(chunks.chunk_at(end - 1));
            self.object.read_through(&(first.start..last.end));
        }
    }

    fn is_remote(&self) -> bool {
        self.object.is_remote()
    }

    fn damage(&self, range: &Range<u64>) -> Option<String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let from = self.manifest.chunks.chunk_at(range.start);
        let damaged = state.damaged.range(from..).next();
        damaged
            .filter(|(number, _)| self.manifest.chunks.original(**number).start < range.end)
            .map(|(_, why)| why.clone())
    }
}
