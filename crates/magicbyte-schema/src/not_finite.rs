//! Numbers that JSON has no form for.

/// The name, in the JSON of Avro and of Protobuf, of a number that is not finite.
pub(crate) fn name(number: f64) -> &'static str {
    match number {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}
