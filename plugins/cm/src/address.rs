//! Addresses as the project file has them.

/// The address of "a.b.c.d" or "a.b.c.d/n", first byte highest.
pub fn ipv4(text: &str) -> Result<u32, String> {
    let address = text.split('/').next().unwrap_or(text);
    address.parse::<std::net::Ipv4Addr>().map(u32::from).map_err(|_| format!("`{address}` is no IPv4 address"))
}

/// The 64-bit GUID of an adapter with this MAC address: EUI-64, as Linux makes it for soft-RoCE.
pub fn guid(mac: &str) -> Result<u64, String> {
    let bytes: Result<Vec<u8>, _> = mac.split(':').map(|part| u8::from_str_radix(part, 16)).collect();
    match bytes.as_deref() {
        Ok(&[a, b, c, d, e, f]) => Ok(u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])),
        _ => Err(format!("`{mac}` is no MAC address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!(ipv4("192.168.7.2/24"), Ok(0xc0a8_0702));
        assert!(ipv4("192.168.7").is_err());
        assert_eq!(guid("52:54:00:00:00:02"), Ok(0x5054_00ff_fe00_0002));
    }
}
