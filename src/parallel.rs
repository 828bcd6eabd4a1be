//! Reading the batches of one input in several threads, with bounded memory and results in order.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::batch::Batch;
use crate::batches::Batches;
use crate::compression::decompressor::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
use crate::error::{Error, Result};

/// Batches go to the threads in chunks of this many bytes, so that the handover is cheap even for tiny
/// batches.
const CHUNK: usize = 256 << 10;
/// Chunks in flight per thread, queued or with results not yet received: enough to keep it busy.
const CHUNKS_PER_THREAD: usize = 2;

/// Processes the batches of a byte range in several threads; the results arrive in the order of the batches,
/// in the calling thread.
///
/// Chunks of whole batches, of at least 256 KiB, are dealt to the threads in turn. Each thread has its own
/// [`Decompressor`]. At most two chunks per thread are in flight, so memory is bounded by their results and
/// by the threads' decompression buffers, whatever the size of the input. A thread that has finished its
/// chunks waits until the results before its own are received.
///
/// ```
/// # use magicbyte::{Compression, ParallelBatches, RecordsBuilder};
/// # let mut bytes = Vec::new();
/// # for base in [0, 1, 2] {
/// #     let mut builder = RecordsBuilder::v2(Compression::None);
/// #     builder.append(base, 0, None, Some(b"value"), &[])?;
/// #     builder.build_into(&mut bytes)?;
/// # }
/// let mut records = 0;
/// let cut = ParallelBatches::new(&bytes).threads(2).map(
///     |batch, decompressor| {
///         batch.verify()?;
///         let mut count = 0;
///         batch.records(decompressor)?.visit(|_| count += 1)?;
///         Ok(count)
///     },
///     |count| {
///         records += count;
///         Ok(())
///     },
/// )?;
/// assert_eq!((records, cut), (3, 0));
/// # Ok::<(), magicbyte::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ParallelBatches<'a> {
    data: &'a [u8],
    first_position: u64,
    threads: NonZeroUsize,
    max_decompressed_bytes: usize,
}

impl<'a> ParallelBatches<'a> {
    /// Batches of `data`, whose first byte has position 0, with one thread per core.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self::at_position(data, 0)
    }

    /// Batches of `data`, whose first byte has the given position, for example in a file.
    #[must_use]
    pub fn at_position(data: &'a [u8], position: u64) -> Self {
        Self {
            data,
            first_position: position,
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
        }
    }

    /// The number of worker threads, besides the calling thread; 0 means 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// The maximum decompressed size of one batch in bytes: see [`Decompressor::with_limit`].
    #[must_use]
    pub fn max_decompressed_bytes(mut self, limit: usize) -> Self {
        self.max_decompressed_bytes = limit;
        self
    }

    /// Calls `work` with every batch, in one of the threads, and `receive` with its result, in this thread
    /// and in the order of the batches. Returns the size of a truncated last batch, as [`Batches::remaining`]
    /// does.
    ///
    /// # Errors
    /// The first error of framing, `work` or `receive` in the order of the batches. All results before it
    /// have been received, and none after it.
    ///
    /// # Panics
    /// If `work` panics, with the same panic, after the results of earlier chunks have been received; and if
    /// no thread can be spawned.
    pub fn map<T: Send>(
        self,
        work: impl Fn(Batch<'a>, &mut Decompressor) -> Result<T> + Sync,
        mut receive: impl FnMut(T) -> Result<()>,
    ) -> Result<usize> {
        let mut chunks = Chunks::new(self.data, self.first_position);
        thread::scope(|scope| {
            let mut workers: Vec<_> = (0..self.threads.get())
                .map(|_| Worker::spawn(scope, &work, self.max_decompressed_bytes))
                .collect();
            let (mut sent, mut received) = (0, 0);
            loop {
                // Chunks are dealt to the workers in turn, and results collected in the same turn.
                while sent - received < CHUNKS_PER_THREAD * workers.len() {
                    let Some(chunk) = chunks.next() else { break };
                    workers[sent % self.threads].send(chunk);
                    sent += 1;
                }
                if received == sent {
                    return chunks.end();
                }
                let at = received % self.threads;
                let Ok(done) = workers[at].results.recv() else { workers.swap_remove(at).panicked() };
                received += 1;
                done.results.into_iter().try_for_each(&mut receive)?;
                if let Some(error) = done.error {
                    return Err(error);
                }
            }
        })
    }
}

/// Splits the input into chunks of whole batches.
struct Chunks<'a> {
    data: &'a [u8],
    first_position: u64,
    batches: Batches<'a>,
    error: Option<Error>,
}

impl<'a> Chunks<'a> {
    fn new(data: &'a [u8], first_position: u64) -> Self {
        Self { data, first_position, batches: Batches::at_position(data, first_position), error: None }
    }

    fn next(&mut self) -> Option<Batches<'a>> {
        let start = self.batches.next_position();
        let mut size = 0;
        while size < CHUNK {
            match self.batches.next() {
                Some(Ok(batch)) => size += batch.size_in_bytes(),
                // The iterator ends after an error.
                Some(Err(error)) => self.error = Some(error),
                None => break,
            }
        }
        let from = (start - self.first_position) as usize;
        (size > 0).then(|| Batches::at_position(&self.data[from..from + size], start))
    }

    /// The bytes after the last chunk, or the error that ended the framing.
    fn end(self) -> Result<usize> {
        self.error.map_or(Ok(self.batches.remaining()), Err)
    }
}

/// The outcome of a chunk: one result per batch, up to the first error.
struct Done<T> {
    results: Vec<T>,
    error: Option<Error>,
}

/// A thread, with the channels for its chunks and their results.
struct Worker<'scope, 'a, T> {
    chunks: Sender<Batches<'a>>,
    results: Receiver<Done<T>>,
    handle: ScopedJoinHandle<'scope, ()>,
}

impl<'scope, 'a: 'scope, T: Send + 'scope> Worker<'scope, 'a, T> {
    fn spawn<'env>(
        scope: &'scope Scope<'scope, 'env>,
        work: &'scope (impl Fn(Batch<'a>, &mut Decompressor) -> Result<T> + Sync),
        limit: usize,
    ) -> Self {
        let (chunks, waiting) = channel::<Batches<'a>>();
        let (done, results) = channel();
        let handle = scope.spawn(move || {
            let mut decompressor = Decompressor::with_limit(limit);
            for chunk in waiting {
                let mut results = Vec::new();
                let error = chunk
                    .into_iter()
                    .try_for_each(|batch| {
                        results.push(work(batch?, &mut decompressor)?);
                        Ok(())
                    })
                    .err();
                if done.send(Done { results, error }).is_err() {
                    // The receiver is gone: an earlier error ended the call.
                    return;
                }
            }
        });
        Self { chunks, results, handle }
    }

    fn send(&self, chunk: Batches<'a>) {
        // If the worker is gone it has panicked; `map` notices when it receives.
        let _ = self.chunks.send(chunk);
    }

    /// Resumes the panic of a worker that gave no result.
    fn panicked(self) -> ! {
        match self.handle.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => unreachable!("a worker ends with its channel or with a panic"),
        }
    }
}
