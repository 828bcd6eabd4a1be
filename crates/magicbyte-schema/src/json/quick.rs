//! Payloads straight into the columns. Whatever cannot be read here, valid or not, is left to `value`, which also says
//! what is wrong with it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::value::{Objects, Values, whole};
use crate::budget::Budget;
use crate::columns::Column;

/// Reads a payload into a row and completes it; `None` if that is up to serde_json, and then the row is not whole.
pub(super) fn read(text: &str, to: &mut Values, budget: &mut Budget) -> Option<()> {
    let mut cursor = Cursor { text, position: 0, budget: *budget };
    cursor.space();
    cursor.value(to)?;
    cursor.space();
    (cursor.position == text.len()).then(|| *budget = cursor.budget)
}

/// A position in a payload.
struct Cursor<'a> {
    text: &'a str,
    position: usize,
    budget: Budget,
}

impl<'a> Cursor<'a> {
    /// Reads a value into a row, and completes it. Values are nested as deep as the columns are.
    fn value(&mut self, to: &mut Values) -> Option<()> {
        if self.peek() == Some(b'n') {
            self.word("null")?;
            return to.close_row().ok();
        }
        match to {
            Values::Integer(to) => {
                let number = self.number()?;
                // 1.0 is an integer, too.
                to.push(number.parse().ok().or_else(|| whole(number.parse().ok()?))?);
            }
            Values::Number(to) => {
                let value: f64 = self.number()?.parse().ok()?;
                if value.is_infinite() {
                    return None;
                }
                to.push(value);
            }
            Values::Boolean(to) => match self.peek() {
                Some(b't') => self.word("true").map(|()| to.push(true))?,
                _ => self.word("false").map(|()| to.push(false))?,
            },
            Values::String(to) => to.push(self.string()?.as_bytes()).ok()?,
            Values::Any(to) => to.push(self.any()?.as_bytes()).ok()?,
            Values::Object(to) => self.object(to)?,
            Values::Array(to) => {
                self.byte(b'[')?;
                self.space();
                let mut more = self.peek() != Some(b']');
                while more {
                    self.value(&mut to.items)?;
                    self.budget.spend(to.items.row_size()).ok()?;
                    self.space();
                    more = self.peek() == Some(b',');
                    if more {
                        self.position += 1;
                        self.space();
                    }
                }
                self.byte(b']')?;
                to.open();
                to.close_row().ok()?;
            }
        }
        Some(())
    }

    fn object(&mut self, to: &mut Objects) -> Option<()> {
        let Objects { names, keys, structs, .. } = to;
        let row = structs.rows();
        let (mut next, mut read) = (0, 0);
        self.byte(b'{')?;
        self.space();
        let mut more = self.peek() != Some(b'}');
        while more {
            // Writers keep an order.
            let index = match keys.get(next) {
                Some(key) if self.rest().starts_with(key.as_bytes()) => {
                    self.position += key.len();
                    Some(next)
                }
                _ => {
                    let name = self.string()?;
                    self.space();
                    self.byte(b':')?;
                    names.get(&*name).copied()
                }
            };
            self.space();
            match index {
                Some(index) => {
                    let column = &mut structs.columns[index];
                    // A name that comes twice.
                    if column.len() > row {
                        return None;
                    }
                    self.value(column)?;
                    next = index + 1;
                    read += 1;
                }
                None => _ = self.any()?,
            }
            self.space();
            more = self.peek() == Some(b',');
            if more {
                self.position += 1;
                self.space();
            }
        }
        self.byte(b'}')?;
        if read < structs.columns.len() {
            for column in structs.columns.iter_mut().filter(|column| column.len() == row) {
                column.close_row().ok()?;
            }
        }
        structs.close_struct();
        Some(())
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.position..]
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    #[inline]
    fn byte(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.position += 1)
    }

    #[inline]
    fn word(&mut self, word: &str) -> Option<()> {
        self.rest().starts_with(word.as_bytes()).then(|| self.position += word.len())
    }

    #[inline]
    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.position += 1;
        }
    }

    #[inline]
    fn digits(&mut self) -> Option<()> {
        let start = self.position;
        while let Some(b'0'..=b'9') = self.peek() {
            self.position += 1;
        }
        (self.position > start).then_some(())
    }

    /// A number as it is written.
    #[inline]
    fn number(&mut self) -> Option<&'a str> {
        let start = self.position;
        _ = self.byte(b'-');
        match self.byte(b'0') {
            Some(()) => {}
            None => self.digits()?,
        }
        if self.byte(b'.').is_some() {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.position += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.position += 1;
            }
            self.digits()?;
        }
        Some(&self.text[start..self.position])
    }

    #[inline]
    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.byte(b'"')?;
        let start = self.position;
        self.position += plain(self.rest());
        match self.peek()? {
            b'"' => {
                self.position += 1;
                Some(Cow::Borrowed(&self.text[start..self.position - 1]))
            }
            b'\\' => self.escaped(start - 1).map(Cow::Owned),
            _ => None,
        }
    }

    /// The string that begins at `start`; the position is at its first backslash.
    #[cold]
    fn escaped(&mut self, start: usize) -> Option<String> {
        while self.peek()? != b'"' {
            // With what is escaped.
            self.position += if self.peek() == Some(b'\\') { 2 } else { 1 };
            self.position += plain(self.text.as_bytes().get(self.position..)?);
        }
        self.position += 1;
        serde_json::from_str(&self.text[start..self.position]).ok()
    }

    /// Any value as it is written.
    fn any(&mut self) -> Option<&'a str> {
        let mut parser = serde_json::Deserializer::from_str(&self.text[self.position..]);
        let value = <&RawValue>::deserialize(&mut parser).ok()?.get();
        self.position += value.len();
        Some(value)
    }
}

/// The number of bytes before the first quote, backslash or control character.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    // The lowest of the bits that are set is that of the first byte below `end`.
    let below = |word: u64, end: u64| word.wrapping_sub(ONES * end) & !word & (ONES << 7);
    let mut words = bytes.chunks_exact(8);
    let mut count = 0;
    for word in words.by_ref() {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslashes = below(word ^ (ONES * u64::from(b'\\')), 1);
        let marks = quotes | backslashes | below(word, 0x20);
        if marks != 0 {
            return count + marks.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | ..0x20);
    count + words.remainder().iter().take_while(is_plain).count()
}
