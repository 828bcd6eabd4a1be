//! Payloads of a writer's schema straight into the reader's columns.
//!
//! This is the quick way, for pairs of schemas without unions of several types, decimals, defaults or changed names: the
//! bytes are read once, and rows of many writers stay in order by themselves. Other pairs are up to arrow-avro.
//! `walk` says what is wrong with a payload that cannot be read here.

use serde_json::Value;

use super::columns::{Members, data_type};
use super::target::Target;
use super::types::{Field, Kind, Logical, TypeId, Types};
use super::walk::{self, MAX_EMPTY_ITEMS};
use crate::budget::Budget;
use crate::columns::{Column, row_size};
use crate::failure::Failure;
use crate::varint;

/// A plan for reading values of a writer's type into a column of the reader's.
pub(super) enum Plan {
    Null,
    Boolean,
    /// An int, into a column of wider numbers too.
    Int,
    Long,
    Millis,
    Float,
    Double,
    Bytes,
    Fixed(usize),
    Text,
    Symbol(Vec<String>),
    /// A union of null and another type; which branch is null.
    Optional {
        null: i64,
        value: Box<Plan>,
    },
    Array(Items),
    Map(Items),
    /// The writer's fields, and the columns that are null because it has none for them.
    Record {
        steps: Vec<Step>,
        missing: Vec<usize>,
    },
}

/// A plan for reading the items of an array, or the values of a map.
pub(super) struct Items {
    plan: Box<Plan>,
    /// The size of an item in the reader's columns, in bytes.
    size: usize,
}

/// A field of the writer's record.
pub(super) enum Step {
    Read {
        column: usize,
        plan: Plan,
    },
    /// The reader does not have it.
    Skip(TypeId),
}

impl Plan {
    /// The plan for payloads of a schema; `None` if arrow-avro must read them.
    ///
    /// It is known already that the reader's schema can read the writer's.
    pub(super) fn new(writer: &Types, reader: &Types) -> Option<Self> {
        Planner { writer, reader }.plan(writer.root, reader.root, false)
    }

    /// Reads a payload into a row; after an error, the row is not whole.
    pub(super) fn read_payload(
        &self,
        types: &Types,
        payload: &[u8],
        to: &mut Target,
        budget: &mut Budget,
    ) -> Result<(), Stop> {
        let mut cursor = Cursor { types, payload, position: 0, empty_items: 0, budget };
        self.read(&mut cursor, to)?;
        if cursor.position < payload.len() { Err(Stop::Invalid) } else { Ok(()) }
    }

    fn read(&self, cursor: &mut Cursor<'_>, to: &mut Target) -> Result<(), Stop> {
        match (self, to) {
            (Self::Boolean, Target::Boolean(to)) => match cursor.bytes(1)? {
                [0] => to.push(false),
                [1] => to.push(true),
                _ => return Err(Stop::Invalid),
            },
            (Self::Int, Target::Int(to)) => to.push(cursor.int()?),
            (Self::Int, Target::Date(to)) => to.push(cursor.int()?),
            (Self::Int, Target::Long(to)) => to.push(cursor.int()?.into()),
            (Self::Int, Target::Float(to)) => to.push(cursor.int()? as f32),
            (Self::Int, Target::Double(to)) => to.push(cursor.int()?.into()),
            (Self::Long, Target::Long(to)) => to.push(cursor.long()?),
            (Self::Long, Target::Micros(to)) => to.push(cursor.long()?),
            (Self::Long, Target::Float(to)) => to.push(cursor.long()? as f32),
            (Self::Long, Target::Double(to)) => to.push(cursor.long()? as f64),
            (Self::Millis, Target::Micros(to)) => {
                to.push(cursor.long()?.checked_mul(1000).ok_or(Stop::Invalid)?);
            }
            (Self::Float, Target::Float(to)) => to.push(f32::from_le_bytes(cursor.array()?)),
            (Self::Float, Target::Double(to)) => to.push(f32::from_le_bytes(cursor.array()?).into()),
            (Self::Double, Target::Double(to)) => to.push(f64::from_le_bytes(cursor.array()?)),
            (Self::Bytes, Target::Bytes(to)) => to.push(cursor.sized()?)?,
            (Self::Fixed(size), Target::Bytes(to)) => to.push(cursor.bytes(*size)?)?,
            (Self::Text, Target::Text(to)) => to.push(cursor.text()?)?,
            (Self::Symbol(symbols), Target::Text(to)) => {
                let index = usize::try_from(cursor.int()?).map_err(|_| Stop::Invalid)?;
                let symbol = symbols.get(index).ok_or(Stop::Invalid)?;
                cursor.budget.spend(symbol.len())?;
                to.push(symbol.as_bytes())?;
            }
            (Self::Optional { null, value }, to) => match cursor.long()? {
                branch if branch == *null => to.close_row()?,
                0 | 1 => value.read(cursor, to)?,
                _ => return Err(Stop::Invalid),
            },
            (Self::Array(item), Target::List(to)) => {
                cursor.blocks(|cursor| {
                    // Per item, not per byte: a null takes no byte of the payload, but room in the column.
                    cursor.budget.spend(item.size)?;
                    item.plan.read(cursor, &mut to.items)
                })?;
                to.open();
                to.close_row()?;
            }
            (Self::Map(value), Target::Map(to)) => {
                let entries = &mut to.0.items;
                cursor.blocks(|cursor| {
                    let [Target::Text(keys), values] = &mut entries.columns[..] else {
                        return Err(Stop::Invalid);
                    };
                    cursor.budget.spend(value.size)?;
                    keys.push(cursor.text()?)?;
                    value.plan.read(cursor, values)?;
                    entries.close_struct();
                    Ok(())
                })?;
                to.0.open();
                to.close_row()?;
            }
            (Self::Record { steps, missing }, Target::Record(to)) => {
                for step in steps {
                    match *step {
                        Step::Read { column, ref plan } => plan.read(cursor, &mut to.columns[column])?,
                        Step::Skip(id) => cursor.skip(id)?,
                    }
                }
                for &column in missing {
                    to.columns[column].close_row()?;
                }
                to.close_struct();
            }
            (Self::Null, to) => to.close_row()?,
            // The column has the type that the plan was made for.
            _ => return Err(Stop::Invalid),
        }
        Ok(())
    }
}

/// The reason why the reading of a payload stopped.
pub(super) enum Stop {
    /// The payload is not valid.
    Invalid,
    /// The columns have no room for it.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

struct Planner<'a> {
    writer: &'a Types,
    reader: &'a Types,
}

impl Planner<'_> {
    /// `repeated` is whether the value is in an array or a map.
    fn plan(&self, writer: TypeId, reader: TypeId, repeated: bool) -> Option<Plan> {
        let (from, to) = (self.writer.get(writer), self.reader.get(reader));
        if let Kind::Union(branches) = &to.kind {
            let Members::One(reader) = Members::of(self.reader, branches) else { return None };
            return match &from.kind {
                Kind::Union(branches) => self.optional(branches, reader, repeated),
                Kind::Null => None,
                _ => self.plan(writer, reader, repeated),
            };
        }
        let plain = from.logical == Logical::None && to.logical == Logical::None;
        Some(match (&from.kind, &to.kind) {
            (Kind::Int, Kind::Long | Kind::Float | Kind::Double) if plain => Plan::Int,
            (Kind::Long, Kind::Float | Kind::Double) if plain => Plan::Long,
            (Kind::Float, Kind::Double) if plain => Plan::Float,
            // arrow-avro converts between logical types, and knows the forms of decimals.
            _ if from.logical != to.logical || matches!(from.logical, Logical::Decimal { .. }) => {
                return None;
            }
            (Kind::Null, Kind::Null) => Plan::Null,
            (Kind::Boolean, Kind::Boolean) => Plan::Boolean,
            (Kind::Int, Kind::Int) => Plan::Int,
            (Kind::Long, Kind::Long) => match from.logical {
                Logical::TimestampMillis | Logical::LocalTimestampMillis => Plan::Millis,
                _ => Plan::Long,
            },
            (Kind::Float, Kind::Float) => Plan::Float,
            (Kind::Double, Kind::Double) => Plan::Double,
            (Kind::Bytes, Kind::Bytes) => Plan::Bytes,
            (Kind::String, Kind::String) => Plan::Text,
            (Kind::Fixed { name, size }, Kind::Fixed { name: reader, .. }) if name.full == reader.full => {
                Plan::Fixed(*size)
            }
            (Kind::Enum { name, symbols, .. }, Kind::Enum { name: reader, symbols: known, .. })
                if name.full == reader.full && symbols.iter().all(|symbol| known.contains(symbol)) =>
            {
                Plan::Symbol(symbols.clone())
            }
            (&Kind::Array(writer), &Kind::Array(reader)) => Plan::Array(self.items(writer, reader)?),
            (&Kind::Map(writer), &Kind::Map(reader)) => Plan::Map(self.items(writer, reader)?),
            (Kind::Record { name, fields }, Kind::Record { name: reader, fields: columns })
                if name.full == reader.full =>
            {
                self.record(fields, columns, repeated)?
            }
            _ => return None,
        })
    }

    fn items(&self, writer: TypeId, reader: TypeId) -> Option<Items> {
        let plan = Box::new(self.plan(writer, reader, true)?);
        Some(Items { plan, size: size_of::<i64>() + row_size(&data_type(self.reader, reader)) })
    }

    fn optional(&self, branches: &[TypeId], reader: TypeId, repeated: bool) -> Option<Plan> {
        let is_null = |&id: &TypeId| matches!(self.writer.get(id).kind, Kind::Null);
        let null = branches.iter().position(is_null)?;
        let &[first, second] = branches else { return None };
        let value = self.plan(if null == 0 { second } else { first }, reader, repeated)?;
        Some(Plan::Optional { null: null as i64, value: Box::new(value) })
    }

    fn record(&self, fields: &[Field], columns: &[Field], repeated: bool) -> Option<Plan> {
        let mut steps = Vec::new();
        for field in fields {
            steps.push(match columns.iter().position(|column| column.name == field.name) {
                Some(column) => {
                    Step::Read { column, plan: self.plan(field.of, columns[column].of, repeated)? }
                }
                None => Step::Skip(field.of),
            });
        }
        let mut missing = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            if fields.iter().any(|field| field.name == column.name) {
                continue;
            }
            let renamed = !column.aliases.is_empty() || fields.iter().any(|field| !field.aliases.is_empty());
            // In an array, columns that no byte fills would take any amount of memory.
            if renamed || repeated || column.default != Some(Value::Null) {
                return None;
            }
            missing.push(index);
        }
        Some(Plan::Record { steps, missing })
    }
}

/// A position in a payload.
struct Cursor<'a> {
    /// The writer's.
    types: &'a Types,
    payload: &'a [u8],
    position: usize,
    empty_items: u64,
    budget: &'a mut Budget,
}

impl<'a> Cursor<'a> {
    #[inline(always)]
    fn long(&mut self) -> Result<i64, Stop> {
        let rest = &self.payload[self.position..];
        let value = match varint::short(rest) {
            Some((value, size)) => {
                self.position += size;
                value
            }
            None => self.long_varint()?,
        };
        Ok(varint::unzigzag(value))
    }

    #[cold]
    fn long_varint(&mut self) -> Result<u64, Stop> {
        let (value, size) = varint::exact(&self.payload[self.position..]).ok_or(Stop::Invalid)?;
        self.position += size;
        Ok(value)
    }

    #[inline]
    fn int(&mut self) -> Result<i32, Stop> {
        self.long()?.try_into().map_err(|_| Stop::Invalid)
    }

    #[inline]
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Stop> {
        let bytes = self.payload[self.position..].get(..count).ok_or(Stop::Invalid)?;
        self.position += count;
        Ok(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let array = *self.payload[self.position..].first_chunk().ok_or(Stop::Invalid)?;
        self.position += N;
        Ok(array)
    }

    /// Reads a number, and returns as many of the following bytes.
    #[inline]
    fn sized(&mut self) -> Result<&'a [u8], Stop> {
        let size = usize::try_from(self.long()?).map_err(|_| Stop::Invalid)?;
        self.bytes(size)
    }

    #[inline]
    fn text(&mut self) -> Result<&'a [u8], Stop> {
        let bytes = self.sized()?;
        if bytes.is_ascii() || std::str::from_utf8(bytes).is_ok() { Ok(bytes) } else { Err(Stop::Invalid) }
    }

    fn skip(&mut self, id: TypeId) -> Result<(), Stop> {
        let skipped = walk::skip(self.types, id, self.payload, self.position, self.empty_items);
        (self.position, self.empty_items) = skipped.map_err(|_| Stop::Invalid)?;
        Ok(())
    }

    /// The items of an array or a map: blocks of them, and a count of 0.
    fn blocks(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            let end = if count < 0 {
                let size = usize::try_from(self.long()?).map_err(|_| Stop::Invalid)?;
                Some(self.position.checked_add(size).ok_or(Stop::Invalid)?)
            } else {
                None
            };
            for _ in 0..count.unsigned_abs() {
                let before = self.position;
                item(self)?;
                if self.position == before {
                    self.empty_items += 1;
                    if self.empty_items > MAX_EMPTY_ITEMS {
                        return Err(Stop::Invalid);
                    }
                }
            }
            if end.is_some_and(|end| end != self.position) {
                return Err(Stop::Invalid);
            }
        }
    }
}
