//! The APIs of the protocol, and the versions of their messages.

use magicbyte::{Error, Result};

use crate::message::header::header_of;
use crate::message::table::{self, Role};

/// Defines the keys of all APIs, with the versions of their requests and responses.
macro_rules! api_keys {
    ($($name:ident = $key:literal, $min:literal to $max:literal, $flexible:expr;)*) => {
        /// An API of Kafka's protocol, by its key: those of Kafka 4.4, and those of 3.9 that were removed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(i16)]
        pub enum ApiKey {
            $(
                #[doc = concat!("The key ", $key, ", versions ", $min, " to ", $max, ".")]
                $name = $key,
            )*
        }

        impl ApiKey {
            /// All APIs, by key.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Kafka's name, such as `ListOffsets`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The oldest version whose messages can be read and written.
            #[must_use]
            pub const fn min_version(self) -> i16 {
                match self {
                    $(Self::$name => $min,)*
                }
            }

            /// The newest version (inclusive).
            #[must_use]
            pub const fn max_version(self) -> i16 {
                match self {
                    $(Self::$name => $max,)*
                }
            }

            /// The oldest version with compact lengths and tagged fields (KIP-482), if there is one.
            #[must_use]
            pub const fn min_flexible_version(self) -> Option<i16> {
                match self {
                    $(Self::$name => $flexible,)*
                }
            }
        }

        impl TryFrom<i16> for ApiKey {
            type Error = Error;

            fn try_from(key: i16) -> Result<Self> {
                match key {
                    $($key => Ok(Self::$name),)*
                    _ => Err(table::unknown_api(key)),
                }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/api_keys.rs"));

impl ApiKey {
    /// The version of the header before a request (`ApiKeys.requestHeaderVersion`).
    ///
    /// # Errors
    /// [`UnsupportedVersion`](magicbyte::ErrorKind::UnsupportedVersion) if the API does not have the version.
    pub fn request_header_version(self, version: i16) -> Result<i16> {
        self.header_version(Role::Request, version)
    }

    /// The version of the header before a response (`ApiKeys.responseHeaderVersion`).
    ///
    /// # Errors
    /// The errors of [`request_header_version`](Self::request_header_version).
    pub fn response_header_version(self, version: i16) -> Result<i16> {
        self.header_version(Role::Response, version)
    }

    fn header_version(self, role: Role, version: i16) -> Result<i16> {
        let definition = table::definition(role, self as i16, version)?;
        Ok(header_of(definition, version).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The constants are those of the table.
    #[test]
    fn versions_of_the_table() {
        assert_eq!(ApiKey::ALL.len(), 95);
        assert!(ApiKey::ALL.is_sorted());
        for &api in ApiKey::ALL {
            assert_eq!(ApiKey::try_from(api as i16).unwrap(), api);
            for role in [Role::Request, Role::Response] {
                for version in api.min_version()..=api.max_version() {
                    let definition = table::definition(role, api as i16, version).unwrap();
                    assert!(definition.name.strip_prefix(api.name()).is_some(), "{}", definition.name);
                    let is_flexible = api.min_flexible_version().is_some_and(|first| version >= first);
                    assert_eq!(definition.is_flexible(version), is_flexible, "{api:?} {version}");
                }
                for version in [api.min_version() - 1, api.max_version() + 1] {
                    assert!(table::definition(role, api as i16, version).is_err(), "{api:?} {version}");
                    assert!(api.request_header_version(version).is_err());
                }
            }
        }
        assert!(ApiKey::try_from(-1).is_err());
    }

    #[test]
    fn headers() {
        let versions = |api: ApiKey, version| {
            let request = api.request_header_version(version).unwrap();
            (request, api.response_header_version(version).unwrap())
        };
        assert_eq!(versions(ApiKey::Fetch, 11), (1, 0));
        assert_eq!(versions(ApiKey::Fetch, 12), (2, 1));
        assert_eq!(versions(ApiKey::ControlledShutdown, 0), (0, 0), "no client id");
        assert_eq!(versions(ApiKey::ApiVersions, 3), (2, 0), "KIP-511");
    }
}
