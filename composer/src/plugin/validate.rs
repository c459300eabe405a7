//! Answers of plugins, checked against the contract before anybody uses them.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::error::PluginError;
use super::names;
use super::params::check_schema;
use super::types::{About, Clock, Language, Output, Plan, Port, Purpose, Shape};

/// Longest name.
const NAME: usize = 64;
/// Most entries in a list of an answer.
const ENTRIES: usize = 1000;
/// Longest parameter expression.
const EXPRESSION: usize = 4096;

/// All breaches in one answer become one error.
#[derive(Default)]
struct Breaches(Vec<String>);

impl Breaches {
    fn add(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    fn finish(self, answer: &str) -> Result<(), PluginError> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let more = match self.0.len() - 1 {
            0 => String::new(),
            n => format!(" (and {n} more: {})", self.0.iter().skip(1).take(4).cloned().collect::<Vec<_>>().join("; ")),
        };
        Err(PluginError::new("GW0309", format!("its answer to `{answer}` breaks the contract: {first}{more}"))
            .help("this is a fault of the plugin; `gateweave plugin check` shows it alone"))
    }
}

/// Checks an answer to `info`.
///
/// # Errors
/// GW0309 with what breaks the contract.
pub fn about(about: &About) -> Result<(), PluginError> {
    let mut found = Breaches::default();
    if !kebab(&about.name) {
        found.add(format!("the name {:?} is not lower-case letters, digits and `-`", cut(&about.name)));
    }
    if !semantic(&about.version) {
        found.add(format!("the version {:?} is not of the form 1.2.3", cut(&about.version)));
    }
    if about.params_schema.get("type").is_some_and(|t| t != "object") {
        found.add("the parameters' schema is not that of an object");
    }
    if let Err(e) = check_schema(&about.params_schema) {
        found.add(format!("the parameters' schema {e}"));
    }
    let mut ids = BTreeSet::new();
    for kind in about.kinds.iter().take(ENTRIES) {
        if !kind_id(&kind.id) {
            found.add(format!("the kind {:?} is not of the form `maker/name@1`", cut(&kind.id)));
        }
        if !ids.insert(&kind.id) {
            found.add(format!("kind `{}` stands there twice", kind.id));
        }
        if let Err(e) = check_schema(&kind.props_schema) {
            found.add(format!("the properties' schema of kind `{}` {e}", kind.id));
        }
        if names::depth(&kind.veryl) > names::DEPTH {
            found.add(format!("the Veryl text of kind `{}` nests too deep", kind.id));
        }
    }
    found.finish("info")
}

/// Checks an answer to `describe`, or to `elaborate` if `described` is given.
///
/// # Errors
/// GW0309 with what breaks the contract.
pub fn shape(answer: &str, shape: &Shape, described: Option<&Shape>) -> Result<(), PluginError> {
    let mut found = Breaches::default();
    if shape.ports.len() > ENTRIES || shape.domains.len() > ENTRIES {
        found.add(format!("more than {ENTRIES} ports or domains"));
        return found.finish(answer);
    }
    let ports: BTreeSet<&str> = shape.ports.iter().map(|p| p.name.as_str()).collect();
    let mut domains = BTreeSet::new();
    for domain in &shape.domains {
        if !identifier(&domain.name) {
            found.add(format!("the domain {:?} is not an identifier", cut(&domain.name)));
        }
        if !domains.insert(domain.name.as_str()) {
            found.add(format!("domain `{}` stands there twice", domain.name));
        }
        match &domain.clock {
            Clock::FromPort(port) | Clock::FromPeer(port) if !ports.contains(port.as_str()) => {
                found.add(format!("domain `{}` takes its clock from port `{}`, which does not exist", domain.name, cut(port)));
            }
            Clock::Ask { hz: 0, .. } => found.add(format!("domain `{}` asks for a clock of 0 Hz", domain.name)),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    for p in &shape.ports {
        if !seen.insert(p.name.as_str()) {
            found.add(format!("port `{}` stands there twice", p.name));
        }
        port(p, &domains, &mut found);
    }
    tables(&shape.tables, &mut found);
    if let Some(before) = described {
        narrowed(before, shape, &mut found);
    }
    found.finish(answer)
}

fn port(port: &Port, domains: &BTreeSet<&str>, found: &mut Breaches) {
    let name = cut(&port.name);
    if !identifier(&port.name) {
        found.add(format!("the port {name:?} is not an identifier"));
    }
    if !kind_id(&port.kind) {
        found.add(format!("the kind {:?} of port `{name}` is not of the form `maker/name@1`", cut(&port.kind)));
    }
    if !domains.contains(port.domain.as_str()) {
        found.add(format!("port `{name}` is in domain `{}`, which does not exist", cut(&port.domain)));
    }
    if port.links_max == 0 || port.links_min > port.links_max || port.links_max > 256 {
        found.add(format!("port `{name}` has {} to {} links; at least 1 and at most 256 must be possible", port.links_min, port.links_max));
    }
    let mut widths = BTreeSet::new();
    for width in &port.widths {
        if !width.is_power_of_two() || !(8..=1024).contains(width) {
            found.add(format!("port `{name}` has a width of {width} bits; a power of two from 8 to 1024 is possible"));
        }
        if !widths.insert(width) {
            found.add(format!("port `{name}` has width {width} twice"));
        }
    }
}

/// `elaborate` may narrow; ports, roles and kinds stay.
fn narrowed(before: &Shape, after: &Shape, found: &mut Breaches) {
    for old in &before.ports {
        let Some(new) = after.ports.iter().find(|p| p.name == old.name) else {
            found.add(format!("port `{}` is gone", old.name));
            continue;
        };
        if (new.role, &new.kind) != (old.role, &old.kind) {
            found.add(format!("port `{}` has another role or kind than `describe` said", old.name));
        }
        if (new.links_min, new.links_max) != (old.links_min, old.links_max) {
            found.add(format!("port `{}` has another number of links than `describe` said", old.name));
        }
        if let Some(width) = new.widths.iter().find(|w| !old.widths.contains(w)) {
            found.add(format!("port `{}` has width {width}, which `describe` did not offer", old.name));
        }
        if new.widths.is_empty() != old.widths.is_empty() {
            found.add(format!("port `{}` has no width left", old.name));
        }
    }
    for new in &after.ports {
        if before.ports.iter().all(|p| p.name != new.name) {
            found.add(format!("port `{}` is new; `elaborate` may not add ports", cut(&new.name)));
        }
    }
    let names = |s: &Shape| s.domains.iter().map(|d| d.name.clone()).collect::<Vec<_>>();
    if names(before) != names(after) {
        found.add("the domains are others than `describe` said");
    }
}

fn tables(tables: &Json, found: &mut Breaches) {
    let Some(map) = tables.as_object() else {
        if !tables.is_null() {
            found.add("`tables` is not an object");
        }
        return;
    };
    for key in map.keys().filter(|k| *k != "registers") {
        found.add(format!("there is no table {:?}", cut(key)));
    }
    let Some(block) = map.get("registers") else { return };
    let none = Vec::new();
    let list = block.get("list").and_then(Json::as_array).unwrap_or(&none);
    let size = block.get("size").and_then(Json::as_u64).unwrap_or(0);
    if list.is_empty() && size == 0 {
        return;
    }
    if !size.is_power_of_two() || !(4..=65_536).contains(&size) {
        found.add(format!("the register block has {size} bytes; a power of two from 4 to 65536 is possible"));
    }
    let (mut names, mut offsets) = (BTreeSet::new(), BTreeSet::new());
    for register in list {
        let name = register.get("name").and_then(Json::as_str).unwrap_or("");
        let shown = cut(name);
        if !identifier(name) || !names.insert(name) {
            found.add(format!("the register {shown:?} is not an identifier, or stands there twice"));
        }
        match register.get("offset").and_then(Json::as_u64) {
            Some(offset) if offset % 4 == 0 && offset.checked_add(4).is_some_and(|end| end <= size) => {
                if !offsets.insert(offset) {
                    found.add(format!("register `{shown}` shares offset {offset} with another"));
                }
            }
            _ => found.add(format!("register `{shown}` has no offset that is a multiple of 4 inside the block of {size} bytes")),
        }
        if !matches!(register.get("access").and_then(Json::as_str), Some("ro" | "rw" | "wo" | "w1c")) {
            found.add(format!("register `{shown}` has no access of `ro`, `rw`, `wo`, `w1c`"));
        }
        let mut taken = 0_u64;
        for field in register.get("fields").and_then(Json::as_array).unwrap_or(&none) {
            let lsb = field.get("lsb").and_then(Json::as_u64).filter(|n| *n < 32);
            let width = field.get("width").and_then(Json::as_u64).filter(|n| (1..=32).contains(n));
            match (lsb, width) {
                (Some(lsb), Some(width)) if lsb + width <= 32 && taken & (((1 << width) - 1) << lsb) == 0 => {
                    taken |= ((1 << width) - 1) << lsb
                }
                _ => found.add(format!("a field of register `{shown}` lies outside of 32 bits or on another field")),
            }
        }
    }
}

/// Checks an answer to `generate`. Does not parse the sources; see [`hdl_check`](super::hdl_check).
///
/// # Errors
/// GW0309 (contract), GW0315 (nests too deep), GW0316 (prefix), GW0317 (a module twice).
pub fn output(output: &Output, plan: &Plan) -> Result<(), PluginError> {
    let mut found = Breaches::default();
    if !identifier(&output.top) {
        found.add(format!("the top module {:?} is not an identifier", cut(&output.top)));
    }
    if output.sources.len() > ENTRIES || output.parameters.len() > ENTRIES || output.timing.len() > ENTRIES {
        found.add(format!("more than {ENTRIES} sources, parameters or timing exceptions"));
    }
    let mut parameters = BTreeSet::new();
    for (name, value) in &output.parameters {
        if !identifier(name) || !parameters.insert(name) {
            found.add(format!("the parameter {:?} is not an identifier, or stands there twice", cut(name)));
        }
        parameter(name, value, 0, &mut found);
    }
    let mut paths = BTreeSet::new();
    for source in &output.sources {
        let path = cut(&source.path);
        if !safe_path(&source.path) {
            found.add(format!("the path {path:?} of a source does not stay in the plugin's folder"));
        }
        if !paths.insert(source.path.to_lowercase()) {
            found.add(format!("the source {path:?} stands there twice"));
        }
        let extension = source.path.rsplit_once('.').map_or("", |(_, e)| e);
        let fits = match source.language {
            Language::Veryl => extension == "veryl",
            Language::SystemVerilog => matches!(extension, "sv" | "v" | "svh" | "vh"),
        };
        if !fits {
            found.add(format!("the source {path:?} has an extension that is not its language's"));
        }
        if source.text.contains('\0') {
            found.add(format!("the source {path:?} is not text"));
        }
    }
    for timing in &output.timing {
        if timing.why.trim().is_empty() || timing.start.trim().is_empty() || timing.end.trim().is_empty() {
            found.add(format!("the timing exception from {:?} to {:?} lacks a place or a reason", cut(&timing.start), cut(&timing.end)));
        }
    }
    found.finish("generate")?;
    sources(output, plan)
}

fn sources(output: &Output, plan: &Plan) -> Result<(), PluginError> {
    let mut seen: Vec<(Language, String, &str)> = Vec::new();
    let mut top = false;
    for source in &output.sources {
        let depth = names::depth(&source.text);
        if depth > names::DEPTH {
            let message = format!("its source `{}` nests {depth} deep, more than {} is not read", source.path, names::DEPTH);
            return Err(PluginError::new("GW0315", message).help("this is a fault of the plugin"));
        }
        for name in names::globals(source.language, &source.text) {
            if source.language == Language::SystemVerilog && !name.starts_with(&plan.prefix) {
                let message =
                    format!("its source `{}` declares `{}`, which does not start with `{}`", source.path, cut(&name), plan.prefix);
                return Err(PluginError::new("GW0316", message).help(
                    "global names of SystemVerilog and templated sources start with `plan.prefix`, so that two instances never collide",
                ));
            }
            if let Some((_, _, first)) = seen.iter().find(|(l, n, _)| (*l, n) == (source.language, &name)) {
                let message = format!("`{}` is declared twice, in `{first}` and in `{}`", cut(&name), source.path);
                return Err(PluginError::new("GW0317", message).help("this is a fault of the plugin"));
            }
            top |= name == output.top && source.purpose == Purpose::Design;
            seen.push((source.language, name, &source.path));
        }
    }
    if !top {
        let message = format!("its answer to `generate` breaks the contract: no design source declares the top module `{}`", output.top);
        return Err(PluginError::new("GW0309", message).help("this is a fault of the plugin; `gateweave plugin check` shows it alone"));
    }
    Ok(())
}

fn parameter(name: &str, value: &Json, depth: usize, found: &mut Breaches) {
    match value {
        Json::Number(_) | Json::Bool(_) => {}
        Json::String(text) if expression(text) => {}
        Json::Array(list) if depth < 4 && list.len() <= 4096 => list.iter().for_each(|v| parameter(name, v, depth + 1, found)),
        _ => found.add(format!("the value of parameter `{name}` is neither a number, a boolean, a list nor a Veryl expression")),
    }
}

/// Whether `text` can only be one expression where it is put between others.
fn expression(text: &str) -> bool {
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => open.push(c),
            ')' | ']' | '}' => {
                let fits = matches!((open.pop(), c), (Some('('), ')') | (Some('['), ']') | (Some('{'), '}'));
                if !fits {
                    return false;
                }
            }
            ',' if open.is_empty() => return false,
            ';' | '"' | '#' | '`' | '\\' | '\n' | '\r' => return false,
            _ => {}
        }
    }
    open.is_empty()
        && !text.trim().is_empty()
        && text.len() <= EXPRESSION
        && !text.contains("//")
        && !text.contains("/*")
        && names::depth(text) <= 32
}

/// A relative path that goes down only.
pub fn safe_path(path: &str) -> bool {
    let fine = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.len() <= NAME
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    path.len() <= 256 && path.split('/').all(fine)
}

/// Words that Veryl or SystemVerilog keep for themselves (Veryl 0.22; IEEE 1800-2017, annex B).
const KEYWORDS: &str = "\
    accept_on alias always always_comb always_ff always_latch and as assert assign assume automatic before begin bind bins binsof \
    bit block bool break buf bufif0 bufif1 byte case casex casez cell chandle checker class clock clock_negedge clock_posedge \
    clocking cmos config connect const constraint context continue converse cover covergroup coverpoint cross deassign default \
    defparam design disable dist do edge else embed end endcase endchecker endclass endclocking endconfig endfunction endgenerate \
    endgroup endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask enum \
    event eventually expect export extends extern f32 f64 false final first_match for force foreach forever fork forkjoin function \
    gen generate genvar global highz0 highz1 i16 i32 i64 i8 if if_reset iff ifnone ignore_bins illegal_bins implements implies \
    import in incdir include initial inout input inside inst instance int integer interconnect interface intersect join join_any \
    join_none large let liblist library local localparam logic longint lsb macromodule matches medium modport module msb nand \
    negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output outside p16 p32 p64 p8 package packed \
    param parameter pmos posedge primitive priority program property protected proto pub pull0 pull1 pulldown pullup \
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg reject_on release \
    repeat reset reset_async_high reset_async_low reset_sync_high reset_sync_low restrict return rev rnmos rpmos rtran rtranif0 \
    rtranif1 s_always s_eventually s_nexttime s_until s_until_with same scalared sequence shortint shortreal showcancelled signed \
    small soft solve specify specparam static step string strong strong0 strong1 struct super supply0 supply1 switch sync_accept_on \
    sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior \
    trireg true type typedef u16 u32 u64 u8 union unique unique0 unsafe unsigned until until_with untyped use uwire var vectored \
    virtual void wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor \
    ";

/// Whether Veryl or SystemVerilog keep a word for themselves.
pub fn is_keyword(name: &str) -> bool {
    KEYWORDS.split_ascii_whitespace().any(|k| k == name)
}

/// A plain identifier that is no keyword of Veryl or SystemVerilog.
pub fn identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= NAME
        && !is_keyword(name)
}

/// Lower-case letters, digits and `-`, as plugins and instances are named.
pub fn kebab(name: &str) -> bool {
    name.chars().next().is_some_and(|c| c.is_ascii_lowercase())
        && name.len() <= NAME
        && !name.ends_with('-')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn semantic(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or("");
    let parts: Vec<&str> = core.split('.').collect();
    version.len() <= NAME
        && parts.len() == 3
        && parts.iter().all(|p| !p.is_empty() && p.chars().all(|c| c.is_ascii_digit()))
        && version.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'))
}

fn kind_id(id: &str) -> bool {
    let Some((maker, rest)) = id.split_once('/') else { return false };
    let Some((name, version)) = rest.split_once('@') else { return false };
    kebab(maker) && kebab(name) && !version.is_empty() && version.len() <= 4 && version.chars().all(|c| c.is_ascii_digit())
}

/// A name short enough for a message.
fn cut(text: &str) -> String {
    if text.chars().count() > NAME { text.chars().take(NAME).chain("...".chars()).collect() } else { text.to_owned() }
}
