//! Logs in buckets of the crate [`object_store`](https://docs.rs/object_store), as a [`RemoteStore`] of magicbyte-log. `object_store` brings
//! S3, GCS and Azure by its own features.
//!
//! ```
//! use std::sync::Arc;
//!
//! use magicbyte_log::{Location, PartitionLog, PlanOptions, Stores};
//! use magicbyte_object_store::Bucket;
//! use object_store::local::LocalFileSystem; // or aws::AmazonS3Builder, ...
//!
//! let runtime = tokio::runtime::Runtime::new()?;
//! # let samples = magicbyte_testing::repository().join("samples");
//! let store = Arc::new(LocalFileSystem::new_with_prefix(samples)?);
//! let bucket = Bucket::new("files://samples", store, runtime.handle().clone());
//! let mut stores = Stores::default();
//! stores.mount("files://samples", Arc::new(bucket));
//!
//! let log = PartitionLog::open(Location::parse("files://samples/archive-0", &stores))?;
//! assert!(log.verify(PlanOptions::default())?.balanced);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

use std::future::Future;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetResult, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use magicbyte_log::internals::changed;
use magicbyte_log::{Fetch, RemoteStore, StoredFile};

/// A bucket or container that logs are read from, to be [mounted](magicbyte_log::Stores::mount) at its URL. Credentials, retries and timeouts are
/// those of the `object_store` that it is made of.
#[derive(Debug)]
pub struct Bucket {
    url: String,
    store: Arc<dyn ObjectStore>,
    runtime: Handle,
}

impl Bucket {
    /// A bucket whose paths begin with `url`, without a slash at its end. Requests are made in `runtime`, which has to have threads of
    /// its own: whoever reads a log blocks until they are answered.
    #[must_use]
    pub fn new(url: &str, store: Arc<dyn ObjectStore>, runtime: Handle) -> Self {
        Self { url: url.to_owned(), store, runtime }
    }

    /// The path in the bucket.
    fn path(&self, path: &str) -> io::Result<Path> {
        let inside = path.strip_prefix(&self.url).unwrap_or(path);
        Path::parse(inside.trim_matches('/'))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    /// Starts a request.
    fn start<T: Send + 'static>(
        &self,
        request: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> Request<T> {
        let (sender, answer) = sync_channel(1);
        // Nobody is left to hear of a failed send.
        let task = self.runtime.spawn(async move { _ = sender.send(request.await) });
        Request { answer, task: task.abort_handle() }
    }

    async fn list_in(store: &dyn ObjectStore, directory: &Path) -> io::Result<Vec<StoredFile>> {
        let found = store.list_with_delimiter(Some(directory)).await.map_err(to_io)?;
        let directories = found.common_prefixes.iter().map(directory_at);
        let files: Vec<_> = directories.chain(found.objects.iter().map(file_of)).collect();
        if files.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "there is nothing below it"));
        }
        Ok(files)
    }
}

impl RemoteStore for Bucket {
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>> {
        let (store, directory) = (Arc::clone(&self.store), self.path(directory)?);
        self.start(async move { Self::list_in(&store, &directory).await }).wait()
    }

    /// A directory is what objects are below.
    fn examine(&self, path: &str) -> io::Result<StoredFile> {
        let (store, path) = (Arc::clone(&self.store), self.path(path)?);
        let examined = async move {
            match store.head(&path).await {
                Ok(object) => Ok(file_of(&object)),
                Err(Error::NotFound { .. }) => {
                    Self::list_in(&store, &path).await.map(|_| directory_at(&path))
                }
                Err(error) => Err(to_io(error)),
            }
        };
        self.start(examined).wait()
    }

    fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let (store, path) = (Arc::clone(&self.store), self.path(path)?);
        let read = async move {
            let found = store.get(&path).await.map_err(to_io)?;
            if found.meta.size > limit {
                let why = format!("{} bytes, more than {limit}", found.meta.size);
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            found.bytes().await.map_err(to_io)
        };
        Ok(self.start(read).wait()?.into())
    }

    fn fetch(&self, path: &str, version: Option<&str>, range: Range<u64>) -> io::Result<Box<dyn Fetch>> {
        let (store, path) = (Arc::clone(&self.store), self.path(path)?);
        let version = version.map(str::to_owned);
        let options = GetOptions::default().with_range(Some(range));
        Ok(Box::new(self.start(async move {
            let found: GetResult = store.get_opts(&path, options).await.map_err(to_io)?;
            if version.is_some() && version.as_deref() != Some(version_of(&found.meta).as_str()) {
                return Err(changed());
            }
            found.bytes().await.map_err(to_io)
        })))
    }
}

/// A request under way.
#[derive(Debug)]
struct Request<T> {
    answer: Receiver<io::Result<T>>,
    task: AbortHandle,
}

impl<T> Request<T> {
    fn wait(&self) -> io::Result<T> {
        let ended = |_| io::Error::other("the runtime of the store has ended");
        self.answer.recv().map_err(ended)?
    }
}

impl Fetch for Request<Bytes> {
    fn wait(self: Box<Self>, buffer: &mut Vec<u8>) -> io::Result<()> {
        let bytes = Self::wait(&self)?;
        buffer.clear();
        buffer.extend_from_slice(&bytes);
        Ok(())
    }
}

impl<T> Drop for Request<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn directory_at(path: &Path) -> StoredFile {
    let name = path.filename().unwrap_or_default().to_owned();
    StoredFile { name, is_directory: true, ..StoredFile::default() }
}

fn file_of(object: &ObjectMeta) -> StoredFile {
    StoredFile {
        name: object.location.filename().unwrap_or_default().to_owned(),
        is_directory: false,
        size: object.size,
        modified_ms: object.last_modified.timestamp_millis(),
        version: Some(version_of(object)),
    }
}

/// The `ETag`, or the time if the store has none.
fn version_of(object: &ObjectMeta) -> String {
    let time = || object.last_modified.timestamp_micros().to_string();
    object.e_tag.clone().unwrap_or_else(time)
}

fn to_io(error: Error) -> io::Error {
    let kind = match error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::Precondition { .. } => return changed(),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
