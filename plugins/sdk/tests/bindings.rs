//! The checked-in bindings are what wit-bindgen makes of the WIT.
//!
//! `UPDATE_BINDINGS=1 cargo test -p gateweave-sdk --test bindings` writes them anew.

use std::path::Path;

use wit_bindgen_core::{Files, WorldGenerator, wit_parser::Resolve};
use wit_bindgen_rust::Opts;

#[test]
fn checked_in_bindings_match_the_wit() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(here.join("../wit/0.1.0")).expect("the WIT parses");
    let world = resolve.select_world(&[package], Some("plugin")).expect("world `plugin`");
    let mut files = Files::default();
    let mut generator = Opts {
        pub_export_macro: true,
        default_bindings_module: Some("$crate::bindings".into()),
        export_macro_name: Some("export_component".into()),
        additional_derive_attributes: vec!["PartialEq".into()],
        ..Opts::default()
    }
    .build();
    generator.generate(&mut resolve, world, &mut files).expect("bindings");
    let (_, bytes) = files.iter().next().expect("one file");
    let made = String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let path = here.join("src/bindings.rs");
    if std::env::var_os("UPDATE_BINDINGS").is_some() {
        std::fs::write(&path, &made).expect("writable");
    }
    let kept = std::fs::read_to_string(&path).expect("src/bindings.rs");
    assert!(kept == made, "src/bindings.rs is not what the WIT says; run with UPDATE_BINDINGS=1");
}
