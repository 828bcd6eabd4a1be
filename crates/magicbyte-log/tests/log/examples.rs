//! The example works as described.

#[allow(dead_code, reason = "main is unused here")]
#[path = "../../examples/account.rs"]
mod account;

use std::fs;

use magicbyte_testing::{data, files, scratch};

fn told(directory: &std::path::Path) -> String {
    let mut out = Vec::new();
    account::account(directory.to_str().unwrap(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn an_account() {
    let intact = told(&data().join("v2_lz4"));
    assert!(intact.contains("0 bytes that could not be read"), "{intact}");
    assert!(intact.ends_with("0 offsets may be lost\n"), "{intact}");
    let copy = scratch("account").join("v2_lz4-0");
    fs::create_dir(&copy).unwrap();
    for file in files(&data().join("v2_lz4"), ".log") {
        let mut bytes = fs::read(&file).unwrap();
        bytes[100] ^= 1;
        fs::write(copy.join(file.file_name().unwrap()), bytes).unwrap();
    }
    let damaged = told(&copy);
    assert!(damaged.contains("crc"), "{damaged}");
    assert!(!damaged.contains("\n0 offsets may be lost"), "{damaged}");
}
