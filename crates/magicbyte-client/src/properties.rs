//! The files of options that Kafka's own clients and tools read (`--command-config client.properties`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::options::{ClientOptions, Sasl, ScramHash, Secret, Security, TlsOptions, TokenSource};

/// The maximum size of a file, in bytes.
const MAX_FILE: u64 = 1 << 20;

impl ClientOptions {
    /// Reads a file of properties, with the names of Kafka's clients: `client.id`, `client.rack`, `request.timeout.ms`,
    /// `security.protocol`, `sasl.mechanism`, `sasl.jaas.config`, `ssl.endpoint.identification.algorithm`, and the stores
    /// of `ssl.truststore.` and `ssl.keystore.` with the type PEM. Others are ignored, as by Kafka's clients.
    ///
    /// Tokens come from a file, `sasl.oauthbearer.token.endpoint.url=file:///PATH`, or from a command, whose words are in
    /// `magicbyte.sasl.oauthbearer.token.command`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`](crate::ErrorKind::InvalidOptions) with the name of the property, never with its value
    /// where that is a secret.
    pub fn from_properties_file(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let unreadable = |error| Error::options(format!("{}: {error}", path.display()));
        let text = String::from_utf8(limited(path).map_err(unreadable)?);
        let text = text.map_err(|_| Error::options(format!("{}: expected text in UTF-8", path.display())))?;
        Self::from_properties(&text).map_err(|error| Error::options(format!("{}: {error}", path.display())))
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// The errors of [`from_properties_file`](Self::from_properties_file).
    pub fn from_properties(text: &str) -> Result<Self> {
        Self::from_property_map(Properties::parse(text)?.0)
    }

    /// Reads properties by their names, as in such a file.
    ///
    /// # Errors
    /// The errors of [`from_properties_file`](Self::from_properties_file).
    pub fn from_property_map(properties: BTreeMap<String, String>) -> Result<Self> {
        let properties = Properties(properties);
        let mut options = Self::default();
        if let Some(id) = properties.get("client.id") {
            id.clone_into(&mut options.client_id);
        }
        if let Some(rack) = properties.get("client.rack") {
            rack.clone_into(&mut options.rack);
        }
        if let Some(timeout) = properties.get("request.timeout.ms") {
            let timeout = timeout.parse().ok().filter(|&ms| ms > 0 && i32::try_from(ms).is_ok());
            options.request_timeout =
                Duration::from_millis(timeout.ok_or_else(|| {
                    Error::options("request.timeout.ms: expected a number of milliseconds")
                })?);
        }
        let protocol = properties.get("security.protocol").unwrap_or("PLAINTEXT").to_ascii_uppercase();
        let (has_tls, has_sasl) = match &*protocol {
            "PLAINTEXT" => (false, false),
            "SSL" => (true, false),
            "SASL_PLAINTEXT" => (false, true),
            "SASL_SSL" => (true, true),
            _ => {
                let why = "security.protocol: expected PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL";
                return Err(Error::options(why));
            }
        };
        options.security = Security {
            tls: has_tls.then(|| properties.tls()).transpose()?,
            sasl: has_sasl.then(|| properties.sasl()).transpose()?,
        };
        Ok(options)
    }
}

fn limited(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE { Err(io::Error::other("it is larger than 1 MiB")) } else { Ok(bytes) }
}

/// Names and values.
struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Reads `java.util.Properties`.
    fn parse(text: &str) -> Result<Self> {
        let mut found = BTreeMap::new();
        let mut lines = text.lines().map(str::trim_start);
        while let Some(line) = lines.next() {
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let mut logical = line.to_owned();
            while is_continued(&logical) {
                logical.pop();
                logical.push_str(lines.next().unwrap_or_default());
            }
            let (name, value) = split(&logical);
            found.insert(unescaped(name)?, unescaped(value)?.trim_end().to_owned());
        }
        Ok(Self(found))
    }

    /// A property that is not empty.
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| &**value).filter(|value| !value.is_empty())
    }

    fn tls(&self) -> Result<TlsOptions> {
        let ca = self.pem("ssl.truststore", "ssl.truststore.certificates")?;
        let chain = self.pem("ssl.keystore", "ssl.keystore.certificate.chain")?;
        // A PEM file has the key beside the certificates.
        let key = match self.get("ssl.keystore.key") {
            Some(key) => Some(key.to_owned()),
            None => chain.as_ref().map(|chain| String::from_utf8_lossy(chain).into_owned()),
        };
        if key.as_ref().is_some_and(|key| key.contains("ENCRYPTED")) {
            return Err(Error::options(
                "ssl.keystore: the private key is encrypted: expected one that is not (openssl pkcs8 -in KEY -nocrypt)",
            ));
        }
        let algorithm = self.0.get("ssl.endpoint.identification.algorithm");
        Ok(TlsOptions {
            ca,
            client_certificates: chain,
            client_key: key.map(Secret::new),
            any_hostname: algorithm.is_some_and(|algorithm| algorithm.is_empty()),
        })
    }

    /// A store with the type PEM: in the properties, or in a file.
    fn pem(&self, store: &str, inline: &str) -> Result<Option<Vec<u8>>> {
        if let Some(pem) = self.get(inline) {
            return Ok(Some(pem.as_bytes().to_vec()));
        }
        let Some(location) = self.get(&format!("{store}.location")) else { return Ok(None) };
        let kind = self.get(&format!("{store}.type")).unwrap_or("JKS");
        if !kind.eq_ignore_ascii_case("PEM") {
            return Err(Error::options(format!(
                "{store}.type: {kind} is Java's own format: expected PEM (keytool -exportcert -rfc -keystore {location})"
            )));
        }
        let pem = limited(Path::new(location));
        pem.map(Some).map_err(|error| Error::options(format!("{store}.location: {location}: {error}")))
    }

    fn sasl(&self) -> Result<Sasl> {
        let mechanism = self.get("sasl.mechanism").unwrap_or("GSSAPI");
        let hash = match mechanism {
            "OAUTHBEARER" => return self.token().map(Sasl::OauthBearer),
            "PLAIN" => None,
            "SCRAM-SHA-256" => Some(ScramHash::Sha256),
            "SCRAM-SHA-512" => Some(ScramHash::Sha512),
            other => {
                return Err(Error::options(format!(
                    "sasl.mechanism: {other}: expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
                )));
            }
        };
        let config =
            self.get("sasl.jaas.config").ok_or_else(|| Error::options("sasl.jaas.config is missing"))?;
        let options = jaas_options(config)?;
        let option = |name| {
            let value = options.get(name);
            value.cloned().ok_or_else(|| Error::options(format!("sasl.jaas.config: {name} is missing")))
        };
        let (username, password) = (option("username")?, Secret::new(option("password")?));
        Ok(match hash {
            None => Sasl::Plain { username, password },
            Some(hash) => Sasl::Scram { hash, username, password },
        })
    }

    fn token(&self) -> Result<TokenSource> {
        if let Some(command) = self.get("magicbyte.sasl.oauthbearer.token.command") {
            return Ok(TokenSource::Command(command.split_whitespace().map(str::to_owned).collect()));
        }
        let url = self.get("sasl.oauthbearer.token.endpoint.url");
        match url.and_then(|url| url.strip_prefix("file://")).filter(|path| path.starts_with('/')) {
            Some(path) => Ok(TokenSource::File(PathBuf::from(path))),
            None => Err(Error::options(
                "sasl.oauthbearer.token.endpoint.url: expected file:///PATH, or magicbyte.sasl.oauthbearer.token.command",
            )),
        }
    }
}

/// True if a line ends with an odd number of backslashes.
fn is_continued(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// The name and the value of a line, with their escapes.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (c == '=' || c == ':' || c.is_whitespace());
        escaped = c == '\\' && !escaped;
        ends
    });
    let (name, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start();
    (name, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start())
}

fn unescaped(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                let code = code.and_then(char::from_u32);
                out.push(
                    code.ok_or_else(|| {
                        Error::options("\\u: expected four hexadecimal digits of a character")
                    })?,
                );
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    Ok(out)
}

/// The options of `MODULE required NAME="VALUE" ... ;` (`JaasConfig`). No text of an error has a value.
fn jaas_options(config: &str) -> Result<BTreeMap<String, String>> {
    let expected = || Error::options("sasl.jaas.config: expected MODULE required NAME=\"VALUE\" ...;");
    let mut rest = config.trim();
    for _ in 0..2 {
        // The module, and that it is required.
        rest = rest.split_once(char::is_whitespace).ok_or_else(expected)?.1.trim_start();
    }
    let mut options = BTreeMap::new();
    while !rest.starts_with(';') {
        let (name, after) = rest.split_once('=').ok_or_else(expected)?;
        let after = after.trim_start();
        let (value, next) = match after.chars().next() {
            Some(quote @ ('"' | '\'')) => quoted(&after[1..], quote).ok_or_else(expected)?,
            _ => {
                let end = after.find(|c: char| c.is_whitespace() || c == ';').ok_or_else(expected)?;
                (after[..end].to_owned(), &after[end..])
            }
        };
        options.insert(name.trim().to_owned(), value);
        rest = next.trim_start();
    }
    Ok(options)
}

/// A text up to its quotation mark, and what follows.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            c if c == quote => return Some((value, &text[at + 1..])),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = r#"
# A comment
! another
security.protocol = SASL_SSL
sasl.mechanism:PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
    username="alice" \
    password="a \\"secret\\"; x" ;
ssl.endpoint.identification.algorithm=
client.id reader
unknown.property=1
"#;

    #[test]
    fn a_file_of_kafka() {
        let options = ClientOptions::from_properties(PLAIN).expect("valid");
        assert_eq!(options.client_id, "reader");
        let Some(Sasl::Plain { username, password }) = &options.security.sasl else { panic!("{options:?}") };
        assert_eq!((&**username, password.expose()), ("alice", "a \"secret\"; x"));
        assert!(options.security.tls.as_ref().is_some_and(|tls| tls.any_hostname && tls.ca.is_none()));
        assert!(!format!("{options:?}").contains("secret\\"), "{options:?}");
    }

    /// Escapes and comments are those of files: a map has the values themselves.
    #[test]
    fn properties_by_name() {
        let jaas = r#"M required username="alice" password=" \"x\\y ";"#;
        let named = [
            ("client.id", "#reader"),
            ("security.protocol", "SASL_PLAINTEXT"),
            ("sasl.mechanism", "PLAIN"),
            ("sasl.jaas.config", jaas),
        ];
        let named = named.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let options = ClientOptions::from_property_map(named.into()).expect("valid");
        assert_eq!(options.client_id, "#reader");
        let Some(Sasl::Plain { password, .. }) = &options.security.sasl else { panic!("{options:?}") };
        assert_eq!(password.expose(), " \"x\\y ");
    }

    #[test]
    fn mechanisms() {
        let of = |mechanism: &str, more: &str| {
            let text = format!("security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n{more}");
            ClientOptions::from_properties(&text).map(|options| options.security.sasl)
        };
        let jaas = "sasl.jaas.config=M required username=bob password='p=1;2';";
        for (mechanism, expected) in
            [("SCRAM-SHA-256", ScramHash::Sha256), ("SCRAM-SHA-512", ScramHash::Sha512)]
        {
            let Ok(Some(Sasl::Scram { hash, username, password })) = of(mechanism, jaas) else {
                panic!("{mechanism}")
            };
            assert_eq!((hash, &*username, password.expose()), (expected, "bob", "p=1;2"));
        }
        let file = of("OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url=file:///t/oken");
        assert!(
            matches!(file, Ok(Some(Sasl::OauthBearer(TokenSource::File(path)))) if path.as_os_str() == "/t/oken")
        );
        let command = of("OAUTHBEARER", "magicbyte.sasl.oauthbearer.token.command=print token");
        assert!(
            matches!(command, Ok(Some(Sasl::OauthBearer(TokenSource::Command(words)))) if words.len() == 2)
        );
    }

    #[test]
    fn what_is_refused_names_the_property_and_no_secret() {
        let sasl = "security.protocol=SASL_PLAINTEXT\n";
        let jks = "security.protocol=SSL\nssl.truststore.location=/t/client.jks\n";
        for (text, expected) in [
            ("security.protocol=TLS".to_owned(), "security.protocol"),
            ("request.timeout.ms=-1".to_owned(), "request.timeout.ms"),
            (sasl.to_owned(), "sasl.mechanism: GSSAPI"),
            (format!("{sasl}sasl.mechanism=PLAIN"), "sasl.jaas.config is missing"),
            (format!("{sasl}sasl.mechanism=PLAIN\nsasl.jaas.config=M required hunter2"), "sasl.jaas.config"),
            (
                format!("{sasl}sasl.mechanism=PLAIN\nsasl.jaas.config=M required a=\"hunter2"),
                "sasl.jaas.config",
            ),
            (
                format!("{sasl}sasl.mechanism=PLAIN\nsasl.jaas.config=M required password=hunter2;"),
                "username",
            ),
            (format!("{sasl}sasl.mechanism=OAUTHBEARER"), "token.endpoint.url"),
            (jks.to_owned(), "ssl.truststore.type: JKS is Java's own format: expected PEM"),
            (format!("{jks}ssl.truststore.type=PKCS12"), "PKCS12"),
            (format!("{jks}ssl.truststore.type=PEM"), "/t/client.jks"),
            ("a=\\u12".to_owned(), "\\u"),
        ] {
            let error = ClientOptions::from_properties(&text).expect_err(&text).to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
