//! [`ProtobufEncoder`].

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, DurationMicrosecondType, Float32Type, Float64Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StringArray,
};
use arrow_schema::DataType;
use prost_reflect::prost::Message as _;
use prost_reflect::{DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};

use super::decoder::find;
use super::wire::WireType;
use super::{features, files, indexes, plan};
use crate::encoding::{fitted, payloads};
use crate::error::{Result, SchemaError};
use crate::failure::{Attempt, Failure};
use crate::varint;

/// Encodes a column as Protobuf payloads; its types are those that [`ProtobufDecoder`](super::ProtobufDecoder) gives the
/// message.
///
/// A null field is absent. So is one with the default, where Protobuf does not know whether a field is absent.
///
/// ```
/// use magicbyte_schema::protobuf::ProtobufEncoder;
/// use arrow_array::{ArrayRef, Int64Array, StructArray};
/// use std::sync::Arc;
///
/// let encoder = ProtobufEncoder::new(r#"syntax = "proto3"; message Order { int64 id = 1; }"#, &[], None)?;
/// let ids: ArrayRef = Arc::new(Int64Array::from(vec![5, 0]));
/// let column: ArrayRef = Arc::new(StructArray::try_from(vec![("id", ids)]).unwrap());
/// let payloads = encoder.encode(&column, b"")?;
/// assert_eq!(payloads.iter().collect::<Vec<_>>(), [Some(&b"\x08\x05"[..]), Some(b"")]);
/// # Ok::<(), magicbyte_schema::SchemaError>(())
/// ```
pub struct ProtobufEncoder {
    message: MessageDescriptor,
    message_indexes: Vec<i32>,
    data_type: DataType,
}

impl ProtobufEncoder {
    /// An encoder of one message of a schema, by its full name; None is the first one of the file. The other arguments
    /// are as for [`ProtobufDecoder::new`](super::ProtobufDecoder::new).
    ///
    /// # Errors
    /// If the schema does not compile, it has no such message, or the message has more than 10,000 columns.
    pub fn new(schema: &str, references: &[(&str, &str)], message: Option<&str>) -> Result<Self> {
        let file = files::compile(schema, references)?;
        let message = match message {
            Some(name) => {
                let message = find(&file, name)?;
                if message.parent_file() != file {
                    return Err(SchemaError::new(format!("the schema imports {name}, and does not have it")));
                }
                message
            }
            None => {
                let first = file.messages().next();
                first.ok_or_else(|| SchemaError::new("the schema has no message"))?
            }
        };
        let (_, data_type) = plan::columns(&message)?;
        Ok(Self { message_indexes: indexes::of(&message), message, data_type })
    }

    /// The type that columns have.
    #[must_use]
    pub fn data_type(&self) -> &DataType {
        &self.data_type
    }

    /// The path of the message in its file, which is part of the framing.
    #[must_use]
    pub fn message_indexes(&self) -> &[i32] {
        &self.message_indexes
    }

    /// Encodes a column, with `prefix` before each payload. A null row is null. Fields of structs are found by their
    /// names; those that are missing are null.
    ///
    /// # Errors
    /// If the column has another type, the payloads have more than 2 GiB, or a value cannot be written: a required field,
    /// an item of a list or a value of a map that is null, two fields of a oneof that are set, a number that its type
    /// does not hold, a name that its enum does not have, or text that is not the JSON of its message.
    pub fn encode(&self, column: &ArrayRef, prefix: &[u8]) -> Result<BinaryArray> {
        let column = fitted(column, &self.data_type)?;
        let message = Message::of(&self.message, &column);
        payloads(&column, prefix, |row, out| message.write(row, out))
    }
}

/// A struct array, and the fields that its columns are.
struct Message<'a> {
    fields: Vec<Field<'a>>,
    /// Names, and indexes into `fields`.
    oneofs: Vec<(String, Vec<usize>)>,
}

struct Field<'a> {
    name: String,
    number: u32,
    array: &'a ArrayRef,
    value: Value<'a>,
    required: bool,
    /// True if a message says that the field is set, even if it has its default.
    has_presence: bool,
}

/// An array, by the Protobuf type that it is written as.
enum Value<'a> {
    Int32(&'a PrimitiveArray<Int32Type>),
    SInt32(&'a PrimitiveArray<Int32Type>),
    SFixed32(&'a PrimitiveArray<Int32Type>),
    UInt32(&'a PrimitiveArray<Int64Type>),
    Fixed32(&'a PrimitiveArray<Int64Type>),
    Int64(&'a PrimitiveArray<Int64Type>),
    SInt64(&'a PrimitiveArray<Int64Type>),
    SFixed64(&'a PrimitiveArray<Int64Type>),
    UInt64(&'a PrimitiveArray<Decimal128Type>),
    Fixed64(&'a PrimitiveArray<Decimal128Type>),
    Float(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Bool(&'a BooleanArray),
    String(&'a StringArray),
    Bytes(&'a BinaryArray),
    Enum(&'a StringArray, Numbers),
    Timestamp(&'a PrimitiveArray<TimestampMicrosecondType>),
    Duration(&'a PrimitiveArray<DurationMicrosecondType>),
    Message(Message<'a>),
    Group(Message<'a>),
    /// A message as JSON.
    Json(&'a StringArray, JsonOf),
    List {
        list: &'a ListArray,
        items: Box<Value<'a>>,
        packed: bool,
    },
    Map {
        map: &'a MapArray,
        key: Box<Field<'a>>,
        value: Box<Field<'a>>,
    },
}

impl<'a> Message<'a> {
    fn of(message: &MessageDescriptor, array: &'a ArrayRef) -> Self {
        let array = array.as_struct();
        let declared = &message.descriptor_proto().field;
        let fields = declared.iter().filter_map(|declared| {
            let field = message.get_field_by_name(declared.name())?;
            Some((field.clone(), Field::of(&field, array.column_by_name(declared.name())?)))
        });
        let (descriptors, fields): (Vec<FieldDescriptor>, Vec<Field<'a>>) = fields.unzip();
        let oneofs = message.oneofs().filter(|oneof| !oneof.is_synthetic()).map(|oneof| {
            let members = descriptors.iter().enumerate();
            let members = members.filter(|(_, field)| field.containing_oneof().as_ref() == Some(&oneof));
            (oneof.name().to_owned(), members.map(|(index, _)| index).collect())
        });
        Self { oneofs: oneofs.collect(), fields }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Attempt<()> {
        for (oneof, members) in &self.oneofs {
            let mut set = members.iter().map(|&index| &self.fields[index]).filter(|f| f.array.is_valid(row));
            if let (Some(first), Some(second)) = (set.next(), set.next()) {
                let (first, second) = (&first.name, &second.name);
                return Err(Failure::new(format!(
                    "{first} and {second} are both set: expected one field of the oneof {oneof}"
                )));
            }
        }
        self.fields.iter().try_for_each(|field| field.write(row, out))
    }
}

impl<'a> Field<'a> {
    fn of(field: &FieldDescriptor, array: &'a ArrayRef) -> Self {
        Self {
            name: field.name().to_owned(),
            number: field.number(),
            array,
            value: Value::of(field, array),
            required: field.is_required(),
            has_presence: features::has_presence(field),
        }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) -> Attempt<()> {
        if self.array.is_null(row) {
            return match self.required {
                true => {
                    Err(Failure::new("null: expected a value, the field is required").in_field(&self.name))
                }
                false => Ok(()),
            };
        }
        if !self.has_presence && self.value.is_default(row) {
            return Ok(());
        }
        self.value.write_field(self.number, row, out).map_err(|failure| failure.in_field(&self.name))
    }
}

impl<'a> Value<'a> {
    fn of(field: &FieldDescriptor, array: &'a ArrayRef) -> Self {
        match (field.kind(), array.data_type()) {
            (Kind::Message(entry), DataType::Map(..)) => {
                let map = array.as_map();
                let key = Box::new(Field::of(&entry.map_entry_key_field(), map.keys()));
                let value = Box::new(Field::of(&entry.map_entry_value_field(), map.values()));
                Self::Map { map, key, value }
            }
            (_, DataType::List(_)) => {
                let list = array.as_list();
                let items = Box::new(Self::single(field, list.values()));
                let packed = is_packed(field);
                Self::List { list, items, packed }
            }
            _ => Self::single(field, array),
        }
    }

    fn single(field: &FieldDescriptor, array: &'a ArrayRef) -> Self {
        match (field.kind(), array.data_type()) {
            (Kind::Double, _) => Self::Double(array.as_primitive()),
            (Kind::Float, _) => Self::Float(array.as_primitive()),
            (Kind::Int32, _) => Self::Int32(array.as_primitive()),
            (Kind::Int64, _) => Self::Int64(array.as_primitive()),
            (Kind::Uint32, _) => Self::UInt32(array.as_primitive()),
            (Kind::Uint64, _) => Self::UInt64(array.as_primitive()),
            (Kind::Sint32, _) => Self::SInt32(array.as_primitive()),
            (Kind::Sint64, _) => Self::SInt64(array.as_primitive()),
            (Kind::Fixed32, _) => Self::Fixed32(array.as_primitive()),
            (Kind::Fixed64, _) => Self::Fixed64(array.as_primitive()),
            (Kind::Sfixed32, _) => Self::SFixed32(array.as_primitive()),
            (Kind::Sfixed64, _) => Self::SFixed64(array.as_primitive()),
            (Kind::Bool, _) => Self::Bool(array.as_boolean()),
            (Kind::String, _) => Self::String(array.as_string()),
            (Kind::Bytes, _) => Self::Bytes(array.as_binary()),
            (Kind::Enum(of), _) => Self::Enum(array.as_string(), Numbers::of(&of)),
            (Kind::Message(_), DataType::Timestamp(..)) => Self::Timestamp(array.as_primitive()),
            (Kind::Message(_), DataType::Duration(_)) => Self::Duration(array.as_primitive()),
            (Kind::Message(of), DataType::Utf8) => {
                Self::Json(array.as_string(), JsonOf::new(of, features::is_group(field)))
            }
            (Kind::Message(of), _) if features::is_group(field) => Self::Group(Message::of(&of, array)),
            (Kind::Message(of), _) => Self::Message(Message::of(&of, array)),
        }
    }

    fn wire(&self) -> WireType {
        match self {
            Self::Int32(_)
            | Self::SInt32(_)
            | Self::UInt32(_)
            | Self::Int64(_)
            | Self::SInt64(_)
            | Self::UInt64(_)
            | Self::Bool(_)
            | Self::Enum(..) => WireType::Varint,
            Self::SFixed32(_) | Self::Fixed32(_) | Self::Float(_) => WireType::Fixed32,
            Self::SFixed64(_) | Self::Fixed64(_) | Self::Double(_) => WireType::Fixed64,
            Self::Group(_) | Self::Json(_, JsonOf { is_group: true, .. }) => WireType::StartGroup,
            _ => WireType::Length,
        }
    }

    /// True if the value is the same that is read for an absent field without presence.
    fn is_default(&self, row: usize) -> bool {
        match self {
            Self::Int32(array) | Self::SInt32(array) | Self::SFixed32(array) => array.value(row) == 0,
            Self::UInt32(array)
            | Self::Fixed32(array)
            | Self::Int64(array)
            | Self::SInt64(array)
            | Self::SFixed64(array) => array.value(row) == 0,
            Self::UInt64(array) | Self::Fixed64(array) => array.value(row) == 0,
            // -0.0 is another value.
            Self::Float(array) => array.value(row).to_bits() == 0,
            Self::Double(array) => array.value(row).to_bits() == 0,
            Self::Bool(array) => !array.value(row),
            Self::String(array) => array.value(row).is_empty(),
            Self::Bytes(array) => array.value(row).is_empty(),
            Self::Enum(array, numbers) => numbers.get(array.value(row)) == Some(0),
            // An empty list or map writes nothing.
            _ => false,
        }
    }

    /// The field with its tag; a list or map as often as it has items.
    fn write_field(&self, number: u32, row: usize, out: &mut Vec<u8>) -> Attempt<()> {
        match self {
            Self::List { list, items, packed } => {
                let range = range(list.value_offsets(), row);
                if range.is_empty() {
                    return Ok(());
                }
                if let Some(index) = range.clone().find(|&index| list.values().is_null(index)) {
                    let position = index - range.start;
                    return Err(Failure::new(format!("item {position} is null: expected a value")));
                }
                if *packed {
                    put_tag(out, number, WireType::Length);
                    return delimited(out, |out| range.clone().try_for_each(|index| items.write(index, out)));
                }
                range.clone().try_for_each(|index| items.write_field(number, index, out))
            }
            Self::Map { map, key, value } => range(map.value_offsets(), row).try_for_each(|index| {
                if key.array.is_null(index) || value.array.is_null(index) {
                    return Err(Failure::new("a key or value of the map is null: expected a value"));
                }
                put_tag(out, number, WireType::Length);
                delimited(out, |out| {
                    key.value.write_field(key.number, index, out)?;
                    value.value.write_field(value.number, index, out)
                })
            }),
            Self::Group(message) => {
                put_tag(out, number, WireType::StartGroup);
                message.write(row, out)?;
                put_tag(out, number, WireType::EndGroup);
                Ok(())
            }
            Self::Json(array, of @ JsonOf { is_group: true, .. }) => {
                put_tag(out, number, WireType::StartGroup);
                out.extend(of.encoded(array.value(row))?);
                put_tag(out, number, WireType::EndGroup);
                Ok(())
            }
            _ => {
                put_tag(out, number, self.wire());
                self.write(row, out)
            }
        }
    }

    /// The value without a tag.
    fn write(&self, row: usize, out: &mut Vec<u8>) -> Attempt<()> {
        match self {
            // Negative numbers take ten bytes, so that an int64 reads them.
            Self::Int32(array) => varint::put(out, i64::from(array.value(row)) as u64),
            Self::SInt32(array) => varint::put(out, varint::zigzag(array.value(row).into())),
            Self::SFixed32(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::UInt32(array) => varint::put(out, uint32(array.value(row))?.into()),
            Self::Fixed32(array) => out.extend_from_slice(&uint32(array.value(row))?.to_le_bytes()),
            Self::Int64(array) => varint::put(out, array.value(row) as u64),
            Self::SInt64(array) => varint::put(out, varint::zigzag(array.value(row))),
            Self::SFixed64(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::UInt64(array) => varint::put(out, uint64(array.value(row))?),
            Self::Fixed64(array) => out.extend_from_slice(&uint64(array.value(row))?.to_le_bytes()),
            Self::Float(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::Double(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
            Self::Bool(array) => out.push(array.value(row).into()),
            Self::String(array) => put_bytes(out, array.value(row).as_bytes()),
            Self::Bytes(array) => put_bytes(out, array.value(row)),
            Self::Enum(array, numbers) => {
                let name = array.value(row);
                let Some(number) = numbers.get(name) else {
                    let shown = &name[..name.floor_char_boundary(50)];
                    let reason = format!("the string {shown:?}: expected a name of the enum");
                    return Err(Failure::new(reason));
                };
                varint::put(out, i64::from(number) as u64);
            }
            Self::Timestamp(array) => {
                let micros = array.value(row);
                let nanos = micros.rem_euclid(1_000_000) * 1000;
                put_time(out, micros.div_euclid(1_000_000), nanos);
            }
            // Both numbers of a negative duration are negative.
            Self::Duration(array) => {
                let micros = array.value(row);
                put_time(out, micros / 1_000_000, micros % 1_000_000 * 1000);
            }
            Self::Message(message) | Self::Group(message) => {
                return delimited(out, |out| message.write(row, out));
            }
            Self::Json(array, of) => put_bytes(out, &of.encoded(array.value(row))?),
            // Only `write_field` sees these.
            Self::List { .. } | Self::Map { .. } => {}
        }
        Ok(())
    }
}

/// True if the items of a list are stored as one value.
fn is_packed(field: &FieldDescriptor) -> bool {
    let of_text = field.field_descriptor_proto().options.as_ref().and_then(|options| options.packed);
    // The descriptor's own answer is from before the option was read.
    let can_be = !matches!(field.kind(), Kind::String | Kind::Bytes | Kind::Message(_));
    can_be && of_text.unwrap_or_else(|| field.is_packed())
}

/// The numbers of an enum's names.
struct Numbers {
    by_name: HashMap<String, i32>,
    /// In a proto2 enum, a number without a name is an unknown field.
    closed: bool,
}

impl Numbers {
    fn of(of: &EnumDescriptor) -> Self {
        let by_name = of.values().map(|value| (value.name().to_owned(), value.number())).collect();
        Self { by_name, closed: features::is_closed(of) }
    }

    /// A number without a name is its digits, as the decoder has it.
    fn get(&self, name: &str) -> Option<i32> {
        let digits = || if self.closed { None } else { name.parse().ok() };
        self.by_name.get(name).copied().or_else(digits)
    }
}

/// A message whose JSON is encoded.
struct JsonOf {
    message: MessageDescriptor,
    is_group: bool,
    /// True if an edition makes groups of messages, which prost-reflect would not write as such.
    has_groups: bool,
}

impl JsonOf {
    fn new(message: MessageDescriptor, is_group: bool) -> Self {
        let has_groups = message
            .parent_pool()
            .all_messages()
            .any(|message| message.fields().any(|field| features::is_group(&field) && !field.is_group()));
        Self { message, is_group, has_groups }
    }

    fn encoded(&self, text: &str) -> Attempt<Vec<u8>> {
        if self.has_groups {
            let reason = "JSON of a schema with message_encoding = DELIMITED: it cannot be encoded";
            return Err(Failure::new(reason));
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let message = DynamicMessage::deserialize(self.message.clone(), &mut deserializer)
            .and_then(|message| deserializer.end().map(|()| message))
            .map_err(|error| {
                let name = self.message.full_name();
                Failure::new(format!("a string: expected the JSON of {name}: {error}"))
            })?;
        Ok(message.encode_to_vec())
    }
}

fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

fn uint32(value: i64) -> Attempt<u32> {
    u32::try_from(value)
        .map_err(|_| Failure::new(format!("the number {value}: expected an unsigned one of 32 bits")))
}

fn uint64(value: i128) -> Attempt<u64> {
    u64::try_from(value)
        .map_err(|_| Failure::new(format!("the number {value}: expected an unsigned one of 64 bits")))
}

fn put_tag(out: &mut Vec<u8>, number: u32, wire: WireType) {
    let wire = match wire {
        WireType::Varint => 0,
        WireType::Fixed64 => 1,
        WireType::Length => 2,
        WireType::StartGroup => 3,
        WireType::EndGroup => 4,
        WireType::Fixed32 => 5,
    };
    varint::put(out, u64::from(number) << 3 | wire);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends the output of `write`, with its length before it.
fn delimited(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Attempt<()>) -> Attempt<()> {
    let start = out.len();
    out.push(0);
    write(out)?;
    let length = out.len() - start - 1;
    if let Ok(short @ ..0x80) = u8::try_from(length) {
        out[start] = short;
    } else {
        let mut length_bytes = Vec::with_capacity(10);
        varint::put(&mut length_bytes, length as u64);
        out.splice(start..=start, length_bytes);
    }
    Ok(())
}

/// A `Timestamp` or `Duration` with its length.
fn put_time(out: &mut Vec<u8>, seconds: i64, nanos: i64) {
    let mut fields = Vec::with_capacity(17);
    for (number, value) in [(1, seconds), (2, nanos)] {
        if value != 0 {
            put_tag(&mut fields, number, WireType::Varint);
            varint::put(&mut fields, value as u64);
        }
    }
    put_bytes(out, &fields);
}
