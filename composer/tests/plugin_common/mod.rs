//! Components for tests, made from a few lines of WebAssembly text.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Folder of the test plugins that are crates.
pub fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins")
}

/// The cache that builds of test plugins go to: the user's own, so that they are built once.
pub fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    set("GATEWEAVE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|c| c.join("gateweave")))
        .or_else(|| set("HOME").map(|h| h.join(".cache/gateweave")))
        .expect("a place for the cache")
}

/// Linear memory under construction: records of the canonical ABI, from address 1024.
pub struct Image {
    bytes: Vec<u8>,
}

const BASE: usize = 1024;

impl Image {
    fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Stores bytes, aligned to 8, and returns the address.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = BASE + self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at as u32
    }

    /// A string or list in a record: address and length.
    pub fn text(&mut self, text: &str) -> Vec<u8> {
        let at = self.put(text.as_bytes());
        [at, text.len() as u32].map(u32::to_le_bytes).concat()
    }

    /// A list of records of one size.
    pub fn list(&mut self, records: &[Vec<u8>]) -> Vec<u8> {
        let at = self.put(&records.concat());
        [at, records.len() as u32].map(u32::to_le_bytes).concat()
    }
}

/// A domain on the system clock. Variant `clock` holds a `u64`: its case is at 8, the record has 32 bytes and aligns to 8.
pub fn domain(image: &mut Image, name: &str) -> Vec<u8> {
    let mut record = image.text(name);
    record.resize(32, 0);
    record
}

/// A port: client of `kind` in `domain`, one link.
pub fn port(image: &mut Image, name: &str, kind: &str, domain: &str, widths: &[u32]) -> Vec<u8> {
    let mut record = image.text(name);
    record.extend(image.text(kind));
    record.extend([1_u32, 1, 1].map(u32::to_le_bytes).concat());
    let widths: Vec<Vec<u8>> = widths.iter().map(|w| w.to_le_bytes().to_vec()).collect();
    record.extend(image.list(&widths));
    record.extend(image.text(domain));
    record.resize(48, 0);
    record.extend(0_u64.to_le_bytes());
    record.extend([0_u8; 8]);
    record
}

/// A source.
pub fn source(image: &mut Image, path: &str, system_verilog: bool, text: &str) -> Vec<u8> {
    let mut record = image.text(path);
    record.extend([u8::from(system_verilog), 0, 0, 0]);
    record.extend(image.text(text));
    record
}

/// A component as it can be told to be.
pub struct Wat {
    pub name: String,
    pub version: String,
    pub schema: String,
    pub tables: String,
    pub top: String,
    /// `(path, is SystemVerilog, text)`.
    pub sources: Vec<(String, bool, String)>,
    /// `(name, kind, domain, widths)`.
    pub ports: Vec<(String, String, String, Vec<u32>)>,
    pub domains: Vec<String>,
    /// Instructions at the start of `info`, `describe` and `generate`.
    pub info: String,
    pub describe: String,
    pub generate: String,
    /// Further fields of the module: imports, functions.
    pub fields: String,
    /// Length that the documentation of `generate` claims to have.
    pub docs: u32,
    /// Pages of memory.
    pub pages: u32,
}

impl Default for Wat {
    fn default() -> Self {
        Self {
            name: "probe".into(),
            version: "0.1.0".into(),
            schema: r#"{"type":"object"}"#.into(),
            tables: "{}".into(),
            top: "probe".into(),
            sources: vec![("probe.veryl".into(), false, "module probe {}\n".into())],
            ports: Vec::new(),
            domains: vec!["sys".into()],
            info: String::new(),
            describe: String::new(),
            generate: String::new(),
            fields: String::new(),
            docs: 0,
            pages: 64,
        }
    }
}

impl Wat {
    /// The core module as text.
    pub fn module(&self) -> String {
        let mut image = Image::new();
        let mut about = image.text(&self.name);
        about.extend(image.text(&self.version));
        about.extend(image.text("a probe"));
        about.extend(image.text(&self.schema));
        about.extend(image.list(&[]));
        let about = image.put(&about);

        let domains: Vec<_> = self.domains.iter().map(|d| domain(&mut image, d)).collect();
        let ports: Vec<_> = self.ports.iter().map(|(n, k, d, w)| port(&mut image, n, k, d, w)).collect();
        let mut shape = vec![0; 4];
        shape.extend(image.list(&domains));
        shape.extend(image.list(&ports));
        shape.extend(image.text(&self.tables));
        let shape = image.put(&shape);

        let sources: Vec<_> = self.sources.iter().map(|(p, sv, t)| source(&mut image, p, *sv, t)).collect();
        let mut output = vec![0; 4];
        output.extend(image.text(&self.top));
        output.extend(image.list(&[]));
        output.extend(image.list(&sources));
        output.extend(image.list(&[]));
        // Far above the image, where memory is zero.
        output.extend([2 << 20, self.docs].map(u32::to_le_bytes).concat());
        let output = image.put(&output);

        let data: String = image.bytes.iter().map(|b| format!("\\{b:02x}")).collect();
        let pages = self.pages.max((BASE + image.bytes.len()).div_ceil(65_536) as u32 + 1);
        let free = (BASE + image.bytes.len()).next_multiple_of(16);
        let Self { info, describe, generate, fields, .. } = self;
        format!(
            r#"(module
  {fields}
  (memory (export "memory") {pages})
  (global $free (mut i32) (i32.const {free}))
  (data (i32.const {BASE}) "{data}")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.set $free (i32.and (i32.add (global.get $free) (i32.const 15)) (i32.const -16)))
    (global.get $free)
    (global.set $free (i32.add (global.get $free) (local.get 3))))
  (func (export "gateweave:plugin/contract@0.1.0#info") (result i32) {info} (i32.const {about}))
  (func (export "gateweave:plugin/contract@0.1.0#describe") (param i32 i32 i32 i32) (result i32) {describe} (i32.const {shape}))
  (func (export "gateweave:plugin/contract@0.1.0#elaborate") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const {shape}))
  (func (export "gateweave:plugin/contract@0.1.0#generate")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i32) (result i32) {generate} (i32.const {output})))"#
        )
    }

    /// The component.
    pub fn component(&self) -> Vec<u8> {
        component(&self.module(), None)
    }
}

/// A component from a core module, of the contract as it is or with an other text of the WIT.
pub fn component(module: &str, wit: Option<&str>) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let package = match wit {
        None => resolve.push_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/wit/0.1.0")).expect("the WIT").0,
        Some(text) => resolve.push_str("plugin.wit", text).expect("a WIT"),
    };
    let world = resolve.select_world(&[package], Some("plugin")).expect("world `plugin`");
    let mut bytes = wat::parse_str(module).expect("WebAssembly text");
    embed_component_metadata(&mut bytes, &resolve, world, StringEncoding::UTF8).expect("metadata");
    ComponentEncoder::default().validate(true).module(&bytes).expect("a module").encode().expect("a component")
}
