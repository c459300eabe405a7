//! Memory controllers of the vendor's at the board level: resources of class `axi4-memory`.

use serde::Serialize;
use serde_json::Value as Json;
use tera::Context;

use super::vendor::{Signal, ip_name, locations, range, render};
use crate::diag::Diagnostic;
use crate::manifest::board::{Dir, Resource, TopPort};

/// Whether a resource is memory behind a controller that comes from elsewhere.
pub fn is_memory(resource: &Resource) -> bool {
    resource.class.name == "axi4-memory"
}

/// The black box that stands for its controller.
pub(super) fn module(resource: &Resource) -> String {
    format!("{}_controller", resource.name.value)
}

/// The IP behind that, as the board names it.
pub(super) fn ip(resource: &Resource) -> String {
    resource.vendor.get("ip").and_then(Json::as_str).unwrap_or("of the user's choice").to_owned()
}

/// A controller in the text of the board level.
#[derive(Serialize)]
pub(super) struct Memory {
    name: String,
    ip: String,
    module: String,
    /// `AxSIZE` of whole beats.
    size: u32,
    signals: Vec<Signal>,
    pins: Vec<String>,
}

impl Memory {
    pub(super) fn new(resource: &Resource, signals: Vec<Signal>) -> Memory {
        let bytes = resource.integer("data-bits").unwrap_or(8) as u32 / 8;
        let pins = vendor_pins(resource).map(|(name, ..)| name.to_owned()).collect();
        Memory { name: resource.name.value.clone(), ip: ip_name(resource), module: module(resource), size: bytes.ilog2(), signals, pins }
    }
}

/// The pins of the chips, as `vendor.in`, `vendor.out` and `vendor.inout` list them.
fn vendor_pins(resource: &Resource) -> impl Iterator<Item = (&str, Dir, &Json)> {
    let of = |(key, dir)| {
        let list = resource.vendor.get(key).and_then(Json::as_object).into_iter().flatten();
        list.map(move |(name, pins)| (name.as_str(), dir, pins))
    };
    [("in", Dir::In), ("out", Dir::Out), ("inout", Dir::InOut)].into_iter().flat_map(of)
}

/// The same as ports of the board level.
pub(super) fn pins(resource: &Resource) -> Vec<TopPort> {
    let port = |(name, dir, pins): (&str, Dir, &Json)| {
        let locations = locations(pins);
        let (bus, width) = (pins.is_array(), locations.len() as u32);
        TopPort { name: format!("{}_{name}", resource.name.value), dir, bus, width, locations, io: None, attrs: Default::default() }
    };
    vendor_pins(resource).map(port).collect()
}

#[derive(Serialize)]
struct Port {
    dir: &'static str,
    name: String,
    range: Option<String>,
}

/// The black box, for lint and for Yosys.
///
/// # Errors
/// `GW0212` if the template cannot be rendered.
pub fn black_box(resource: &Resource) -> Result<(String, String), Diagnostic> {
    let word = |dir: Dir| match dir {
        Dir::In => "input ",
        Dir::Out => "output",
        Dir::InOut => "inout ",
    };
    let prefix = format!("{}_", resource.name.value);
    let own = |p: &TopPort| p.name.strip_prefix(&prefix).unwrap_or(&p.name).to_owned();
    // What the design drives goes into the box.
    let turned = |dir: Dir| if dir == Dir::In { Dir::Out } else { Dir::In };
    let signals = resource.top_ports(0);
    let signals = signals.iter().map(|p| Port { dir: word(turned(p.dir)), name: format!("s_axi_{}", own(p)), range: range(p) });
    let outer = pins(resource);
    let outer = outer.iter().map(|p| Port { dir: word(p.dir), name: own(p), range: range(p) });
    let mut context = Context::new();
    let module = module(resource);
    context.insert("module", &module);
    context.insert("ip", &ip_name(resource));
    context.insert("ports", &signals.chain(outer).collect::<Vec<_>>());
    let text = render("controller.sv", include_str!("../../../templates/vendor/controller.sv.tera"), &context)?;
    Ok((module, text))
}
