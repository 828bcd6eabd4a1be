//! From a captured packet to its TCP segment: link layers, tunnels, IP and its fragments.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use etherparse::{
    EtherType, IpNumber, Ipv6ExtensionSlice, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, TcpSlice,
    UdpSlice,
};
use pcap_parser::Linktype;

use crate::wire::fragments::{Datagram, Fragment, Fragments};
use crate::wire::segment::{Packet, Segment};
use crate::wire::tunnels::{self, Inner, Layer};

/// Tunnels in tunnels, and headers between them, that are followed.
const MAX_DEPTH: usize = 8;
const ESP: u8 = 50;
const L2TP: u8 = 115;

/// Packets that may have had a segment, and are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unread {
    LinkType(i32),
    Tunnel(&'static str),
    Fragments,
    Cut,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(number) => write!(f, "of link type {number}, which is not read"),
            Self::Tunnel(name) => write!(f, "in tunnels that are not read: {name}"),
            Self::Fragments => write!(f, "split by IP, whose other fragments are not in the capture"),
            Self::Cut => write!(f, "cut before the end of their headers when they were captured"),
        }
    }
}

/// Finds the segments in packets. Memory: that of incomplete datagrams.
#[derive(Default)]
pub(crate) struct Layers {
    fragments: Fragments,
    unread: BTreeMap<Unread, u64>,
    /// Packets that are not TCP over IP, or that cannot be read.
    pub(crate) other: u64,
}

impl Layers {
    /// Gives the segment of a packet to `visit`. Of a packet that was not captured in full, it has the bytes that
    /// were. The last fragment of a datagram has its segment.
    pub(crate) fn read(&mut self, packet: Packet<'_>, visit: &mut dyn FnMut(&Segment<'_>)) {
        let data = packet.data;
        let ether_type =
            |at: usize| Some(EtherType(u16::from_be_bytes([*data.get(at)?, *data.get(at + 1)?])));
        let from_ether_type = |at, header| Some(Layer::Ether(ether_type(at)?, data.get(header..)?));
        let layer = match packet.link {
            Linktype::ETHERNET => Some(Layer::Ethernet(data)),
            // The protocol at the end of a header of 16 bytes, or at the start of one of 20.
            Linktype::LINUX_SLL => from_ether_type(14, 16),
            Linktype::LINUX_SLL2 => from_ether_type(0, 20),
            // A family of addresses, in the byte order of any machine: IP's own version is as good.
            Linktype::NULL | Linktype::LOOP => data.get(4..).map(Layer::Ip),
            Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => Some(Layer::Ip(data)),
            Linktype(number) => return self.skip(Unread::LinkType(number)),
        };
        match layer {
            Some(layer) => self.layer(layer, MAX_DEPTH, packet.time, visit),
            None => self.other += 1,
        }
    }

    /// The packets that were not read, by the reason.
    pub(crate) fn finish(&mut self) -> impl Iterator<Item = (Unread, u64)> + use<> {
        let lost = self.fragments.finish();
        if lost > 0 {
            *self.unread.entry(Unread::Fragments).or_default() += lost;
        }
        std::mem::take(&mut self.unread).into_iter()
    }

    fn skip(&mut self, unread: Unread) {
        *self.unread.entry(unread).or_default() += 1;
    }

    fn layer(
        &mut self,
        layer: Layer<'_>,
        depth: usize,
        time: Option<i64>,
        visit: &mut dyn FnMut(&Segment<'_>),
    ) {
        let sliced = match layer {
            Layer::Ethernet(data) => LaxSlicedPacket::from_ethernet(data).ok(),
            Layer::Ether(ether_type, data) => match tunnels::of_ether_type(ether_type, data) {
                Inner::None => Some(LaxSlicedPacket::from_ether_type(ether_type, data)),
                inner => return self.inner(inner, depth, time, visit),
            },
            Layer::Ip(data) => LaxSlicedPacket::from_ip(data).ok(),
        };
        let Some(sliced) = sliced else {
            self.other += 1;
            return;
        };
        match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let fragment = ip.payload().fragmented.then(|| Fragment {
                    id: header.identification().into(),
                    offset: header.fragments_offset().byte_offset().into(),
                    is_last: !header.more_fragments(),
                });
                let ends = (header.source_addr().into(), header.destination_addr().into());
                self.datagram(ends, ip.payload(), fragment, depth, time, visit);
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let of_extension = |extension| match extension {
                    Ipv6ExtensionSlice::Fragment(one) => Some(Fragment {
                        id: one.identification(),
                        offset: one.fragment_offset().byte_offset().into(),
                        is_last: !one.more_fragments(),
                    }),
                    _ => None,
                };
                let fragment = match ip.payload().fragmented {
                    true => ip.extensions().clone().into_iter().find_map(of_extension),
                    false => None,
                };
                let ends = (header.source_addr().into(), header.destination_addr().into());
                self.datagram(ends, ip.payload(), fragment, depth, time, visit);
            }
            Some(LaxNetSlice::Arp(_)) => self.other += 1,
            None if matches!(sliced.link_exts.last(), Some(LaxLinkExtSlice::Macsec(_))) => {
                self.skip(Unread::Tunnel("MACsec"));
            }
            None => match sliced.ether_payload() {
                Some(payload) => {
                    let inner = tunnels::of_ether_type(payload.ether_type, payload.payload);
                    self.inner(inner, depth, time, visit);
                }
                None => self.other += 1,
            },
        }
    }

    fn datagram(
        &mut self,
        ends: (IpAddr, IpAddr),
        payload: &etherparse::LaxIpPayloadSlice<'_>,
        fragment: Option<Fragment>,
        depth: usize,
        time: Option<i64>,
        visit: &mut dyn FnMut(&Segment<'_>),
    ) {
        let protocol = payload.ip_number;
        let Some(fragment) = fragment else {
            return self.transport(ends, protocol, payload.payload, payload.incomplete, depth, time, visit);
        };
        let datagram = Datagram { ends, protocol: protocol.0, id: fragment.id };
        if let Some(whole) = self.fragments.add(datagram, fragment, payload.payload) {
            self.transport(ends, protocol, &whole, false, depth, time, visit);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a datagram, and where it is")]
    fn transport(
        &mut self,
        (source, destination): (IpAddr, IpAddr),
        protocol: IpNumber,
        data: &[u8],
        is_cut: bool,
        depth: usize,
        time: Option<i64>,
        visit: &mut dyn FnMut(&Segment<'_>),
    ) {
        let inner = match protocol {
            IpNumber::TCP => {
                let Ok(tcp) = TcpSlice::from_slice(data) else {
                    match is_cut {
                        true => self.skip(Unread::Cut),
                        false => self.other += 1,
                    }
                    return;
                };
                return visit(&Segment {
                    time,
                    source: SocketAddr::new(source, tcp.source_port()),
                    destination: SocketAddr::new(destination, tcp.destination_port()),
                    sequence: tcp.sequence_number(),
                    acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
                    syn: tcp.syn(),
                    fin: tcp.fin(),
                    rst: tcp.rst(),
                    payload: tcp.payload(),
                    is_cut,
                });
            }
            IpNumber::UDP => match UdpSlice::from_slice_lax(data) {
                Ok(udp) => tunnels::of_udp(udp.destination_port(), udp.payload()),
                Err(_) => Inner::None,
            },
            IpNumber::IPV4 | IpNumber::IPV6 => Inner::Layer(Layer::Ip(data)),
            IpNumber::GRE => tunnels::of_gre(data),
            IpNumber(ESP) => Inner::Unread("IPsec (ESP)"),
            IpNumber::MPLS_IN_IP => tunnels::of_mpls(data),
            IpNumber(L2TP) => Inner::Unread("L2TP"),
            _ => Inner::None,
        };
        self.inner(inner, depth, time, visit);
    }

    fn inner(
        &mut self,
        inner: Inner<'_>,
        depth: usize,
        time: Option<i64>,
        visit: &mut dyn FnMut(&Segment<'_>),
    ) {
        match inner {
            Inner::Layer(layer) if depth > 0 => self.layer(layer, depth - 1, time, visit),
            Inner::Layer(_) => self.skip(Unread::Tunnel("more than 8 in each other")),
            Inner::Unread(name) => self.skip(Unread::Tunnel(name)),
            Inner::None => self.other += 1,
        }
    }
}
