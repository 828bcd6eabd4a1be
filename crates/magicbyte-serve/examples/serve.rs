//! Serves partition directories to every Kafka client, until the standard input ends.
//!
//! cargo run -p magicbyte-serve --example serve -- 127.0.0.1:9092 samples/orders-0 samples/payments-0

use std::error::Error;
use std::io;

use magicbyte_log::PartitionLog;
use magicbyte_serve::{ReadOnlyBroker, ServeOptions, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next().ok_or("usage: serve ADDRESS DIRECTORY...")?;
    let server = serve(&listen, arguments)?;
    eprintln!("listening on {}", server.address());
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// A server for these directories, which stops when it is dropped.
///
/// # Errors
/// The errors of the directories, and of the address.
pub fn serve(listen: &str, directories: impl Iterator<Item = String>) -> Result<Server, Box<dyn Error>> {
    let logs = directories.map(|directory| Ok(PartitionLog::open(directory)?.listing().clone()));
    let logs: Result<Vec<_>, Box<dyn Error>> = logs.collect();
    Ok(Server::start(ReadOnlyBroker::new(logs?, ServeOptions::default()), listen)?)
}
