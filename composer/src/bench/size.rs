//! The emitted HDL of one module of a folder, for tools that want to know its size.

use std::path::Path;

use crate::diag::Diagnostic;
use crate::hdl::Emitted;

use super::header::{Values, emitted_name, is_module, set};
use super::{problem, project, sources};

/// A module by itself.
#[derive(Clone, Debug)]
pub struct Alone {
    /// Its emitted name.
    pub module: String,
    /// What it uses, in the order that compilers want.
    pub files: Vec<Emitted>,
    /// Its parameters.
    pub parameters: Values,
}

/// Compiles a folder as its benches see it and keeps what `top` uses. `top` is a module of the folder's own project, wrappers of its
/// benches included, or of another (`gw::fifo`); `parameters` reads `W=8 DEPTH=16`.
///
/// # Errors
/// `GW0331` (no such module), `GW0332`, `GW0333` (files that cannot be read), `GW0334` (HDL that does not compile), `GW0802`
/// (parameters that are not understood).
pub fn alone(library: &Path, folder: &Path, top: &str, parameters: &str) -> Result<Alone, Diagnostic> {
    let parameters = set(parameters).ok_or_else(|| {
        problem("GW0802", format!("`--params {parameters}` is not understood"))
            .help("write `--params 'W=8 DEPTH=16'`: names and whole numbers")
    })?;
    let project = project(library, folder)?;
    let module = emitted_name(top, &project.name);
    let files = if is_module(top) { sources::compile(&project)?.reachable(&module) } else { Vec::new() };
    if files.is_empty() {
        let message = format!("`{top}` is no module of `{}`", folder.display());
        return Err(
            problem("GW0331", message).help("write a module of the folder's own, or one of another project with its name: `gw::fifo`")
        );
    }
    let files = files.into_iter().map(|(path, text)| Emitted { path, text }).collect();
    Ok(Alone { module, files, parameters })
}
