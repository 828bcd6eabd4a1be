//! ListTransactions and DescribeTransactions: the transactional ids of the archived cluster, as its coordinators knew them
//! (`TransactionStateManager.listTransactionStates`, `TransactionCoordinator.handleDescribeTransactions`).

use std::collections::{BTreeMap, HashSet};
use std::time::{SystemTime, UNIX_EPOCH};

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::internal_topics::TRANSACTION_STATES;
use magicbyte_protocol::message::body::describe_transactions_response::{
    TopicData, TransactionState as DescribedTransaction,
};
use magicbyte_protocol::message::body::list_transactions_response::TransactionState as ListedTransaction;
use magicbyte_protocol::message::body::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, ListTransactionsRequest,
    ListTransactionsResponse,
};

use crate::coordinator::TURN;
use crate::memory::{Budget, Unanswered};
use crate::patterns::compile;
use crate::response::{array, blob, distinct, push};

/// The state of an id that is about to be forgotten.
const DEAD: &str = "Dead";

/// The state of a transactional id (`TransactionMetadata`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionMetadata {
    /// The producer that has the id now.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Kafka's name of the state, such as `Ongoing`.
    pub state: String,
    /// The time (ms) after which the coordinator aborts a transaction.
    pub timeout_ms: i32,
    /// The time (ms) at which the last transaction began; -1 if there was none.
    pub start_timestamp: i64,
    /// The partitions that the transaction has written to, by topic.
    pub partitions: BTreeMap<String, Vec<i32>>,
}

/// The transactional ids that are served.
#[derive(Debug)]
pub(super) struct Transactions {
    by_id: BTreeMap<String, TransactionMetadata>,
    /// The time (ms) up to which transactions have lasted; None for now.
    as_of: Option<i64>,
}

impl Transactions {
    pub(super) fn new(by_id: BTreeMap<String, TransactionMetadata>, as_of: Option<i64>) -> Self {
        Self { by_id, as_of }
    }

    /// Responds to ListTransactions.
    ///
    /// # Errors
    /// If the client is gone, or memory is exhausted.
    pub(super) fn list<'a>(
        &'a self,
        budget: &Budget<'_>,
        request: &'a ListTransactionsRequest<'_>,
    ) -> Result<ListTransactionsResponse<'a>, Unanswered> {
        let pattern = match compile(request.transactional_id_pattern.as_deref().unwrap_or_default()) {
            Ok(pattern) => pattern,
            Err(error) => {
                return Ok(ListTransactionsResponse { error_code: error.code(), ..Default::default() });
            }
        };
        let states: HashSet<&str> = request.state_filters.iter().map(|state| &**state).collect();
        let producers: HashSet<i64> = request.producer_id_filters.iter().copied().collect();
        let now = self.as_of.unwrap_or_else(now);
        let is_listed = |id: &str, transaction: &TransactionMetadata| {
            let duration = now.saturating_sub(transaction.start_timestamp);
            transaction.state != DEAD
                && (producers.is_empty() || producers.contains(&transaction.producer_id))
                && (states.is_empty() || states.contains(&*transaction.state))
                && (request.duration_filter < 0 || duration > request.duration_filter)
                && pattern.as_ref().is_none_or(|pattern| pattern.is_match(id.as_bytes()))
        };
        let mut transactions = Vec::new();
        for (index, (id, transaction)) in self.by_id.iter().enumerate() {
            if index % TURN == 0 {
                budget.check_client()?;
            }
            if is_listed(id, transaction) {
                let listed = ListedTransaction {
                    transactional_id: id.into(),
                    producer_id: transaction.producer_id,
                    transaction_state: (&*transaction.state).into(),
                };
                push(budget, &mut transactions, listed)?;
            }
        }
        let unknown =
            distinct(&request.state_filters).filter(|state| !TRANSACTION_STATES.contains(&&***state));
        let unknown = unknown.map(|state| {
            blob(budget, state.as_bytes())?;
            Ok((&**state).into())
        });
        Ok(ListTransactionsResponse {
            unknown_state_filters: unknown.collect::<Result<_, _>>()?,
            transaction_states: transactions,
            ..Default::default()
        })
    }

    /// Responds to DescribeTransactions.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn describe<'a>(
        &'a self,
        budget: &Budget<'_>,
        request: &'a DescribeTransactionsRequest<'_>,
    ) -> Result<DescribeTransactionsResponse<'a>, Unanswered> {
        let described = distinct(&request.transactional_ids).map(|id| {
            let refused = |error: ErrorCode| DescribedTransaction {
                error_code: error.code(),
                transactional_id: (&**id).into(),
                ..Default::default()
            };
            let known = self.by_id.get(&**id).filter(|transaction| transaction.state != DEAD);
            match known {
                _ if id.is_empty() => Ok(refused(ErrorCode::InvalidRequest)),
                None => Ok(refused(ErrorCode::TransactionalIdNotFound)),
                Some(transaction) => described(budget, id, transaction),
            }
        });
        Ok(DescribeTransactionsResponse {
            transaction_states: array(budget, described)?,
            ..Default::default()
        })
    }
}

fn described<'a>(
    budget: &Budget<'_>,
    id: &'a str,
    transaction: &'a TransactionMetadata,
) -> Result<DescribedTransaction<'a>, Unanswered> {
    let topics = transaction.partitions.iter().map(|(topic, partitions)| {
        budget.take(2 * size_of_val(&**partitions))?;
        Ok(TopicData { topic: topic.into(), partitions: partitions.clone() })
    });
    Ok(DescribedTransaction {
        error_code: ErrorCode::None.code(),
        transactional_id: id.into(),
        transaction_state: (&*transaction.state).into(),
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_start_time_ms: transaction.start_timestamp,
        producer_id: transaction.producer_id,
        producer_epoch: transaction.producer_epoch,
        topics: array(budget, topics)?,
    })
}

/// The time (ms) since 1970.
fn now() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::recipient::Recipient;
    use crate::stopping::Stopping;

    /// Thousand ids, each with a transaction in thousand partitions.
    fn transactions() -> Transactions {
        let partitions = BTreeMap::from([("orders".to_owned(), (0..1000).collect())]);
        let metadata =
            TransactionMetadata { state: "Ongoing".to_owned(), partitions, ..TransactionMetadata::default() };
        let ids = (0..1000).map(|number| (format!("producer-{number:04}"), metadata.clone()));
        Transactions::new(ids.collect(), Some(0))
    }

    #[test]
    fn answers_take_no_more_memory_than_a_response_may() {
        let (transactions, stopping) = (transactions(), Stopping::default());
        let memory = Memory::new(1 << 30, 0);
        let budget = |limit| memory.budget(limit, Recipient::new(&stopping, None));
        let listed = |limit| {
            let request = ListTransactionsRequest::default();
            transactions.list(&budget(limit), &request).map(|response| response.transaction_states.len())
        };
        assert_eq!(listed(1 << 20), Ok(1000));
        assert_eq!(listed(64 << 10), Err(Unanswered::MemoryExhausted));
        let described = |limit| {
            let transactional_ids = transactions.by_id.keys().map(|id| (&**id).into()).collect();
            let request = DescribeTransactionsRequest { transactional_ids };
            transactions.describe(&budget(limit), &request).map(|response| response.transaction_states.len())
        };
        assert_eq!(described(16 << 20), Ok(1000));
        assert_eq!(described(1 << 20), Err(Unanswered::MemoryExhausted));
    }

    #[test]
    fn unknown_states_are_listed_once_and_take_memory() {
        let (transactions, stopping) = (transactions(), Stopping::default());
        let memory = Memory::new(1 << 30, 0);
        let listed = |limit, state_filters: Vec<_>| {
            let budget = memory.budget(limit, Recipient::new(&stopping, None));
            let request = ListTransactionsRequest { state_filters, ..Default::default() };
            transactions.list(&budget, &request).map(|response| response.unknown_state_filters.len())
        };
        let long = "?".repeat(1 << 10);
        assert_eq!(listed(4 << 10, vec![(&*long).into(); 100]), Ok(1));
        let many = || (0..100).map(|number| format!("{long}{number}").into()).collect();
        assert_eq!(listed(1 << 20, many()), Ok(100));
        assert_eq!(listed(4 << 10, many()), Err(Unanswered::MemoryExhausted));
    }
}
