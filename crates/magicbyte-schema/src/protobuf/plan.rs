//! From a message's descriptor to its columns. docs/schemas.md has the table of types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_schema::{DataType, Field as ArrowField, Fields, TimeUnit};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, Value as Default};

use super::columns::{Bits, Booleans, Bytes, Numbers};
use super::features;
use super::leaves::{JsonText, Micros, Names};
use super::message::{Embedded, Field, Label, Lists, Maps, Message, Messages, Value};
use super::names::EnumNames;
use super::shape::Shapes;
use crate::budget::{MAX_COLUMNS, MAX_NESTING, MAX_ROW};
use crate::columns::DUMMY;
use crate::error::{Result, SchemaError};

/// The digits of the largest unsigned number of 64 bits.
const UINT64: DataType = DataType::Decimal128(20, 0);

/// The columns of a message, and their type, which is a struct.
pub(crate) fn columns(message: &MessageDescriptor) -> Result<(Messages, DataType)> {
    let mut plan = Plan { path: Vec::new(), columns: 0, enums: HashMap::new(), shapes: None };
    let (messages, fields) = plan.message(message)?;
    if messages.row_size() > MAX_ROW {
        let reason = format!("{} takes {} bytes a row", message.full_name(), messages.row_size());
        return Err(SchemaError::new(format!("{reason}, more than {MAX_ROW}")));
    }
    Ok((messages, DataType::Struct(fields)))
}

struct Plan {
    /// Full names of the messages around the one that is planned.
    path: Vec<String>,
    columns: usize,
    /// The names of enums, by the names of the enums.
    enums: HashMap<String, Arc<EnumNames>>,
    /// The messages of the schema, for columns that are text.
    shapes: Option<Arc<Shapes>>,
}

impl Plan {
    fn message(&mut self, message: &MessageDescriptor) -> Result<(Messages, Fields)> {
        self.path.push(message.full_name().to_owned());
        let mut fields = Vec::new();
        let mut arrow = Vec::new();
        let mut oneofs = vec![Vec::new(); message.oneofs().len()];
        // In the order of the file.
        for declared in &message.descriptor_proto().field {
            let Some(field) = message.get_field_by_name(declared.name()) else { continue };
            let label = match features::oneof(&field) {
                Some(oneof) => {
                    oneofs[oneof].push(fields.len());
                    Label::Oneof(oneof)
                }
                None if field.is_required() => Label::Required(Bits::unset()),
                None => Label::None,
            };
            let (value, data_type) = self.field(&field)?;
            arrow.push(ArrowField::new(field.name(), data_type, !field.is_required()));
            fields.push(Field { number: field.number(), value, label });
        }
        if fields.is_empty() {
            self.count(message)?;
            let value = Value::String(Bytes::new(None));
            // No tag has the number 0.
            fields.push(Field { number: 0, value, label: Label::None });
            arrow.push(ArrowField::new(DUMMY, DataType::Utf8, true));
        }
        self.path.pop();
        let arrow = Fields::from(arrow);
        let oneofs = oneofs.into_iter().map(Into::into).collect();
        Ok((Messages::new(fields, arrow.clone(), oneofs), arrow))
    }

    fn field(&mut self, field: &FieldDescriptor) -> Result<(Value, DataType)> {
        self.count(field.parent_message())?;
        let kind = field.kind();
        match &kind {
            Kind::Message(entry) if field.is_map() => self.map(entry),
            _ if field.is_list() => {
                // No element is absent.
                let absent = Absent::Value(kind.default_value());
                let (elements, data_type) = self.value(&kind, features::is_group(field), absent)?;
                let element = Arc::new(ArrowField::new_list_field(data_type, false));
                let list = Lists::new(elements, element.clone());
                Ok((Value::List(Box::new(list)), DataType::List(element)))
            }
            _ => self.value(&kind, features::is_group(field), absent(field)),
        }
    }

    fn map(&mut self, entry: &MessageDescriptor) -> Result<(Value, DataType)> {
        let mut fields = Vec::new();
        let mut arrow = Vec::new();
        for field in [entry.map_entry_key_field(), entry.map_entry_value_field()] {
            let kind = field.kind();
            // Absent keys and values have the default of their type.
            let (value, data_type) = self.value(&kind, false, Absent::Value(kind.default_value()))?;
            arrow.push(ArrowField::new(field.name(), data_type, false));
            fields.push(Field { number: field.number(), value, label: Label::None });
        }
        let arrow = Fields::from(arrow);
        let entries = Messages::new(fields, arrow.clone(), Box::default());
        let field = Arc::new(ArrowField::new("entries", DataType::Struct(arrow), false));
        let data_type = DataType::Map(field.clone(), false);
        Ok((Value::Map(Box::new(Maps::new(entries, field))), data_type))
    }

    fn value(&mut self, kind: &Kind, is_group: bool, absent: Absent) -> Result<(Value, DataType)> {
        let value = match kind {
            Kind::Int32 => Value::Int32(Numbers::new(absent.number(Default::as_i32))),
            Kind::Sint32 => Value::SInt32(Numbers::new(absent.number(Default::as_i32))),
            Kind::Sfixed32 => Value::SFixed32(Numbers::new(absent.number(Default::as_i32))),
            Kind::Uint32 => Value::UInt32(Numbers::new(absent.number(unsigned))),
            Kind::Fixed32 => Value::Fixed32(Numbers::new(absent.number(unsigned))),
            Kind::Int64 => Value::Int64(Numbers::new(absent.number(Default::as_i64))),
            Kind::Sint64 => Value::SInt64(Numbers::new(absent.number(Default::as_i64))),
            Kind::Sfixed64 => Value::SFixed64(Numbers::new(absent.number(Default::as_i64))),
            Kind::Uint64 => Value::UInt64(Numbers::of_type(absent.number(long_unsigned), UINT64)),
            Kind::Fixed64 => Value::Fixed64(Numbers::of_type(absent.number(long_unsigned), UINT64)),
            Kind::Float => Value::Float(Numbers::new(absent.number(Default::as_f32))),
            Kind::Double => Value::Double(Numbers::new(absent.number(Default::as_f64))),
            Kind::Bool => Value::Bool(Booleans::new(absent.number(Default::as_bool))),
            Kind::String => {
                Value::String(Bytes::new(absent.value().and_then(Default::as_str).map(str::as_bytes)))
            }
            Kind::Bytes => {
                Value::Bytes(Bytes::new(absent.value().and_then(Default::as_bytes).map(|b| &b[..])))
            }
            Kind::Enum(descriptor) => {
                let absent = absent.number(Default::as_enum_number);
                let names = self.enums.entry(descriptor.full_name().to_owned());
                let names = names.or_insert_with(|| Arc::new(EnumNames::new(descriptor)));
                Value::Enum(Names::new(Arc::clone(names), absent))
            }
            Kind::Message(message) => {
                let (column, data_type) = self.embedded(message)?;
                return Ok((Value::Message(Embedded { is_group, column }), data_type));
            }
        };
        let data_type = match kind {
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => DataType::Int32,
            Kind::Uint32 | Kind::Fixed32 | Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => DataType::Int64,
            Kind::Uint64 | Kind::Fixed64 => UINT64,
            Kind::Float => DataType::Float32,
            Kind::Double => DataType::Float64,
            Kind::Bool => DataType::Boolean,
            Kind::Bytes => DataType::Binary,
            Kind::String | Kind::Enum(_) | Kind::Message(_) => DataType::Utf8,
        };
        Ok((value, data_type))
    }

    fn embedded(&mut self, message: &MessageDescriptor) -> Result<(Message, DataType)> {
        match message.full_name() {
            "google.protobuf.Timestamp" => {
                let data_type = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
                return Ok((Message::Timestamp(micros(&data_type)), data_type));
            }
            "google.protobuf.Duration" => {
                let data_type = DataType::Duration(TimeUnit::Microsecond);
                return Ok((Message::Duration(micros(&data_type)), data_type));
            }
            "google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue" => {}
            name if self.path.iter().any(|outer| outer == name) => {}
            _ if self.path.len() >= MAX_NESTING => {}
            _ => {
                let (messages, fields) = self.message(message)?;
                return Ok((Message::Struct(Box::new(messages)), DataType::Struct(fields)));
            }
        }
        let shapes = self.shapes.get_or_insert_with(|| Arc::new(Shapes::new(message.parent_pool())));
        let index = shapes.index_of(message);
        Ok((Message::Json(Box::new(JsonText::new(Arc::clone(shapes), index))), DataType::Utf8))
    }

    fn count(&mut self, message: &MessageDescriptor) -> Result<()> {
        self.columns += 1;
        if self.columns > MAX_COLUMNS {
            let of = self.path.first().map_or(message.full_name(), String::as_str);
            return Err(SchemaError::new(format!("{of} has more than {MAX_COLUMNS} columns")));
        }
        Ok(())
    }
}

/// The content of a row that does not set a field.
enum Absent {
    Null,
    Value(Default),
}

impl Absent {
    fn value(&self) -> Option<&Default> {
        match self {
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }

    fn number<T>(&self, convert: fn(&Default) -> Option<T>) -> Option<T> {
        self.value().and_then(convert)
    }
}

/// A default that the file gives, null where protobuf knows whether the field was set, zero or empty elsewhere.
fn absent(field: &FieldDescriptor) -> Absent {
    let in_oneof = field.containing_oneof().is_some();
    let has_default = field.field_descriptor_proto().default_value.is_some() && !in_oneof;
    // A required field is in every message; this is for the rows where the message is null.
    if has_default || field.is_required() || !features::has_presence(field) {
        return Absent::Value(field.default_value());
    }
    Absent::Null
}

fn unsigned(value: &Default) -> Option<i64> {
    value.as_u32().map(i64::from)
}

fn long_unsigned(value: &Default) -> Option<i128> {
    value.as_u64().map(i128::from)
}

fn micros<T: ArrowPrimitiveType<Native = i64>>(data_type: &DataType) -> Micros<T> {
    Micros::new(Numbers::of_type(None, data_type.clone()))
}
