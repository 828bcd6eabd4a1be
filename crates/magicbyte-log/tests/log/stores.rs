//! Logs read through stores: the same sums as from the directory, from few bytes, and never from two versions of a file.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magicbyte::{Compression, RecordsBuilder};
use magicbyte_log::steps::{ChunkReader, Located, SurveyInParts, plan_partition, survey_segment};
use magicbyte_log::{
    Fetch, Listing, Location, PartitionLog, PartitionReconciliation, PlanOptions, ReadOptions, RemoteStore,
    StoredFile, Stores,
};
use magicbyte_testing::partitions;

/// The files of a directory.
#[derive(Debug)]
struct Files {
    prefix: &'static str,
    root: PathBuf,
    fetched: AtomicU64,
    fetches: AtomicU64,
    refuses: AtomicBool,
}

#[derive(Debug)]
struct Fetched(io::Result<Vec<u8>>);

impl Fetch for Fetched {
    fn wait(self: Box<Self>, buffer: &mut Vec<u8>) -> io::Result<()> {
        *buffer = self.0?;
        Ok(())
    }
}

impl Files {
    fn new(prefix: &'static str, root: PathBuf) -> Arc<Self> {
        let (fetched, fetches) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { prefix, root, fetched, fetches, refuses: AtomicBool::new(false) })
    }

    fn stores(self: &Arc<Self>) -> Stores {
        let mut stores = Stores::default();
        stores.mount(self.prefix, Arc::clone(self) as Arc<dyn RemoteStore>);
        stores
    }

    /// The log in a directory of the store.
    fn open(self: &Arc<Self>, directory: &str) -> PartitionLog {
        PartitionLog::open(Location::parse(format!("{}/{directory}", self.prefix), &self.stores())).unwrap()
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.strip_prefix(self.prefix).unwrap().trim_matches('/'))
    }

    fn describe(path: &Path) -> io::Result<StoredFile> {
        let found = fs::metadata(path)?;
        let modified = found.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap();
        Ok(StoredFile {
            name: path.file_name().unwrap().to_str().unwrap().to_owned(),
            is_directory: found.is_dir(),
            size: found.len(),
            modified_ms: modified.as_millis() as i64,
            version: Some(format!("{}", modified.as_nanos())),
        })
    }

    fn take(&self) -> (u64, u64) {
        (self.fetched.swap(0, Ordering::SeqCst), self.fetches.swap(0, Ordering::SeqCst))
    }
}

impl RemoteStore for Files {
    fn list(&self, directory: &str) -> io::Result<Vec<StoredFile>> {
        fs::read_dir(self.path(directory))?.map(|entry| Self::describe(&entry?.path())).collect()
    }

    fn examine(&self, path: &str) -> io::Result<StoredFile> {
        Self::describe(&self.path(path))
    }

    fn read(&self, path: &str, _: u64) -> io::Result<Vec<u8>> {
        fs::read(self.path(path))
    }

    fn fetch(&self, path: &str, version: Option<&str>, range: Range<u64>) -> io::Result<Box<dyn Fetch>> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "no longer"));
        }
        let path = self.path(path);
        if version != Self::describe(&path)?.version.as_deref() {
            return Ok(Box::new(Fetched(Err(io::ErrorKind::StaleNetworkFileHandle.into()))));
        }
        self.fetched.fetch_add(range.end - range.start, Ordering::SeqCst);
        self.fetches.fetch_add(1, Ordering::SeqCst);
        let mut file = fs::File::open(path)?;
        file.seek(SeekFrom::Start(range.start))?;
        let mut bytes = Vec::new();
        file.take(range.end - range.start).read_to_end(&mut bytes)?;
        Ok(Box::new(Fetched(Ok(bytes))))
    }
}

/// The sums; paths differ.
fn sums(log: &PartitionLog) -> PartitionReconciliation {
    let mut sums = log.verify(PlanOptions::default()).unwrap();
    sums.path.clear();
    sums.segments.iter_mut().for_each(|segment| segment.result.path.clear());
    sums
}

fn scratch(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("magicbyte-stores-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// A segment of `count` batches of about `size` bytes.
fn write_log(directory: &Path, count: usize, size: usize) -> u64 {
    fs::create_dir_all(directory).unwrap();
    let mut data = Vec::new();
    for n in 0..count {
        let mut builder = RecordsBuilder::v2(Compression::None);
        builder.append(n as i64, 1_700_000_000_000, None, Some(&vec![n as u8; size]), &[]).unwrap();
        data.extend_from_slice(&builder.build().unwrap());
    }
    fs::write(directory.join(format!("{:020}.log", 0)), &data).unwrap();
    data.len() as u64
}

#[test]
fn brokers_partitions_give_the_same_sums() {
    let all = partitions();
    let root = all[0].parent().unwrap().to_owned();
    let files = Files::new("same://kafka", root);
    for directory in all {
        let name = directory.file_name().unwrap().to_str().unwrap();
        let stored = files.open(name);
        assert_eq!(sums(&stored), sums(&PartitionLog::open(&directory).unwrap()), "{name}");
    }
}

/// A survey of large batches skips them; one of small batches reads all, and what it read is not fetched again.
#[test]
fn few_bytes_are_fetched() {
    let root = scratch("few");
    let files = Files::new("few://logs", root.clone());
    let mebibyte = write_log(&root.join("large-0"), 160, 1 << 20) as f64;
    let log = files.open("large-0");
    log.plan(PlanOptions::default()).unwrap();
    let (bytes, _) = files.take();
    assert!((bytes as f64) < 0.1 * mebibyte, "{}", bytes as f64 / mebibyte);
    assert!(log.verify(PlanOptions::default()).unwrap().balanced);
    let small = write_log(&root.join("small-0"), 3000, 16 << 10) as f64;
    files.take();
    let log = files.open("small-0");
    assert!(log.verify(PlanOptions::default()).unwrap().balanced);
    let (bytes, fetches) = files.take();
    assert!((bytes as f64) < 1.02 * small, "{}", bytes as f64 / small);
    assert!(fetches < 30, "{fetches}");
    fs::remove_dir_all(root).unwrap();
}

/// The last records are found without the segments before them.
#[test]
fn few_bytes_are_fetched_for_the_last_records() {
    let root = scratch("last");
    let directory = root.join("large-0");
    fs::create_dir_all(&directory).unwrap();
    for segment in 0..20 {
        let mut data = Vec::new();
        for offset in (segment * 50)..(segment * 50 + 50) {
            let mut builder = RecordsBuilder::v2(Compression::None);
            builder.append(offset, 0, None, Some(&[7; 20 << 10]), &[]).unwrap();
            data.extend(builder.build().unwrap());
        }
        fs::write(directory.join(format!("{:020}.log", segment * 50)), data).unwrap();
    }
    let files = Files::new("last://logs", root.clone());
    let log = files.open("large-0");
    for (count, segments) in [(1, 1), (50, 1), (51, 2), (120, 3)] {
        files.take();
        let start = log.start_of_last(count, ReadOptions::default()).unwrap();
        assert_eq!(start, Some(1000 - count as i64));
        let (bytes, _) = files.take();
        // The segment with the first of the records is read twice.
        assert!(bytes <= (segments + 1) * 52 * (20 << 10), "{count}: {bytes}");
    }
    fs::remove_dir_all(root).unwrap();
}

/// A survey before the decoding fetches all, without waiting between ranges; nothing is fetched again, however large batches are.
#[test]
fn what_is_decoded_next_is_fetched_once() {
    let root = scratch("next");
    let files = Files::new("next://logs", root.clone());
    for (name, count, size) in [("small-0", 3000, 16 << 10), ("large-0", 9, 10 << 20), ("tiny-0", 3, 10)] {
        let written = write_log(&root.join(name), count, size);
        let log = files.open(name);
        files.take();
        let (listing, options) = (log.listing(), PlanOptions::default());
        let survey = SurveyInParts::begin(&listing.segments[0], 1).unwrap().last().unwrap().unwrap();
        let (bytes, fetches) = files.take();
        assert!(bytes <= written && fetches <= written / (4 << 20) + 1, "{name}: {bytes} in {fetches}");
        // As close together as those of a local file.
        let local = PartitionLog::open(root.join(name)).unwrap();
        assert_eq!(survey.borders, survey_segment(&local.listing().segments[0]).unwrap().borders);
        let plan = plan_partition(listing, &[survey], options).unwrap();
        for chunk in plan.chunks {
            let mut reader = ChunkReader::open(chunk, true, 256 << 20).unwrap();
            while reader.next_batch().unwrap().is_some() {}
        }
        let (more, _) = files.take();
        assert_eq!(bytes + more, written, "{name}");
    }
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_replaced_file_is_damage_and_a_failing_store_an_error() {
    let root = scratch("replaced");
    let files = Files::new("changing://logs", root.clone());
    let size = write_log(&root.join("orders-0"), 3000, 2 << 10);
    let log = files.open("orders-0");
    std::thread::sleep(std::time::Duration::from_millis(20));
    write_log(&root.join("orders-0"), 3000, 2 << 10);
    let account = log.verify(PlanOptions::default()).unwrap();
    assert_eq!((account.rows, account.quarantined_bytes), (0, size));
    let log = files.open("orders-0");
    files.refuses.store(true, Ordering::SeqCst);
    let error = log.verify(PlanOptions::default()).unwrap_err().to_string();
    assert!(error.ends_with(".log: no longer"), "{error}");
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_url_without_a_store_is_refused() {
    let error = PartitionLog::open("nowhere://bucket/orders-0").unwrap_err().to_string();
    assert!(error.contains("it is a URL"), "{error}");
}

#[test]
fn a_listing_of_another_process_needs_its_stores() {
    let root = scratch("json");
    let files = Files::new("json://logs", root.clone());
    write_log(&root.join("orders-0"), 3, 100);
    let log = files.open("orders-0");
    let json = serde_json::to_string(log.listing()).unwrap();
    assert!(json.contains(r#""path":"json://logs/orders-0/00000000000000000000.log""#), "{json}");
    let mut listing: Listing = serde_json::from_str(&json).unwrap();
    let error = PartitionLog::of_listing(listing.clone()).verify(PlanOptions::default()).unwrap_err();
    assert!(error.to_string().contains("it is a URL"), "{error}");
    listing.locate(&files.stores());
    assert_eq!(sums(&PartitionLog::of_listing(listing)), sums(&log));
    fs::remove_dir_all(root).unwrap();
}

/// Caches know stores apart that are mounted at one URL, even if their files have one version.
#[test]
fn two_stores_at_one_url() {
    let root = scratch("two");
    let time = std::time::SystemTime::now();
    let first_batch = |store: &str, last_byte: u8| {
        let log = root.join(store).join("orders-0");
        write_log(&log, 1, 100);
        let segment = log.join(format!("{:020}.log", 0));
        let mut data = fs::read(&segment).unwrap();
        *data.last_mut().unwrap() = last_byte;
        fs::write(&segment, &data).unwrap();
        fs::File::options().write(true).open(&segment).unwrap().set_modified(time).unwrap();
        let files = Files::new("two://logs", root.join(store));
        let options = ReadOptions { check_crcs: false, ..ReadOptions::default() };
        let batch = files.open("orders-0").batches(options).unwrap().next().unwrap().unwrap();
        batch.data.data().last().copied()
    };
    assert_eq!(first_batch("a", 1), Some(1));
    assert_eq!(first_batch("b", 2), Some(2));
    fs::remove_dir_all(root).unwrap();
}
