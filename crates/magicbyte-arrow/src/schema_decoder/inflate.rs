//! Payloads that AWS Glue's serializers compressed by zlib.

use flate2::{Decompress, FlushDecompress, Status};

use magicbyte_schema::Payload;

/// Bytes of inflated payloads at which a batch is cut.
pub(super) const MAX_INFLATED: usize = 64 << 20;
const STEP: usize = 16 << 10;

/// Inflates a payload: at most to the bytes that its columns may take.
///
/// # Errors
/// The reason why it cannot be inflated.
pub(super) fn inflate(compressed: &[u8]) -> Result<Vec<u8>, String> {
    let most = Payload::max_inflated(compressed.len());
    let mut stream = Decompress::new(true);
    let mut out = Vec::new();
    loop {
        if out.len() == out.capacity() {
            out.reserve(out.len().clamp(STEP, most));
        }
        let (read, written) = (stream.total_in(), stream.total_out());
        let rest = compressed.get(read as usize..).unwrap_or_default();
        let status = stream
            .decompress_vec(rest, &mut out, FlushDecompress::None)
            .map_err(|error| format!("its zlib stream is invalid at byte {}: {error}", stream.total_in()))?;
        if out.len() > most {
            return Err(format!(
                "it inflates to more than {most} bytes, the limit for {} bytes",
                compressed.len()
            ));
        }
        match status {
            Status::StreamEnd if stream.total_in() as usize == compressed.len() => return Ok(out),
            Status::StreamEnd => {
                return Err(format!(
                    "{} bytes follow its zlib stream",
                    compressed.len() - stream.total_in() as usize
                ));
            }
            Status::Ok | Status::BufError
                if out.len() == out.capacity()
                    || (read, written) != (stream.total_in(), stream.total_out()) => {}
            Status::Ok | Status::BufError => return Err("its zlib stream is cut off".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::inflate;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn payloads_of_any_size() {
        for size in [0, 1, 100, super::STEP, super::STEP + 1, 1 << 20] {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            assert_eq!(inflate(&deflated(&bytes)).unwrap(), bytes);
        }
    }

    #[test]
    fn streams_that_are_not_whole() {
        let whole = deflated(b"a payload of some length, of some length");
        for size in 0..whole.len() {
            assert!(inflate(&whole[..size]).is_err(), "{size}");
        }
        assert_eq!(inflate(&[&whole, &b"ab"[..]].concat()).unwrap_err(), "2 bytes follow its zlib stream");
        assert!(inflate(b"\x78\x9c\xff\xff").unwrap_err().contains("invalid"));
    }

    #[test]
    fn a_bomb_is_refused() {
        let bomb = deflated(&vec![0; 256 << 20]);
        assert!(inflate(&bomb).unwrap_err().contains("inflates to more than"));
    }
}
