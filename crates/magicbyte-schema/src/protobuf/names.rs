//! The names of an enum's values.

use prost_reflect::EnumDescriptor;

use super::features;

/// Names by number. A number with several names has the first of them.
pub(crate) struct EnumNames {
    names: Box<[(i32, Box<str>)]>,
    /// The number of a value that is absent.
    pub(crate) default: i32,
    /// A number without a name is an unknown field.
    pub(crate) is_closed: bool,
    /// True for `google.protobuf.NullValue`, which is null in JSON.
    pub(crate) is_null: bool,
}

impl EnumNames {
    pub(crate) fn new(descriptor: &EnumDescriptor) -> Self {
        let declared = &descriptor.enum_descriptor_proto().value;
        let mut names: Vec<_> = declared.iter().map(|value| (value.number(), value.name().into())).collect();
        names.sort_by_key(|&(number, _)| number);
        names.dedup_by_key(|&mut (number, _)| number);
        Self {
            names: names.into(),
            default: descriptor.default_value().number(),
            is_closed: features::is_closed(descriptor),
            is_null: descriptor.full_name() == "google.protobuf.NullValue",
        }
    }

    #[inline]
    pub(crate) fn find(&self, number: i32) -> Option<&str> {
        // Most enums count from 0.
        let entry = match self.names.get(number as usize) {
            Some(entry) if entry.0 == number => entry,
            _ => &self.names[self.names.binary_search_by_key(&number, |entry| entry.0).ok()?],
        };
        Some(&entry.1)
    }
}
