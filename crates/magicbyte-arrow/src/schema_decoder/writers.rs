//! The schemas that rows were written with, by the names that rows have for them.

use std::collections::{HashMap, HashSet};

use magicbyte::schema_framing::SchemaId;

pub(super) enum Writer {
    /// The decoder's key for the writer.
    Known(u32),
    /// Rows with this schema cannot be decoded.
    Refused(Refusal),
}

/// The reason why rows with a schema cannot be decoded.
#[derive(Clone)]
pub(super) struct Refusal {
    pub(super) reason: String,
    /// The registry does not have the schema, and may have it later.
    pub(super) is_absent: bool,
}

/// The writers by the names of their schemas. Most ids are small numbers, and each row looks up its id.
#[derive(Default)]
pub(super) struct Writers {
    /// Writers by id.
    small: Vec<Option<Writer>>,
    others: HashMap<SchemaId, Writer>,
    /// The number of known writers.
    pub(super) known: u32,
}

/// Ids below this are in a table.
const SMALL: usize = 1 << 16;
/// The number of other ids beyond which only known ids are remembered: values may name any number of ids.
const MAX_REFUSED: usize = 1 << 16;

impl Writers {
    #[inline(always)]
    pub(super) fn get(&self, id: SchemaId) -> Option<&Writer> {
        match small(id) {
            Some(index) => self.small.get(index)?.as_ref(),
            None => self.others.get(&id),
        }
    }

    pub(super) fn insert(&mut self, id: SchemaId, writer: Writer) {
        self.known += u32::from(matches!(writer, Writer::Known(_)));
        match small(id) {
            Some(index) => {
                let end = self.small.len().max(index + 1);
                self.small.resize_with(end, || None);
                self.small[index] = Some(writer);
            }
            None => _ = self.others.insert(id, writer),
        }
    }

    pub(super) fn forget_refused(&mut self) {
        if self.others.len() > MAX_REFUSED {
            self.others.retain(|_, writer| matches!(writer, Writer::Known(_)));
        }
    }
}

#[inline]
fn small(id: SchemaId) -> Option<usize> {
    match id {
        SchemaId::Id(id) => usize::try_from(id).ok().filter(|&id| id < SMALL),
        SchemaId::Guid(_) | SchemaId::Fingerprint(_) => None,
    }
}

/// Schemas that were not added, each once.
#[derive(Default)]
pub(super) struct UnknownSchemas {
    pub(super) ids: Vec<SchemaId>,
    seen: HashSet<SchemaId>,
}

impl UnknownSchemas {
    #[cold]
    pub(super) fn add(&mut self, schema: SchemaId) {
        if self.ids.last() != Some(&schema) && self.seen.insert(schema) {
            self.ids.push(schema);
        }
    }
}
