//! Running a WASI command in the embedded wasmtime.
//!
//! A tool is compiled to machine code once and kept in the cache as `.cwasm`;
//! loading that takes milliseconds. The tool sees three folders: its `share`
//! (read only), the work folder as its current folder, and a temporary one.

use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::{Config, Engine, Linker, Module, Store};
use wasmtime_wasi::cli::OutputFile;
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::{FsPerms, I32Exit, WasiCtxBuilder};

use crate::cache::{Cache, Key, write_atomic};
use crate::diag::Diagnostic;
use crate::tools::talk::Talk;

/// Stack of the thread that a tool runs on. The tool's own stack is in its
/// memory; wasmtime allows 512 KiB of machine stack, host calls come on top.
const STACK_BYTES: usize = 16 << 20;

/// A WASI command of an unpacked wheel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Name shown and given as `argv[0]`.
    pub name: &'static str,
    /// The `.wasm` file.
    pub wasm: PathBuf,
    /// Stands for the content of `wasm` in keys, so that 70 MB are not hashed for every run.
    pub content: String,
    /// Folder that the tool sees as `/share`.
    pub share: PathBuf,
}

fn engine() -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config.wasm_exceptions(true);
    Engine::new(&config)
}

/// Feeds what wasmtime says about its version and settings to SHA-256: the
/// standard hasher is not the same in every Rust version.
struct StableHasher(Sha256);

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b))
    }
}

/// The file that holds a tool's machine code.
fn compiled_path(cache: &Cache, engine: &Engine, tool: &Command) -> PathBuf {
    let mut hasher = StableHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let settings = hasher.finish().to_le_bytes();
    let key = Key::new("cwasm").field("wasm", &tool.content).field("settings", settings).finish();
    cache.root().join("cwasm").join(format!("{}-{}.cwasm", tool.name, &key[..24]))
}

/// Whether the tool is compiled already.
pub fn is_compiled(cache: &Cache, tool: &Command) -> bool {
    engine().is_ok_and(|engine| compiled_path(cache, &engine, tool).is_file())
}

/// Compiles the tool if it is not compiled yet. `true` if it was compiled now.
///
/// # Errors
/// `GW0601` (cache) or `GW0605` (wasmtime refuses it).
pub fn prepare(cache: &Cache, tool: &Command, talk: Talk) -> Result<bool, Diagnostic> {
    load(cache, tool, talk).map(|(_, _, compiled)| compiled)
}

fn load(cache: &Cache, tool: &Command, talk: Talk) -> Result<(Engine, Module, bool), Diagnostic> {
    let refused = |what: &str, e: &dyn std::fmt::Display| {
        Diagnostic::error("GW0605", format!("{} cannot be {what}: {e}", tool.name))
            .help("delete the folder `tools` in the cache so that it is fetched again")
    };
    let engine = engine().map_err(|e| refused("compiled", &e))?;
    let path = compiled_path(cache, &engine, tool);
    if let Some(module) = deserialize(&engine, &path) {
        return Ok((engine, module, false));
    }
    // Compiling takes up to 2 GB: one at a time, whatever the tool.
    let io = |e: io::Error| cache.trouble(&e);
    let _lock = cache
        .lock("compile-wasm", || {
            talk.spinner("waiting for another process that compiles a tool").finish();
        })
        .map_err(io)?;
    if let Some(module) = deserialize(&engine, &path) {
        return Ok((engine, module, false));
    }
    let wasm = fs::read(&tool.wasm).map_err(|e| refused("read", &e))?;
    let size = wasm.len() as f64 / 1e6;
    let bar = talk.spinner(&format!("compiling {} for this machine, once ({size:.0} MB of WebAssembly)", tool.name));
    let machine_code = engine.precompile_module(&wasm);
    bar.finish_and_clear();
    let machine_code = machine_code.map_err(|e| refused("compiled", &e))?;
    write_atomic(&path, &machine_code).map_err(io)?;
    let module = deserialize(&engine, &path).ok_or_else(|| refused("loaded", &"the file that was just written does not load"))?;
    Ok((engine, module, true))
}

/// The module of a `.cwasm` file, or nothing if it is absent, of another version, or damaged.
fn deserialize(engine: &Engine, path: &Path) -> Option<Module> {
    if !path.is_file() {
        return None;
    }
    // SAFETY: the file is one that `load` wrote into the user's own cache, from a module
    // whose hash is pinned; it appeared by rename, so it is whole, and its name carries the
    // engine's version and settings. wasmtime rejects what does not parse as its own format.
    #[allow(unsafe_code)]
    unsafe { Module::deserialize_file(engine, path) }.ok()
}

/// Runs the tool with `args` in folder `work`; what it prints goes to the file `log`. Its exit code.
///
/// # Errors
/// `GW0601`, `GW0605`, or `GW0606` if the tool crashed.
pub fn run(cache: &Cache, tool: &Command, args: &[String], work: &Path, log: &Path, talk: Talk) -> Result<i32, Diagnostic> {
    let (engine, module, _) = load(cache, tool, talk)?;
    let temp = cache.temp().map_err(|e| cache.trouble(&e))?;
    let outcome = std::thread::scope(|scope| {
        let body = || execute(&engine, &module, tool, args, work, temp.path(), log);
        match std::thread::Builder::new().name(tool.name.into()).stack_size(STACK_BYTES).spawn_scoped(scope, body) {
            Ok(thread) => thread.join().unwrap_or_else(|_| Err(wasmtime::Error::msg("its thread ended early"))),
            Err(e) => Err(e.into()),
        }
    });
    outcome.map_err(|e| {
        Diagnostic::error("GW0606", format!("{} stopped without finishing: {e:#}", tool.name))
            .help(format!("its output is in {}", log.display()))
    })
}

fn execute(
    engine: &Engine,
    module: &Module,
    tool: &Command,
    args: &[String],
    work: &Path,
    temp: &Path,
    log: &Path,
) -> wasmtime::Result<i32> {
    let said = File::create(log)?;
    let mut wasi = WasiCtxBuilder::new();
    wasi.arg(tool.name).args(args);
    wasi.stdout(OutputFile::new(said.try_clone()?)).stderr(OutputFile::new(said));
    wasi.allow_blocking_current_thread(true);
    wasi.preopened_dir(work, ".", FsPerms::ReadWrite)?;
    wasi.preopened_dir(&tool.share, "/share", FsPerms::ReadOnly)?;
    wasi.preopened_dir(temp, "/tmp", FsPerms::ReadWrite)?;
    let mut linker: Linker<WasiP1Ctx> = Linker::new(engine);
    p1::add_to_linker_sync(&mut linker, |context| context)?;
    let mut store = Store::new(engine, wasi.build_p1());
    let start = linker.instantiate(&mut store, module)?.get_typed_func::<(), ()>(&mut store, "_start")?;
    match start.call(&mut store, ()) {
        Ok(()) => Ok(0),
        Err(e) => match e.downcast_ref::<I32Exit>() {
            Some(exit) => Ok(exit.0),
            None => Err(e),
        },
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection, Instruction,
        MemorySection, MemoryType, TypeSection, ValType,
    };

    use super::*;

    /// A module whose `_start` is `code`, with `fd_write` as function 0 and `proc_exit` as function 1, and
    /// in memory an I/O vector at 0 that names the text "hello\n" at 64.
    fn module(code: &[Instruction]) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([ValType::I32; 4], [ValType::I32]);
        types.ty().function([ValType::I32], []);
        types.ty().function([], []);
        let mut imports = ImportSection::new();
        imports.import("wasi_snapshot_preview1", "fd_write", EntityType::Function(0));
        imports.import("wasi_snapshot_preview1", "proc_exit", EntityType::Function(1));
        let mut functions = FunctionSection::new();
        functions.function(2);
        let mut memories = MemorySection::new();
        memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
        let mut exports = ExportSection::new();
        exports.export("memory", ExportKind::Memory, 0).export("_start", ExportKind::Func, 2);
        let mut body = Function::new([]);
        for instruction in code {
            body.instruction(instruction);
        }
        body.instruction(&Instruction::End);
        let mut codes = CodeSection::new();
        codes.function(&body);
        let mut data = DataSection::new();
        data.active(0, &ConstExpr::i32_const(0), [64, 0, 0, 0, 6, 0, 0, 0]);
        data.active(0, &ConstExpr::i32_const(64), *b"hello\n");
        let mut module = wasm_encoder::Module::new();
        module.section(&types).section(&imports).section(&functions).section(&memories);
        module.section(&exports).section(&codes).section(&data);
        module.finish()
    }

    fn tool(folder: &Path, code: &[Instruction]) -> Command {
        let wasm = module(code);
        fs::create_dir_all(folder.join("share")).unwrap();
        fs::write(folder.join("t.wasm"), &wasm).unwrap();
        Command { name: "t", wasm: folder.join("t.wasm"), content: crate::cache::sha256(&wasm), share: folder.join("share") }
    }

    /// Writes "hello" to standard output and exits with code 7.
    fn hello() -> Vec<Instruction<'static>> {
        let number = Instruction::I32Const;
        vec![number(1), number(0), number(1), number(32), Instruction::Call(0), Instruction::Drop, number(7), Instruction::Call(1)]
    }

    #[test]
    fn output_and_exit_code_come_back() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::at(temp.path().join("c")).unwrap();
        let tool = tool(temp.path(), &hello());
        let log = temp.path().join("log");
        assert_eq!(run(&cache, &tool, &[], temp.path(), &log, Talk::Quiet).unwrap(), 7);
        assert_eq!(fs::read_to_string(&log).unwrap(), "hello\n");
    }

    #[test]
    fn a_truncated_cwasm_is_compiled_again() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::at(temp.path().join("c")).unwrap();
        let tool = tool(temp.path(), &hello());
        assert!(!is_compiled(&cache, &tool));
        assert!(prepare(&cache, &tool, Talk::Quiet).unwrap());
        assert!(!prepare(&cache, &tool, Talk::Quiet).unwrap());
        let path = compiled_path(&cache, &engine().unwrap(), &tool);
        let whole = fs::read(&path).unwrap();
        for cut in [0, 1, 64, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(prepare(&cache, &tool, Talk::Quiet).unwrap(), "cut to {cut} bytes");
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn a_trap_is_gw0606_and_no_wasm_is_gw0605() {
        let temp = tempfile::tempdir().unwrap();
        let cache = Cache::at(temp.path().join("c")).unwrap();
        let log = temp.path().join("log");
        let trap = tool(temp.path(), &[Instruction::Unreachable]);
        assert_eq!(run(&cache, &trap, &[], temp.path(), &log, Talk::Quiet).unwrap_err().code, "GW0606");
        fs::write(&trap.wasm, "no WebAssembly").unwrap();
        let other = Command { content: "other".into(), ..trap };
        assert_eq!(run(&cache, &other, &[], temp.path(), &log, Talk::Quiet).unwrap_err().code, "GW0605");
    }
}
