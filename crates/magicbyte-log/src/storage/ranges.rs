//! A file in a store, read in ranges. The ranges are large, and several are under way ahead of use, where the
//! file is read through. They are small where a scan of headers jumps from batch to batch.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::range_cache;
use crate::storage::range_cache::Key;
use crate::storage::remote::{Fetch, RemoteStore, fatal};

/// The size of a range where a file is read through.
const RANGE: u64 = 4 << 20;
/// The maximum number of ranges under way ahead of use.
const AHEAD: usize = 2;
/// The number of ranges that start at once. Ranges that start together share the link and end together, and
/// then the link is idle.
const AT_ONCE: usize = 1;
/// The size of the first range, and of the first range after each jump.
const FIRST: u64 = 16 << 10;
/// A read further than this after the one before it is a jump.
const JUMP: u64 = 512 << 10;
/// Smaller files are read at once.
const SMALL_FILE: u64 = 1 << 20;
/// Ranges of this size are kept for the next reader of the file.
const KEPT: usize = 64 << 10;

/// An open file of a store. Memory: the current range, and those under way ([`AHEAD`]).
#[doc(hidden)]
#[derive(Debug)]
pub struct Ranges {
    store: Arc<dyn RemoteStore>,
    path: String,
    version: Option<String>,
    size: u64,
    /// None if a new version of the file could not be told from this one.
    key: Option<Key>,
    state: Mutex<State>,
}

/// A range that is being fetched.
type UnderWay = (Range<u64>, Box<dyn Fetch>);

#[derive(Debug)]
struct State {
    /// The current range.
    start: u64,
    bytes: Vec<u8>,
    /// Ranges under way, one after the other.
    ahead: VecDeque<UnderWay>,
    /// Where the last range ended.
    next: u64,
    /// The size of the next range.
    window: u64,
    /// Nothing after this position is read ahead.
    end: u64,
    reads: Reads,
    /// The end of the bytes that the reader has read and reported.
    finished: u64,
}

/// The part of a file that a reader reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// Only the bytes that it needs.
    Parts,
    /// All bytes of a range, once.
    Through,
    /// The whole file, for readers that read through it next.
    ForTheNext,
}

impl Ranges {
    /// A file of the store with this number.
    pub(super) fn open(
        store: Arc<dyn RemoteStore>,
        number: u64,
        path: &str,
        size: u64,
        version: Option<&str>,
    ) -> Self {
        let key = version.map(|version| Arc::new((number, path.to_owned(), version.to_owned(), size)));
        let window = if size <= SMALL_FILE { size } else { FIRST };
        Self {
            store,
            path: path.to_owned(),
            version: version.map(str::to_owned),
            size,
            key,
            state: Mutex::new(State {
                start: 0,
                bytes: Vec::new(),
                ahead: VecDeque::new(),
                next: 0,
                window,
                end: size,
                reads: Reads::Parts,
                finished: 0,
            }),
        }
    }

    /// Announces that all bytes of the range will be read, and few others.
    pub(super) fn read_through(&self, range: &Range<u64>) {
        self.read_all(range, Reads::Through);
    }

    /// Fetches the whole file ahead of use, for readers that read through it next. Returns false if nothing
    /// is kept for them.
    pub(super) fn fetch_for_the_next(&self) -> bool {
        if self.key.is_some() {
            self.read_all(&(0..self.size), Reads::ForTheNext);
        }
        self.key.is_some()
    }

    fn read_all(&self, range: &Range<u64>, reads: Reads) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.next = range.start;
        state.window = RANGE;
        state.end = range.end.min(self.size);
        state.reads = reads;
        state.finished = range.start;
    }

    /// Reports that the reader has read all bytes before a position.
    fn finish(&self, state: &mut State, position: u64) {
        let position = position.min(state.end);
        if let Some(key) =
            self.key.as_ref().filter(|_| state.reads == Reads::Through && position > state.finished)
        {
            range_cache::finish(key, &(state.finished..position));
            state.finished = position;
        }
    }

    /// Reads once at a position; returns the number of bytes read, 0 at the end of the file.
    pub(super) fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        if position >= self.size || buffer.is_empty() {
            return Ok(0);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_inside =
            |state: &State| (state.start..state.start + state.bytes.len() as u64).contains(&position);
        if !is_inside(&state) {
            if let Some(read) = self.key.as_ref().and_then(|key| range_cache::read(key, position, buffer)) {
                self.finish(&mut state, position);
                state.next = state.next.max(position + read as u64);
                return Ok(read);
            }
            self.load(&mut state, position, buffer.len() as u64)?;
        }
        let at = (position - state.start) as usize;
        let length = buffer.len().min(state.bytes.len() - at);
        buffer[..length].copy_from_slice(&state.bytes[at..at + length]);
        Ok(length)
    }

    /// Makes the range with a position the current range. It is a range under way or a new range.
    fn load(&self, state: &mut State, position: u64, wanted: u64) -> io::Result<()> {
        let is_jump = position < state.next.saturating_sub(RANGE) || position > state.next + JUMP;
        if is_jump && state.window < RANGE {
            state.window = FIRST;
        }
        let (range, fetch) = if let Some(under_way) = self.take_ahead(state, position)? {
            under_way
        } else {
            let range = self.range_from(state, position, wanted);
            let fetch = self.fetch(range.clone())?;
            (range, fetch)
        };
        // Read ahead before waiting, so that the link is not idle meanwhile.
        self.read_ahead(state, range.end)?;
        self.receive(state, &range, fetch)?;
        state.next = range.end;
        if !is_jump {
            state.window = (state.window * 8).min(RANGE);
        }
        self.read_ahead(state, state.next)
    }

    /// The range under way that holds the position. Ranges before it, which large batches skip, are kept for
    /// the next reader of the file.
    fn take_ahead(&self, state: &mut State, position: u64) -> io::Result<Option<UnderWay>> {
        while let Some((range, fetch)) = state.ahead.pop_front() {
            if range.contains(&position) {
                return Ok(Some((range, fetch)));
            }
            if state.reads == Reads::ForTheNext && range.end <= position {
                self.receive(state, &range, fetch)?;
            }
        }
        Ok(None)
    }

    /// The range to fetch at a position. It ends at the next kept range.
    fn range_from(&self, state: &State, position: u64, wanted: u64) -> Range<u64> {
        let end = if position < state.end { state.end } else { self.size };
        let mut end = end
            .min(position.saturating_add(state.window))
            .max(position.saturating_add(wanted))
            .min(self.size);
        if let Some(kept) = self.key.as_ref().and_then(|key| range_cache::next_start(key, position)) {
            end = end.min(kept);
        }
        position..end
    }

    /// Fetches the bytes that follow the ranges under way, or from `next` on if there are none.
    fn read_ahead(&self, state: &mut State, next: u64) -> io::Result<()> {
        let mut next = state.ahead.back().map_or(next, |(range, _)| range.end);
        let most = AHEAD.min(state.ahead.len() + AT_ONCE);
        while state.window == RANGE && state.ahead.len() < most && next < state.end {
            if self.key.as_ref().is_some_and(|key| range_cache::is_kept(key, next)) {
                // Nothing needs to be fetched up to its end, or ahead of it.
                return Ok(());
            }
            let range = self.range_from(state, next, 0);
            next = range.end;
            let fetch = self.fetch(range.clone())?;
            state.ahead.push_back((range, fetch));
        }
        Ok(())
    }

    fn fetch(&self, range: Range<u64>) -> io::Result<Box<dyn Fetch>> {
        self.store.fetch(&self.path, self.version.as_deref(), range).map_err(fatal)
    }

    /// Waits for a range, which becomes the current one.
    fn receive(&self, state: &mut State, range: &Range<u64>, fetch: Box<dyn Fetch>) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut state.bytes);
        if bytes.capacity() as u64 > RANGE {
            bytes = Vec::new();
        }
        fetch.wait(&mut bytes).map_err(fatal)?;
        if bytes.len() as u64 != range.end - range.start {
            let why = format!("{} bytes came for the range {}..{}", bytes.len(), range.start, range.end);
            return Err(fatal(io::Error::new(io::ErrorKind::UnexpectedEof, why)));
        }
        if let Some(key) =
            self.key.as_ref().filter(|_| bytes.len() >= KEPT || bytes.len() as u64 == self.size)
        {
            range_cache::put(key, range.start, &bytes, state.reads == Reads::ForTheNext);
        }
        (state.start, state.bytes) = (range.start, bytes);
        Ok(())
    }
}

impl Drop for Ranges {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let read = state.next;
        self.finish(&mut state, read);
    }
}
