//! Transaction verification: before a broker appends the first batch of a transaction, it asks the
//! coordinator about it (`VerificationStateEntry`, `VerificationGuard`).

/// Identifies one verification; the first append of the transaction presents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationGuard(u64);

impl VerificationGuard {
    /// The guard of a request that was not verified.
    pub const SENTINEL: Self = Self(0);

    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }

    pub(super) fn verifies(self, state: Option<&VerificationState>) -> bool {
        self != Self::SENTINEL && state.is_some_and(|state| state.guard == self)
    }
}

/// A producer whose transaction is being verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationState {
    pub(super) guard: VerificationGuard,
    /// The time at which the verification began (ms).
    pub(super) timestamp: i64,
    lowest_sequence: i32,
    epoch: i16,
    supports_epoch_bump: bool,
}

impl VerificationState {
    pub(super) fn new(
        guard: VerificationGuard,
        timestamp: i64,
        sequence: i32,
        epoch: i16,
        supports_epoch_bump: bool,
    ) -> Self {
        Self { guard, timestamp, lowest_sequence: sequence, epoch, supports_epoch_bump }
    }

    /// The lowest sequence requested so far. Batches with a higher one are refused until it has been
    /// appended.
    #[must_use]
    pub fn lowest_sequence(&self) -> i32 {
        self.lowest_sequence
    }

    /// The producer epoch of the request.
    #[must_use]
    pub fn epoch(&self) -> i16 {
        self.epoch
    }

    /// True if the producer supports transactions of version 2.
    #[must_use]
    pub fn supports_epoch_bump(&self) -> bool {
        self.supports_epoch_bump
    }

    /// Takes over a lower sequence of the same epoch, or a higher epoch with its sequence
    /// (`maybeUpdateLowestSequenceAndEpoch`).
    pub(super) fn update(&mut self, sequence: i32, epoch: i16) {
        if epoch > self.epoch {
            (self.epoch, self.lowest_sequence) = (epoch, sequence);
        } else if epoch == self.epoch {
            self.lowest_sequence = self.lowest_sequence.min(sequence);
        }
    }
}
