//! The fields of a message, by their tags.

use super::wire::{Reader, ShortTags, Tag};

/// Field numbers below this are looked up in a table.
const TABLE: u32 = 512;

/// The indexes of a message's fields.
pub(crate) struct Tags {
    short: Box<ShortTags>,
    /// Indexes by field number, plus 1; 0 is an unknown field. Higher numbers are in `others`.
    by_number: Box<[u16]>,
    others: Box<[(u32, usize)]>,
}

impl Tags {
    /// Of fields with these numbers: in ascending order, or at most 65,534. Number 0 is one that no tag has.
    pub(crate) fn new(numbers: impl Iterator<Item = u32> + Clone) -> Self {
        let mut by_number = Vec::new();
        let mut others = Vec::new();
        for (index, number) in numbers.clone().enumerate() {
            if number < TABLE {
                let slot = number as usize;
                by_number.resize(by_number.len().max(slot + 1), 0);
                by_number[slot] = index as u16 + 1;
            } else {
                others.push((number, index));
            }
        }
        others.sort_unstable();
        let short = numbers.enumerate().filter(|field| (1..16).contains(&field.1));
        let short = Box::new(ShortTags::new(short.map(|(index, number)| (number, index as u16))));
        Self { short, by_number: by_number.into(), others: others.into() }
    }

    /// The next field of a message and its index, if its tag is one byte; otherwise nothing is read.
    #[inline(always)]
    pub(crate) fn short(&self, reader: &mut Reader<'_>) -> Option<(Tag, usize)> {
        reader.short_tag(&self.short)
    }

    #[inline]
    pub(crate) fn index_of(&self, number: u32) -> Option<usize> {
        match self.by_number.get(number as usize) {
            Some(&index) => (index as usize).checked_sub(1),
            None => {
                let index = self.others.binary_search_by_key(&number, |other| other.0);
                index.ok().map(|index| self.others[index].1)
            }
        }
    }
}
