//! The reader's aliases, by which a writer's older names are those of the reader (Java's `Schema.applyAliases`).

use std::collections::HashMap;

use super::types::{Kind, Name, Types};

/// The aliases of all types and fields of a reader's schema. Those of the writer's schema mean nothing.
#[derive(Default)]
pub(super) struct Aliases<'a> {
    /// The full name of a type, by its alias.
    types: HashMap<&'a str, &'a str>,
    /// The place in `fields` of a record, by its full name or an alias of that.
    records: HashMap<&'a str, usize>,
    /// The names of fields by their aliases, for each record that has some.
    fields: Vec<HashMap<&'a str, &'a str>>,
}

impl<'a> Aliases<'a> {
    pub(super) fn of(reader: &'a Types) -> Self {
        let mut aliases = Self::default();
        for of in reader.reachable() {
            match &reader.get(of).kind {
                Kind::Fixed { name, .. } | Kind::Enum { name, .. } => aliases.add_type(name),
                Kind::Record { name, fields } => {
                    aliases.add_type(name);
                    let renamed = fields.iter().flat_map(|field| {
                        field.aliases.iter().map(|alias| (alias.as_str(), field.name.as_str()))
                    });
                    let renamed: HashMap<_, _> = renamed.collect();
                    if !renamed.is_empty() {
                        let names = std::iter::once(&name.full).chain(&name.aliases);
                        let place = aliases.fields.len();
                        aliases.records.extend(names.map(|record| (record.as_str(), place)));
                        aliases.fields.push(renamed);
                    }
                }
                _ => {}
            }
        }
        aliases
    }

    fn add_type(&mut self, name: &'a Name) {
        self.types.extend(name.aliases.iter().map(|alias| (alias.as_str(), name.full.as_str())));
    }

    /// The reader's full name for a type that the writer calls `full`.
    pub(super) fn of_type<'n>(&self, full: &'n str) -> &'n str
    where
        'a: 'n,
    {
        self.types.get(full).copied().unwrap_or(full)
    }

    /// The reader's name for a field that the writer calls `field`, in a record that the reader calls `record`.
    pub(super) fn of_field<'n>(&self, record: &str, field: &'n str) -> &'n str
    where
        'a: 'n,
    {
        let fields = self.records.get(record).map(|&place| &self.fields[place]);
        fields.and_then(|fields| fields.get(field)).copied().unwrap_or(field)
    }
}
