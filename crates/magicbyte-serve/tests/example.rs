//! The example works as described.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[allow(dead_code, reason = "main is unused here")]
#[path = "../examples/serve.rs"]
mod serve;

use std::io::{Read, Write};
use std::net::TcpStream;

use magicbyte_testing::data;

/// `ApiVersions` 0, with the correlation id 7 and no client id.
const API_VERSIONS: &[u8] = &[0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 0xff, 0xff];

#[test]
fn a_client_is_answered() {
    let directory = data().join("v2_lz4").to_str().unwrap().to_owned();
    let server = serve::serve("127.0.0.1:0", [directory].into_iter()).unwrap();
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.write_all(API_VERSIONS).unwrap();
    let mut head = [0; 10];
    client.read_exact(&mut head).unwrap();
    assert_eq!(head[4..], [0, 0, 0, 7, 0, 0], "the correlation id, and no error");
}
