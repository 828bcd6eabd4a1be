//! Payloads into columns, by a plan.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::decimal::{count, number, put_digits, too_long};
use super::plan::{Choice, Encoded, Items, Node, NodeId, Plan, Record, Step};
use super::target::{Maps, Target, Union};
use super::types::Types;
use crate::budget::Budget;
use crate::columns::Column;
use crate::failure::{Attempt, Failure};
use crate::nested::Structs;

impl Plan {
    /// Reads a payload of the writer's types into a row. After an error, the row is not whole.
    pub(super) fn read(
        &self,
        writer: &Types,
        payload: &[u8],
        to: &mut Target,
        budget: &mut Budget,
    ) -> Attempt<()> {
        let mut cursor = Cursor::new(writer, payload, budget);
        self.value(self.root, &mut cursor, to)?;
        cursor.end()
    }

    fn value<'a>(&'a self, node: NodeId, cursor: &mut Cursor<'a>, to: &mut Target) -> Attempt<()> {
        match (&self.nodes[node], to) {
            (Node::Union(choices), to) => {
                let choice = cursor.one_of(choices, "the branch of a union")?;
                self.choice(*choice, cursor, to)?;
            }
            (Node::Sized, Target::Text(to)) => {
                let start = cursor.position;
                let text = utf8(cursor.sized(STRING)?, start)?;
                to.push(text.as_bytes())?;
            }
            (Node::Int, Target::Int(to)) => to.push(cursor.int(INT)?),
            (Node::Int, Target::Date(to)) => to.push(cursor.int(INT)?),
            (Node::Int, Target::Long(to)) => to.push(cursor.int(INT)?.into()),
            (Node::IntAsFloat, Target::Float(to)) => to.push(cursor.int(INT)? as f32),
            (Node::IntAsFloat, Target::Double(to)) => to.push((cursor.int(INT)? as f32).into()),
            (Node::Int, Target::Double(to)) => to.push(cursor.int(INT)?.into()),
            (Node::Int, Target::Millis(to)) => to.push(i64::from(cursor.int(INT)?) * 1000),
            (Node::Int, Target::Micros(to)) => to.push(cursor.int(INT)?.into()),
            (Node::Long, Target::Long(to)) => to.push(cursor.long(LONG)?),
            (Node::LongAsFloat, Target::Float(to)) => to.push(cursor.long(LONG)? as f32),
            (Node::LongAsFloat, Target::Double(to)) => to.push((cursor.long(LONG)? as f32).into()),
            (Node::Long, Target::Double(to)) => to.push(cursor.long(LONG)? as f64),
            (Node::Long, Target::Millis(to)) => {
                let start = cursor.position;
                to.push(micros(cursor.long(LONG)?).map_err(|failure| failure.or_at(start))?);
            }
            (Node::Long, Target::Micros(to)) => to.push(cursor.long(LONG)?),
            (Node::Float, Target::Float(to)) => to.push(f32::from_le_bytes(cursor.array(FLOAT)?)),
            (Node::Float, Target::Double(to)) => to.push(f32::from_le_bytes(cursor.array(FLOAT)?).into()),
            (Node::Double, Target::Double(to)) => to.push(f64::from_le_bytes(cursor.array("a double")?)),
            (Node::Boolean, Target::Boolean(to)) => to.push(cursor.boolean()?),
            (Node::Sized, Target::Bytes(to)) => to.push(cursor.sized(BYTES)?)?,
            (Node::Fixed(size), Target::Bytes(to)) => to.push(cursor.bytes(*size, "a fixed")?)?,
            (Node::Sized | Node::Fixed(_), to @ (Target::Decimal(_) | Target::Digits(_))) => {
                self.decimal(node, cursor, to)?;
            }
            (Node::Enum(symbols), Target::Text(to)) => {
                let start = cursor.position;
                let symbol = cursor.one_of(symbols, "the symbol of an enum")?;
                let symbol = symbol.as_ref().map_err(|symbol| unknown_symbol(start, symbol))?;
                // A few bytes of the payload become the whole symbol in the column.
                cursor.spend(symbol.len())?;
                to.push(symbol.as_bytes())?;
            }
            (Node::Branch(choice), to) => self.choice(*choice, cursor, to)?,
            (Node::Record(record), Target::Record(to)) => self.record(record, cursor, to)?,
            (Node::Array(items), Target::List(to)) => {
                cursor.blocks(|cursor| {
                    // For each item, not for each byte: a null takes no byte of the payload, but room in the column.
                    cursor.spend(items.size)?;
                    self.value(items.node, cursor, &mut to.items)
                })?;
                to.close_list()?;
            }
            (Node::Map(items), Target::Map(to)) => self.map(items, cursor, to)?,
            (Node::Null, to) => to.close_row()?,
            (Node::Refused(reason), _) => return Err(cursor.fault(reason.to_string())),
            // The columns have the types that the plan was made for.
            _ => return Err(cursor.fault("a column has another type than the reader's schema")),
        }
        Ok(())
    }

    #[inline]
    fn choice<'a>(&'a self, choice: Choice, cursor: &mut Cursor<'a>, to: &mut Target) -> Attempt<()> {
        match to {
            Target::Union(union) => self.member(choice, cursor, union),
            to => self.value(choice.node, cursor, to),
        }
    }

    fn member<'a>(&'a self, choice: Choice, cursor: &mut Cursor<'a>, to: &mut Union) -> Attempt<()> {
        match (&self.nodes[choice.node], to.columns[choice.branch]) {
            (Node::Refused(reason), _) => Err(cursor.fault(reason.to_string())),
            (_, None) => to.members.close_row(),
            (_, Some(member)) => {
                for (index, column) in to.members.columns.iter_mut().enumerate() {
                    match index == member {
                        true => self.value(choice.node, cursor, column)?,
                        false => column.close_row()?,
                    }
                }
                to.members.close_struct();
                Ok(())
            }
        }
    }

    fn record<'a>(
        &'a self,
        record: &'a Record,
        cursor: &mut Cursor<'a>,
        to: &mut Structs<Target>,
    ) -> Attempt<()> {
        for step in &record.steps {
            match *step {
                Step::Read { field, node } => {
                    if let Err(failure) = self.value(node, cursor, &mut to.columns[field]) {
                        return Err(failure.in_field(to.fields[field].name()));
                    }
                }
                Step::Skip(id) => cursor.skip(id, 0)?,
            }
        }
        for default in &record.defaults {
            let column = &mut to.columns[default.field];
            match &default.value {
                None => column.close_row()?,
                Some(Encoded { payload, node }) => {
                    cursor.spend(payload.len())?;
                    let read = cursor.within(payload, |cursor| self.value(*node, cursor, column));
                    read.map_err(|failure| failure.in_field(to.fields[default.field].name()))?;
                }
            }
        }
        if record.is_empty {
            to.columns.iter_mut().try_for_each(Column::close_row)?;
        }
        to.close_struct();
        Ok(())
    }

    /// A map; of several entries with one key, the last one counts, as in Java.
    fn map<'a>(&'a self, items: &'a Items, cursor: &mut Cursor<'a>, to: &mut Maps) -> Attempt<()> {
        let entries = &mut to.0.items;
        let (start, first) = (cursor.position, entries.rows());
        self.entries(items, cursor, entries, None)?;
        if let Some(last) = last_of_each_key(entries, first) {
            entries.truncate(first);
            cursor.position = start;
            self.entries(items, cursor, entries, Some(&last))?;
        }
        to.0.close_list()
    }

    /// Reads the entries of a map, or those of them that are `kept`.
    fn entries<'a>(
        &'a self,
        items: &'a Items,
        cursor: &mut Cursor<'a>,
        to: &mut Structs<Target>,
        kept: Option<&[bool]>,
    ) -> Attempt<()> {
        let mut entry = 0;
        cursor.blocks(|cursor| {
            let is_kept = kept.is_none_or(|kept| kept.get(entry).copied().unwrap_or_default());
            entry += 1;
            let start = cursor.position;
            let key = cursor.sized("a key")?;
            if !is_kept {
                return cursor.skip(items.written_as, 0);
            }
            let key = utf8(key, start)?;
            cursor.spend(items.size)?;
            let [Target::Text(keys), values] = &mut to.columns[..] else {
                return Err(cursor.fault("a map without a column of keys"));
            };
            keys.push(key.as_bytes())?;
            self.value(items.node, cursor, values)?;
            to.close_struct();
            Ok(())
        })
    }

    fn decimal<'a>(&'a self, node: NodeId, cursor: &mut Cursor<'a>, to: &mut Target) -> Attempt<()> {
        let start = cursor.position;
        let bytes = match self.nodes[node] {
            Node::Fixed(size) => cursor.bytes(size, "a fixed")?,
            _ => cursor.sized(BYTES)?,
        };
        put_decimal(bytes, cursor, to).map_err(|failure| failure.or_at(start))
    }
}

const INT: &str = "an int";
const LONG: &str = "a long";
const FLOAT: &str = "a float";
const BYTES: &str = "bytes";
const STRING: &str = "a string";

fn put_decimal(bytes: &[u8], cursor: &mut Cursor<'_>, to: &mut Target) -> Attempt<()> {
    match to {
        Target::Decimal(to) => to.numbers.push(number(bytes, to.precision, to.scale)?),
        Target::Digits(to) => {
            let mut digits = String::new();
            put_digits(&mut digits, bytes, to.scale as usize, cursor.budget.left())?;
            if count(&digits) > to.precision as usize {
                return Err(too_long(to.precision));
            }
            cursor.spend(digits.len())?;
            to.text.push(digits.as_bytes())?;
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn micros(millis: i64) -> Attempt<i64> {
    let micros = millis.checked_mul(1000);
    micros.ok_or_else(|| Failure::new(format!("a timestamp of {millis} ms has no number of microseconds")))
}

#[cold]
pub(super) fn unknown_symbol(position: usize, symbol: &str) -> Failure {
    let reason = format!("the reader's enum has no symbol {symbol:?}, and no default");
    Failure::at(position, reason)
}

#[inline]
pub(super) fn utf8(text: &[u8], position: usize) -> Attempt<&str> {
    std::str::from_utf8(text).map_err(|_| Failure::at(position, "a string is not UTF-8"))
}

/// The number of keys up to which each is compared with each.
const FEW: usize = 16;

/// For each entry from `first` on, whether no later one has its key; `None` if that is so for all of them.
fn last_of_each_key(entries: &Structs<Target>, first: usize) -> Option<Vec<bool>> {
    let Some(Target::Text(keys)) = entries.columns.first() else { return None };
    let (count, key) = (entries.rows() - first, |index| keys.value(first + index));
    if count <= FEW {
        let is_last = |index| (index + 1..count).all(|later| key(later) != key(index));
        return (!(0..count).all(is_last)).then(|| (0..count).map(is_last).collect());
    }
    let last: HashMap<&[u8], usize> = (0..count).map(|index| (key(index), index)).collect();
    (last.len() < count).then(|| (0..count).map(|index| last.get(key(index)) == Some(&index)).collect())
}
