//! The register map for programs and people: `registers.json`, `.h`, `.svd` and `.md`.

use serde_json::{Value as Json, json};
use tera::{Context, Tera};

use crate::compose::registers::{ADDRESS_BITS, Map};
use crate::diag::Diagnostic;

/// The register map in each of its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// `registers.json`, what programs read at run time.
    pub json: String,
    /// `registers.h`, for C.
    pub header: String,
    /// `registers.svd`, CMSIS-SVD for debuggers and code generators.
    pub svd: String,
    /// `registers.md`, for people.
    pub markdown: String,
}

const TEMPLATES: [(&str, &str); 3] = [
    ("registers.h", include_str!("../../../templates/registers/registers.h")),
    ("registers.svd", include_str!("../../../templates/registers/registers.svd")),
    ("registers.md", include_str!("../../../templates/registers/registers.md")),
];

/// Writes the register map of `project` in every form.
///
/// # Errors
/// `GW0457` if a template fails, which is a fault of the program.
pub fn files(project: &str, map: &Map) -> Result<Files, Diagnostic> {
    let json = to_json(project, map);
    let mut tera = Tera::default();
    tera.register_filter("hex4", |value: &Json, _: &_| Ok(format!("0x{:04x}", value.as_u64().unwrap_or(0)).into()));
    tera.register_filter("hex8", |value: &Json, _: &_| Ok(format!("0x{:08x}", value.as_u64().unwrap_or(0)).into()));
    tera.register_filter("c_name", |value: &Json, _: &_| Ok(c_name(value.as_str().unwrap_or("")).into()));
    tera.register_filter("xml", |value: &Json, _: &_| Ok(xml_text(value.as_str().unwrap_or("")).into()));
    tera.register_filter("comment", |value: &Json, _: &_| Ok(comment_text(value.as_str().unwrap_or("")).into()));
    tera.register_filter("cell", |value: &Json, _: &_| Ok(cell_text(value.as_str().unwrap_or("")).into()));
    tera.register_filter("mask", |value: &Json, _: &_| {
        let (lsb, width) = (value["lsb"].as_u64().unwrap_or(0), value["width"].as_u64().unwrap_or(0));
        let mask = ((1_u64 << width.min(32)) - 1) << lsb.min(31);
        Ok(format!("0x{:08x}", mask & u64::from(u32::MAX)).into())
    });
    tera.autoescape_on(Vec::new());
    let fault = |e: tera::Error| {
        let cause = std::error::Error::source(&e).map_or_else(String::new, |cause| format!(": {cause}"));
        Diagnostic::error("GW0457", format!("cannot write the register map: {e}{cause}"))
    };
    tera.add_raw_templates(TEMPLATES).map_err(fault)?;
    let context = Context::from_serialize(&json).map_err(fault)?;
    let render = |name: &str| tera.render(name, &context).map_err(fault);
    Ok(Files {
        header: render("registers.h")?,
        svd: render("registers.svd")?,
        markdown: render("registers.md")?,
        json: serde_json::to_string_pretty(&json).map_err(|e| Diagnostic::error("GW0457", e.to_string()))? + "\n",
    })
}

/// The register map as JSON: the shape is in `docs/registers.md`.
pub fn to_json(project: &str, map: &Map) -> Json {
    let blocks: Vec<Json> = map
        .blocks
        .iter()
        .map(|block| {
            let registers: Vec<Json> = block
                .table
                .list
                .iter()
                .map(|register| {
                    json!({ "name": register.name, "offset": register.offset, "address": block.base + u64::from(register.offset),
                        "access": register.access, "kind": register.kind, "reset": register.reset, "doc": register.doc,
                        "fields": register.fields })
                })
                .collect();
            json!({ "instance": block.instance, "base": block.base, "size": block.size, "registers": registers })
        })
        .collect();
    json!({ "schema": 1, "project": project, "address_bits": ADDRESS_BITS, "data_bits": 32, "blocks": blocks })
}

/// A name that C and SVD take: everything that is not a letter, digit or underscore becomes an underscore.
fn c_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() { format!("_{name}") } else { name }
}

/// Text inside an XML element, on one line; characters that XML 1.0 cannot hold become spaces.
fn xml_text(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => xml.push(' '),
            c => xml.push(c),
        }
    }
    xml
}

/// Text inside a C comment, on one line.
fn comment_text(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().replace("*/", "* /")
}

/// Text inside a cell of a Markdown table, on one line.
fn cell_text(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().replace('|', "\\|")
}
