//! `gateweave new`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tera::{Context, Tera};

use super::{CommandResult, Outcome};
use crate::assets::template;
use crate::cache::Cache;
use crate::diag::Diagnostic;
use crate::manifest::board;
use crate::manifest::project::{FILE_NAME, Project};
use crate::pipeline::elaborate::board_dirs;

/// Arguments.
#[derive(Args, Debug)]
pub struct NewArgs {
    /// Folder to make; its last part is the project's name.
    folder: PathBuf,
    /// Board, as `gateweave board list` names it.
    #[arg(long, default_value = "colorlight-i5")]
    board: String,
    /// Folder with the plugins.
    #[arg(long, default_value = "plugins")]
    plugins: PathBuf,
}

/// Writes a project that answers ping and UDP echo.
pub fn run(args: &NewArgs) -> CommandResult {
    let cache = Cache::open()?;
    let dirs = board_dirs(None, &cache)?;
    board::find(&dirs, &args.board, None)?;
    let name = args.folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let file = args.folder.join(FILE_NAME);
    if file.exists() {
        return Err(Diagnostic::error("GW0806", format!("`{}` exists", file.display())).help("choose another folder").into());
    }
    let trouble = |e: std::io::Error| Diagnostic::error("GW0111", format!("cannot write `{}`: {e}", file.display()));
    let plugins = from_here(&args.folder, &args.plugins);
    let mut context = Context::new();
    context.insert("name", &name);
    context.insert("board", &args.board);
    context.insert("plugins", &plugins.to_string_lossy());
    let text = Tera::one_off(template("project.toml.tera"), &context, false)
        .map_err(|e| Diagnostic::error("GW0807", format!("the template cannot be rendered: {e}")))?;
    // A name that cannot be one is refused before anything is written.
    Project::parse(&args.folder, text.clone())?;
    std::fs::create_dir_all(&args.folder).map_err(trouble)?;
    std::fs::write(&file, text).map_err(trouble)?;
    let next = format!("made {}\nnext: gateweave check {}", file.display(), args.folder.display());
    Ok(Outcome::new(json!({ "file": file }), next))
}

/// `path` as seen from `folder`, where both are below one folder; else absolute.
fn from_here(folder: &Path, path: &Path) -> PathBuf {
    let absolute = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_owned());
    let (folder, path) = (absolute(folder), absolute(path));
    let common = folder.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    if common <= 1 {
        return path;
    }
    let mut relative: PathBuf = folder.components().skip(common).map(|_| "..").collect();
    relative.extend(path.components().skip(common));
    relative
}
