//! DescribeConfigs: the known configs of topics. Brokers have no configs here.

use std::borrow::Cow;
use std::collections::HashSet;

use magicbyte_broker::ErrorCode;
use magicbyte_protocol::message::body::describe_configs_request::DescribeConfigsResource;
use magicbyte_protocol::message::body::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use magicbyte_protocol::message::body::{DescribeConfigsRequest, DescribeConfigsResponse};

use crate::archive::Archive;
use crate::memory::{Budget, Unanswered};
use crate::response::array;

/// `ConfigResource.Type.TOPIC`.
const TOPIC_RESOURCE: i8 = 2;
/// `ConfigSource.DYNAMIC_TOPIC_CONFIG`.
const TOPIC_CONFIG: i8 = 1;

/// Responds to DescribeConfigs.
///
/// # Errors
/// If memory is exhausted.
pub(super) fn describe_configs<'a>(
    archive: &'a Archive,
    budget: &Budget<'_>,
    request: &'a DescribeConfigsRequest<'_>,
) -> Result<DescribeConfigsResponse<'a>, Unanswered> {
    let mut known = HashSet::new();
    let results = request.resources.iter().filter_map(|resource| {
        let is_new = known.insert((resource.resource_type, &*resource.resource_name));
        is_new.then(|| configs_of(archive, budget, resource))
    });
    Ok(DescribeConfigsResponse { results: array(budget, results)?, ..Default::default() })
}

fn configs_of<'a>(
    archive: &'a Archive,
    budget: &Budget<'_>,
    resource: &'a DescribeConfigsResource<'_>,
) -> Result<DescribeConfigsResult<'a>, Unanswered> {
    let name = &*resource.resource_name;
    let keys = resource.configuration_keys.as_ref();
    let keys: Option<HashSet<&str>> = keys.map(|keys| keys.iter().map(|key| &**key).collect());
    let (error, configs) = match (resource.resource_type, archive.topics.get(name)) {
        (TOPIC_RESOURCE, None) => (ErrorCode::UnknownTopicOrPartition, Vec::new()),
        (TOPIC_RESOURCE, Some(topic)) => {
            let is_requested = |name: &str| keys.as_ref().is_none_or(|keys| keys.contains(name));
            let configs = topic.configs.iter().filter(|(name, _)| is_requested(name));
            (ErrorCode::None, array(budget, configs.map(|(name, value)| Ok(config(name, value))))?)
        }
        _ => (ErrorCode::None, Vec::new()),
    };
    Ok(DescribeConfigsResult {
        error_code: error.code(),
        error_message: None,
        resource_type: resource.resource_type,
        resource_name: Cow::Borrowed(name),
        configs,
    })
}

fn config<'a>(name: &'a str, value: &'a str) -> DescribeConfigsResourceResult<'a> {
    DescribeConfigsResourceResult {
        name: Cow::Borrowed(name),
        value: Some(Cow::Borrowed(value)),
        read_only: true,
        config_source: TOPIC_CONFIG,
        documentation: None,
        ..Default::default()
    }
}
