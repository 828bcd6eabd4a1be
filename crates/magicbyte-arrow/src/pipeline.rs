//! Decoding on several threads, including the caller's: batches are handed out in jobs, and columns are
//! returned in the order of the jobs.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::vec;

use arrow_array::RecordBatch;

use magicbyte::Error;
use magicbyte_log::internals::Process;

use crate::batch_decoder::{BatchDecoder, Framed};
use crate::source::{Failure, Source};

/// The stored size of a job's batches. The fastest from 128 KiB to 1 MiB over all codecs with two threads:
/// smaller jobs make too many Arrow batches, larger ones need too much fresh memory.
const JOB_BYTES: usize = 256 << 10;
/// The maximum number of Arrow batches of a job that wait for the reader. Most codecs do not inflate a job to
/// more.
const COLUMNS_READY: usize = 3;

type MakeDecoder = dyn Fn() -> BatchDecoder + Send + Sync;

/// Batches to be decoded by one thread, and a channel for the results.
struct Job {
    batches: vec::IntoIter<Framed>,
    /// Bounded, so that memory is limited whatever size a job inflates to.
    done: SyncSender<Step>,
    /// A step that is ready to follow the last one.
    next: Option<Step>,
    ended: bool,
}

enum Step {
    Columns(RecordBatch),
    Bad(Box<(Framed, Error)>),
    /// The end of the job. If the channel closes without it, the thread has panicked.
    End,
}

impl Job {
    /// Decodes up to the next step; `None` after [`Step::End`].
    fn step(&mut self, decoder: &mut BatchDecoder) -> Option<Step> {
        if self.next.is_some() {
            return self.next.take();
        }
        for framed in &mut self.batches {
            if let Err(error) = decoder.add(&framed) {
                let bad = Step::Bad(Box::new((framed, error)));
                let Some(before) = decoder.take() else { return Some(bad) };
                self.next = Some(bad);
                return Some(Step::Columns(before));
            }
            if decoder.is_full() {
                break;
            }
        }
        if let Some(columns) = decoder.take() {
            return Some(Step::Columns(columns));
        }
        (!std::mem::replace(&mut self.ended, true)).then_some(Step::End)
    }
}

/// Jobs that have not been started, oldest first. Not a channel behind a mutex: a worker waiting on it would
/// hold the lock, but the caller must be able to poll.
#[derive(Default)]
struct Queue {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// Takes a job if there is one.
    fn try_pop(&self) -> Option<Job> {
        self.lock().jobs.pop_front()
    }

    /// Waits for a job; `None` once the queue is closed.
    fn pop(&self) -> Option<Job> {
        let is_idle = |pending: &mut Pending| pending.jobs.is_empty() && !pending.closed;
        let pending = self.changed.wait_while(self.lock(), is_idle);
        pending.unwrap_or_else(PoisonError::into_inner).jobs.pop_front()
    }

    /// Drops the pending jobs, and wakes all waiting threads.
    fn close(&self) {
        *self.lock() = Pending { closed: true, ..Pending::default() };
        self.changed.notify_all();
    }
}

/// The decoder of the caller's thread, which works instead of waiting for the workers.
struct CallerWorker {
    decoder: BatchDecoder,
    job: Option<Job>,
    /// A step that did not fit into the channel.
    held: Option<Step>,
}

impl CallerWorker {
    /// Does one step of a job; false if there is nothing to do but wait for the workers.
    fn work(&mut self, queue: &Queue) -> bool {
        if self.job.is_none() {
            self.job = queue.try_pop();
        }
        let Some(job) = &mut self.job else { return false };
        let Some(step) = self.held.take().or_else(|| job.step(&mut self.decoder)) else {
            self.job = None;
            return true;
        };
        // The channel is not closed: `Pipeline::next` drops a receiver only after the end of its job.
        if let Err(TrySendError::Full(step)) = job.done.try_send(step) {
            self.held = Some(step);
            return false;
        }
        true
    }
}

/// Decodes on the caller's thread and on workers, which start with the first batch and end with the pipeline.
pub(super) struct Pipeline {
    threads: usize,
    make_decoder: Arc<MakeDecoder>,
    queue: Arc<Queue>,
    workers: Vec<JoinHandle<()>>,
    /// The process that has the workers.
    process: Process,
    /// The results of the jobs in flight, oldest first.
    results: VecDeque<Receiver<Step>>,
    caller: CallerWorker,
    /// Set once the source has ended, with the failure to report after all earlier results.
    end: Option<Option<Failure>>,
}

impl Pipeline {
    pub(super) fn new(threads: usize, make_decoder: Arc<MakeDecoder>) -> Self {
        Self {
            threads,
            queue: Arc::default(),
            workers: Vec::new(),
            process: Process::current(),
            results: VecDeque::new(),
            caller: CallerWorker { decoder: make_decoder(), job: None, held: None },
            make_decoder,
            end: None,
        }
    }

    /// The next columns, in the order of the source.
    pub(super) fn next(&mut self, source: &mut impl Source) -> Result<Option<RecordBatch>, Failure> {
        if !self.process.is_current() {
            return Err(
                "the stream's threads are in the process that began it, which has forked since".into()
            );
        }
        loop {
            self.top_up(source)?;
            let Some(oldest) = self.results.front() else {
                return self.end.take().flatten().map_or(Ok(None), Err);
            };
            let step = match oldest.try_recv() {
                Err(TryRecvError::Empty) if self.caller.work(&self.queue) => continue,
                Err(TryRecvError::Empty) => oldest.recv().ok(),
                step => step.ok(),
            };
            match step {
                Some(Step::Columns(columns)) => return Ok(Some(columns)),
                Some(Step::Bad(bad)) => source.bad(&bad.0, bad.1)?,
                Some(Step::End) => drop(self.results.pop_front()),
                None => return Err("a decoding thread panicked: please report this".into()),
            }
        }
    }

    /// Hands out up to two jobs per thread: one in progress, one to continue with.
    fn top_up(&mut self, source: &mut impl Source) -> Result<(), Failure> {
        while self.end.is_none() && self.results.len() < 2 * self.threads {
            let mut batches = Vec::new();
            let mut bytes = 0;
            while bytes < JOB_BYTES {
                match source.next() {
                    Ok(Some(framed)) => {
                        bytes += framed.data.len();
                        batches.push(framed);
                    }
                    end => {
                        self.end = Some(end.err());
                        break;
                    }
                }
            }
            if !batches.is_empty() {
                let (done, results) = sync_channel(COLUMNS_READY);
                self.results.push_back(results);
                self.queue.push(Job { batches: batches.into_iter(), done, next: None, ended: false });
                self.start_worker()?;
            }
        }
        Ok(())
    }

    /// Starts another worker, unless there are enough; the caller's thread counts as one.
    fn start_worker(&mut self) -> Result<(), Failure> {
        if self.workers.len() + 1 < self.threads {
            let (queue, make_decoder) = (Arc::clone(&self.queue), Arc::clone(&self.make_decoder));
            let name = "magicbyte-decode".to_owned();
            let worker =
                std::thread::Builder::new().name(name).spawn(move || work(&queue, &*make_decoder))?;
            self.workers.push(worker);
        }
        Ok(())
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // A forked child has no workers. A lock that one of them held at that moment stays locked.
            std::mem::forget(std::mem::take(&mut self.results));
            std::mem::forget(std::mem::take(&mut self.workers));
            return;
        }
        // Workers stop at their next step, since the receivers are gone, or when they find the queue closed.
        self.results.clear();
        self.queue.close();
        for worker in self.workers.drain(..) {
            // A panic has been reported by `next`, or its result is no longer wanted.
            let _ = worker.join();
        }
    }
}

fn work(queue: &Queue, make_decoder: &MakeDecoder) {
    let mut decoder = make_decoder();
    while let Some(mut job) = queue.pop() {
        while let Some(step) = job.step(&mut decoder) {
            // An error means that the pipeline has been dropped.
            if job.done.send(step).is_err() {
                return;
            }
        }
    }
}
