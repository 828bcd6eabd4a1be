//! A directory that lives as long as its thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A private directory with a partition `t-0`; removed when dropped.
pub struct Scratch {
    root: PathBuf,
}

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // A memory file system, where syncing costs nothing, if there is one.
        let memory = PathBuf::from("/dev/shm");
        let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let root = place.join(format!("magicbyte-fuzz-{}-{number}", std::process::id()));
        std::fs::create_dir_all(root.join("t-0")).unwrap();
        Self { root }
    }

    pub fn partition(&self) -> PathBuf {
        self.root.join("t-0")
    }

    /// A path next to the partition.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes the partition's first segment.
    pub fn segment(&self, data: &[u8]) -> PathBuf {
        self.file("00000000000000000000.log", data)
    }

    pub fn file(&self, name: impl AsRef<Path>, data: &[u8]) -> PathBuf {
        let path = self.partition().join(name);
        std::fs::write(&path, data).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
