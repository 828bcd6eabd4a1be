//! Pure folds over batches: what a broker knows of a log without looking at its records.

pub(crate) mod leader_epochs;
pub(crate) mod producers;
pub(crate) mod transactions;
