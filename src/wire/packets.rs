//! The TCP segments in a capture file: pcap or pcapng, by the crates pcap-parser and etherparse.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

/// Room for a block of a file. The largest packet that tools capture has 256 KiB.
const BUFFER: usize = 1 << 20;
/// A section of a file has one for each network interface.
const MAX_INTERFACES: usize = 4096;

/// A TCP segment.
pub(crate) struct Segment<'a> {
    /// When it was captured, in microseconds since 1970; None if the file does not say.
    pub(crate) time: Option<i64>,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) sequence: u32,
    /// The next byte that the sender expects.
    pub(crate) acknowledged: Option<u32>,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) payload: &'a [u8],
}

/// Whether there may be more packets.
pub(crate) enum Progress {
    /// A block was read. It may have been a packet with a segment.
    Block,
    /// The file is at its end.
    End,
}

/// Reads a capture block by block. Memory: a buffer of 1 MiB.
pub(crate) struct Packets {
    reader: Box<dyn PcapReaderIterator + Send>,
    interfaces: Vec<Interface>,
    /// Of a pcap file, whether its times have nanoseconds.
    nanoseconds: bool,
    position: u64,
    /// Packets that are not TCP over IP, or that cannot be read.
    pub(crate) other: u64,
}

struct Interface {
    link: Linktype,
    /// The unit of times: this many are a second.
    resolution: u64,
    /// In seconds.
    offset: i64,
}

impl Packets {
    /// The error says why the bytes are not a capture.
    pub(crate) fn new(file: Box<dyn Read + Send>) -> Result<Self, String> {
        // The crate decides by one read, which may be as short as it likes.
        let reader = create_reader(BUFFER, file).map_err(|error| match error {
            PcapError::ReadError => "it cannot be read".to_owned(),
            _ => "it is neither a pcap nor a pcapng file".to_owned(),
        })?;
        Ok(Self { reader, interfaces: Vec::new(), nanoseconds: false, position: 0, other: 0 })
    }

    /// Reads the next block, and gives its segment to `visit`.
    ///
    /// The error says why the file cannot be read further.
    pub(crate) fn next(&mut self, visit: impl FnOnce(&Segment<'_>)) -> Result<Progress, String> {
        loop {
            let position = self.position;
            let why = match self.reader.next() {
                Ok((size, block)) => {
                    let packet = packet_of(&block, &mut self.interfaces, &mut self.nanoseconds);
                    if let Some(packet) = packet {
                        match segment_of(packet) {
                            Some(segment) => visit(&segment),
                            None => self.other += 1,
                        }
                    }
                    self.reader.consume(size);
                    self.position += size as u64;
                    return Ok(Progress::Block);
                }
                Err(PcapError::Eof) => return Ok(Progress::End),
                Err(PcapError::Incomplete(_)) => match self.reader.refill() {
                    Ok(()) => continue,
                    Err(_) => "it cannot be read",
                },
                Err(PcapError::UnexpectedEof) => "the file ends inside a packet",
                Err(PcapError::BufferTooSmall) => "a packet of more than 1 MiB",
                Err(PcapError::ReadError) => "it cannot be read",
                Err(_) => "these bytes are not a packet",
            };
            return Err(format!("byte {position}: {why}"));
        }
    }
}

struct Packet<'a> {
    link: Linktype,
    time: Option<i64>,
    data: &'a [u8],
}

/// The packet of a block, if it is one.
fn packet_of<'a>(
    block: &'a PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    nanoseconds: &mut bool,
) -> Option<Packet<'a>> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            *nanoseconds = header.is_nanosecond_precision();
            // The upper bits are the length of a checksum after each frame.
            let link = Linktype(header.network.0 & 0xffff);
            interfaces.push(Interface { link, resolution: 1, offset: 0 });
            None
        }
        PcapBlockOwned::Legacy(packet) => {
            let fraction = i64::from(packet.ts_usec) / if *nanoseconds { 1000 } else { 1 };
            let time = Some(i64::from(packet.ts_sec) * 1_000_000 + fraction);
            Some(Packet { link: interfaces.first()?.link, time, data: packet.data })
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            None
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(one)) => {
            if interfaces.len() < MAX_INTERFACES {
                let resolution = one.ts_resolution().filter(|&units| units > 0).unwrap_or(1_000_000);
                interfaces.push(Interface { link: one.linktype, resolution, offset: one.ts_offset() });
            }
            None
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let interface = interfaces.get(packet.if_id as usize)?;
            let units = i128::from(packet.ts_high) << 32 | i128::from(packet.ts_low);
            let time = units * 1_000_000 / i128::from(interface.resolution)
                + i128::from(interface.offset) * 1_000_000;
            // After it, padding.
            let data = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            Some(Packet { link: interface.link, time: i64::try_from(time).ok(), data })
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            Some(Packet { link: interfaces.first()?.link, time: None, data: packet.data })
        }
        PcapBlockOwned::NG(_) => None,
    }
}

/// The packet's TCP segment. Of a packet that was not captured in full, it has the bytes that were.
fn segment_of(packet: Packet<'_>) -> Option<Segment<'_>> {
    let data = packet.data;
    let ether_type = |at: usize| Some(EtherType(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?])));
    let from_ether_type =
        |at, header| Some(LaxSlicedPacket::from_ether_type(ether_type(at)?, data.get(header..)?));
    let sliced = match packet.link {
        Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        // The protocol at the end of a header of 16 bytes, or at the start of one of 20.
        Linktype::LINUX_SLL => from_ether_type(14, 16),
        Linktype::LINUX_SLL2 => from_ether_type(0, 20),
        // A family of addresses, in the byte order of any machine: IP's own version is as good.
        Linktype::NULL | Linktype::LOOP => LaxSlicedPacket::from_ip(data.get(4..)?).ok(),
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => {
            LaxSlicedPacket::from_ip(data).ok()
        }
        _ => None,
    }?;
    let (source, destination): (IpAddr, IpAddr) = match sliced.net? {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return None,
    };
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
    Some(Segment {
        time: packet.time,
        source: SocketAddr::new(source, tcp.source_port()),
        destination: SocketAddr::new(destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
        syn: tcp.syn(),
        fin: tcp.fin(),
        rst: tcp.rst(),
        payload: tcp.payload(),
    })
}
