//! Files that are part of the binary: the HDL library, the templates, the board files.

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The text of a template, such as `top.veryl.tera`.
///
/// # Panics
/// If the binary was built without it, which a test rules out for every name that is used.
pub fn template(path: &str) -> &'static str {
    match TEMPLATES.iter().find(|(p, _)| *p == path) {
        Some((_, text)) => text,
        None => unreachable!("template `{path}` is not part of the binary"),
    }
}
