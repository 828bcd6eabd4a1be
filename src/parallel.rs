//! Reading the batches of one input in several threads: bounded memory, results in order.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use crate::batch::Batch;
use crate::batches::Batches;
use crate::compression::decompressor::{DEFAULT_MAX_DECOMPRESSED_BYTES, Decompressor};
use crate::error::{Error, Result};

/// Batches go to the threads in chunks of this many bytes, so that handing over costs nothing even
/// where batches are tiny.
const CHUNK: usize = 256 << 10;
/// Chunks that a thread has before it or behind it, not taken yet: enough that it need not wait.
const CHUNKS_A_THREAD: usize = 2;

/// Reads a byte range in several threads; what they make of each batch comes back in the order of the
/// batches, to the thread that asked.
///
/// Chunks of whole batches, 256 KiB and what the last one has more, go round the threads, each with a
/// [`Decompressor`] of its own. At most two chunks a thread are under way: memory is that of their
/// results and of the threads' decompression buffers, however long the input is. A thread that is done
/// with its chunks waits until the results before its own are taken.
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
    /// Over `data`, whose first byte has position 0, in as many threads as there are cores.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Self::at_position(data, 0)
    }

    /// Over `data`, whose first byte has this position (in a file, say).
    #[must_use]
    pub fn at_position(data: &'a [u8], position: u64) -> Self {
        Self {
            data,
            first_position: position,
            threads: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            max_decompressed_bytes: DEFAULT_MAX_DECOMPRESSED_BYTES,
        }
    }

    /// How many threads work, besides the one that asks; 0 is taken as 1.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
        self
    }

    /// What one batch may decompress to: [`Decompressor::with_limit`].
    #[must_use]
    pub fn max_decompressed_bytes(mut self, limit: usize) -> Self {
        self.max_decompressed_bytes = limit;
        self
    }

    /// Hands every batch to `work`, in one of the threads, and its result to `receive`, in this one, in
    /// the order of the batches. Returns the bytes of a cut last batch, as [`Batches::remaining`].
    ///
    /// # Errors
    /// The first in the order of the batches, of framing, of `work` or of `receive`; everything before
    /// it was received, nothing behind it is.
    ///
    /// # Panics
    /// If `work` does, with its panic, once the results of the chunks before were received. And where
    /// the system gives no thread.
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
                // Chunks go round the workers, so their results come round in the order of the input.
                while sent - received < CHUNKS_A_THREAD * workers.len() {
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

/// Whole batches, some at a time.
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
                // The last there is.
                Some(Err(error)) => self.error = Some(error),
                None => break,
            }
        }
        let from = (start - self.first_position) as usize;
        (size > 0).then(|| Batches::at_position(&self.data[from..from + size], start))
    }

    /// What is behind the last chunk.
    fn end(self) -> Result<usize> {
        self.error.map_or(Ok(self.batches.remaining()), Err)
    }
}

/// What became of a chunk: a result a batch, up to the first error.
struct Done<T> {
    results: Vec<T>,
    error: Option<Error>,
}

/// A thread, the chunks on their way to it, and what it made of those before.
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
                    // Nobody waits any longer: there was an error before.
                    return;
                }
            }
        });
        Self { chunks, results, handle }
    }

    fn send(&self, chunk: Batches<'a>) {
        // A worker that is gone has panicked, which shows when its results are asked for.
        let _ = self.chunks.send(chunk);
    }

    /// Goes on with the panic of a worker that gives no result.
    fn panicked(self) -> ! {
        match self.handle.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => unreachable!("a worker ends when its channel does, or by a panic"),
        }
    }
}
