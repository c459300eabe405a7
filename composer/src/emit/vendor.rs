//! Projects for the vendor's tools, where no open flow makes a bitstream.

use serde::Serialize;
use tera::{Context, Tera};

use crate::diag::Diagnostic;
use crate::manifest::board::{Board, Resource};

/// What a Vivado project is made of. Paths are relative to the folder of the script.
#[derive(Clone, Debug)]
pub struct VivadoProject<'a> {
    /// Name of the project.
    pub design: &'a str,
    /// Top module.
    pub top: &'a str,
    /// SystemVerilog files in compile order.
    pub sources: &'a [String],
    /// The constraint file.
    pub xdc: &'a str,
    /// Resources behind a hard MAC that the project uses.
    pub hard_macs: &'a [Resource],
}

#[derive(Serialize)]
struct HardMac {
    resource: String,
    mac: String,
    module: &'static str,
    ip: &'static str,
}

/// The black box of a hard MAC by its rate: the module that `io::hard_mac_10g` or `io::hard_mac_100g` instantiates, and the IP behind it.
fn black_box(mbps: u64) -> (&'static str, &'static str) {
    if mbps >= 100_000 { ("hard_mac_100g_ip", "xilinx.com:ip:cmac_usplus") } else { ("hard_mac_10g_ip", "xilinx.com:ip:xxv_ethernet") }
}

impl VivadoProject<'_> {
    /// The Tcl script for `vivado -mode batch -source`: non-project flow from sources to bitstream, with reports.
    ///
    /// # Errors
    /// `GW0212` if the template cannot be rendered.
    pub fn tcl(&self, board: &Board) -> Result<String, Diagnostic> {
        let mac = |resource: &Resource| {
            let (module, ip) = black_box(resource.rates_mbps().into_iter().max().unwrap_or(0));
            let mac = resource.facts.get("mac").and_then(|f| f.value.as_str()).unwrap_or("not known").to_owned();
            HardMac { resource: resource.name.value.clone(), mac, module, ip }
        };
        let mut context = Context::new();
        context.insert("design", self.design);
        context.insert("board", &board.name.value);
        context.insert("part", &board.part.number.value);
        context.insert("top", self.top);
        context.insert("sources", self.sources);
        context.insert("xdc", self.xdc);
        context.insert("hard_macs", &self.hard_macs.iter().map(mac).collect::<Vec<_>>());
        render("vivado.tcl", include_str!("../../../templates/vendor/vivado.tcl.tera"), &context)
    }
}

/// Renders a template that is part of the program, without escaping.
pub(super) fn render(name: &str, template: &str, context: &Context) -> Result<String, Diagnostic> {
    let mut tera = Tera::default();
    tera.autoescape_on(Vec::new());
    let text = tera.add_raw_template(name, template).and_then(|()| tera.render(name, context));
    text.map_err(|e| {
        let mut message = format!("cannot write `{name}`: {e}");
        let mut cause = std::error::Error::source(&e);
        while let Some(inner) = cause {
            message.push_str(&format!(": {inner}"));
            cause = inner.source();
        }
        Diagnostic::error("GW0212", message)
    })
}
