//! Register bus over a UART: reads and writes the registers of a running board.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// Bits per second on the line: 8 data bits, no parity, one stop bit.
    #[serde(default = "usual")]
    #[schemars(range(min = 300, max = 12_000_000))]
    baud: u32,
}

fn usual() -> u32 {
    115_200
}

/// Samples per bit.
const OVERSAMPLING: u64 = 8;
/// The HDL's clock divider is a sum with this many bits.
const FRACTION_BITS: u32 = 16;
/// Clock cycles per bit that the HDL needs at least.
const CYCLES_MIN: u64 = 16;
/// How far off the rate may be, in 1/1000. A receiver stands about 40 with the far end off by as much the other way.
const TOLERANCE_MILLI: u64 = 10;

/// Parameter `TICK` of the HDL: samples per clock cycle in units of 2^-16, rounded.
fn tick(baud: u32, hz: u64) -> Result<u64, Diagnostics> {
    let baud = u64::from(baud);
    if hz < CYCLES_MIN * baud {
        let message = format!("{baud} baud is too fast for a system clock of {hz} Hz");
        return Err(vec![Diagnostic::error("baud", "/baud", message).help(format!("at most {} baud", hz / CYCLES_MIN))]);
    }
    let wanted = u128::from(OVERSAMPLING * baud) << FRACTION_BITS;
    let hz = u128::from(hz);
    let tick = (wanted + hz / 2) / hz;
    if (tick * hz).abs_diff(wanted) * 1000 > wanted * u128::from(TOLERANCE_MILLI) {
        let message = format!("{baud} baud cannot be made from {hz} Hz to within {} %", TOLERANCE_MILLI / 10);
        return Err(vec![Diagnostic::error("baud", "/baud", message).help("a faster rate, such as 115200")]);
    }
    Ok(tick as u64)
}

struct UartRegs;

impl Plugin for UartRegs {
    type Params = Params;

    fn info() -> About {
        about!("register bus over a UART: reads and writes the registers of a running board")
    }

    fn describe(_params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        Ok(Shape::new()
            .domain("sys", Clock::System)
            .port(Port::client("serial", "gateweave/uart@1", "sys"))
            .port(Port::client("bus", "gateweave/registers@1", "sys")))
    }

    fn generate(plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        let Some(bus) = plan.link("bus") else {
            return Err(vec![Diagnostic::error("no-bus", "", "there is no register bus to drive")]);
        };
        let tick = tick(plan.params.baud, bus.hz)?;
        Ok(Output::new("uart_regs").parameter("TICK", tick).sources(sources![
            "hdl/receiver.veryl",
            "hdl/transmitter.veryl",
            "hdl/uart_regs.veryl"
        ]))
    }
}

gateweave_sdk::export!(UartRegs);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_rates_come_out_within_a_percent() {
        for hz in [62_500_000, 75_000_000, 125_000_000] {
            for baud in [9600, 115_200, 921_600, 3_000_000] {
                let tick = tick(baud, hz).expect("a usual rate");
                let real = tick as f64 / 65536.0 * hz as f64 / 8.0;
                assert!((real / f64::from(baud) - 1.0).abs() < 0.01, "{baud} at {hz}: {real}");
            }
        }
        assert_eq!(tick(115_200, 75_000_000), Ok(805));
    }

    #[test]
    fn rates_that_the_clock_cannot_make_are_refused_with_the_limit() {
        let fault = tick(12_000_000, 75_000_000).expect_err("too fast");
        assert_eq!(fault[0].help.as_deref(), Some("at most 4687500 baud"));
        assert!(tick(300, 75_000_000).is_err(), "2.1 rounds to 2");
    }
}
