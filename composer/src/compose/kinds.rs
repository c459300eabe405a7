//! Kinds of link: data, not an enum. Those that the composer has stand in
//! `composer/hdl/kinds/kinds.toml`; plugins bring others.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value as Json, json};

use crate::diag::{Diagnostic, Diagnostics};
use crate::manifest::read::{Doc, Table};
use crate::plugin::types::{Kind, Protocol};

const BUILT_IN: &str = include_str!("../../hdl/kinds/kinds.toml");

/// A kind as the planner and the emitter need it.
#[derive(Clone, Debug)]
pub struct KindInfo {
    /// As the plugins see it.
    pub kind: Kind,
    /// Veryl interface in project `kinds`.
    pub interface: String,
    /// One line.
    pub summary: String,
    /// Width of `rx_tuser`, a Veryl expression (packets only).
    pub rx_user: String,
    /// Width of `tx_tuser`, likewise.
    pub tx_user: String,
    /// Whether the provider needs a beat on every cycle of a packet from the client's `tx`.
    pub needs_continuous: bool,
    /// Parameters of a wires interface that the planner sets (`W`).
    pub parameters: Vec<String>,
    /// Plugin that brought it; `None` for the composer's own.
    pub from: Option<String>,
}

/// The composer's own kinds.
///
/// # Errors
/// Diagnostics of the embedded file; a test makes sure that there are none.
pub fn built_in() -> Result<BTreeMap<String, KindInfo>, Diagnostics> {
    let doc = Doc::parse(Path::new("composer/hdl/kinds/kinds.toml"), BUILT_IN.to_owned())?;
    let mut kinds = BTreeMap::new();
    let root = doc.root();
    root.get("schema");
    for table in root.need("kind").map(|v| v.tables()).unwrap_or_default() {
        if let Some(info) = read(&table) {
            kinds.insert(info.kind.id.clone(), info);
        }
        table.finish();
    }
    root.finish();
    doc.take().finish(kinds).map(|(kinds, _)| kinds)
}

fn read(table: &Table<'_>) -> Option<KindInfo> {
    let text = |key: &str| table.get(key).and_then(|v| v.string()).map(|s| s.value);
    let protocol = match text("protocol")?.as_str() {
        "packets" => Protocol::Packets,
        "memory" => Protocol::Memory,
        "registers" => Protocol::Registers,
        _ => Protocol::Wires,
    };
    let mut properties = serde_json::Map::new();
    if let Some(props) = table.get("props").and_then(|v| v.table()) {
        for (name, value) in props.entries() {
            let mut property = value.to_json();
            if let Some(object) = property.as_object_mut() {
                if object.remove("exclusive") == Some(Json::Bool(true)) {
                    object.insert("x-exclusive".to_owned(), Json::Bool(true));
                }
                if let Some(doc) = object.remove("doc") {
                    object.insert("description".to_owned(), doc);
                }
            }
            properties.insert(name.value, property);
        }
    }
    let parameters = table.get("parameters").and_then(|v| v.strings()).unwrap_or_default();
    Some(KindInfo {
        kind: Kind { id: text("id")?, protocol, veryl: String::new(), props_schema: json!({ "type": "object", "properties": properties }) },
        interface: text("interface")?,
        summary: text("summary").unwrap_or_default(),
        rx_user: text("rx-user").unwrap_or_else(|| "1".to_owned()),
        tx_user: text("tx-user").unwrap_or_else(|| "1".to_owned()),
        needs_continuous: table.get("needs-continuous").and_then(|v| v.boolean()).is_some_and(|b| b.value),
        parameters: parameters.into_iter().map(|p| p.value).collect(),
        from: None,
    })
}

/// Adds the kinds that a plugin brings. Its `props-schema` names the interface (`x-interface`) and, for packets,
/// the sideband widths (`x-rx-user`, `x-tx-user`).
///
/// # Errors
/// `GW0408` if another plugin brought a kind with the same id and another text.
pub fn add(kinds: &mut BTreeMap<String, KindInfo>, plugin: &str, brought: &[Kind]) -> Result<(), Diagnostic> {
    for kind in brought {
        let text = |key: &str| kind.props_schema.get(key).and_then(Json::as_str).map(str::to_owned);
        if let Some(known) = kinds.get(&kind.id) {
            if kind.veryl.is_empty() || (known.from.is_some() && known.kind == *kind) {
                continue;
            }
            let first = known.from.as_deref().unwrap_or("the composer");
            let message = format!("plugin `{plugin}` brings kind `{}`, which {first} defines otherwise", kind.id);
            return Err(Diagnostic::error("GW0408", message).help("a changed kind needs a new id, such as a higher number after `@`"));
        }
        let interface = text("x-interface").unwrap_or_else(|| match kind.protocol {
            Protocol::Packets => "packets".to_owned(),
            Protocol::Memory => "axi4".to_owned(),
            Protocol::Registers => "axi4_lite".to_owned(),
            Protocol::Wires => kind.id.rsplit('/').next().unwrap_or("").split('@').next().unwrap_or("").replace('-', "_"),
        });
        kinds.insert(
            kind.id.clone(),
            KindInfo {
                kind: kind.clone(),
                interface,
                summary: text("description").unwrap_or_default(),
                rx_user: text("x-rx-user").unwrap_or_else(|| "1".to_owned()),
                tx_user: text("x-tx-user").unwrap_or_else(|| "1".to_owned()),
                needs_continuous: kind.props_schema.get("x-needs-continuous") == Some(&Json::Bool(true)),
                parameters: Vec::new(),
                from: Some(plugin.to_owned()),
            },
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_have_no_fault() {
        let kinds = built_in().map_err(|d| d.0.iter().map(|d| d.message.clone()).collect::<Vec<_>>()).unwrap();
        assert_eq!(kinds["gateweave/ip-udp@1"].kind.protocol, Protocol::Packets);
        let ports = &kinds["gateweave/ip-udp@1"].kind.props_schema["properties"]["udp-ports"];
        assert_eq!(ports["x-exclusive"], true);
    }
}
