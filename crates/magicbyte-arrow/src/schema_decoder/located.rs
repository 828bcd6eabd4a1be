//! The payload of each row, and the schema that it was written with.

use magicbyte::schema_framing::{
    Framed, Framing, Message, MessageIndexes, SchemaHeader, SchemaId, Window, Windows, parse_message_indexes,
};
use magicbyte_schema::{Payload, RowError};

use super::rows::{Parts, Row};
use super::writers::{Refusal, Writer};
use super::{SchemaDecoder, shown};
use crate::payload_decoder::PayloadDecoder;

/// The schema of rows that name none.
pub(super) struct Given {
    pub(super) writer: Writer,
    /// Of Protobuf, the message.
    pub(super) path: MessageIndexes,
    /// It is that of all rows.
    pub(super) is_sole: bool,
    /// The registry has no ids, so that no row names one of its schemas by an id.
    pub(super) no_ids: bool,
}

/// A payload that is ready to be decoded.
pub(super) struct Located<'a> {
    pub(super) id: Option<i64>,
    pub(super) writer: u32,
    pub(super) payload: &'a [u8],
    /// The position in the value at which the payload begins.
    pub(super) start: usize,
    pub(super) path: MessageIndexes,
}

/// A row that is ready to be decoded.
pub(super) enum Ready<'a> {
    Null,
    Payload(Located<'a>),
    /// Its payload has to be inflated first; with the key of its writer.
    Deflated(u32, Parts<'a>),
    Bad {
        id: Option<i64>,
        reason: String,
    },
    /// The registry does not have its schema.
    Absent {
        id: Option<i64>,
        reason: String,
    },
    /// A schema that was not added.
    Unknown(SchemaId),
}

/// Which schema a framed row was written with.
enum Found<'a> {
    Writer(u32, Framed<'a>),
    Refused(Refusal),
    Unknown(SchemaId),
    /// The row only looks like a framed one; with the refusal if its schema is absent.
    Bare(Option<Refusal>),
}

impl SchemaDecoder {
    #[inline(always)]
    pub(super) fn ready<'a>(&self, row: Row<'a>) -> Ready<'a> {
        let parts = match row {
            Row::Null => return Ready::Null,
            Row::Unframed(value) => return self.unframed(value),
            Row::BadHeader(name) => return self.bad_header(name),
            Row::NoWindow(size) => {
                let reason = format!("{size} bytes, too few for the times of a window");
                return Ready::Bad { id: None, reason };
            }
            Row::Framed(parts) => parts,
        };
        if let Some(Writer::Known(writer)) = self.writers.get(parts.framed.schema) {
            return self.located(&parts, parts.framed.payload, *writer);
        }
        match self.other_writer(&parts) {
            Found::Writer(writer, framed) => {
                let parts = Parts { framed, ..parts };
                self.located(&parts, framed.payload, writer)
            }
            Found::Refused(Refusal { reason, is_absent }) => {
                let (id, reason) = (number(parts.framed.schema), described(&parts.framed, &reason));
                if is_absent { Ready::Absent { id, reason } } else { Ready::Bad { id, reason } }
            }
            Found::Unknown(schema) => Ready::Unknown(schema),
            Found::Bare(_) => self.bare(parts.value),
        }
    }

    /// The writer of a row whose first name is not that of a known schema.
    #[cold]
    fn other_writer<'a>(&self, parts: &Parts<'a>) -> Found<'a> {
        let framed = parts.framed;
        let long = framed.with_long_id(parts.value).filter(|_| self.of.framing == Framing::Auto);
        let given = self.given.as_ref();
        let by_given = |given: &Given, framed| match &given.writer {
            Writer::Known(writer) => Found::Writer(*writer, framed),
            Writer::Refused(refusal) => Found::Refused(refusal.clone()),
        };
        // Bare Avro may begin with any bytes.
        let is_avro = matches!(self.decoder, PayloadDecoder::Avro(_));
        let is_sure = self.of.framing != Framing::Auto || framed.value_offset() == 0 || !is_avro;
        if let Some(given) = given.filter(|given| given.is_sole) {
            return if is_sure { by_given(given, long.unwrap_or(framed)) } else { Found::Bare(None) };
        }
        let refusal = match self.writers.get(framed.schema) {
            Some(Writer::Refused(refusal)) => refusal.clone(),
            Some(Writer::Known(_)) | None => return Found::Unknown(framed.schema),
        };
        if let Some(long) = long {
            match self.writers.get(long.schema) {
                Some(Writer::Known(writer)) => return Found::Writer(*writer, long),
                None => return Found::Unknown(long.schema),
                Some(Writer::Refused(_)) => {}
            }
        }
        match given {
            Some(given) if matches!(framed.framing, Framing::Glue | Framing::SingleObject) => {
                by_given(given, framed)
            }
            Some(given) if given.no_ids && refusal.is_absent && !is_sure => Found::Bare(Some(refusal)),
            _ => Found::Refused(refusal),
        }
    }

    /// The payload of a framed row, which is inflated here if it was deflated.
    #[inline(always)]
    pub(super) fn located<'p>(&self, parts: &Parts<'p>, payload: &'p [u8], writer: u32) -> Ready<'p> {
        let framed = &parts.framed;
        let id = number(framed.schema);
        let is_deflated = framed.is_deflated;
        if is_deflated && std::ptr::eq(payload, framed.payload) {
            return Ready::Deflated(writer, *parts);
        }
        let start = if is_deflated { 0 } else { framed.value_offset() };
        if !matches!(self.decoder, PayloadDecoder::Protobuf(_)) {
            return Ready::Payload(Located { id, writer, payload, start, path: MessageIndexes::default() });
        }
        match self.message(parts, payload, writer) {
            Ok((path, rest)) => {
                let start = start + payload.len() - rest.len();
                Ready::Payload(Located { id, writer, payload: rest, start, path })
            }
            Err(reason) => Ready::Bad { id, reason },
        }
    }

    /// The Protobuf message of a payload, and the bytes after its name or path.
    #[inline]
    fn message<'p>(
        &self,
        parts: &Parts<'p>,
        payload: &'p [u8],
        writer: u32,
    ) -> Result<(MessageIndexes, &'p [u8]), String> {
        let (message, rest) =
            parts.framed.message(payload, parts.type_name).map_err(|error| error.to_string())?;
        let is_name = matches!(message, Message::Name(_));
        let missing = match self.decoder.message_path(writer, message) {
            Ok(path) => return Ok((path, rest)),
            Err(missing) => missing,
        };
        // What looks like a name may be indexes.
        match parse_message_indexes(payload) {
            Ok((path, rest)) if is_name && self.decoder.has_message(writer, &path) => Ok((path, rest)),
            _ => Err(missing),
        }
    }

    /// A row that begins as none of the framings does.
    fn unframed<'a>(&self, value: &'a [u8]) -> Ready<'a> {
        if self.given.is_some() && matches!(self.of.framing, Framing::Auto | Framing::Bare) {
            return self.bare(value);
        }
        if let PayloadDecoder::Json(_) = self.decoder
            && !matches!(value.first(), None | Some(0 | 1))
        {
            let (writer, path) = (Payload::NO_WRITER, MessageIndexes::default());
            return Ready::Payload(Located { id: None, writer, payload: value, start: 0, path });
        }
        let expected = match self.of.framing {
            Framing::Auto | Framing::Confluent => "0x00 and an id of 4 bytes",
            Framing::Apicurio => "0x00 and an id of 8 bytes",
            Framing::Glue => "0x03, 0x00 or 0x05, and a UUID of 16 bytes",
            Framing::SingleObject => "0xc3, 0x01, and a fingerprint of 8 bytes",
            Framing::Bare => {
                let reason = "not framed, and no schema is given for it".to_owned();
                return Ready::Bad { id: None, reason };
            }
        };
        let reason = match value.first() {
            None => format!("not framed: no bytes, expected {expected}"),
            Some(first @ (0 | 1)) => {
                format!("not framed: {} bytes that begin with {first:#04x}, too few for an id", value.len())
            }
            Some(first) => format!("not framed: begins with {first:#04x}, expected {expected}"),
        };
        Ready::Bad { id: None, reason }
    }

    /// A row without framing, by the schema that is given.
    fn bare<'a>(&self, value: &'a [u8]) -> Ready<'a> {
        match self.given.as_ref().map(|given| (&given.writer, &given.path)) {
            Some((&Writer::Known(writer), path)) => {
                Ready::Payload(Located { id: None, writer, payload: value, start: 0, path: path.clone() })
            }
            Some((Writer::Refused(refusal), _)) => {
                Ready::Bad { id: None, reason: format!("the schema that is given: {}", refusal.reason) }
            }
            None => Ready::Bad { id: None, reason: "no schema is given".to_owned() },
        }
    }

    fn bad_header(&self, name: SchemaHeader) -> Ready<'static> {
        let column = if self.of.is_key { "key" } else { "value" };
        let reason = match name {
            SchemaHeader::Confluent => format!("the header __{column}_schema_id is neither an id nor a GUID"),
            SchemaHeader::ApicurioGlobalId | SchemaHeader::ApicurioContentId => {
                format!(
                    "framed by Apicurio: the header apicurio.{column}.globalId or .contentId does not have 8 bytes"
                )
            }
            SchemaHeader::ApicurioOther => format!(
                "framed by Apicurio: its headers name the schema by a hash or an artifact, expected \
                 apicurio.{column}.globalId or apicurio.{column}.contentId"
            ),
        };
        Ready::Bad { id: None, reason }
    }

    /// The id and the reason of a row that was read without framing because the registry does not have its schema.
    pub(super) fn absent_name(&self, row: &Row<'_>) -> Option<(Option<i64>, String)> {
        let Row::Framed(parts) = row else { return None };
        match self.other_writer(parts) {
            Found::Bare(Some(refusal)) => Some((number(parts.framed.schema), refusal.reason)),
            _ => None,
        }
    }

    /// The text of an error in a row's payload.
    pub(super) fn explained(&self, row: Row<'_>, error: RowError) -> String {
        let absent = self.absent_name(&row);
        let (value, looks_framed) = match &row {
            Row::Framed(parts) => (parts.value, Some(parts.framed)),
            Row::Unframed(value) => (*value, None),
            Row::Null | Row::BadHeader(_) | Row::NoWindow(_) => (&[][..], None),
        };
        let (start, is_bare) = match self.ready(row) {
            Ready::Payload(located) => (located.start, located.start == 0),
            Ready::Null
            | Ready::Bad { .. }
            | Ready::Absent { .. }
            | Ready::Unknown(_)
            | Ready::Deflated(..) => (0, false),
        };
        let mut text = shown(error, start);
        if let Some((_, reason)) = absent {
            text = format!("{reason}; read without framing: {text}");
        } else if let Some(framed) = looks_framed.filter(|framed| is_bare && framed.value_offset() > 0) {
            text = format!("{text}; read without framing, but it begins like one {}", named(&framed));
        }
        let is_window = [Windows::Session, Windows::Time]
            .into_iter()
            .any(|windows| Window::split_plausible(value, windows).is_some());
        if is_window && self.of.is_key && self.of.windows == Windows::None {
            text.push_str("; it ends like a windowed key: say which windows it has");
        }
        text
    }
}

fn number(schema: SchemaId) -> Option<i64> {
    match schema {
        SchemaId::Id(id) => Some(id),
        SchemaId::Guid(_) | SchemaId::Fingerprint(_) => None,
    }
}

/// The reason with the framing, unless it is the usual one.
fn described(framed: &Framed<'_>, reason: &str) -> String {
    match framed.framing {
        Framing::Glue | Framing::SingleObject => format!("{}: {reason}", named(framed)),
        _ => reason.to_owned(),
    }
}

fn named(framed: &Framed<'_>) -> String {
    match (framed.framing, framed.schema) {
        (Framing::Glue, _) => "framed by AWS Glue".to_owned(),
        (Framing::SingleObject, _) => "framed as Avro's single object".to_owned(),
        (_, SchemaId::Id(id)) => format!("framed with the id {id}"),
        (_, SchemaId::Guid(_) | SchemaId::Fingerprint(_)) => "framed with a GUID".to_owned(),
    }
}
