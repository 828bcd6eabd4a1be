//! Random numbers for tests, the same ones in every run.

/// A generator of numbers (xorshift64*).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 20) % end
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Small ones are as likely as large ones.
    pub(crate) fn number(&mut self, bits: u64) -> i64 {
        (self.next() as i64) >> (64 - bits + self.below(bits))
    }

    /// Cuts off, adds or changes bytes of a payload.
    pub(crate) fn damage(&mut self, payload: &mut Vec<u8>) {
        let position = self.below(payload.len() as u64 + 1) as usize;
        match self.below(4) {
            0 => payload.truncate(position),
            1 => payload.insert(position, self.next() as u8),
            2 => payload.extend([0, 0]),
            _ => payload.iter_mut().skip(position).take(1).for_each(|byte| *byte ^= 1 << self.below(8)),
        }
    }
}
