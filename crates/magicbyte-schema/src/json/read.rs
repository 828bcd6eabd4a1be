//! Payloads into columns: one pass over the text. What is wrong with a value is asked of serde_json, once and only then.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::columns::{Objects, Values};
use super::integers::Integer;
use crate::budget::Budget;
use crate::columns::Column;
use crate::failure::{Attempt, Failure};

/// Reads a payload into a row, and completes it; after a failure, the row is not whole. Returns the first number that has
/// no place in its column, where the row has null.
pub(super) fn read(text: &str, to: &mut Values, budget: &mut Budget) -> Attempt<Option<Failure>> {
    let mut cursor = Cursor { text, position: 0, budget, failure: None, lost: None };
    cursor.space();
    let read = cursor.value(to);
    cursor.space();
    match (read, cursor.failure) {
        (Some(()), None) if cursor.position == text.len() => Ok(cursor.lost),
        (_, Some(failure)) => Err(failure),
        _ => Err(Failure::at(cursor.position, "more text, expected the end of the payload")),
    }
}

/// A position in a payload. Of what cannot be read, the methods return `None`.
struct Cursor<'a, 'b> {
    text: &'a str,
    position: usize,
    budget: &'b mut Budget,
    /// The reason why a value was not read.
    failure: Option<Failure>,
    /// The first number without a place in its column.
    lost: Option<Failure>,
}

impl<'a> Cursor<'a, '_> {
    /// Reads a value into a row, and completes it; if it cannot, there is a `failure`. Values are nested as deep as the
    /// columns are.
    fn value(&mut self, to: &mut Values) -> Option<()> {
        let start = self.position;
        let read = self.value_of_type(to);
        if read.is_none() && self.failure.is_none() {
            self.failure = Some(self.unread(start, to));
        }
        read
    }

    fn value_of_type(&mut self, to: &mut Values) -> Option<()> {
        if self.peek() == Some(b'n') {
            self.word("null")?;
            return self.keep(to.close_row());
        }
        match to {
            Values::Integer(_) | Values::Decimal(_) | Values::Number(_) => {
                let start = self.position;
                let number = self.number()?;
                if !push_number(number, to)? {
                    self.lose(start, number, to);
                    self.keep(to.close_row())?;
                }
            }
            Values::Digits(to) => {
                let number = self.number()?;
                Integer::of(number)?;
                self.keep(to.push(number.as_bytes()))?;
            }
            Values::Boolean(to) => match self.peek() {
                Some(b't') => self.word("true").map(|()| to.push(true))?,
                _ => self.word("false").map(|()| to.push(false))?,
            },
            Values::String(to) => {
                let value = self.string()?;
                self.keep(to.push(value.as_bytes()))?;
            }
            Values::Any(to) => {
                let value = self.any()?;
                self.keep(to.push(value.as_bytes()))?;
            }
            Values::Object(to) => self.object(to)?,
            Values::Array(to) => {
                self.byte(b'[')?;
                self.space();
                let mut more = self.peek() != Some(b']');
                while more {
                    self.value(&mut to.items)?;
                    let spent = self.budget.spend(to.items.row_size());
                    self.keep(spent)?;
                    more = self.comma();
                }
                self.byte(b']')?;
                self.keep(to.close_list())?;
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
                    // If a name comes twice, the last value counts. Each one may fill and empty many columns.
                    if column.len() > row {
                        let spent = self.budget.spend(column.row_size());
                        self.keep(spent)?;
                        column.truncate(row);
                        read -= 1;
                    }
                    self.property(column, structs.fields[index].name())?;
                    next = index + 1;
                    read += 1;
                }
                None => _ = self.any()?,
            }
            more = self.comma();
        }
        self.byte(b'}')?;
        if read < structs.columns.len() {
            for column in structs.columns.iter_mut().filter(|column| column.len() == row) {
                self.keep(column.close_row())?;
            }
        }
        structs.close_struct();
        Some(())
    }

    /// Reads the value of a property. The name of the property goes into its failures.
    #[inline]
    fn property(&mut self, to: &mut Values, name: &str) -> Option<()> {
        let had_lost = self.lost.is_some();
        let read = self.value(to);
        if read.is_none() {
            self.failure = self.failure.take().map(|failure| failure.in_field(name));
        } else if self.lost.is_some() != had_lost {
            self.lost = self.lost.take().map(|lost| lost.in_field(name));
        }
        read
    }

    #[inline]
    fn keep(&mut self, attempt: Attempt<()>) -> Option<()> {
        attempt.map_err(|failure| self.failure = Some(failure)).ok()
    }

    /// Notes a number that its column has no place for.
    #[cold]
    fn lose(&mut self, start: usize, number: &str, to: &Values) {
        self.lost.get_or_insert_with(|| {
            Failure::at(start, format!("{} is left out, expected {}", described(number), to.expected()))
        });
    }

    /// The reason why the value at `start` was not read: invalid JSON, or another type.
    #[cold]
    fn unread(&self, start: usize, expected: &Values) -> Failure {
        let text = &self.text[start..];
        match <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(text)) {
            Ok(value) => {
                Failure::at(start, format!("{}, expected {}", described(value.get()), expected.expected()))
            }
            Err(error) => no_json(&error, text, start),
        }
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

    /// Goes past a comma and the space around it; false if there is none.
    #[inline]
    fn comma(&mut self) -> bool {
        self.space();
        let found = self.byte(b',').is_some();
        if found {
            self.space();
        }
        found
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

    /// A number as it is written.
    #[inline]
    fn number(&mut self) -> Option<&'a str> {
        let start = self.position;
        self.position += number_len(self.rest())?;
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

/// Completes a row with a number; false if the column has no place for it, and `None` if it is of another type.
#[inline]
fn push_number(number: &str, to: &mut Values) -> Option<bool> {
    match to {
        Values::Integer(to) => {
            let value = match number.parse() {
                Ok(value) => Some(value),
                Err(_) => Integer::of(number)?.short().and_then(|value| i64::try_from(value).ok()),
            };
            Some(value.map(|value| to.push(value)).is_some())
        }
        Values::Decimal(to) => {
            let value = Integer::of(number)?.short();
            Some(value.map(|value| to.push(value)).is_some())
        }
        Values::Number(to) => {
            let value: f64 = number.parse().ok()?;
            Some(value.is_finite().then(|| to.push(value)).is_some())
        }
        _ => None,
    }
}

/// The failure for an error of serde_json in text that begins at `start` in the payload.
#[cold]
pub(super) fn no_json(error: &serde_json::Error, text: &str, start: usize) -> Failure {
    let mut lines = text.as_bytes().split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines.by_ref().take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    // Columns count from 1, and 0 is the end of the line before.
    let position = start + (before + error.column().saturating_sub(1)).min(text.len());
    let reason = error.to_string();
    // It ends with the place by lines, which payloads rarely have.
    Failure::at(position, reason.rsplit_once(" at line ").map_or(reason.as_str(), |split| split.0))
}

/// A value of JSON, for a message: of a long one, the start.
fn described(value: &str) -> String {
    let start = &value[..value.floor_char_boundary(50)];
    let dots = if start.len() < value.len() { "..." } else { "" };
    match value.as_bytes() {
        [b'{', ..] => "an object".to_owned(),
        [b'[', ..] => "an array".to_owned(),
        [b'"', ..] => format!("the string {start}{dots}"),
        [b't' | b'f', ..] => format!("the boolean {start}"),
        _ => format!("the number {start}{dots}"),
    }
}

/// The length of the number that the text begins with.
#[inline]
pub(super) fn number_len(text: &[u8]) -> Option<usize> {
    let digits = |start: usize| {
        let count = text.get(start..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(start + count)
    };
    let start = usize::from(text.first() == Some(&b'-'));
    let mut end = if text.get(start) == Some(&b'0') { start + 1 } else { digits(start)? };
    if text.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let has_sign = matches!(text.get(end + 1), Some(b'+' | b'-'));
        end = digits(end + 1 + usize::from(has_sign))?;
    }
    Some(end)
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
