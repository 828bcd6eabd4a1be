//! The files that a registry's clients bring with them, besides Google's own: schemas import them without a reference.
//!
//! The names are those of Confluent's `ProtobufSchema.KNOWN_DEPENDENCIES`, with the ones that its Python client has besides.
//! `google/type` is from googleapis-common-protos, with its notices; the files of `confluent` are declarations of our own.

/// The text of a file, by the name of its import.
pub(super) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|file| file.0 == name).map(|file| file.1)
}

macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("known/", $name)))),*] };
}

const FILES: [(&str, &str); 21] = files![
    "confluent/meta.proto",
    "confluent/type/decimal.proto",
    "confluent/type/variant.proto",
    "confluent/types/decimal.proto",
    "google/type/calendar_period.proto",
    "google/type/color.proto",
    "google/type/date.proto",
    "google/type/datetime.proto",
    "google/type/dayofweek.proto",
    "google/type/decimal.proto",
    "google/type/expr.proto",
    "google/type/fraction.proto",
    "google/type/interval.proto",
    "google/type/latlng.proto",
    "google/type/localized_text.proto",
    "google/type/money.proto",
    "google/type/month.proto",
    "google/type/phone_number.proto",
    "google/type/postal_address.proto",
    "google/type/quaternion.proto",
    "google/type/timeofday.proto",
];
