//! Numbers at byte and bit offsets of a message, big-endian.

/// The `width` bits (at most 64) of `data` that start `bit` bits after its beginning, most significant first.
pub fn get(data: &[u8], bit: usize, width: usize) -> u64 {
    (bit..bit + width).fold(0, |value, at| value << 1 | u64::from(data[at / 8] >> (7 - at % 8) & 1))
}

/// Sets the same bits.
pub fn set(data: &mut [u8], bit: usize, width: usize, value: u64) {
    for at in 0..width {
        let (place, one) = (bit + width - 1 - at, value >> at & 1);
        let mask = 1 << (7 - place % 8);
        data[place / 8] = if one == 1 { data[place / 8] | mask } else { data[place / 8] & !mask };
    }
}

/// A message's number field: how it is kept in a struct.
pub trait Number: Copy {
    fn from_bits(bits: u64) -> Self;
    fn to_bits(self) -> u64;
}

macro_rules! numbers {
    ($($kind:ty),*) => { $(impl Number for $kind {
        fn from_bits(bits: u64) -> Self { bits as $kind }
        fn to_bits(self) -> u64 { self as u64 }
    })* };
}
numbers!(u8, u16, u32, u64);

impl Number for bool {
    fn from_bits(bits: u64) -> Self {
        bits != 0
    }
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
}

/// Declares a message: number fields as `name: kind = byte[bit], width` (bit 7 is the most significant of its byte), then byte strings
/// as `name: length = byte`. Gives the struct, `encode` into 232 bytes and `decode` from them.
macro_rules! message {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $kind:ty = $byte:literal [$top:literal], $width:literal;)*
    } bytes {
        $($(#[$bytes_doc:meta])* $bytes:ident: $length:literal = $at:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
            $($(#[$bytes_doc])* pub $bytes: [u8; $length],)*
        }
        impl Default for $name {
            fn default() -> Self {
                $name { $($field: <$kind>::default(),)* $($bytes: [0; $length],)* }
            }
        }
        impl $name {
            /// The 232 bytes behind the MAD header.
            pub fn encode(&self) -> [u8; 232] {
                let mut data = [0; 232];
                $($crate::cm::fields::set(&mut data, $byte * 8 + 7 - $top, $width, $crate::cm::fields::Number::to_bits(self.$field));)*
                $(data[$at..$at + $length].copy_from_slice(&self.$bytes);)*
                data
            }
            /// From those.
            pub fn decode(data: &[u8]) -> Self {
                let mut message = $name::default();
                $(message.$field = $crate::cm::fields::Number::from_bits($crate::cm::fields::get(data, $byte * 8 + 7 - $top, $width));)*
                $(message.$bytes.copy_from_slice(&data[$at..$at + $length]);)*
                message
            }
        }
    };
}
pub(crate) use message;

#[cfg(test)]
mod tests {
    #[test]
    fn bits_cross_bytes() {
        let mut data = [0xff; 4];
        super::set(&mut data, 5, 9, 0b1_0000_0001);
        assert_eq!(data, [0xfc, 0b0000_0111, 0xff, 0xff]);
        assert_eq!(super::get(&data, 5, 9), 0b1_0000_0001);
        assert_eq!(super::get(&[0x12, 0x34, 0x56, 0x78], 4, 20), 0x23456);
    }
}
