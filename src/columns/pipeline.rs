//! Decoding on several threads: batches go out in jobs, columns come back in the jobs' order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;

use super::batch_decoder::{BatchDecoder, Framed};
use super::stream::{Failure, Source};
use crate::Error;

/// A job ends when its batches have this many bytes, as they are stored.
const JOB_BYTES: usize = 1 << 20;
/// How far a worker may be ahead of the reader in a job: most codecs inflate a job to no more.
const COLUMNS_READY: usize = 3;

type MakeDecoder = dyn Fn() -> BatchDecoder + Send + Sync;

struct Job {
    batches: Vec<Framed>,
    /// A worker that is ahead waits here, so memory is bounded whatever a job inflates to.
    done: SyncSender<Step>,
}

enum Step {
    Columns(RecordBatch),
    Bad(Box<(Framed, Error)>),
    /// Without it, the worker did not come to the job's end.
    End,
}

/// Workers that start with the first batch and end with the pipeline.
pub(super) struct Pipeline {
    threads: usize,
    decoder: Arc<MakeDecoder>,
    jobs: Option<Sender<Job>>,
    workers: Vec<JoinHandle<()>>,
    /// Of the jobs under way, the oldest first.
    results: VecDeque<Receiver<Step>>,
    /// What ended the source, kept until all before it was given.
    end: Option<Option<Failure>>,
}

impl Pipeline {
    pub(super) fn new(threads: usize, decoder: Arc<MakeDecoder>) -> Self {
        Self { threads, decoder, jobs: None, workers: Vec::new(), results: VecDeque::new(), end: None }
    }

    /// The next columns, in the order of the source.
    pub(super) fn next(&mut self, source: &mut impl Source) -> Result<Option<RecordBatch>, Failure> {
        loop {
            self.top_up(source)?;
            let Some(oldest) = self.results.front() else {
                return self.end.take().flatten().map_or(Ok(None), Err);
            };
            match oldest.recv() {
                Ok(Step::Columns(columns)) => return Ok(Some(columns)),
                Ok(Step::Bad(bad)) => source.bad(&bad.0, bad.1)?,
                Ok(Step::End) => drop(self.results.pop_front()),
                Err(_) => return Err("a thread that decodes panicked: please report this".into()),
            }
        }
    }

    /// Two jobs a worker: one it is at, one to go on with.
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
                self.jobs()?.send(Job { batches, done })?;
                self.results.push_back(results);
            }
        }
        Ok(())
    }

    fn jobs(&mut self) -> Result<&Sender<Job>, Failure> {
        if self.jobs.is_none() {
            let (jobs, queue) = channel::<Job>();
            let queue = Arc::new(Mutex::new(queue));
            for _ in 0..self.threads {
                let (queue, decoder) = (Arc::clone(&queue), Arc::clone(&self.decoder));
                let name = "magicbyte-decode".to_owned();
                let worker = std::thread::Builder::new().name(name).spawn(move || work(&queue, &*decoder))?;
                self.workers.push(worker);
            }
            self.jobs = Some(jobs);
        }
        self.jobs.as_ref().ok_or_else(|| "no workers".into())
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // Nobody waits for what is under way: workers find that out at their next step, and the queue closed.
        self.results.clear();
        self.jobs = None;
        for worker in self.workers.drain(..) {
            // A panic was reported by `next`, or nobody asked.
            let _ = worker.join();
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>, decoder: &MakeDecoder) {
    let mut decoder = decoder();
    loop {
        // The lock is held while waiting: the others wait for it instead.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // An error here: the stream is gone, and with it this job's reader.
        let _ = run(job, &mut decoder);
        // What was collected for a reader that is gone is nobody's.
        drop(decoder.take());
    }
}

fn run(job: Job, decoder: &mut BatchDecoder) -> Result<(), std::sync::mpsc::SendError<Step>> {
    for framed in job.batches {
        if let Err(error) = decoder.add(&framed) {
            if let Some(columns) = decoder.take() {
                job.done.send(Step::Columns(columns))?;
            }
            job.done.send(Step::Bad(Box::new((framed, error))))?;
        } else if decoder.is_full()
            && let Some(columns) = decoder.take()
        {
            job.done.send(Step::Columns(columns))?;
        }
    }
    if let Some(columns) = decoder.take() {
        job.done.send(Step::Columns(columns))?;
    }
    job.done.send(Step::End)
}
