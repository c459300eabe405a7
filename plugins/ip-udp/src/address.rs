//! Addresses in text and as numbers.

/// An IPv4 address with the length of its network's prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address, first byte highest.
    pub address: u32,
    /// Bits of the network, 8 to 30.
    pub prefix: u32,
}

impl Cidr {
    /// Reads `a.b.c.d/n`.
    ///
    /// # Errors
    /// What is wrong, in words: the form, a number out of range, an address that no host has.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (address, prefix) = text.split_once('/').ok_or_else(|| format!("`{text}` has no prefix length, such as /24"))?;
        let address = ipv4(address)?;
        let prefix: u32 = prefix.parse().map_err(|_| format!("`{prefix}` is not a prefix length"))?;
        if !(8..=30).contains(&prefix) {
            return Err(format!("the prefix length {prefix} is not from 8 to 30"));
        }
        let host = address & !Self::mask(prefix);
        if host == 0 || host == !Self::mask(prefix) {
            return Err(format!("`{text}` is the network itself or its broadcast address, not a host"));
        }
        if address >> 28 == 0xe || address >> 24 == 127 || address >> 24 == 0 || address >> 28 == 0xf {
            return Err(format!("`{text}` is not a host's address"));
        }
        Ok(Self { address, prefix })
    }

    /// Whether `address` is in this network.
    pub fn contains(self, address: u32) -> bool {
        (address ^ self.address) & Self::mask(self.prefix) == 0
    }

    fn mask(prefix: u32) -> u32 {
        u32::MAX << (32 - prefix)
    }
}

/// Reads `a.b.c.d`.
///
/// # Errors
/// What is wrong, in words.
pub fn ipv4(text: &str) -> Result<u32, String> {
    text.parse::<std::net::Ipv4Addr>().map(u32::from).map_err(|_| format!("`{text}` is not an IPv4 address"))
}

/// Reads six bytes in hexadecimal with colons between.
///
/// # Errors
/// What is wrong, in words: the form, or an address that no station has.
pub fn mac(text: &str) -> Result<u64, String> {
    let bytes: Option<Vec<u8>> = text.split(':').map(|b| u8::from_str_radix(b, 16).ok()).collect();
    let bytes = bytes.filter(|b| b.len() == 6).ok_or_else(|| format!("`{text}` is not a MAC address, such as 02:47:57:00:00:01"))?;
    let number = bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b));
    if bytes[0] & 1 == 1 {
        return Err(format!("`{text}` is a multicast address: the lowest bit of its first byte is 1"));
    }
    if number == 0 {
        return Err("a MAC address of zeros belongs to nobody".into());
    }
    Ok(number)
}
