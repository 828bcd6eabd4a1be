//! The docstrings of `_stubs/message.pyi`. Written by `make docstrings`.

macro_rules! message {
    (apis) => {
        r"Key, name, oldest and newest version of each API, by key."
    };
    (decode_request) => {
        r"The request in a frame: API key, version, header, body. Without `secrets`, those are hidden."
    };
    (decode_response) => {
        r"The response in a frame, to a request of this API and version: API key, version, header, body. Without
`secrets`, those are hidden."
    };
    (encode_request) => {
        r"The frame of a request, without its size."
    };
    (encode_response) => {
        r"The frame of a response, without its size."
    };
    (error_name) => {
        r"Kafka's name of an error code; None for a code that Kafka 4.4 does not have."
    };
}
pub(crate) use message;
