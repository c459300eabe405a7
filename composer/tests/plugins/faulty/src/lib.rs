//! Misbehaves as its parameter says.

use gateweave_sdk::prelude::*;

/// Parameters.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Params {
    /// What goes wrong.
    #[serde(default)]
    fault: Fault,
    /// Entries of a table.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 100))]
    entries: u32,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    /// Nothing.
    #[default]
    None,
    /// A panic with a text.
    Panic,
    /// An index out of bounds.
    Index,
    /// An endless loop.
    Loop,
    /// Endless recursion.
    Recursion,
    /// Memory without end.
    Memory,
    /// A diagnostic.
    Refuse,
}

fn ten() -> u32 {
    10
}

struct Faulty;

#[inline(never)]
fn recurse(n: u64, end: u64) -> u64 {
    if n == end { 0 } else { std::hint::black_box(recurse(n.wrapping_mul(3), end)).wrapping_add(n) }
}

fn act(params: &Params) -> Result<(), Diagnostics> {
    match params.fault {
        Fault::None => {}
        Fault::Panic => panic!("the table has no room for {} entries", params.entries),
        Fault::Index => {
            let list: Vec<u32> = (0..params.entries).collect();
            let _ = std::hint::black_box(list[std::hint::black_box(params.entries as usize)]);
        }
        Fault::Loop => {
            let mut n = 0_u64;
            loop {
                n = std::hint::black_box(n).wrapping_add(1);
            }
        }
        Fault::Recursion => {
            let _ = std::hint::black_box(recurse(std::hint::black_box(1), 0));
        }
        Fault::Memory => {
            let mut kept = Vec::new();
            loop {
                kept.push(std::hint::black_box(vec![1_u8; 1 << 20]));
            }
        }
        Fault::Refuse => return Err(Diagnostic::error("entries", "/entries", "the entries do not fit").help("at most 3").into()),
    }
    Ok(())
}

impl Plugin for Faulty {
    type Params = Params;

    fn info() -> About {
        about!("misbehaves as told")
    }

    fn describe(params: &Params, _board: &Board) -> Result<Shape, Diagnostics> {
        act(params)?;
        Ok(Shape::new().domain("sys", Clock::System))
    }

    fn generate(_plan: &Plan<Params>) -> Result<Output, Diagnostics> {
        Ok(Output::new("faulty").sources(sources!["hdl/faulty.veryl"]))
    }
}

gateweave_sdk::export!(Faulty);
