//! A position in a payload.

use super::types::{Kind, TypeId, Types};
use crate::budget::Budget;
use crate::failure::{Attempt, Failure};
use crate::varint;

/// The maximum nesting depth of values, which matters for types that contain themselves only.
pub(super) const MAX_DEPTH: usize = 100;

/// Reads what a payload consists of. Nothing is allocated from a count in it.
pub(super) struct Cursor<'a> {
    /// Those of the writer.
    types: &'a Types,
    payload: &'a [u8],
    pub(super) position: usize,
    pub(super) budget: &'a mut Budget,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(types: &'a Types, payload: &'a [u8], budget: &'a mut Budget) -> Self {
        Self { types, payload, position: 0, budget }
    }

    /// Fails if the payload goes on.
    pub(super) fn end(&self) -> Attempt<()> {
        match self.payload.len() - self.position {
            0 => Ok(()),
            more => Err(self.fault(format!("{more} bytes after the end of the value"))),
        }
    }

    /// Reads something else, such as a default, and comes back. An error of it is one of the present position.
    pub(super) fn within(
        &mut self,
        payload: &'a [u8],
        read: impl FnOnce(&mut Self) -> Attempt<()>,
    ) -> Attempt<()> {
        let outer = (self.payload, self.position);
        (self.payload, self.position) = (payload, 0);
        let done = read(self);
        (self.payload, self.position) = outer;
        done.map_err(|failure| failure.without_position().or_at(outer.1))
    }

    /// A failure at the present position.
    #[cold]
    pub(super) fn fault(&self, reason: impl Into<String>) -> Failure {
        Failure::at(self.position, reason)
    }

    /// Takes bytes of columns from the budget.
    #[inline]
    pub(super) fn spend(&mut self, bytes: usize) -> Attempt<()> {
        self.budget.spend(bytes).map_err(|failure| failure.or_at(self.position))
    }

    #[inline(always)]
    pub(super) fn long(&mut self, what: &'static str) -> Attempt<i64> {
        let value = match varint::short(&self.payload[self.position..]) {
            Some((value, size)) => {
                self.position += size;
                value
            }
            None => self.long_varint(what)?,
        };
        Ok(varint::unzigzag(value))
    }

    #[cold]
    fn long_varint(&mut self, what: &'static str) -> Attempt<u64> {
        let rest = &self.payload[self.position..];
        match (varint::exact(rest), rest.len()) {
            (Some((value, size)), _) => {
                self.position += size;
                Ok(value)
            }
            (None, left @ ..10) => {
                Err(self.fault(format!("the payload ends in {what}, a varint, after {left} bytes")))
            }
            (None, _) => Err(self.fault(format!("{what} is a varint of more than 64 bits"))),
        }
    }

    #[inline]
    pub(super) fn int(&mut self, what: &'static str) -> Attempt<i32> {
        let start = self.position;
        let value = self.long(what)?;
        i32::try_from(value)
            .map_err(|_| Failure::at(start, format!("{what} is {value}: expected an int of 32 bits")))
    }

    #[inline]
    pub(super) fn boolean(&mut self) -> Attempt<bool> {
        let start = self.position;
        match self.bytes(1, "a boolean")? {
            [0] => Ok(false),
            [1] => Ok(true),
            other => Err(Failure::at(start, format!("a boolean of {}: expected 0 or 1", other[0]))),
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self, count: usize, what: &'static str) -> Attempt<&'a [u8]> {
        let Some(bytes) = self.payload[self.position..].get(..count) else {
            return Err(self.ends(count, what));
        };
        self.position += count;
        Ok(bytes)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self, what: &'static str) -> Attempt<[u8; N]> {
        let Some(array) = self.payload[self.position..].first_chunk() else {
            return Err(self.ends(N, what));
        };
        self.position += N;
        Ok(*array)
    }

    #[cold]
    fn ends(&self, expected: usize, what: &'static str) -> Failure {
        let found = self.payload.len() - self.position;
        self.fault(format!("the payload ends: expected {expected} bytes of {what}, found {found}"))
    }

    /// Reads a number, and returns as many of the following bytes.
    #[inline]
    pub(super) fn sized(&mut self, what: &'static str) -> Attempt<&'a [u8]> {
        let start = self.position;
        let size = self.long("a length")?;
        let rest = &self.payload[self.position..];
        let Some(bytes) = usize::try_from(size).ok().and_then(|size| rest.get(..size)) else {
            let left = rest.len();
            return Err(Failure::at(start, format!("{what} of {size} bytes: the payload has {left} more")));
        };
        self.position += bytes.len();
        Ok(bytes)
    }

    /// The branch of a union, or the symbol of an enum, that the next number says.
    #[inline]
    pub(super) fn one_of<T>(&mut self, of: &'a [T], what: &'static str) -> Attempt<&'a T> {
        let start = self.position;
        let index = self.long(what)?;
        usize::try_from(index)
            .ok()
            .and_then(|index| of.get(index))
            .ok_or_else(|| Failure::at(start, format!("{what} is {index}: there are {}", of.len())))
    }

    /// The items of an array or a map: blocks of them, and a count of 0.
    pub(super) fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Attempt<()>) -> Attempt<()> {
        loop {
            // Java ignores the size of a block whose items it reads.
            let (count, _) = self.block()?;
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count {
                item(self)?;
            }
        }
    }

    /// The number of items of a block, and its size in bytes: writers may say it, so that readers can skip the block.
    fn block(&mut self) -> Attempt<(u64, Option<i64>)> {
        let count = self.long("the count of a block")?;
        if count >= 0 {
            return Ok((count as u64, None));
        }
        let size = self.long("the size of a block")?;
        Ok((count.unsigned_abs(), Some(size)))
    }

    fn skip_block(&mut self, size: i64) -> Attempt<()> {
        let left = self.payload.len() - self.position;
        match usize::try_from(size) {
            Ok(bytes) if bytes <= left => {
                self.position += bytes;
                Ok(())
            }
            _ => Err(self.fault(format!("a block of {size} bytes: the payload has {left} more"))),
        }
    }

    /// Skips a value of the writer's type, as Java does: its text need not be UTF-8, its symbols need not exist.
    pub(super) fn skip(&mut self, id: TypeId, depth: usize) -> Attempt<()> {
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        match &self.types.get(id).kind {
            Kind::Null => {}
            Kind::Boolean => drop(self.bytes(1, "a boolean")?),
            Kind::Int | Kind::Enum { .. } => drop(self.int("a number")?),
            Kind::Long => drop(self.long("a number")?),
            Kind::Float => drop(self.bytes(4, "a float")?),
            Kind::Double => drop(self.bytes(8, "a double")?),
            Kind::Bytes | Kind::String => drop(self.sized("bytes or a string")?),
            Kind::Fixed { size, .. } => drop(self.bytes(*size, "a fixed")?),
            Kind::Array(item) => self.skip_blocks(|cursor| cursor.skip(*item, depth + 1))?,
            Kind::Map(of) => self.skip_blocks(|cursor| {
                cursor.sized("a key")?;
                cursor.skip(*of, depth + 1)
            })?,
            Kind::Union(branches) => {
                let branch = *self.one_of(branches, "the branch of a union")?;
                self.skip(branch, depth + 1)?;
            }
            Kind::Record { fields, .. } => {
                for &index in self.types.fields_with_bytes(id) {
                    let field = &fields[index];
                    self.skip(field.of, depth + 1).map_err(|failure| failure.in_field(&field.name))?;
                }
            }
        }
        Ok(())
    }

    fn skip_blocks(&mut self, mut skip_item: impl FnMut(&mut Self) -> Attempt<()>) -> Attempt<()> {
        loop {
            let (count, size) = self.block()?;
            if let Some(size) = size {
                self.skip_block(size)?;
            } else if count == 0 {
                return Ok(());
            } else {
                for _ in 0..count {
                    let before = self.position;
                    skip_item(self)?;
                    // If one item has no bytes, none has: the count says nothing of the work then.
                    if self.position == before {
                        break;
                    }
                }
            }
        }
    }

    #[cold]
    pub(super) fn too_deep(&self) -> Failure {
        self.fault(format!("values are nested deeper than {MAX_DEPTH}"))
    }
}
