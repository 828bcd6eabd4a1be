//! A payload by its writer's schema, value by value: where and why it is invalid, and what it says as JSON text.
//!
//! Nothing is allocated from a count in the payload, and recursion is bounded.

use std::fmt::Write as _;

use super::costs::Costs;
use super::time;
use super::types::{Field, Kind, Logical, TypeId, Types};
use crate::budget::Budget;
use crate::varint;

/// The maximum nesting depth of values, which matters for recursive types only.
const MAX_DEPTH: usize = 100;
/// The maximum number of items without bytes, such as nulls, in a payload: its size does not bound them.
pub(super) const MAX_EMPTY_ITEMS: u64 = 1024;
/// The maximum number of bytes of a decimal that becomes digits. The cost of the conversion is their square.
const MAX_DECIMAL_BYTES: usize = 512;

/// A fault that makes a payload invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The byte of the payload at which the faulty value begins.
    pub(super) position: usize,
    pub(super) reason: String,
}

type Result<T> = std::result::Result<T, Fault>;

/// Checks that the payload is one value, and nothing after it, and that the budget has what it costs.
pub(super) fn check(types: &Types, payload: &[u8], costs: &Costs, budget: &mut Budget) -> Result<()> {
    walk::<false>(types, payload, costs, budget).map(drop)
}

/// The value as JSON: bytes as in Avro's JSON (a character U+0000 to U+00FF each), decimals as text, dates and
/// timestamps as in ISO 8601, a union as the value in it.
pub(super) fn text(types: &Types, payload: &[u8], budget: &mut Budget) -> Result<String> {
    walk::<true>(types, payload, &Costs::NONE, budget)
}

/// Skips the value at `position`. Returns its end, and the number of items without bytes up to there.
pub(super) fn skip(
    types: &Types,
    id: TypeId,
    payload: &[u8],
    position: usize,
    empty_items: u64,
) -> Result<(usize, u64)> {
    // A value that is skipped becomes no row and no text, so it costs nothing.
    let (costs, mut budget) = (Costs::NONE, Budget::new(0));
    let mut walk = Walk::new(types, payload, &costs, &mut budget);
    (walk.position, walk.empty_items) = (position, empty_items);
    walk.value::<false>(id, 0)?;
    Ok((walk.position, walk.empty_items))
}

fn walk<const TEXT: bool>(
    types: &Types,
    payload: &[u8],
    costs: &Costs,
    budget: &mut Budget,
) -> Result<String> {
    let mut walk = Walk::new(types, payload, costs, budget);
    walk.spend(costs.row)?;
    walk.value::<TEXT>(types.root, 0)?;
    match payload.len() - walk.position {
        0 => {
            walk.spend(walk.out.len())?;
            Ok(walk.out)
        }
        more => walk.fault(walk.position, format!("{more} bytes after the end of the value")),
    }
}

struct Walk<'a> {
    types: &'a Types,
    payload: &'a [u8],
    position: usize,
    empty_items: u64,
    /// The fields that the value is in, for messages.
    path: Vec<&'a str>,
    out: String,
    costs: &'a Costs,
    budget: &'a mut Budget,
}

impl<'a> Walk<'a> {
    fn new(types: &'a Types, payload: &'a [u8], costs: &'a Costs, budget: &'a mut Budget) -> Self {
        let (path, out) = (Vec::new(), String::new());
        Self { types, payload, position: 0, empty_items: 0, path, out, costs, budget }
    }

    fn spend(&mut self, bytes: usize) -> Result<()> {
        match self.budget.spend(bytes) {
            Ok(()) => Ok(()),
            Err(failure) => self.fault(self.position, failure.text()),
        }
    }

    /// Fails if the text would become longer than the budget allows.
    fn check_text(&self, more: usize) -> Result<()> {
        if self.out.len().saturating_add(more) > self.budget.left() {
            return self.fault(self.position, self.budget.exceeded().text());
        }
        Ok(())
    }

    fn fault<T>(&self, position: usize, reason: impl Into<String>) -> Result<T> {
        let reason = reason.into();
        let reason = if self.path.is_empty() { reason } else { format!("{}: {reason}", self.path.join(".")) };
        Err(Fault { position, reason })
    }

    fn bytes(&mut self, count: usize, what: &str) -> Result<&'a [u8]> {
        let rest = &self.payload[self.position..];
        match rest.get(..count) {
            Some(bytes) => {
                self.position += count;
                Ok(bytes)
            }
            None => self.fault(
                self.position,
                format!("the payload ends: expected {count} bytes of {what}, found {}", rest.len()),
            ),
        }
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N, what)?);
        Ok(array)
    }

    fn long(&mut self, what: &str) -> Result<i64> {
        if let Some((value, size)) = varint::exact(&self.payload[self.position..]) {
            self.position += size;
            return Ok(varint::unzigzag(value));
        }
        match self.payload.len() - self.position {
            left @ ..10 => {
                self.fault(self.position, format!("the payload ends in {what}, a varint, after {left} bytes"))
            }
            _ => self.fault(self.position, format!("{what} is a varint of more than 64 bits")),
        }
    }

    fn int(&mut self, what: &str) -> Result<i32> {
        let start = self.position;
        let value = self.long(what)?;
        let Ok(value) = i32::try_from(value) else {
            return self.fault(start, format!("{what} is {value}: expected an int of 32 bits"));
        };
        Ok(value)
    }

    fn length(&mut self, what: &str) -> Result<usize> {
        let start = self.position;
        let length = self.long("a length")?;
        match usize::try_from(length) {
            Ok(length) if length <= self.payload.len() - self.position => Ok(length),
            _ => {
                let left = self.payload.len() - self.position;
                self.fault(start, format!("{what} of {length} bytes: the payload has {left} more"))
            }
        }
    }

    fn utf8(&mut self) -> Result<&'a str> {
        let length = self.length("a string")?;
        let start = self.position;
        match std::str::from_utf8(self.bytes(length, "a string")?) {
            Ok(text) => Ok(text),
            Err(error) => self.fault(start + error.valid_up_to(), "a string is not UTF-8"),
        }
    }

    fn value<const TEXT: bool>(&mut self, id: TypeId, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            return self.fault(self.position, format!("values are nested deeper than {MAX_DEPTH}"));
        }
        if TEXT {
            self.check_text(0)?;
        }
        let start = self.position;
        let types = self.types;
        let of = types.get(id);
        match &of.kind {
            Kind::Null => self.put::<TEXT>("null"),
            Kind::Boolean => match self.bytes(1, "a boolean")? {
                [0] => self.put::<TEXT>("false"),
                [1] => self.put::<TEXT>("true"),
                other => return self.fault(start, format!("a boolean of {}: expected 0 or 1", other[0])),
            },
            Kind::Int => {
                let value = self.int("an int")?;
                if TEXT {
                    match of.logical {
                        Logical::Date => time::put_date(&mut self.out, i64::from(value)),
                        _ => write_into(&mut self.out, format_args!("{value}")),
                    }
                }
            }
            Kind::Long => {
                let value = self.long("a long")?;
                let millis = matches!(of.logical, Logical::TimestampMillis | Logical::LocalTimestampMillis);
                if millis && value.checked_mul(1000).is_none() {
                    return self
                        .fault(start, format!("a timestamp of {value} ms has no number of microseconds"));
                }
                if TEXT {
                    match of.logical {
                        Logical::TimestampMillis => time::put_timestamp(&mut self.out, value * 1000, true),
                        Logical::LocalTimestampMillis => {
                            time::put_timestamp(&mut self.out, value * 1000, false);
                        }
                        Logical::TimestampMicros => time::put_timestamp(&mut self.out, value, true),
                        Logical::LocalTimestampMicros => time::put_timestamp(&mut self.out, value, false),
                        _ => write_into(&mut self.out, format_args!("{value}")),
                    }
                }
            }
            Kind::Float => {
                let value = f32::from_le_bytes(self.array("a float")?);
                self.put_float::<TEXT>(value.is_finite(), value);
            }
            Kind::Double => {
                let value = f64::from_le_bytes(self.array("a double")?);
                self.put_float::<TEXT>(value.is_finite(), value);
            }
            Kind::Bytes => {
                let length = self.length("bytes")?;
                let bytes = self.bytes(length, "bytes")?;
                self.put_bytes::<TEXT>(start, bytes, of.logical)?;
            }
            Kind::Fixed { size, .. } => {
                let bytes = self.bytes(*size, "a fixed")?;
                self.put_bytes::<TEXT>(start, bytes, of.logical)?;
            }
            Kind::String => {
                let text = self.utf8()?;
                self.put_text::<TEXT>(text);
            }
            Kind::Enum { symbols, name, .. } => {
                let index = self.int("an enum")?;
                match usize::try_from(index).ok().and_then(|index| symbols.get(index)) {
                    // A few bytes of the payload become the whole symbol in the column.
                    Some(symbol) => {
                        self.spend(self.costs.of(id))?;
                        self.put_text::<TEXT>(symbol);
                    }
                    None => {
                        let count = symbols.len();
                        let why = format!("symbol {index} of the enum {}, which has {count}", name.full);
                        return self.fault(start, why);
                    }
                }
            }
            Kind::Union(branches) => {
                let index = self.long("the branch of a union")?;
                match usize::try_from(index).ok().and_then(|index| branches.get(index)) {
                    Some(&branch) => self.value::<TEXT>(branch, depth + 1)?,
                    None => {
                        let why = format!("branch {index} of a union, which has {}", branches.len());
                        return self.fault(start, why);
                    }
                }
            }
            Kind::Array(item) => {
                self.put::<TEXT>("[");
                let mut items = 0;
                self.blocks(|walk| {
                    if std::mem::replace(&mut items, 1) != 0 {
                        walk.put::<TEXT>(",");
                    }
                    walk.spend(walk.costs.of(id))?;
                    walk.value::<TEXT>(*item, depth + 1)
                })?;
                self.put::<TEXT>("]");
            }
            Kind::Map(of) => {
                self.put::<TEXT>("{");
                let mut items = 0;
                self.blocks(|walk| {
                    if std::mem::replace(&mut items, 1) != 0 {
                        walk.put::<TEXT>(",");
                    }
                    walk.spend(walk.costs.of(id))?;
                    let key = walk.utf8()?;
                    walk.put_text::<TEXT>(key);
                    walk.put::<TEXT>(":");
                    walk.value::<TEXT>(*of, depth + 1)
                })?;
                self.put::<TEXT>("}");
            }
            Kind::Record { fields, .. } => {
                self.spend(self.costs.of(id))?;
                self.record::<TEXT>(fields, depth)?;
            }
        }
        Ok(())
    }

    fn record<const TEXT: bool>(&mut self, fields: &'a [Field], depth: usize) -> Result<()> {
        self.put::<TEXT>("{");
        for (index, field) in fields.iter().enumerate() {
            if index > 0 {
                self.put::<TEXT>(",");
            }
            self.put_text::<TEXT>(&field.name);
            self.put::<TEXT>(":");
            self.path.push(&field.name);
            self.value::<TEXT>(field.of, depth + 1)?;
            self.path.pop();
        }
        self.put::<TEXT>("}");
        Ok(())
    }

    /// The items of an array or a map: blocks of them, and a count of 0.
    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        loop {
            let start = self.position;
            let count = self.long("the count of a block")?;
            if count == 0 {
                return Ok(());
            }
            // A negative count comes with the size of the block, so that readers can skip it.
            let end = if count < 0 {
                let size = self.length("a block")?;
                Some(self.position + size)
            } else {
                None
            };
            for _ in 0..count.unsigned_abs() {
                let before = self.position;
                item(self)?;
                // The end of the payload stops every other item, however large the count is.
                if self.position == before {
                    self.empty_items += 1;
                    if self.empty_items > MAX_EMPTY_ITEMS {
                        let why =
                            format!("a block of {count} items: more than {MAX_EMPTY_ITEMS} without bytes");
                        return self.fault(start, why);
                    }
                }
            }
            if end.is_some_and(|end| end != self.position) {
                return self.fault(start, "a block has another size than its items");
            }
        }
    }

    fn put<const TEXT: bool>(&mut self, text: &str) {
        if TEXT {
            self.out.push_str(text);
        }
    }

    fn put_text<const TEXT: bool>(&mut self, text: &str) {
        if TEXT {
            put_json(&mut self.out, text);
        }
    }

    fn put_float<const TEXT: bool>(&mut self, finite: bool, value: impl std::fmt::Debug) {
        if TEXT {
            // JSON has no number for the others.
            let quote = if finite { "" } else { "\"" };
            write_into(&mut self.out, format_args!("{quote}{value:?}{quote}"));
        }
    }

    fn put_bytes<const TEXT: bool>(&mut self, start: usize, bytes: &[u8], logical: Logical) -> Result<()> {
        if !TEXT {
            return Ok(());
        }
        match logical {
            Logical::Decimal { .. } if bytes.len() > MAX_DECIMAL_BYTES => {
                let why = format!("a decimal of {} bytes: expected up to {MAX_DECIMAL_BYTES}", bytes.len());
                return self.fault(start, why);
            }
            Logical::Decimal { scale, .. } => {
                // The digits are made before the text.
                self.check_text(2 * scale as usize)?;
                put_decimal(&mut self.out, bytes, scale as usize);
            }
            _ => {
                let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
                put_json(&mut self.out, &text);
            }
        }
        Ok(())
    }
}

fn write_into(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}

fn put_json(out: &mut String, text: &str) {
    // Text is always JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// A number of any size, big-endian in two's complement, as `"-12.34"`.
fn put_decimal(out: &mut String, bytes: &[u8], scale: usize) {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let mut magnitude = bytes.to_vec();
    if negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while magnitude.iter().any(|&byte| byte != 0) {
        let mut remainder = 0_u32;
        for byte in &mut magnitude {
            let value = remainder << 8 | u32::from(*byte);
            *byte = (value / 10) as u8;
            remainder = value % 10;
        }
        digits.push(b'0' + remainder as u8);
    }
    digits.resize(digits.len().max(scale + 1), b'0');
    out.push('"');
    if negative {
        out.push('-');
    }
    for (index, &digit) in digits.iter().enumerate().rev() {
        out.push(char::from(digit));
        if index == scale && scale > 0 {
            out.push('.');
        }
    }
    out.push('"');
}
