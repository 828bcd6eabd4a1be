//! Remote stores that are mounted under the beginning of a URL, such as `s3://bucket`, and then serve every
//! path that begins with it.

use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::storage::file_info::{Found, MAX_SIDECAR_BYTES};
use crate::storage::open_file::OpenFile;
use crate::storage::ranges::Ranges;
use crate::storage::remote::{RemoteStore, fatal};
use crate::storage::store::{Entry, Store};
#[cfg(feature = "tiered")]
use crate::storage::tiered::encryption::EncryptionKeys;

/// Remote stores, the URLs at which they are mounted, and the keys of encrypted segments in tiered storage. They decide
/// what the locations that are parsed with them can read.
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
pub struct Stores {
    mounted: Vec<(String, Arc<Mounted>)>,
    #[cfg(feature = "tiered")]
    pub(super) keys: EncryptionKeys,
}

impl Stores {
    /// Serves all paths that begin with `prefix` (a URL without a slash at its end) from `store`. Returns the
    /// store that was mounted there before, which then serves only the locations that were parsed before.
    pub fn mount(&mut self, prefix: &str, store: Arc<dyn RemoteStore>) -> Option<Arc<dyn RemoteStore>> {
        static MOUNTED: AtomicU64 = AtomicU64::new(1);
        let number = MOUNTED.fetch_add(1, Ordering::Relaxed);
        let mounted = Arc::new(Mounted { number, remote: store });
        match self.mounted.iter_mut().find(|(known, _)| known == prefix) {
            Some((_, before)) => Some(Arc::clone(&std::mem::replace(before, mounted).remote)),
            None => {
                self.mounted.push((prefix.to_owned(), mounted));
                None
            }
        }
    }

    /// Adds an RSA private key (PEM, PKCS #8 or PKCS #1) for encrypted segments in tiered storage, and replaces a key with
    /// the same ID. A key without an ID is tried for every ID that no other key has. Locations that were parsed before
    /// do not get it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is not such a key. The message contains no part of it.
    #[cfg(feature = "tiered")]
    pub fn add_encryption_key(&mut self, id: Option<&str>, pem: &str) -> io::Result<()> {
        self.keys.add(id, pem)
    }

    /// The store that serves a URL; None if none is mounted for it.
    pub(super) fn of(&self, url: &str) -> Option<Arc<Mounted>> {
        let serves = |prefix: &str| {
            url.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.mounted.iter().find(|(prefix, _)| serves(prefix)).map(|(_, store)| Arc::clone(store))
    }
}

/// A remote store, read in ranges.
#[derive(Debug)]
pub(super) struct Mounted {
    /// The number that distinguishes the store from all others of the process.
    pub(super) number: u64,
    remote: Arc<dyn RemoteStore>,
}

/// A URL as the remote store gets it.
fn url_of(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the URL is not UTF-8"))
}

impl Store for Mounted {
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
