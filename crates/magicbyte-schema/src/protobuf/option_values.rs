//! Values of options that `protoc` takes and the parser refuses, as others that it takes.

use std::borrow::Cow;
use std::ops::Range;

use super::tokens::Tokens;

/// The text with other values in the place of these: `-inf` and `-nan` of custom options, which are left out anyway, and
/// integers beyond 64 bits, which are those of floats.
pub(super) fn readable(text: &str) -> Cow<'_, str> {
    let tokens: Vec<Range<usize>> = Tokens::of(text).collect();
    let word = |index: usize| tokens.get(index).map_or("", |token| &text[token.clone()]);
    let (mut out, mut copied) = (String::new(), 0);
    for index in (2..tokens.len()).filter(|&index| word(index) == "=") {
        // `(x)` or `(x).y`; the type of a field is not followed by a dot.
        let is_custom = word(index - 1) == ")" || word(index - 2) == ".";
        let is_default = word(index - 1) == "default" && matches!(word(index - 2), "[" | ",");
        let is_negative = word(index + 1) == "-";
        let value = index + 1 + usize::from(is_negative);
        let Some(end) = tokens.get(value).map(|value| value.end) else { break };
        let replaced = match word(value) {
            "inf" | "nan" if is_custom && is_negative => " 0".to_owned(),
            number
                if (is_custom || is_default) && word(value + 1) != "." && is_large(number, is_negative) =>
            {
                format!("{}.0", &text[tokens[index].end..end])
            }
            _ => continue,
        };
        out.push_str(&text[copied..tokens[index].end]);
        out.push_str(&replaced);
        copied = end;
    }
    if copied == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[copied..]) }
}

/// True for a decimal integer that is beyond 64 bits.
fn is_large(number: &str, is_negative: bool) -> bool {
    let is_decimal = !number.starts_with('0') && number.bytes().all(|digit| digit.is_ascii_digit());
    let is_short = match is_negative {
        true => format!("-{number}").parse::<i64>().is_ok(),
        false => number.parse::<u64>().is_ok(),
    };
    is_decimal && !number.is_empty() && !is_short
}
