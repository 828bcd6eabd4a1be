//! Decoding on several threads, the caller's among them: batches go out in jobs, columns come back in the jobs'
//! order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::vec;

use arrow_array::RecordBatch;

use crate::columns::batch_decoder::{BatchDecoder, Framed};
use crate::columns::source::{Failure, Source};
use crate::error::Error;

/// A job ends when its batches have this many bytes, as they are stored. Of 128 KiB to 1 MiB the best over all
/// codecs in two threads: less makes too many Arrow batches, more too much fresh memory.
const JOB_BYTES: usize = 256 << 10;
/// How far a thread may be ahead of the reader in a job: most codecs inflate a job to no more.
const COLUMNS_READY: usize = 3;

type MakeDecoder = dyn Fn() -> BatchDecoder + Send + Sync;

/// Batches to be decoded by one thread, and where their columns go.
struct Job {
    batches: vec::IntoIter<Framed>,
    /// Whoever is ahead waits here, so memory is bounded whatever a job inflates to.
    done: SyncSender<Step>,
    /// What follows the last step without decoding.
    next: Option<Step>,
    ended: bool,
}

enum Step {
    Columns(RecordBatch),
    Bad(Box<(Framed, Error)>),
    /// Without it, who had the job did not come to its end.
    End,
}

impl Job {
    /// Decodes up to the next step; nothing behind [`Step::End`].
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

/// Jobs that nobody has begun, the oldest first. No channel, since a thread that waits for one's next item keeps its
/// lock: the caller only looks.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) {
        self.lock().jobs.push_back(job);
        self.changed.notify_one();
    }

    /// A job if there is one.
    fn try_pop(&self) -> Option<Job> {
        self.lock().jobs.pop_front()
    }

    /// Waits for a job; none once the queue is closed.
    fn pop(&self) -> Option<Job> {
        let more = |waiting: &mut Waiting| waiting.jobs.is_empty() && !waiting.closed;
        let waiting = self.changed.wait_while(self.lock(), more);
        waiting.unwrap_or_else(PoisonError::into_inner).jobs.pop_front()
    }

    /// Drops what waits, and lets nobody wait any more.
    fn close(&self) {
        *self.lock() = Waiting { closed: true, ..Waiting::default() };
        self.changed.notify_all();
    }
}

/// What the caller does instead of waiting for each job and being woken up.
struct Own {
    decoder: BatchDecoder,
    job: Option<Job>,
    /// A step for which there was no room.
    held: Option<Step>,
}

impl Own {
    /// Goes one step on with a job; false if only others can go on.
    fn work(&mut self, queue: &Queue) -> bool {
        if self.job.is_none() {
            self.job = queue.try_pop();
        }
        let Some(job) = &mut self.job else { return false };
        let Some(step) = self.held.take().or_else(|| job.step(&mut self.decoder)) else {
            self.job = None;
            return true;
        };
        // Who reads the results drops them behind the end only.
        if let Err(TrySendError::Full(step)) = job.done.try_send(step) {
            self.held = Some(step);
            return false;
        }
        true
    }
}

/// The caller's thread and workers, which start with the first batch and end with the pipeline.
pub(super) struct Pipeline {
    threads: usize,
    make_decoder: Arc<MakeDecoder>,
    queue: Arc<Queue>,
    workers: Vec<JoinHandle<()>>,
    /// Of the jobs under way, the oldest first.
    results: VecDeque<Receiver<Step>>,
    own: Own,
    /// What ended the source, kept until all before it was given.
    end: Option<Option<Failure>>,
}

impl Pipeline {
    pub(super) fn new(threads: usize, make_decoder: Arc<MakeDecoder>) -> Self {
        Self {
            threads,
            queue: Arc::default(),
            workers: Vec::new(),
            results: VecDeque::new(),
            own: Own { decoder: make_decoder(), job: None, held: None },
            make_decoder,
            end: None,
        }
    }

    /// The next columns, in the order of the source.
    pub(super) fn next(&mut self, source: &mut impl Source) -> Result<Option<RecordBatch>, Failure> {
        loop {
            self.top_up(source)?;
            let Some(oldest) = self.results.front() else {
                return self.end.take().flatten().map_or(Ok(None), Err);
            };
            let step = match oldest.try_recv() {
                Err(TryRecvError::Empty) if self.own.work(&self.queue) => continue,
                Err(TryRecvError::Empty) => oldest.recv().ok(),
                step => step.ok(),
            };
            match step {
                Some(Step::Columns(columns)) => return Ok(Some(columns)),
                Some(Step::Bad(bad)) => source.bad(&bad.0, bad.1)?,
                Some(Step::End) => drop(self.results.pop_front()),
                None => return Err("a thread that decodes panicked: please report this".into()),
            }
        }
    }

    /// Two jobs a thread: one it is at, one to go on with.
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

    /// One more with each job until there are enough, the caller's thread being one.
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
        // Nobody waits for what is under way: workers find that out at their next step, and the queue closed.
        self.results.clear();
        self.queue.close();
        for worker in self.workers.drain(..) {
            // A panic was reported by `next`, or nobody asked.
            let _ = worker.join();
        }
    }
}

fn work(queue: &Queue, make_decoder: &MakeDecoder) {
    let mut decoder = make_decoder();
    while let Some(mut job) = queue.pop() {
        while let Some(step) = job.step(&mut decoder) {
            // An error: the stream is gone, and with it this job's reader.
            if job.done.send(step).is_err() {
                return;
            }
        }
    }
}
