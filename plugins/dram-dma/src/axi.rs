//! The AXI4 backend: a controller that comes from elsewhere, as the board describes it.

use gateweave_sdk::prelude::*;

use crate::{ADDRESS_BITS, Params, multiple};

/// Widths of a beat that a controller may have.
pub const WIDTHS: [u32; 5] = [512, 32, 64, 128, 256];

/// The controller at the other end of port `controller`.
#[derive(Debug)]
pub struct Controller {
    /// Bits of a beat.
    pub data_bits: u32,
    /// Bits of its byte address.
    address_bits: u32,
    /// Binary logarithm of the bytes that can be reached.
    size_log2: u32,
}

impl Controller {
    /// What the board says of it.
    pub fn of(peer: &Peer) -> Result<Controller, Diagnostics> {
        let wrong = |message: String| Err(Diagnostic::error("controller", "", message).into());
        let fact = |name: &str| peer.prop_u64(name).unwrap_or(0);
        let (data, address, mbytes) = (fact("data-bits"), fact("address-bits"), fact("mbytes"));
        let Some(data_bits) = WIDTHS.into_iter().find(|w| u64::from(*w) == data) else {
            return wrong(format!("the controller is {data} bits wide; 32, 64, 128, 256 and 512 are possible"));
        };
        if !mbytes.is_power_of_two() {
            return wrong(format!("the controller has {mbytes} MiB, not a power of two"));
        }
        let needed = 20 + mbytes.ilog2();
        if !(u64::from(needed)..=64).contains(&address) {
            return wrong(format!("the controller has {address} address bits; {mbytes} MiB need {needed}, and 64 are the most"));
        }
        let size_log2 = needed.min(ADDRESS_BITS);
        Ok(Controller { data_bits, address_bits: address as u32, size_log2 })
    }
}

pub fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
    let Some(link) = plan.link("controller") else {
        return Err(Diagnostic::error("controller", "", "no controller is linked").into());
    };
    let controller = Controller::of(&link.peer)?;
    multiple(plan.params.base, 1 << controller.size_log2)?;
    Ok(Output::new("axi_port")
        .parameter("W", controller.data_bits)
        .parameter("PLACE_W", controller.address_bits)
        .parameter("SIZE_LOG2", controller.size_log2)
        .parameter("BASE", format!("64'h{:08x}", plan.params.base))
        .sources(sources!["hdl/events_pkg.veryl", "hdl/axi_port.veryl"]))
}

#[cfg(test)]
mod tests {
    use gateweave_sdk::Prop;

    use super::*;

    fn controller(data: u64, address: u64, mbytes: u64) -> Result<Controller, Diagnostics> {
        let props = [("data-bits", data), ("address-bits", address), ("mbytes", mbytes)];
        let props = props.into_iter().map(|(key, value)| Prop { key: key.to_owned(), value: value.to_string() }).collect();
        Controller::of(&Peer { port: "controller".to_owned(), index: 0, instance: "board".to_owned(), props })
    }

    #[test]
    fn what_cannot_be_reached_is_left_out_and_what_does_not_fit_is_refused() {
        assert_eq!(controller(512, 31, 2048).expect("2 GiB").size_log2, 31);
        assert_eq!(controller(512, 34, 16_384).expect("16 GiB").size_log2, 32);
        for (data, address, mbytes) in [(48, 31, 2048), (512, 30, 2048), (512, 65, 2048), (512, 31, 1000)] {
            assert!(controller(data, address, mbytes).is_err(), "{data} bits, {address} address bits, {mbytes} MiB");
        }
    }
}
