//! Message indexes: the path of a message in its file.

use prost_reflect::{FileDescriptor, MessageDescriptor};

/// The message at a path of indexes.
///
/// There are two ways to count. `protoc` adds a message for the entries of each map, and clients that ask its descriptors,
/// such as Confluent's for Python, count it. Other clients count the messages in the text of a schema, where `map<..>` is
/// not one.
///
/// No value is the entry of a map. A path that leads to one, or nowhere, was counted in the second way.
pub(super) fn message(file: &FileDescriptor, indexes: &[i32]) -> Option<MessageDescriptor> {
    at(file, indexes, |_| true).or_else(|| at(file, indexes, |message| !message.is_map_entry()))
}

/// The message at a path of indexes that count some messages; `None` for an entry of a map.
fn at(
    file: &FileDescriptor,
    indexes: &[i32],
    counts: impl Fn(&MessageDescriptor) -> bool,
) -> Option<MessageDescriptor> {
    let (&first, rest) = indexes.split_first()?;
    let mut message = file.messages().nth(usize::try_from(first).ok()?)?;
    for &index in rest {
        let index = usize::try_from(index).ok()?;
        let child = message.child_messages().filter(&counts).nth(index);
        message = child?;
    }
    (!message.is_map_entry()).then_some(message)
}

/// The path of a message, as `protoc` counts.
pub(super) fn of(message: &MessageDescriptor) -> Vec<i32> {
    let mut path = Vec::new();
    let mut inner = message.clone();
    while let Some(outer) = inner.parent_message() {
        path.extend(outer.child_messages().position(|child| child == inner));
        inner = outer;
    }
    path.extend(inner.parent_file().messages().position(|top| top == inner));
    path.iter().rev().map(|&index| index as i32).collect()
}
