//! Regular expressions of clients. They are compiled in linear time, as by RE2.

use regex::bytes::{Regex, RegexBuilder};

use magicbyte_broker::ErrorCode;

use crate::caller::Result;

/// The maximum size of a compiled pattern in bytes, which also bounds the time that it takes for each name.
const MAX_PATTERN_SIZE: usize = 64 << 10;

/// Compiles a pattern for whole names; None for the empty one, which Kafka takes for none. As in RE2, classes such as
/// `\w` are those of ASCII.
///
/// # Errors
/// If the pattern is not valid, or too large.
pub(super) fn compile(pattern: &str) -> Result<Option<Regex>> {
    let build =
        |pattern: &str| RegexBuilder::new(pattern).unicode(false).size_limit(MAX_PATTERN_SIZE).build().ok();
    if pattern.is_empty() {
        return Ok(None);
    }
    // By itself, so that it cannot close the group around it.
    let regex = build(pattern).and_then(|_| build(&format!(r"\A(?:{pattern})\z")));
    regex.map(Some).ok_or(ErrorCode::InvalidRegularExpression)
}
