//! Remote stores that are mounted under the beginning of a URL, such as `s3://bucket`, and then serve every path
//! that begins with it.

use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::storage::file_info::{Found, MAX_SIDECAR_BYTES};
use crate::storage::open_file::OpenFile;
use crate::storage::ranges::Ranges;
use crate::storage::remote::{RemoteStore, fatal};
use crate::storage::store::{Entry, Store};

/// Remote stores, and the URLs at which they are mounted.
///
/// ```no_run
/// # use std::sync::Arc;
/// use magicbyte_log::{Location, PartitionLog, RemoteStore, Stores};
/// # fn read(bucket: Arc<dyn RemoteStore>) -> magicbyte_log::LogResult<()> {
/// let mut stores = Stores::default();
/// stores.mount("s3://bucket", bucket);
/// let log = PartitionLog::open(Location::parse("s3://bucket/orders-0", &stores))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stores(Vec<(String, Arc<Mounted>)>);

impl Stores {
    /// Serves all paths that begin with `prefix` (a URL without a slash at its end) from `store`. A store that was
    /// mounted there before is returned; it still serves the locations that were parsed before.
    pub fn mount(&mut self, prefix: &str, store: Arc<dyn RemoteStore>) -> Option<Arc<dyn RemoteStore>> {
        static MOUNTED: AtomicU64 = AtomicU64::new(1);
        let number = MOUNTED.fetch_add(1, Ordering::Relaxed);
        let mounted = Arc::new(Mounted { number, remote: store });
        match self.0.iter_mut().find(|(other, _)| other == prefix) {
            Some((_, before)) => Some(Arc::clone(&std::mem::replace(before, mounted).remote)),
            None => {
                self.0.push((prefix.to_owned(), mounted));
                None
            }
        }
    }

    /// The store that serves a URL; None for a path that is no URL.
    pub(super) fn of(&self, path: &Path) -> Option<Arc<dyn Store>> {
        let url = path.to_str().filter(|path| is_url(path))?;
        let serves = |prefix: &str| {
            url.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mounted = self.0.iter().find(|(prefix, _)| serves(prefix));
        Some(mounted.map_or_else(|| Arc::new(NotMounted) as _, |(_, store)| Arc::clone(store) as _))
    }
}

fn is_url(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    })
}

/// A remote store, read in ranges.
#[derive(Debug)]
pub(super) struct Mounted {
    number: u64,
    remote: Arc<dyn RemoteStore>,
}

/// A URL as the remote store gets it.
fn url_of(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the URL is not UTF-8"))
}

impl Store for Mounted {
    fn number(&self) -> u64 {
        self.number
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        let files = self.remote.list(url_of(directory)?).map_err(fatal)?;
        Ok(files.into_iter().map(|file| (directory.join(&file.name), Ok(Found::from(file)))).collect())
    }

    fn examine(&self, path: &Path) -> io::Result<Found> {
        self.remote.examine(url_of(path)?).map(Found::from).map_err(fatal)
    }

    fn open(&self, path: &Path, size: u64, version: Option<&str>) -> io::Result<OpenFile> {
        let ranges = Ranges::open(Arc::clone(&self.remote), self.number, url_of(path)?, size, version);
        Ok(OpenFile::Ranges(ranges))
    }

    fn open_small(&self, path: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        let data =
            self.remote.read(url_of(path)?, MAX_SIDECAR_BYTES).map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => error,
                _ => fatal(error),
            })?;
        let size = data.len() as u64;
        Ok((Box::new(Cursor::new(data)), size))
    }
}

/// The store of URLs at which none is mounted.
#[derive(Debug)]
struct NotMounted;

fn not_mounted<T>() -> io::Result<T> {
    let why =
        "it is a URL, and this command or function reads only local paths, or no store is mounted for it";
    Err(fatal(io::Error::new(io::ErrorKind::Unsupported, why)))
}

impl Store for NotMounted {
    fn number(&self) -> u64 {
        0
    }

    fn list(&self, _: &Path) -> io::Result<Vec<Entry>> {
        not_mounted()
    }

    fn examine(&self, _: &Path) -> io::Result<Found> {
        not_mounted()
    }

    fn open(&self, _: &Path, _: u64, _: Option<&str>) -> io::Result<OpenFile> {
        not_mounted()
    }

    fn open_small(&self, _: &Path) -> io::Result<(Box<dyn Read>, u64)> {
        not_mounted()
    }
}
