//! The two checksums of Kafka's formats: CRC-32C of magic 2 (`DefaultRecordBatch`), CRC-32 of magic 0 and 1
//! (`LegacyRecord`).

/// CRC-32C (Castagnoli), the checksum of magic 2 batches and producer snapshots, computed in hardware.
///
/// `value` continues an earlier checksum: `crc32c(b, crc32c(a, 0)) == crc32c(a ++ b, 0)`.
///
/// ```
/// assert_eq!(magicbyte::crc32c(b"123456789", 0), 0xe306_9283);
/// ```
#[must_use]
#[inline]
pub fn crc32c(data: &[u8], value: u32) -> u32 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        if value == 0 {
            return crc_fast::crc32_iscsi(data);
        }
        // The register before its last inversion. Combining two checksums instead takes microseconds.
        let register = u64::from(!value);
        let mut digest = crc_fast::Digest::new_with_init_state(crc_fast::CrcAlgorithm::Crc32Iscsi, register);
        digest.update(data);
        digest.finalize() as u32
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        crc32c::crc32c_append(value, data)
    }
}

/// CRC-32 (IEEE), the checksum of magic 0 and 1 messages.
#[doc(hidden)]
#[must_use]
#[inline]
pub fn crc32(data: &[u8]) -> u32 {
    // Messages are small, and libdeflate's kernel starts faster: half the time for 130 bytes.
    #[cfg(feature = "gzip")]
    {
        let mut crc = libdeflater::Crc::new();
        crc.update(data);
        crc.sum()
    }
    #[cfg(all(not(feature = "gzip"), any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        crc_fast::crc32_iso_hdlc(data)
    }
    #[cfg(all(not(feature = "gzip"), not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        crc32fast::hash(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        assert_eq!(crc32c(b"123456789", 0), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32c(b"", 0), 0);
    }

    #[test]
    fn both_backends_agree_on_every_length_and_split() {
        let data: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in (0..300).chain([1000, 4095, 4096, 4097, 5000]) {
            assert_eq!(crc32(&data[..length]), crc32fast::hash(&data[..length]), "length {length}");
            let expected = ::crc32c::crc32c(&data[..length]);
            assert_eq!(crc32c(&data[..length], 0), expected, "length {length}");
            for split in [0, 1, length / 3, length.saturating_sub(1), length] {
                let split = split.min(length);
                let head = crc32c(&data[..split], 0);
                assert_eq!(crc32c(&data[split..length], head), expected, "length {length} split {split}");
            }
        }
    }
}
