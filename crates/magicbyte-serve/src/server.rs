//! The listener, and the connections that it accepts.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use magicbyte_log::internals::Process;

use crate::broker::ReadOnlyBroker;
use crate::connection;
use crate::lock::lock;

/// A connection's stack; its buffers are on the heap.
const STACK: usize = 1 << 20;
/// The pause after a connection could not be accepted, as when no file can be opened.
const PAUSE: Duration = Duration::from_millis(50);

/// A broker that listens. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    broker: Arc<ReadOnlyBroker>,
    connections: Arc<Connections>,
    address: SocketAddr,
    listener: Option<JoinHandle<()>>,
    /// The process that has the threads.
    process: Process,
}

#[derive(Debug, Default)]
struct Connections {
    open: Mutex<HashMap<u64, Arc<TcpStream>>>,
}

impl Server {
    /// Listens on an address such as `127.0.0.1:9092`; port 0 is any free port.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn start(broker: ReadOnlyBroker, listen: impl ToSocketAddrs) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let (broker, connections) = (Arc::new(broker), Arc::new(Connections::default()));
        let accepting = (Arc::clone(&broker), Arc::clone(&connections));
        let listener = thread::Builder::new()
            .name("magicbyte-serve".into())
            .spawn(move || accept(&listener, &accepting.0, &accepting.1))?;
        Ok(Self { broker, connections, address, listener: Some(listener), process: Process::current() })
    }

    /// The address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        if !self.process.is_current() {
            return 0;
        }
        lock(&self.connections.open).len()
    }

    /// Closes all connections and the listener. Does nothing if that was done before, or in a process that was forked
    /// from the one that serves.
    pub fn stop(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        if !self.process.is_current() {
            std::mem::forget(listener);
            return;
        }
        self.broker.stop();
        // The listener looks whether it should stop after each connection.
        let _ = TcpStream::connect_timeout(&reachable(self.address), Duration::from_secs(1));
        let _ = listener.join();
        for stream in lock(&self.connections.open).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Where a listener on all addresses can be reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn accept(listener: &TcpListener, broker: &Arc<ReadOnlyBroker>, connections: &Arc<Connections>) {
    let mut next_id = 0u64;
    for stream in listener.incoming() {
        if broker.stopping.is_stopping() {
            return;
        }
        let Ok(stream) = stream else {
            thread::sleep(PAUSE);
            continue;
        };
        let stream = Arc::new(stream);
        let mut open = lock(&connections.open);
        if open.len() >= broker.limits.connections {
            continue;
        }
        next_id += 1;
        let id = next_id;
        open.insert(id, Arc::clone(&stream));
        drop(open);
        let (broker, of) = (Arc::clone(broker), Arc::clone(connections));
        let served = move || {
            let closing = Closing { connections: of, id };
            // A client that goes away, or sends what no client would, only loses its connection.
            let _ = connection::serve(&broker, &stream);
            drop(closing);
        };
        let name = format!("magicbyte-serve-{id}");
        if thread::Builder::new().name(name).stack_size(STACK).spawn(served).is_err() {
            lock(&connections.open).remove(&id);
            thread::sleep(PAUSE);
        }
    }
}

/// Forgets a connection, also after a panic.
struct Closing {
    connections: Arc<Connections>,
    id: u64,
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(stream) = lock(&self.connections.open).remove(&self.id) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
