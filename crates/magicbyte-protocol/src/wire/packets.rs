//! The TCP segments in a capture file: pcap or pcapng, by the crates pcap-parser and etherparse.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};

use crate::wire::layers::{Layers, Unread};
use crate::wire::segment::{Packet, Segment};

/// Room for a block of a file. The largest packet that tools capture has 256 KiB.
const BUFFER: usize = 1 << 20;
/// A section of a file has one for each network interface.
const MAX_INTERFACES: usize = 4096;
/// Bytes that tell the format of a file.
const START: u64 = 4096;
const GZIP: &[u8] = &[0x1f, 0x8b];
/// Starts of files that have a capture inside, and are not read.
const COMPRESSED: [(&[u8], &str); 5] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"BZh", "bzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    (b"PK\x03\x04", "zip"),
];

/// The progress of a reader.
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
    /// True if the times of a pcap file are in nanoseconds.
    nanoseconds: bool,
    position: u64,
    layers: Layers,
}

struct Interface {
    link: Linktype,
    /// The unit of times: this many are a second.
    resolution: u64,
    /// In seconds.
    offset: i64,
}

impl Packets {
    /// Reads a capture, which may be compressed with gzip. The error says why the bytes are not a capture.
    pub(crate) fn new(file: Box<dyn Read + Send>) -> Result<Self, String> {
        let cannot_read = |error: io::Error| format!("it cannot be read: {error}");
        let (mut start, mut file) = started(file).map_err(cannot_read)?;
        if start.starts_with(GZIP) {
            (start, file) = started(Box::new(MultiGzDecoder::new(file))).map_err(cannot_read)?;
        }
        if let Some((_, format)) = COMPRESSED.iter().find(|(first, _)| start.starts_with(first)) {
            let not_one = "it is neither a pcap nor a pcapng file";
            return Err(format!("{not_one}, but compressed with {format}: decompress it first"));
        }
        let reader = create_reader(BUFFER, file).map_err(|error| match error {
            PcapError::ReadError => "it cannot be read".to_owned(),
            _ => "it is neither a pcap nor a pcapng file".to_owned(),
        })?;
        let layers = Layers::default();
        Ok(Self { reader, interfaces: Vec::new(), nanoseconds: false, position: 0, layers })
    }

    /// The end of the file: packets that are not TCP over IP, or that cannot be read; and those that may have had
    /// segments, by the reason why they were not read.
    pub(crate) fn finish(&mut self) -> (u64, impl Iterator<Item = (Unread, u64)> + use<>) {
        let unread = self.layers.finish();
        (self.layers.other, unread)
    }

    /// Reads the next block, and gives its segment to `visit`.
    ///
    /// The error says why the file cannot be read further.
    pub(crate) fn next(&mut self, visit: &mut dyn FnMut(&Segment<'_>)) -> Result<Progress, String> {
        loop {
            let position = self.position;
            let why = match self.reader.next() {
                Ok((size, block)) => {
                    let packet = packet_of(&block, &mut self.interfaces, &mut self.nanoseconds);
                    if let Some(packet) = packet {
                        self.layers.read(packet, visit);
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

/// The first bytes of a file, and a reader of the whole file. Its first read has them at once, since pcap-parser
/// decides by one read.
fn started(mut file: Box<dyn Read + Send>) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut start = Vec::new();
    file.by_ref().take(START).read_to_end(&mut start)?;
    Ok((start.clone(), Box::new(Cursor::new(start).chain(file))))
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
