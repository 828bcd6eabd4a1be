//! The version of a local segment. It changes when a broker or a copying tool replaces the file, but not when
//! it appends to the file.

use crate::storage::file_info::FileInfo;

const PIN: &str = "inode";

/// The pin of a file with an inode.
fn pin(file: &FileInfo) -> Option<String> {
    Some(format!("{PIN} {} {} {}", file.inode?, file.modified_ms, file.size))
}

/// The version by which a reader notices that a segment is not the file that was listed.
pub(crate) fn pinned_version(info: &FileInfo) -> Option<String> {
    info.version.clone().or_else(|| pin(info))
}

/// True if a version is the pin of a local file.
#[doc(hidden)]
#[must_use]
pub fn is_pin(version: &str) -> bool {
    version.starts_with(PIN)
}

/// True if two versions belong to the same file, which may have grown in between.
#[doc(hidden)]
pub fn is_same_file(version: Option<&str>, other: Option<&str>) -> bool {
    fn inode(version: &str) -> Option<&str> {
        is_pin(version).then(|| version.split(' ').nth(1)).flatten()
    }
    version == other
        || version.and_then(inode).zip(other.and_then(inode)).is_some_and(|(one, another)| one == another)
}

/// True if a file is the pinned file. Some mounted file systems make up inodes, differently on every machine
/// of a cluster. There, a file with the same size and time counts as the same file.
pub(super) fn holds(pin: &str, file: &FileInfo) -> bool {
    let mut fields = pin.split(' ').skip(1);
    let inode: Option<u64> = fields.next().and_then(|field| field.parse().ok());
    inode.is_some() && inode == file.inode || fields.eq([file.modified_ms.to_string(), file.size.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_holds_while_the_file_grows() {
        let file =
            |inode, modified_ms, size| FileInfo { size, modified_ms, version: None, inode: Some(inode) };
        let pinned = pin(&file(7, 1000, 50)).expect("has an inode");
        assert!(holds(&pinned, &file(7, 1000, 50)));
        assert!(holds(&pinned, &file(7, 2000, 90)));
        // On another machine.
        assert!(holds(&pinned, &file(8, 1000, 50)));
        assert!(!holds(&pinned, &file(8, 1000, 51)));
        assert!(!holds(&pinned, &file(8, 1001, 50)));
        assert!(!holds("", &file(7, 1000, 50)));
        let grown = pin(&file(7, 2000, 90));
        assert!(is_same_file(Some(&pinned), grown.as_deref()));
        assert!(!is_same_file(Some(&pinned), pin(&file(8, 1000, 50)).as_deref()));
        assert!(is_same_file(None, None) && is_same_file(Some("etag"), Some("etag")));
        assert!(!is_same_file(Some("etag 1"), Some("etag 2")) && !is_same_file(None, Some(&pinned)));
    }
}
