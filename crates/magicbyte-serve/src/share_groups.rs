//! ShareGroupDescribe: the share groups of the archived cluster. Nobody can join them here.

use magicbyte_protocol::message::body::share_group_describe_response::DescribedGroup;
use magicbyte_protocol::message::body::{ShareGroupDescribeRequest, ShareGroupDescribeResponse};

use crate::archived_groups::{EMPTY, GroupType};
use crate::coordinator::Coordinator;
use crate::memory::{Budget, Unanswered};
use crate::response::{array, distinct};

/// The only assignor of share groups (`SimpleAssignor`).
const ASSIGNOR: &str = "simple";

impl Coordinator {
    /// Responds to ShareGroupDescribe.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub(super) fn describe_share_groups<'a>(
        &self,
        budget: &Budget<'_>,
        request: &'a ShareGroupDescribeRequest<'_>,
    ) -> Result<ShareGroupDescribeResponse<'a>, Unanswered> {
        let groups = distinct(&request.group_ids).map(|name| {
            let group_id = (&**name).into();
            Ok(match self.archived_group(name, GroupType::Share) {
                Ok(group) => DescribedGroup {
                    group_id,
                    group_state: EMPTY.into(),
                    group_epoch: group.metadata.epoch,
                    assignment_epoch: group.metadata.assignment_epoch,
                    assignor_name: ASSIGNOR.into(),
                    ..Default::default()
                },
                Err((error, message)) => DescribedGroup {
                    error_code: error.code(),
                    error_message: Some(message.into()),
                    group_id,
                    ..Default::default()
                },
            })
        });
        Ok(ShareGroupDescribeResponse { groups: array(budget, groups)?, ..Default::default() })
    }
}
