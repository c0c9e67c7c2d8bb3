// SPDX-License-Identifier: Apache-2.0

//! Identities: which are legal, what is hashed for them, and the order that numbers the backends.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::crc::crc32;

/// What the identities of a ring look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// `10.0.0.1:8080`, `[2001:db8::1]:8080`
    Address,
    /// What follows `server` in an NGINX upstream: `cache-1:8080`, `10.0.0.1`, `[::1]:80`
    Nginx,
    /// Any name
    Name,
}

const MAX_NAME: usize = 253;

/// A legal identity, taken apart.
#[derive(PartialEq, Eq)]
pub(crate) struct Parsed<'a> {
    /// What is hashed in front of the port.
    host: &'a [u8],
    /// What is hashed behind a zero byte; `None` where there is not even that.
    port: Option<&'a [u8]>,
    order: Order<'a>,
}

/// What sorts identities of one kind: the class of the host, its address or its name, the port, and the whole text.
type Order<'a> = (u8, [u8; 16], &'a [u8], u16, &'a [u8]);

const NO_ADDRESS: [u8; 16] = [0; 16];

impl Parsed<'_> {
    /// Returns the CRC-32 of the hash input.
    pub(crate) fn checksum(&self) -> u32 {
        let host = crc32(0, self.host);
        self.port.map_or(host, |port| crc32(crc32(host, &[0]), port))
    }

    /// Says whether this backend comes before another in ring order.
    pub(crate) fn precedes(&self, other: &Parsed<'_>) -> bool {
        self.order < other.order
    }
}

/// Says whether text can be the name of a feature, a zone or a backend.
pub(crate) fn is_name(text: &[u8]) -> bool {
    (1..=MAX_NAME).contains(&text.len()) && text.iter().all(|byte| (0x21..=0x7e).contains(byte))
}

impl Identity {
    /// Takes an identity apart; the error is what is wrong with it.
    pub(crate) fn parse<'a>(self, text: &'a [u8]) -> Result<Parsed<'a>, &'static str> {
        match self {
            Identity::Address => parse_address(text),
            Identity::Nginx => parse_nginx(text),
            Identity::Name if is_name(text) => Ok(Parsed { host: text, port: None, order: (0, NO_ADDRESS, text, 0, b"") }),
            Identity::Name => Err("a name has 1 to 253 bytes, each 0x21 to 0x7e"),
        }
    }
}

fn parse_address(text: &[u8]) -> Result<Parsed<'_>, &'static str> {
    let (host, port) = cut_last_colon(text).ok_or("an address has a port")?;
    let number = parse_port(port)?;
    if let Some(bare) = without_brackets(host) {
        let address = ipv6(bare).filter(|a| canonical(a).as_bytes() == bare);
        let address = address.ok_or("not an IPv6 address in brackets in the form of RFC 5952")?;
        return Ok(Parsed { host: bare, port: Some(port), order: (6, address.octets(), b"", number, b"") });
    }
    let address = ipv4(host).ok_or("not an IPv4 address")?;
    Ok(Parsed { host, port: Some(port), order: (4, padded(address), b"", number, b"") })
}

fn parse_nginx(text: &[u8]) -> Result<Parsed<'_>, &'static str> {
    let (host, port) = match cut_last_colon(text) {
        Some((host, port)) if !text.ends_with(b"]") => (host, Some(port)),
        _ => (text, None),
    };
    if !is_name(host) {
        return Err("a host has 1 to 253 bytes, each 0x21 to 0x7e");
    }
    let number = port.map_or(Ok(0), parse_port)?;
    let parsed =
        |class, address, name| Parsed { host, port: Some(port.unwrap_or(b"")), order: (class, address, name, number, text) };
    if host[0] == b'[' {
        let address = without_brackets(host).and_then(ipv6).ok_or("not an IPv6 address in brackets")?;
        return Ok(parsed(6, address.octets(), b""));
    }
    if let Some(address) = ipv4(host) {
        return Ok(parsed(4, padded(address), b""));
    }
    if host.iter().any(|byte| b":[]/;{}\"'$#?\\".contains(byte)) {
        return Err("a host name has a byte that NGINX reads otherwise");
    }
    if port.is_some() && host.eq_ignore_ascii_case(b"unix") {
        return Err("a socket is no host");
    }
    Ok(parsed(7, NO_ADDRESS, host))
}

fn cut_last_colon(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = text.iter().rposition(|&byte| byte == b':')?;
    Some((&text[..colon], &text[colon + 1..]))
}

fn without_brackets(host: &[u8]) -> Option<&[u8]> {
    host.strip_prefix(b"[")?.strip_suffix(b"]")
}

fn parse_port(text: &[u8]) -> Result<u16, &'static str> {
    let digits = text.first().map_or(false, |&c| c != b'0') && text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| digits).and_then(|text| text.parse().ok());
    number.ok_or("a port is a number from 1 to 65535 without leading zeros")
}

fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn ipv6(text: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn padded(address: Ipv4Addr) -> [u8; 16] {
    let mut bytes = NO_ADDRESS;
    bytes[..4].copy_from_slice(&address.octets());
    bytes
}

/// Returns the spelling of RFC 5952, with decimals for IPv4 addresses mapped into IPv6 and no others. `Display` has had
/// other opinions about those in older versions of Rust.
fn canonical(address: &Ipv6Addr) -> String {
    let groups = address.segments();
    let [.., a, b, c, d] = address.octets();
    if groups[..6] == [0, 0, 0, 0, 0, 0xffff] {
        return format!("::ffff:{}", Ipv4Addr::new(a, b, c, d));
    }
    let zeros_at = |start: usize| groups[start..].iter().take_while(|&&group| group == 0).count();
    let join = |groups: &[u16]| groups.iter().map(|g| format!("{g:x}")).collect::<Vec<_>>().join(":");
    let (mut start, mut length) = (0, 1);
    for i in 0..groups.len() {
        if zeros_at(i) > length {
            (start, length) = (i, zeros_at(i));
        }
    }
    if length == 1 {
        return join(&groups);
    }
    join(&groups[..start]) + "::" + &join(&groups[start + length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_addresses() {
        for text in [
            "::",
            "::1",
            "1::",
            "2001:db8::1",
            "::ffff:10.0.0.1",
            "::a00:1",
            "1:0:2::3",
            "0:1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:0:8",
            "1::2:0:0:3",
            "::ffff:0:a00:1",
        ] {
            let text = text.as_bytes();
            assert_eq!(canonical(&ipv6(text).unwrap()).as_bytes(), text);
        }
    }
}
