//! The messages of a file by the names and numbers that framings give them.

use std::collections::HashMap;

use prost_reflect::{FileDescriptor, MessageDescriptor};

/// All messages of a file, nested ones and the entries of maps too.
pub(super) struct Paths {
    /// Full names with their paths, by name.
    sorted: Vec<(String, Vec<i32>)>,
    /// Places in `sorted` by the last part of the name: of several, the outermost one.
    by_short_name: HashMap<String, usize>,
}

impl Paths {
    pub(super) fn of(file: &FileDescriptor) -> Self {
        let mut sorted = Vec::new();
        let mut open: Vec<(MessageDescriptor, Vec<i32>)> =
            (0..).zip(file.messages()).map(|(index, message)| (message, vec![index])).collect();
        while let Some((message, path)) = open.pop() {
            for (index, child) in (0..).zip(message.child_messages()) {
                open.push((child, [path.as_slice(), &[index]].concat()));
            }
            sorted.push((message.full_name().to_owned(), path));
        }
        // As Java compares strings; names are ASCII.
        sorted.sort_unstable();
        let mut by_short_name: HashMap<String, usize> = HashMap::new();
        for (place, (name, path)) in sorted.iter().enumerate() {
            let short = name.rsplit('.').next().unwrap_or_default().to_owned();
            let depth = |place: usize| sorted[place].1.len();
            let first = by_short_name.entry(short).or_insert(place);
            if path.len() < depth(*first) {
                *first = place;
            }
        }
        Self { sorted, by_short_name }
    }

    /// The path of the message with this full name, or with this last part of its name.
    pub(super) fn named(&self, name: &str) -> Option<&[i32]> {
        let place = match self.sorted.binary_search_by(|entry| entry.0.as_str().cmp(name)) {
            Ok(place) => place,
            Err(_) => *self.by_short_name.get(name)?,
        };
        Some(&self.sorted[place].1)
    }

    /// The path of the message at this place in the order of full names.
    pub(super) fn at(&self, place: u32) -> Option<&[i32]> {
        Some(&self.sorted.get(usize::try_from(place).ok()?)?.1)
    }
}
