//! Headers of tunnels: a whole packet follows them.

use etherparse::EtherType;

use magicbyte::internals::be;

const BRIDGED: u16 = 0x6558;
const ERSPAN_1_OR_2: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;

/// Headers that are still to be read.
#[derive(Clone, Copy)]
pub(crate) enum Layer<'a> {
    Ethernet(&'a [u8]),
    Ether(EtherType, &'a [u8]),
    Ip(&'a [u8]),
}

/// The content of a tunnel.
pub(crate) enum Inner<'a> {
    Layer(Layer<'a>),
    /// A tunnel of this name, which cannot be read: most are encrypted.
    Unread(&'static str),
    /// It is not a tunnel, or carries another thing than packets.
    None,
}

/// The packet after a header of this many bytes.
fn after<'a>(data: &'a [u8], header: usize, layer: fn(&'a [u8]) -> Layer<'a>) -> Inner<'a> {
    data.get(header..).map_or(Inner::None, |rest| Inner::Layer(layer(rest)))
}

/// The packet after a header of this many bytes, which names its type.
fn of_type(ether_type: u16, data: &[u8], header: usize) -> Inner<'_> {
    match (ether_type, data.get(header..)) {
        (BRIDGED, Some(rest)) => Inner::Layer(Layer::Ethernet(rest)),
        (_, Some(rest)) => Inner::Layer(Layer::Ether(EtherType(ether_type), rest)),
        (_, None) => Inner::None,
    }
}

/// MPLS (RFC 3032) and PPPoE (RFC 2516).
pub(crate) fn of_ether_type(ether_type: EtherType, data: &[u8]) -> Inner<'_> {
    match ether_type.0 {
        one if MPLS.contains(&one) => of_mpls(data),
        // After the header of six bytes, PPP's own protocol number: IPv4, IPv6, or a protocol of PPP itself.
        PPPOE_SESSION => match data.get(6..8) {
            Some([0x00, 0x21 | 0x57]) => after(data, 8, Layer::Ip),
            // Compressed (RFC 1661).
            Some([0x21 | 0x57, _]) => after(data, 7, Layer::Ip),
            Some([0x00, 0x3d | 0x53 | 0xfd]) => {
                Inner::Unread("PPPoE, compressed, encrypted or of several links")
            }
            _ => Inner::None,
        },
        _ => Inner::None,
    }
}

/// Labels of four bytes, the last of which says so; then IP, or a frame of Ethernet (RFC 4448).
pub(crate) fn of_mpls(data: &[u8]) -> Inner<'_> {
    let Some(last) = data.chunks_exact(4).position(|label| label[2] & 1 == 1) else { return Inner::None };
    let header = 4 * (last + 1);
    match data.get(header).map(|first| first >> 4) {
        Some(4 | 6) => after(data, header, Layer::Ip),
        // A control word.
        Some(0) => after(data, header + 4, Layer::Ethernet),
        Some(_) => after(data, header, Layer::Ethernet),
        None => Inner::None,
    }
}

/// VXLAN (RFC 7348), its generic extension, Geneve (RFC 8926), and what is encrypted, by the port.
pub(crate) fn of_udp(port: u16, data: &[u8]) -> Inner<'_> {
    match (port, data) {
        // The second port is Linux's default.
        (4789 | 8472, [flags, ..]) if flags & 8 != 0 => after(data, 8, Layer::Ethernet),
        (4790, [flags, _, _, protocol, ..]) if flags & 8 != 0 => match protocol {
            1 | 2 => after(data, 8, Layer::Ip),
            3 => after(data, 8, Layer::Ethernet),
            _ => Inner::None,
        },
        // The length of the options, in words; the type of the packet.
        (6081, [first, _, high, low, ..]) => {
            of_type(u16::from_be_bytes([*high, *low]), data, 8 + 4 * usize::from(first & 0x3f))
        }
        (1194, _) => Inner::Unread("OpenVPN"),
        (1701, _) => Inner::Unread("L2TP"),
        (2152, _) => Inner::Unread("GTP"),
        (4500, _) => Inner::Unread("IPsec (ESP)"),
        (37_008, _) => Inner::Unread("TZSP"),
        (51_820, _) => Inner::Unread("WireGuard"),
        _ => Inner::None,
    }
}

/// GRE (RFC 2784, 2890), and the mirrored traffic of switches in it (ERSPAN).
pub(crate) fn of_gre(data: &[u8]) -> Inner<'_> {
    let Some(head) = data.get(..4) else { return Inner::None };
    let (flags, ether_type) = (be!(head, 0, u16), be!(head, 2, u16));
    let [has_checksum, has_routing, has_key, has_sequence] =
        [0x8000, 0x4000, 0x2000, 0x1000].map(|flag| flags & flag != 0);
    if has_routing || flags & 7 != 0 {
        return Inner::Unread("GRE with routing, or PPTP");
    }
    let optional = [has_checksum, has_key, has_sequence];
    let header = 4 + 4 * optional.into_iter().filter(|&one| one).count();
    match ether_type {
        // Its first version has no header of its own, and no sequence number.
        ERSPAN_1_OR_2 if !has_sequence => after(data, header, Layer::Ethernet),
        ERSPAN_1_OR_2 => after(data, header + 8, Layer::Ethernet),
        ERSPAN_3 => {
            let has_more = data.get(header + 11).is_some_and(|last| last & 1 == 1);
            after(data, header + if has_more { 20 } else { 12 }, Layer::Ethernet)
        }
        _ => of_type(ether_type, data, header),
    }
}
