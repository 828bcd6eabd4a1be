//! Secrets in messages: passwords, keys and tokens, as the table marks their fields.

use crate::message::table::{Definition, Field, Secret};
use crate::message::value::{Struct, Value};

/// A text in the place of a secret one: Kafka's `Password.HIDDEN`. Null would be a config that is deleted.
const HIDDEN: &[u8] = b"[hidden]";
const CLUSTER_METADATA: &[u8] = b"__cluster_metadata";
/// Kafka's `Uuid.METADATA_TOPIC_ID`.
const CLUSTER_METADATA_ID: [u8; 16] = 1_u128.to_be_bytes();

/// Properties of the structures around a field.
#[derive(Clone, Copy, Default)]
struct Context {
    is_cluster_metadata: bool,
    is_sensitive: bool,
}

/// Replaces the secrets of a message: texts by `[hidden]`, bytes by null.
pub(crate) fn hide(definition: &'static Definition, message: &mut Struct<'_>) {
    if definition.has_secrets() {
        hide_in(&definition.fields, message, Context::default());
    }
}

impl Definition {
    /// True if any field may be secret.
    pub(crate) fn has_secrets(&self) -> bool {
        self.fields.iter().any(has_secrets)
    }
}

fn has_secrets(field: &Field) -> bool {
    field.secret.is_some() || field.fields.iter().any(has_secrets)
}

fn hide_in(fields: &'static [Field], values: &mut Struct<'_>, around: Context) {
    let context = Context {
        is_cluster_metadata: around.is_cluster_metadata || names_cluster_metadata(values),
        is_sensitive: around.is_sensitive || (is_config(fields) && is_sensitive(values)),
    };
    for field in fields.iter().filter(|field| has_secrets(field)) {
        let Some((_, value)) = values.fields.iter_mut().find(|(name, _)| *name == field.name) else {
            continue;
        };
        let is_secret = match field.secret {
            Some(Secret::Always) => true,
            Some(Secret::Config) => context.is_sensitive,
            Some(Secret::ClusterMetadata) => context.is_cluster_metadata,
            None => false,
        };
        match value {
            Value::Null => {}
            Value::String(text) if is_secret => *text = HIDDEN.into(),
            other if is_secret => *other = Value::Null,
            Value::Struct(inner) => hide_in(&field.fields, inner, context),
            Value::Array(elements) => {
                for element in elements {
                    if let Value::Struct(inner) = element {
                        hide_in(&field.fields, inner, context);
                    }
                }
            }
            _ => {}
        }
    }
}

fn names_cluster_metadata(values: &Struct<'_>) -> bool {
    let has_name =
        |name| matches!(values.get(name), Some(Value::String(text)) if **text == *CLUSTER_METADATA);
    has_name("topic") || has_name("name") || values.get("topicId") == Some(&Value::Uuid(CLUSTER_METADATA_ID))
}

/// True if a structure is a config. Topics have names, too.
fn is_config(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.secret == Some(Secret::Config))
}

/// True if a config has a secret value.
fn is_sensitive(values: &Struct<'_>) -> bool {
    let has_secret_name =
        |name| matches!(values.get(name), Some(Value::String(config)) if is_secret_config(config));
    has_secret_name("name") || has_secret_name("key") || values.get("isSensitive") == Some(&Value::Bool(true))
}

/// True if a config of this name holds a secret.
///
/// Kafka hides the configs of the type PASSWORD and all unknown ones, such as those of plugins. Here the name
/// decides: its words for secrets, wherever they are, and its end.
fn is_secret_config(name: &[u8]) -> bool {
    const WORDS: [&str; 7] = ["password", "passwd", "passphrase", "secret", "credential", "jaas", "private"];
    const ENDS: [&str; 9] = [
        "key",
        "keys",
        "token",
        "tokens",
        // PASSWORD in Kafka: PEM texts of `ssl.keystore` and `ssl.truststore`.
        "certificate.chain",
        "certificates",
        "connection.string",
        "user.info",
        "license",
    ];
    // Configs of Kafka's that are about secrets.
    const PUBLIC: [&str; 4] = [
        "password.encoder.cipher.algorithm",
        "password.encoder.iterations",
        "password.encoder.key.length",
        "password.encoder.keyfactory.algorithm",
    ];
    let name = String::from_utf8_lossy(name).to_lowercase();
    // Plugins and environments spell them in other ways.
    let dotted = name.replace(['_', '-'], ".");
    let has_words =
        WORDS.iter().any(|word| dotted.contains(word)) || ENDS.iter().any(|end| dotted.ends_with(end));
    has_words && !PUBLIC.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_configs() {
        // All configs of the type PASSWORD in Kafka 4.4 and before, with and without the prefix of a listener, and
        // those of plugins.
        for name in [
            "delegation.token.master.key",
            "delegation.token.secret.key",
            "listener.name.internal.ssl.key.password",
            "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config",
            "password.encoder.old.secret",
            "password.encoder.secret",
            "sasl.jaas.config",
            "sasl.oauthbearer.assertion.private.key.passphrase",
            "sasl.oauthbearer.client.credentials.client.secret",
            "ssl.key.password",
            "ssl.keystore.certificate.chain",
            "ssl.keystore.key",
            "ssl.keystore.password",
            "ssl.truststore.certificates",
            "ssl.truststore.password",
            "zookeeper.ssl.keystore.password",
            "basic.auth.user.info",
            "rsm.config.storage.aws.secret.access.key",
            "rsm.config.storage.azure.connection.string",
            "rsm.config.storage.gcs.credentials.json",
            "AWS_SECRET_ACCESS_KEY",
            "accountKey",
            "API-TOKEN",
        ] {
            assert!(is_secret_config(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "cleanup.policy",
            "delegation.token.expiry.check.interval.ms",
            "delegation.token.max.lifetime.ms",
            "listener.name.internal.ssl.keystore.location",
            "password.encoder.iterations",
            "retention.ms",
            "sasl.oauthbearer.token.endpoint.url",
            "ssl.keystore.type",
            "ssl.truststore.location",
        ] {
            assert!(!is_secret_config(name.as_bytes()), "{name}");
        }
    }
}
