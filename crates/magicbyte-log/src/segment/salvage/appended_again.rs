//! The same batch again: the first append was interrupted, or a page is in the file twice.

use std::io;

use memchr::memmem;

use magicbyte::internals::LOG_OVERHEAD;

use super::damage::Damage;
use super::header::declared_size;
use super::{LARGE, Verdict};

/// The start of an intact batch with the offset and length of the bad batch.
pub(super) fn appended_again(damage: &mut Damage<'_>) -> io::Result<Verdict> {
    let header = damage.header.clone();
    let (Some(offset_and_length), Some(size)) =
        (header.first_chunk::<LOG_OVERHEAD>(), declared_size(&header))
    else {
        return Ok(Verdict::Unknown);
    };
    let finder = memmem::Finder::new(offset_and_length);
    // No batch in the value of this one can be as long as this one, so no hit is its content.
    let distance = damage.reach().min(size.max(LARGE as u64));
    let (mut at, end) = (damage.start + 1, damage.start + distance);
    while at < end {
        let window = damage.blocks.peek(at, (end - at).min(LARGE as u64) as usize + LOG_OVERHEAD)?;
        // A search for fixed bytes costs a fraction of a checksum.
        damage.spend(window.len() as u64 / 16);
        for hit in finder.find_iter(&window) {
            let position = at + hit as u64;
            let next = damage.header_at(position)?;
            if damage.crc_holds_at(&next, position)? {
                return Ok(Verdict::End(position));
            }
        }
        if window.len() <= LOG_OVERHEAD {
            break;
        }
        at += (window.len() - LOG_OVERHEAD) as u64 + 1;
    }
    Ok(Verdict::Unknown)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{batch, junk, resume};

    #[test]
    fn a_batch_that_is_repeated_in_full_is_not_the_content_of_its_first_part() {
        // The header of the first part claims offset 10 for itself, so a scan would pass over the repeated batch.
        let (bad, next) = (batch(10, &[&junk(300)]), batch(11, &[b"next"]));
        assert_eq!(resume(&[&bad[..200], &bad, &next]), Some(200));
        // An interrupted append may leave no more than the offset and the length.
        assert_eq!(resume(&[&bad[..12], &bad, &next]), Some(12));
    }
}
