//! Logs in stores of the crate `object_store`: the same sums as from the directory, and never from two versions of an object.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::path::Path;
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;

use magicbyte_log::{Location, PartitionLog, PartitionReconciliation, PlanOptions, Stores};
use magicbyte_object_store::Bucket;
use magicbyte_testing::partitions;

fn mounted(url: &str, store: Arc<dyn ObjectStore>, runtime: &Runtime) -> Stores {
    let mut stores = Stores::default();
    stores.mount(url, Arc::new(Bucket::new(url, store, runtime.handle().clone())));
    stores
}

/// The sums; paths differ.
fn sums(log: &PartitionLog) -> PartitionReconciliation {
    let mut sums = log.verify(PlanOptions::default()).unwrap();
    sums.path.clear();
    sums.segments.iter_mut().for_each(|segment| segment.result.path.clear());
    sums
}

fn put(runtime: &Runtime, store: &InMemory, directory: &str, path: &Path) {
    let object = format!("{directory}/{}", path.file_name().unwrap().to_str().unwrap());
    if path.is_dir() {
        return put_all(runtime, store, &object, path);
    }
    let content = std::fs::read(path).unwrap();
    runtime.block_on(store.put(&object.into(), content.into())).unwrap();
}

fn put_all(runtime: &Runtime, store: &InMemory, directory: &str, path: &Path) {
    for entry in std::fs::read_dir(path).unwrap() {
        put(runtime, store, directory, &entry.unwrap().path());
    }
}

#[test]
fn brokers_partitions_give_the_same_sums() {
    let runtime = Runtime::new().unwrap();
    let all = partitions();
    let files = LocalFileSystem::new_with_prefix(all[0].parent().unwrap()).unwrap();
    let files = mounted("files://kafka", Arc::new(files), &runtime);
    let memory = Arc::new(InMemory::new());
    let objects = mounted("memory://kafka", Arc::clone(&memory) as Arc<dyn ObjectStore>, &runtime);
    for directory in all {
        let name = directory.file_name().unwrap().to_str().unwrap();
        put_all(&runtime, &memory, name, &directory);
        let expected = sums(&PartitionLog::open(&directory).unwrap());
        for (url, stores) in [("files://kafka", &files), ("memory://kafka", &objects)] {
            let log = PartitionLog::open(Location::parse(format!("{url}/{name}"), stores)).unwrap();
            assert_eq!(sums(&log), expected, "{url}/{name}");
        }
    }
}

#[test]
fn what_is_replaced_is_damage_and_what_is_missing_an_error() {
    let runtime = Runtime::new().unwrap();
    let memory = Arc::new(InMemory::new());
    let stores = mounted("memory://changing", Arc::clone(&memory) as Arc<dyn ObjectStore>, &runtime);
    let [one, other] = ["v2_none", "v2_zstd"].map(|name| {
        let directory = partitions().into_iter().find(|path| path.ends_with(name)).unwrap();
        directory.join(format!("{:020}.log", 0))
    });
    put(&runtime, &memory, "orders-0", &one);
    let log = PartitionLog::open(Location::parse("memory://changing/orders-0", &stores)).unwrap();
    put(&runtime, &memory, "orders-0", &other);
    let found = log.verify(PlanOptions::default()).unwrap();
    assert_eq!((found.rows, found.quarantined_bytes), (0, one.metadata().unwrap().len()));
    let missing = PartitionLog::open(Location::parse("memory://changing/orders-1", &stores)).unwrap_err();
    assert!(missing.to_string().contains("memory://changing/orders-1"), "{missing}");
}

/// An error, and no wait without an end.
#[test]
fn a_runtime_that_has_ended() {
    let runtime = Runtime::new().unwrap();
    let stores = mounted("memory://ended", Arc::new(InMemory::new()), &runtime);
    drop(runtime);
    let error = PartitionLog::open(Location::parse("memory://ended/orders-0", &stores)).unwrap_err();
    assert!(error.to_string().contains("the runtime of the store has ended"), "{error}");
}
