//! Comparisons for the study (`benches/python/study.py`).
//!
//! A request on standard input is a line of JSON, with the number of bytes that follow it: uncompressed magic 2 batches. The
//! response on standard output is a line of JSON, a [`Comparison`](magicbyte_magic3::Comparison). The end of the input ends the
//! program, as does the first error.

use std::io::{BufRead, Read, Write};

use magicbyte::Compression;
use magicbyte_magic3::{Form, Ideas, compare};
use serde::Deserialize;

#[derive(Deserialize)]
struct Request {
    size: usize,
    magic: i8,
    /// Attribute bits, for magic 3.
    ideas: i16,
    codec: u8,
    level: Option<i32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let request: Request = serde_json::from_str(&line)?;
        let mut batches = vec![0; request.size];
        input.read_exact(&mut batches)?;
        let form = match request.magic {
            2 => Form::Batches,
            3 => Form::Experimental(Ideas::from_bits(request.ideas)?),
            older => Form::Messages(older),
        };
        let codec = Compression::from_id(request.codec)?;
        let comparison = compare(&batches, form, codec, request.level)?;
        serde_json::to_writer(&mut output, &comparison)?;
        output.write_all(b"\n")?;
        output.flush()?;
        line.clear();
    }
    Ok(())
}
