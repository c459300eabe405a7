//! The only place that touches the Veryl crates.
//!
//! [`compile`] takes the Veryl text of several projects (the composer's own
//! libraries, one project per plugin, and the generated top level), analyses
//! them together, and returns SystemVerilog in dependency order. Each project
//! has its own name space: module `rx` of project `mac` is emitted as `mac_rx`,
//! so two plugins, or two versions of one, never collide.
//!
//! All state of the Veryl analyser is thread-local; every compile therefore
//! runs on a fresh thread with a large stack.

mod needed;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::str::FromStr;

use miette::Diagnostic as _;
use veryl_analyzer::conv::Context;
use veryl_analyzer::ir::Ir;
use veryl_analyzer::{Analyzer, symbol_table, type_dag};
use veryl_emitter::Emitter;
use veryl_formatter::Formatter;
use veryl_metadata::Metadata;
use veryl_parser::Parser;
use veryl_parser::resource_table;

/// Stack of the analysis thread. The parser and analyser recurse per nesting
/// level; 64 MB takes every design of a sane depth.
const STACK_BYTES: usize = 64 << 20;

/// One Veryl file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Veryl project that the file belongs to; the prefix of its emitted names.
    pub project: String,
    /// Path shown in messages and used for the emitted file, such as `mac/rx.veryl`.
    pub path: String,
    /// The text.
    pub text: String,
    /// It is one of many at hand: left out where nothing in the design names what it declares. All other files are
    /// analysed, so that no error in them is missed.
    pub library: bool,
}

/// One emitted SystemVerilog file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The source's path with the extension `sv`.
    pub path: String,
    /// The text.
    pub text: String,
}

/// What the analyser said about a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdlMessage {
    /// `true` for an error, `false` for a warning.
    pub error: bool,
    /// Veryl's own code, such as `unassign_variable`.
    pub code: String,
    /// One line of text.
    pub message: String,
    /// What would be right, where Veryl says so.
    pub help: Option<String>,
    /// Path of the source, as given in [`Source::path`].
    pub path: Option<String>,
    /// Line and column, both from 1.
    pub at: Option<(u32, u32)>,
}

/// The result of a compile that found no error.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// SystemVerilog files, each after those it depends on.
    pub files: Vec<Emitted>,
    /// Warnings.
    pub warnings: Vec<HdlMessage>,
}

/// The composer's library: its cells (`gw`), the kinds of link (`kinds`) and the primitives of a family (`io`).
pub fn library(family: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    for (path, text) in crate::assets::HDL {
        let project = match path.split('/').collect::<Vec<_>>().as_slice() {
            ["kinds", _] => "kinds",
            ["io", folder, _] if *folder == family => "io",
            ["io", ..] => continue,
            _ => "gw",
        };
        let path = if project == "gw" { format!("gw/{path}") } else { (*path).to_owned() };
        sources.push(Source { project: project.to_owned(), path, text: (*text).to_owned(), library: true });
    }
    sources
}

/// Analyses `sources` together and emits SystemVerilog.
///
/// `root` is the project that the top level is in. `defines` feed Veryl's
/// `#[ifdef]`. Only files that a file of `root` needs are emitted; of the library
/// ([`Source::library`]) only those are analysed that the rest names.
///
/// # Errors
/// All messages of the analyser if at least one is an error.
pub fn compile(root: &str, sources: &[Source], defines: &[String]) -> Result<Compiled, Vec<HdlMessage>> {
    let run = |sources: Vec<Source>| {
        let (root, defines) = (root.to_owned(), defines.to_vec());
        on_fresh_thread(move |answer| {
            let mut memory = Memory::default();
            let result = compile_here(&root, &sources, &defines, &mut memory);
            answer(result);
        })
    };
    let needed = needed::needed(root, sources);
    let narrowed = needed.len() < sources.len();
    match run(needed) {
        // Messages are those of the whole, such as the names that are near a misspelt one.
        Err(_) if narrowed => run(sources.to_vec()),
        result => result,
    }
}

/// Formats `text` as Veryl's own formatter does.
///
/// # Errors
/// The parser's message if `text` is not Veryl.
pub fn format(path: &str, text: &str) -> Result<String, HdlMessage> {
    parsed(path, text, |parsed, text| {
        let metadata = metadata("format").map_err(|m| internal(&m))?;
        let mut formatter = Formatter::new(&metadata);
        formatter.format(&parsed.veryl, text);
        Ok(formatter.as_str().to_owned())
    })
}

/// Parses `text`.
///
/// # Errors
/// The parser's message if `text` is not Veryl.
pub fn parse(path: &str, text: &str) -> Result<(), HdlMessage> {
    parsed(path, text, |_, _| Ok(()))
}

fn parsed<T: Send + 'static>(
    path: &str,
    text: &str,
    then: impl FnOnce(&Parser, &str) -> Result<T, HdlMessage> + Send + 'static,
) -> Result<T, HdlMessage> {
    let (path, text) = (path.to_owned(), text.to_owned());
    on_fresh_thread(move |answer| {
        let parsed = Parser::parse(&text, &PathBuf::from(&path)).map_err(|e| parse_message(&path, &text, &e));
        answer(parsed.and_then(|parsed| then(&parsed, &text)));
    })
}

/// Runs `job` and returns what it gives to its argument. What the job leaves (the analyser's tables are large) is freed
/// by its thread afterwards; nobody waits for that.
fn on_fresh_thread<T: Send + 'static>(job: impl FnOnce(&dyn Fn(T)) + Send + 'static) -> T {
    let (answer, answers) = std::sync::mpsc::channel();
    let run = move || {
        job(&|value| {
            let _ = answer.send(value);
        });
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(run).expect("a thread for the HDL analyser");
    match answers.recv() {
        Ok(value) => value,
        Err(_) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("a job gives an answer or panics"),
        },
    }
}

fn metadata(name: &str) -> Result<Metadata, String> {
    // Synchronous resets: Yosys and nextpnr merge them with the logic's own
    // clears; the reset bridge of each domain asserts asynchronously.
    let text = format!(
        "[project]\nname = \"{name}\"\nversion = \"0.1.0\"\n[build]\nreset_type = \"sync_high\"\nclock_type = \"posedge\"\nomit_project_prefix = false\n"
    );
    Metadata::from_str(&text).map_err(|e| e.to_string())
}

/// What an analysis holds.
#[derive(Default)]
struct Memory<'a> {
    parsed: Vec<(&'a Source, Parser)>,
    context: Context,
    ir: Ir,
}

fn compile_here<'a>(
    root: &str,
    sources: &'a [Source],
    defines: &[String],
    Memory { parsed, context, ir }: &mut Memory<'a>,
) -> Result<Compiled, Vec<HdlMessage>> {
    let metadata = metadata(root).map_err(|m| vec![internal(&m)])?;
    symbol_table::clear();
    Analyzer::new(&metadata).clear();
    // Making an analyser declares its project's name; the others must be known too, so that `gw::cell` resolves.
    let mut projects: Vec<&str> = sources.iter().map(|s| s.project.as_str()).filter(|p| *p != root).collect();
    projects.sort_unstable();
    projects.dedup();
    for project in projects {
        let other = self::metadata(project).map_err(|m| vec![internal(&m)])?;
        let _ = Analyzer::new(&other);
    }
    let analyzer = Analyzer::new(&metadata);

    let mut messages = Vec::new();
    let texts: HashMap<&str, &str> = sources.iter().map(|s| (s.path.as_str(), s.text.as_str())).collect();
    for source in sources {
        match Parser::parse(&source.text, &PathBuf::from(&source.path)) {
            Ok(p) => parsed.push((source, p)),
            Err(e) => messages.push(parse_message(&source.path, &source.text, &e)),
        }
    }
    if !messages.is_empty() {
        return Err(messages);
    }

    let mut errors = Vec::new();
    for (source, p) in parsed.iter() {
        errors.extend(analyzer.analyze_pass1(&source.project, &p.veryl));
    }
    errors.extend(Analyzer::analyze_post_pass1());
    context.config.defines = defines.iter().map(|d| resource_table::insert_str(d)).collect();
    for (source, p) in parsed.iter() {
        context.set_project_name(source.project.as_str().into());
        errors.extend(analyzer.analyze_pass2(&p.veryl, context, Some(ir)));
    }
    errors.extend(Analyzer::analyze_post_pass2(ir));
    for error in &errors {
        messages.push(message(error, &texts));
    }
    messages.sort_by(|a, b| (!a.error, &a.path, a.at).cmp(&(!b.error, &b.path, b.at)));
    messages.dedup();
    if messages.iter().any(|m| m.error) {
        return Err(messages);
    }

    let by_path: BTreeMap<&str, usize> = parsed.iter().enumerate().map(|(i, (s, _))| (s.path.as_str(), i)).collect();
    let wanted = {
        let roots =
            parsed.iter().filter(|(s, _)| s.project == root).map(|(s, _)| resource_table::insert_path(&PathBuf::from(&s.path))).collect();
        type_dag::required_files(&roots)
    };
    let mut files = Vec::new();
    for path_id in type_dag::toposort_file() {
        let Some(&index) = by_path.get(path_id.to_string().as_str()) else { continue };
        let (source, p) = &parsed[index];
        if source.project != root && !wanted.contains(&path_id) {
            continue;
        }
        let dst = PathBuf::from(&source.path).with_extension("sv");
        let map = PathBuf::from(&source.path).with_extension("sv.map");
        let mut emitter = Emitter::new(&metadata, &source.project, &PathBuf::from(&source.path), &dst, &map);
        emitter.emit(&p.veryl, &source.text);
        let text = emitter.as_str().lines().filter(|l| !l.starts_with("//# sourceMappingURL=")).collect::<Vec<_>>().join("\n");
        files.push(Emitted { path: dst.to_string_lossy().into_owned(), text: text + "\n" });
    }
    Ok(Compiled { files, warnings: messages })
}

fn internal(message: &str) -> HdlMessage {
    HdlMessage { error: true, code: "internal".into(), message: message.into(), help: None, path: None, at: None }
}

fn line_column(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() as u32 + 1;
    (line, column)
}

fn parse_message(path: &str, text: &str, error: &veryl_parser::ParserError) -> HdlMessage {
    let at = error.labels().and_then(|mut l| l.next()).map(|l| line_column(text, l.offset()));
    HdlMessage {
        error: true,
        code: error.code().map_or_else(|| "syntax".to_owned(), |c| c.to_string()),
        message: error.to_string(),
        help: error.help().map(|h| h.to_string()),
        path: Some(path.to_owned()),
        at,
    }
}

fn message(error: &veryl_analyzer::AnalyzerError, texts: &HashMap<&str, &str>) -> HdlMessage {
    let token = error.token_source();
    let path = match &token {
        veryl_parser::veryl_token::TokenSource::File { path, .. } => Some(path.to_string()),
        _ => None,
    };
    let at = path
        .as_deref()
        .and_then(|p| texts.get(p))
        .and_then(|text| error.labels().and_then(|mut l| l.next()).map(|l| line_column(text, l.offset())));
    HdlMessage {
        error: error.severity().is_none_or(|s| s == miette::Severity::Error),
        code: error.code().map_or_else(|| "veryl".to_owned(), |c| c.to_string()),
        message: error.to_string(),
        help: error.help().map(|h| h.to_string()),
        path,
        at,
    }
}
