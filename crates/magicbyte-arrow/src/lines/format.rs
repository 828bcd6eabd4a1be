//! The format strings of kcat's option `-f`, with its tokens and escapes (`format.c` of kcat 1.7).

use std::str::FromStr;

use arrow_array::Array;

use magicbyte_log::{LogError, LogResult};

use crate::cells::Blobs;
use crate::lines::escape::push_text_of;
use crate::lines::fields::{Cells, Field};
use crate::lines::json_lines::push_integer;
use crate::lines::payload::PayloadFormat;
use crate::schema::RecordColumn;

/// A parsed format string.
///
/// `%t` topic, `%p` partition, `%o` offset, `%T` timestamp (ms), `%k` key, `%K` its length, `%s` value, `%S` its length,
/// `%R` that as four bytes (big-endian), `%h` headers as `name=value,name=value`, `%%` a percent sign. The length of a
/// null is -1, and a header's null is `NULL`. `\n`, `\r`, `\t` and `\xNN` are bytes; another character after a backslash is
/// itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Bytes(Vec<u8>),
    Cell(RecordColumn),
    KeyLength,
    ValueLength,
    BinaryValueLength,
}

const TOKENS: [(char, Token); 10] = [
    ('t', Token::Cell(RecordColumn::Topic)),
    ('p', Token::Cell(RecordColumn::Partition)),
    ('o', Token::Cell(RecordColumn::Offset)),
    ('T', Token::Cell(RecordColumn::TimestampMillis)),
    ('k', Token::Cell(RecordColumn::Key)),
    ('K', Token::KeyLength),
    ('s', Token::Cell(RecordColumn::Value)),
    ('S', Token::ValueLength),
    ('R', Token::BinaryValueLength),
    ('h', Token::Cell(RecordColumn::Headers)),
];

impl FromStr for Template {
    type Err = LogError;

    fn from_str(text: &str) -> LogResult<Self> {
        let mut tokens = Vec::new();
        let mut bytes: Vec<u8> = Vec::new();
        let mut rest = text.chars();
        while let Some(character) = rest.next() {
            match character {
                '%' => match rest.next() {
                    Some('%') => bytes.push(b'%'),
                    next => {
                        let known = TOKENS.iter().find(|(letter, _)| Some(*letter) == next);
                        let Some((_, token)) = known else { return Err(unknown(text, rest.as_str(), next)) };
                        if !bytes.is_empty() {
                            tokens.push(Token::Bytes(std::mem::take(&mut bytes)));
                        }
                        tokens.push(token.clone());
                    }
                },
                '\\' => match rest.next() {
                    Some('n') => bytes.push(b'\n'),
                    Some('r') => bytes.push(b'\r'),
                    Some('t') => bytes.push(b'\t'),
                    Some('x') => {
                        let digits = rest.as_str().bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
                        let number = u8::from_str_radix(&rest.as_str()[..digits], 16);
                        bytes.push(number.map_err(|_| {
                            LogError::Usage(format!("the format {text:?} has \\x without hexadecimal digits"))
                        })?);
                        rest = rest.as_str()[digits..].chars();
                    }
                    Some(other) => push_char(other, &mut bytes),
                    None => bytes.push(b'\\'),
                },
                other => push_char(other, &mut bytes),
            }
        }
        if !bytes.is_empty() {
            tokens.push(Token::Bytes(bytes));
        }
        Ok(Self(tokens))
    }
}

fn push_char(character: char, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cold]
fn unknown(text: &str, rest: &str, next: Option<char>) -> LogError {
    let names: Vec<_> = TOKENS.iter().map(|(letter, _)| format!("%{letter}")).collect();
    let known = names.join(" ");
    LogError::Usage(match next {
        Some(letter) => {
            let position = text.len() - rest.len() - letter.len_utf8() - 1;
            format!("the format {text:?} has %{letter} at byte {position}: expected one of {known} %%")
        }
        None => format!("the format {text:?} ends with %: expected one of {known}, or %% for a percent sign"),
    })
}

/// The style in which the tokens of a template are written.
#[derive(Clone, Debug)]
pub(super) struct TemplateStyle<'a> {
    pub(super) template: &'a Template,
    pub(super) key: PayloadFormat,
    /// The format of values, and of values of headers.
    pub(super) value: PayloadFormat,
    /// True if invisible characters of the record are escaped. Otherwise the bytes of a text are written as they are.
    pub(super) visible: bool,
    /// The text for a key or value that is null.
    pub(super) null: &'a str,
}

impl TemplateStyle<'_> {
    /// Appends the text of each row.
    ///
    /// # Errors
    /// [`LogError::Usage`] names a column that the template needs and the batch does not have.
    pub(super) fn push_all(&self, fields: &[Field<'_>], rows: usize, out: &mut Vec<u8>) -> LogResult<()> {
        let field = |token: &Token| {
            let column = match token {
                Token::Bytes(_) => return Ok(None),
                Token::Cell(column) => *column,
                Token::KeyLength => RecordColumn::Key,
                Token::ValueLength | Token::BinaryValueLength => RecordColumn::Value,
            };
            let is_same = |other: &RecordColumn| {
                *other == column
                    || (*other, column) == (RecordColumn::Timestamp, RecordColumn::TimestampMillis)
            };
            let same = fields.iter().find(|field| is_same(&field.column));
            same.map(Some).ok_or_else(|| {
                LogError::Usage(format!("there is no column {:?}, which the format needs", column.name()))
            })
        };
        let tokens = self.template.0.iter().map(|token| Ok((token, field(token)?)));
        let tokens = tokens.collect::<LogResult<Vec<_>>>()?;
        for row in 0..rows {
            for (token, field) in &tokens {
                match (token, field) {
                    (Token::Bytes(bytes), _) => out.extend_from_slice(bytes),
                    (token, Some(field)) => self.push(token, field, row, out),
                    (_, None) => {}
                }
            }
        }
        Ok(())
    }

    fn push(&self, token: &Token, field: &Field<'_>, row: usize, out: &mut Vec<u8>) {
        match &field.cells {
            Cells::Int32(array) if array.is_valid(row) => push_integer(array.value(row), out),
            Cells::Int64(array) if array.is_valid(row) => push_integer(array.value(row), out),
            Cells::Time(times) => push_integer(times.get(row), out),
            Cells::Text(blobs) => {
                self.push_bytes(blobs.get(row).unwrap_or_default(), PayloadFormat::Utf8, out);
            }
            Cells::Payload(blobs) => self.push_payload(token, field, blobs.get(row), out),
            Cells::Headers(headers) => {
                let range = headers.range(row);
                for at in range.clone() {
                    if at > range.start {
                        out.push(b',');
                    }
                    self.push_bytes(key_of(&headers.keys, at), PayloadFormat::Utf8, out);
                    out.push(b'=');
                    match headers.values.get(at) {
                        Some(value) => self.push_bytes(value, self.value, out),
                        None => out.extend_from_slice(b"NULL"),
                    }
                }
            }
            _ => {}
        }
    }

    fn push_payload(&self, token: &Token, field: &Field<'_>, cell: Option<&[u8]>, out: &mut Vec<u8>) {
        let length = cell.map_or(-1, |bytes| bytes.len() as i64);
        match (token, cell) {
            (Token::KeyLength | Token::ValueLength, _) => push_integer(length, out),
            // A record's value has at most 2 GiB.
            (Token::BinaryValueLength, _) => {
                self.push_bytes(&(length as i32).to_be_bytes(), PayloadFormat::Utf8, out);
            }
            (_, None) => out.extend_from_slice(self.null.as_bytes()),
            (_, Some(bytes)) => {
                let format = if field.column == RecordColumn::Key { self.key } else { self.value };
                self.push_bytes(bytes, format, out);
            }
        }
    }

    fn push_bytes(&self, bytes: &[u8], format: PayloadFormat, out: &mut Vec<u8>) {
        match format {
            PayloadFormat::Utf8 if self.visible => push_text_of(bytes, true, out),
            format => format.push_digits(bytes, out),
        }
    }
}

fn key_of<'a>(keys: &Blobs<'a>, at: usize) -> &'a [u8] {
    keys.get(at).unwrap_or_default()
}
