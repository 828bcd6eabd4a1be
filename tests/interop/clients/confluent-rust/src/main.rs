//! One consumer of Confluent's Rust client reads partition 0 of many topics, with the new group protocol.
//!
//! Arguments: bootstrap servers, isolation level, group, number of records, topics. Prints the lines that `Reader.java` prints.

use std::collections::HashMap;
use std::error::Error;
use std::time::{Duration, Instant};

use confluent_kafka::common::header::{Header, Headers};
use confluent_kafka::common::serialization::ByteArrayDeserializer;
use confluent_kafka::consumer::{Consumer, ConsumerConfig, KafkaConsumer};

const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [servers, isolation_level, group, count, topics @ ..] = &arguments[..] else {
        return Err("expected SERVERS ISOLATION GROUP COUNT TOPIC...".into());
    };
    let settings = HashMap::from(
        [
            ("bootstrap.servers", servers.as_str()),
            ("isolation.level", isolation_level),
            ("group.id", group),
            ("group.protocol", "consumer"),
            ("auto.offset.reset", "earliest"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    let (key, value) = (ByteArrayDeserializer::default(), ByteArrayDeserializer::default());
    let mut consumer: KafkaConsumer<Vec<u8>, Vec<u8>> =
        KafkaConsumer::new(ConsumerConfig::new(&settings)?, key, value)?;
    consumer.subscribe_with_topics(topics.to_vec()).await?;
    let (mut left, begun): (usize, _) = (count.parse()?, Instant::now());
    while left > 0 && begun.elapsed() < TIMEOUT {
        for record in &consumer.poll(Duration::from_millis(200)).await? {
            left -= 1;
            let (key, value) = (hex(record.key()), hex(record.value()));
            print!("{}\t{}\t{}\t\t{key}\t{value}\t", record.topic(), record.offset(), record.timestamp());
            for header in record.headers().iter() {
                print!("{}={};", hex(Some(header.key().as_bytes())), hex(header.value()));
            }
            println!();
        }
    }
    consumer.commit_sync().await?;
    consumer.close().await?;
    Ok(())
}

fn hex(bytes: Option<impl AsRef<[u8]>>) -> String {
    bytes.map_or("null".to_owned(), |bytes| bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}
