//! The text of a file of an edition, as one that the parser of proto3 reads.

use std::ops::Range;

use super::DEFAULT;
use crate::protobuf::tokens::{Tokens, is_letter};

/// The text with the statements of proto3, and options that [`lower`](super::lower) understands; `None` if it has no edition.
///
/// # Errors
/// For an edition other than 2023 and 2024.
pub(crate) fn as_proto3(text: &str) -> Result<Option<String>, String> {
    let mut tokens = Tokens::of(text);
    if tokens.next().map(|token| &text[token]) != Some("edition") {
        return Ok(None);
    }
    let tokens: Vec<Range<usize>> = Tokens::of(text).collect();
    let word = |index: usize| tokens.get(index).map_or("", |token| &text[token.clone()]);
    match word(2).trim_matches(['"', '\'']) {
        "2023" | "2024" => {}
        other => {
            let other = &other[..other.floor_char_boundary(50)];
            return Err(format!("the edition {other:?}: expected 2023 or 2024"));
        }
    }
    let mut out = "syntax = \"proto3\"".to_owned();
    let mut copied = tokens.get(2).map_or(text.len(), |token| token.end);
    let mut replace = |range: Range<usize>, with: &str| {
        out.push_str(&text[copied..range.start]);
        out.push_str(with);
        copied = range.end;
    };
    let mut index = 3;
    while index < tokens.len() {
        let token = tokens[index].clone();
        let begins = matches!(word(index - 1), ";" | "{" | "}");
        match (word(index), word(index + 1)) {
            // Parsers of proto3 refuse defaults.
            ("default", "=") if matches!(word(index - 1), "[" | ",") => {
                replace(token, &format!("({DEFAULT})"));
                // Values of options are no words with a sign.
                if (word(index + 2), word(index + 3)) == ("-", "inf") {
                    replace(tokens[index + 2].start..tokens[index + 3].end, "\"-inf\"");
                    index += 3;
                }
            }
            // Edition 2024: who may import a type, and imports of options.
            ("export" | "local", "message" | "enum") if begins => replace(token, ""),
            ("import", "option") if begins => {
                let end = tokens.get(index + 3).map_or(text.len(), |token| token.end);
                replace(token.start..end, "");
                index += 3;
            }
            // Names of reserved fields are identifiers, not strings.
            ("reserved", name) if begins && name.starts_with(is_letter) && word(index + 2) != "=" => {
                while index + 1 < tokens.len() && word(index + 1) != ";" {
                    index += 1;
                    if word(index).starts_with(is_letter) {
                        replace(tokens[index].clone(), &format!("\"{}\"", word(index)));
                    }
                }
            }
            _ => {}
        }
        index += 1;
    }
    out.push_str(&text[copied..]);
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::as_proto3;

    #[test]
    fn statements_of_editions() {
        let text =
            |rest: &str| as_proto3(&format!("// An edition.\nedition = '2024';{rest}")).unwrap().unwrap();
        assert_eq!(text(" message M {}"), "syntax = \"proto3\"; message M {}");
        assert_eq!(
            text(
                " message M { string s = 1 [deprecated = true, default = \"default = 5\"]; string default = 2; }"
            ),
            "syntax = \"proto3\"; message M { string s = 1 [deprecated = true, (magicbyte.default) = \"default = 5\"]; string default = 2; }"
        );
        assert_eq!(
            text("import option \"a.proto\";local message M { export enum E { X = 0; } }"),
            "syntax = \"proto3\"; message M {  enum E { X = 0; } }"
        );
        assert_eq!(
            text("message M { reserved a, b; reserved 1 to 5; reserved = 6; }"),
            "syntax = \"proto3\";message M { reserved \"a\", \"b\"; reserved 1 to 5; reserved = 6; }"
        );
        assert_eq!(
            text("/* default = 1 */ message M {} // default"),
            "syntax = \"proto3\";/* default = 1 */ message M {} // default"
        );
        for text in ["", "syntax = \"proto3\";", "message edition {}", "\"", "/*", "//"] {
            assert_eq!(as_proto3(text), Ok(None));
        }
        assert_eq!(
            as_proto3("edition = \"2025\";"),
            Err("the edition \"2025\": expected 2023 or 2024".to_owned())
        );
        assert!(as_proto3("edition").is_err());
        assert!(as_proto3("edition = \"2023").is_ok());
    }
}
