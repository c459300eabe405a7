//! Loads components and asks them their four questions.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, OptLevel, RegallocAlgorithm, Store, Trap};

use super::answers::{Answer, Answers, write_whole};
use super::error::{Failure, PluginError};
use super::limits::{Limiter, Limits};
use super::types::{About, Output, Peer, Plan, Shape};
use super::wire::{self, Bindings, NotJson, PluginPre, w};
use super::{hdl_check, validate};

/// Length of a tick of the wall-clock backstop.
const TICK: Duration = Duration::from_millis(100);
/// The interface that a component exports, without its version.
const CONTRACT: &str = "gateweave:plugin/contract@";

/// Versions of the contract that this host speaks.
pub const VERSIONS: [&str; 1] = [wire::VERSION];

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// The host of all plugins of a run. Cheap to clone; clones share caches and counters.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    limits: Limits,
    cache: PathBuf,
    answers: Answers,
    helper: Option<PathBuf>,
    calls: AtomicU64,
    engine: OnceLock<Result<Engine, String>>,
}

/// A loaded plugin.
#[derive(Clone)]
pub struct Plugin {
    host: Host,
    hash: String,
    bytes: Arc<[u8]>,
    ready: Arc<OnceLock<Result<Ready, PluginError>>>,
    about: About,
}

#[derive(Clone)]
struct Ready {
    pre: PluginPre<Limiter>,
    engine: Engine,
}

impl Host {
    /// A host that keeps compiled components and answers below `cache`. Does no work yet.
    pub fn new(cache: &Path, limits: Limits) -> Self {
        Self::with_helper(cache, limits, hdl_check::helper())
    }

    /// The same with another program for `__hdl`; `None` parses HDL in this process.
    pub fn with_helper(cache: &Path, limits: Limits, helper: Option<PathBuf>) -> Self {
        let cache = cache.join("plugins");
        Self(Arc::new(Inner {
            limits,
            answers: Answers::new(cache.join("answers")),
            cache,
            helper,
            calls: AtomicU64::new(0),
            engine: OnceLock::new(),
        }))
    }

    /// How many calls into components there were; kept answers make none.
    pub fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Loads a component: compiles it (or takes the compiled one from the cache), refuses imports and unknown versions of
    /// the contract, and asks `info`. A component whose `info` is kept is not even compiled before its first other question.
    ///
    /// # Errors
    /// GW0301 (no component), GW0302 (imports), GW0303 (version), and those of a call.
    pub fn load(&self, bytes: impl Into<Arc<[u8]>>) -> Result<Plugin, PluginError> {
        let bytes = bytes.into();
        let limit = self.0.limits.component;
        if bytes.len() > limit {
            return Err(PluginError::new("GW0301", format!("the component has {} bytes, at most {limit} are possible", bytes.len())));
        }
        let about =
            About { name: String::new(), version: String::new(), summary: String::new(), params_schema: Json::Null, kinds: Vec::new() };
        let mut plugin = Plugin { host: self.clone(), hash: sha256(&bytes), bytes, ready: Arc::default(), about };
        let info = plugin.ask(
            "info",
            &Json::Null,
            |b, store| b.gateweave_plugin_contract().call_info(store).map(Ok),
            about_size,
            wire::about,
            validate::about,
        );
        match info {
            Ok(about) => {
                plugin.about = about;
                Ok(plugin)
            }
            Err(Failure::Fault(error)) => Err(error),
            Err(Failure::Refused(_)) => Err(PluginError::new("GW0309", "`info` cannot refuse")),
        }
    }

    fn engine(&self) -> Result<&Engine, PluginError> {
        let engine = self.0.engine.get_or_init(|| {
            let engine = Engine::new(&config(&self.0.limits)).map_err(|e| format!("{e:#}"))?;
            tick(&engine);
            Ok(engine)
        });
        engine.as_ref().map_err(|e| PluginError::new("GW0301", format!("the WebAssembly engine does not start: {e}")))
    }
}

fn config(limits: &Limits) -> Config {
    let mut config = Config::new();
    config.wasm_component_model(true);
    config.consume_fuel(true);
    config.epoch_interruption(true);
    config.max_wasm_stack(limits.stack);
    // A plugin runs for milliseconds, and a new one is compiled while its author waits.
    config.cranelift_opt_level(OptLevel::None);
    config.cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
    // The same answer on every machine.
    config.cranelift_nan_canonicalization(true);
    config.relaxed_simd_deterministic(true);
    // Nothing that a plugin needs, and each with storage of its own to limit.
    config.wasm_threads(false);
    config.wasm_gc(false);
    config.wasm_function_references(false);
    config.wasm_memory64(false);
    config
}

/// Advances the epoch until the engine is gone.
fn tick(engine: &Engine) {
    let engine = engine.weak();
    std::thread::spawn(move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    });
}

impl Plugin {
    /// Who the plugin is.
    pub fn info(&self) -> &About {
        &self.about
    }

    /// SHA-256 of the component.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Ports, domains and registers from parameters (canonical, see [`params`](super::params)) and board.
    ///
    /// # Errors
    /// The plugin's diagnostics, or GW0304 to GW0309.
    pub fn describe(&self, params: &Json, board: &Json) -> Result<Shape, Failure> {
        let (p, b) = (params.to_string(), board.to_string());
        self.ask(
            "describe",
            &serde_json::json!([params, board]),
            |bindings, store| bindings.gateweave_plugin_contract().call_describe(store, &p, &b),
            shape_size,
            wire::shape,
            |shape| validate::shape("describe", shape, None),
        )
    }

    /// The same knowing the peers; `described` is what `describe` said.
    ///
    /// # Errors
    /// The plugin's diagnostics, or GW0304 to GW0309.
    pub fn elaborate(&self, params: &Json, board: &Json, peers: &[Peer], described: &Shape) -> Result<Shape, Failure> {
        let (p, b) = (params.to_string(), board.to_string());
        let list: Vec<w::Peer> = peers.iter().map(wire::to_peer).collect();
        self.ask(
            "elaborate",
            &serde_json::json!([params, board, peers, described]),
            |bindings, store| bindings.gateweave_plugin_contract().call_elaborate(store, &p, &b, &list),
            shape_size,
            wire::shape,
            |shape| validate::shape("elaborate", shape, Some(described)),
        )
    }

    /// HDL for a settled plan.
    ///
    /// # Errors
    /// The plugin's diagnostics, or GW0304 to GW0317.
    pub fn generate(&self, plan: &Plan) -> Result<Output, Failure> {
        let input = serde_json::to_value(plan).unwrap_or(Json::Null);
        let wire_plan = wire::to_plan(plan);
        self.ask(
            "generate",
            &input,
            |bindings, store| bindings.gateweave_plugin_contract().call_generate(store, &wire_plan),
            output_size,
            wire::output,
            |output| {
                validate::output(output, plan)?;
                hdl_check::check(self.host.0.helper.as_deref(), &output.sources)
            },
        )
    }

    /// Asks one question: from the kept answers, else from the component, whose answer is checked and kept.
    fn ask<W, T: Serialize + DeserializeOwned>(
        &self,
        question: &str,
        input: &Json,
        call: impl FnOnce(&Bindings, &mut Store<Limiter>) -> wasmtime::Result<Result<W, Vec<w::Diagnostic>>>,
        size: impl FnOnce(&W) -> usize,
        convert: impl FnOnce(W) -> Result<T, NotJson>,
        check: impl FnOnce(&T) -> Result<(), PluginError>,
    ) -> Result<T, Failure> {
        let inner = &self.host.0;
        let key = Answers::key(&self.hash, question, wire::VERSION, &inner.limits, input);
        match inner.answers.get(&key) {
            Some(Answer::Refused(list)) => return Err(Failure::Refused(list)),
            Some(Answer::Good(json)) => {
                if let Ok(answer) = serde_json::from_value(json) {
                    return Ok(answer);
                }
            }
            None => {}
        }
        let ready = self.ready()?;
        let mut store = new_store(&ready.engine, &inner.limits)?;
        inner.calls.fetch_add(1, Ordering::Relaxed);
        let result = ready.pre.instantiate(&mut store).and_then(|bindings| call(&bindings, &mut store));
        let answer = result.map_err(|e| trapped(question, &e, store.data(), &inner.limits))?;
        let too_large = |bytes: usize| (bytes > inner.limits.answer).then(|| answer_too_large(question, &inner.limits));
        match answer {
            Ok(answer) => {
                if let Some(error) = too_large(size(&answer)) {
                    return Err(error.into());
                }
                let breach = |NotJson(what)| PluginError::new("GW0309", format!("its answer to `{question}` breaks the contract: {what}"));
                let answer = convert(answer).map_err(breach)?;
                check(&answer)?;
                if let Ok(json) = serde_json::to_value(&answer) {
                    inner.answers.put(&key, &Answer::Good(json));
                }
                Ok(answer)
            }
            Err(list) => {
                let bytes =
                    list.iter().map(|d| d.code.len() + d.pointer.len() + d.message.len() + d.help.as_ref().map_or(0, String::len)).sum();
                if let Some(error) = too_large(bytes) {
                    return Err(error.into());
                }
                let list: Vec<_> = list.into_iter().map(wire::diagnostic).collect();
                if list.is_empty() {
                    let message = format!("its answer to `{question}` breaks the contract: it refuses without saying why");
                    return Err(PluginError::new("GW0309", message).into());
                }
                inner.answers.put(&key, &Answer::Refused(list.clone()));
                Err(Failure::Refused(list))
            }
        }
    }

    fn ready(&self) -> Result<Ready, PluginError> {
        self.ready.get_or_init(|| self.prepare()).clone()
    }

    fn prepare(&self) -> Result<Ready, PluginError> {
        let engine = self.host.engine()?;
        let component = self.compiled(engine)?;
        let kind = component.component_type();
        let imports: Vec<&str> = kind.imports(engine).map(|(name, _)| name).collect();
        if !imports.is_empty() {
            let list = imports.iter().map(|i| format!("`{i}`")).collect::<Vec<_>>().join(", ");
            return Err(PluginError::new("GW0302", format!("the component imports {list}"))
                .help("a plugin imports nothing: no files, no clock, no random numbers; build it for wasm32-unknown-unknown"));
        }
        let versions = || VERSIONS.map(|v| format!("`{v}`")).join(", ");
        match kind.exports(engine).find_map(|(name, _)| name.strip_prefix(CONTRACT)) {
            Some(version) if VERSIONS.contains(&version) => {}
            Some(version) => {
                return Err(PluginError::new("GW0303", format!("the component speaks version `{version}` of the plugin contract"))
                    .help(format!("this host speaks {}", versions())));
            }
            None => {
                return Err(PluginError::new("GW0303", format!("the component does not export `{CONTRACT}{}`", wire::VERSION))
                    .help(format!("this host speaks {}", versions())));
            }
        }
        let fits = |e: wasmtime::Error| PluginError::new("GW0301", format!("the component does not fit the contract: {}", reason(&e)));
        let linker: Linker<Limiter> = Linker::new(engine);
        let pre = linker.instantiate_pre(&component).and_then(PluginPre::new).map_err(fits)?;
        Ok(Ready { pre, engine: engine.clone() })
    }

    /// Compiles the component, or takes what was compiled before. Whatever is wrong with the kept one, it is compiled again.
    fn compiled(&self, engine: &Engine) -> Result<Component, PluginError> {
        let mut settings = std::hash::DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut settings);
        let path = self.host.0.cache.join("compiled").join(format!("{}-{:016x}.cwasm", self.hash, settings.finish()));
        if let Some(component) = kept(engine, &path) {
            return Ok(component);
        }
        let component = Component::new(engine, &self.bytes)
            .map_err(|e| PluginError::new("GW0301", format!("this is not a component that can be used: {}", reason(&e))))?;
        if let Ok(bytes) = component.serialize() {
            let mut file = sha256(&bytes).into_bytes();
            file.extend_from_slice(&bytes);
            let _ = write_whole(&path, &file);
        }
        Ok(component)
    }
}

/// A compiled component from the cache: its SHA-256 in hexadecimal, then the engine's own format.
fn kept(engine: &Engine, path: &Path) -> Option<Component> {
    let file = std::fs::read(path).ok()?;
    let (sum, bytes) = file.split_at_checked(64)?;
    if sha256(bytes).as_bytes() != sum {
        return None;
    }
    // SAFETY: deserialize trusts its input. This file is in the user's own cache, was written by `compiled` above under a name
    // that holds the component's hash and the engine's settings, and is whole, by its checksum.
    #[allow(unsafe_code)]
    unsafe {
        Component::deserialize(engine, bytes).ok()
    }
}

fn new_store(engine: &Engine, limits: &Limits) -> Result<Store<Limiter>, PluginError> {
    let mut store = Store::new(engine, Limiter::new(limits));
    store.limiter(|limiter| limiter);
    store.set_fuel(limits.fuel).map_err(|e| PluginError::new("GW0301", format!("no fuel: {e}")))?;
    store.set_epoch_deadline(limits.wall_ms / TICK.as_millis() as u64 + 1);
    store.epoch_deadline_trap();
    store.set_hostcall_fuel(limits.hostcall);
    Ok(store)
}

fn answer_too_large(question: &str, limits: &Limits) -> PluginError {
    PluginError::new("GW0308", format!("its answer to `{question}` is larger than {} bytes", limits.answer))
        .help("this is a fault of the plugin")
}

/// What a failed call means.
fn trapped(question: &str, error: &wasmtime::Error, limiter: &Limiter, limits: &Limits) -> PluginError {
    let fault = |code, message: String| PluginError::new(code, message).help("this is a fault of the plugin");
    let text = format!("{error:#}");
    if limiter.out_of_memory || text.contains("exceeds memory limits") || text.contains("exceeds table limits") {
        return fault(
            "GW0306",
            format!("it wanted more memory in `{question}` than the {} MiB that a plugin may have", limits.memory >> 20),
        );
    }
    if let Some(note) = limiter.note() {
        return fault("GW0304", format!("it panicked in `{question}`: {note}"));
    }
    if text.contains("hostcall") || text.contains("too much data") {
        return answer_too_large(question, limits);
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => fault("GW0305", format!("it did not come to an end in `{question}` (after {} instructions)", limits.fuel)),
        Some(Trap::Interrupt) => fault("GW0305", format!("it did not come to an end in `{question}` (after {} s)", limits.wall_ms / 1000)),
        Some(Trap::StackOverflow) => fault("GW0307", format!("it ran out of stack in `{question}` (endless recursion?)")),
        // Rust keeps part of its stack in linear memory, from address 0 up: recursion can end there first.
        Some(trap @ Trap::MemoryOutOfBounds) => fault("GW0304", format!("it trapped in `{question}`: {trap} (endless recursion?)")),
        Some(trap) => fault("GW0304", format!("it trapped in `{question}`: {trap}")),
        None => fault("GW0304", format!("it failed in `{question}`: {}", reason(error))),
    }
}

/// The root of an error in one line.
fn reason(error: &wasmtime::Error) -> String {
    let text = error.root_cause().to_string();
    let line = text.lines().next().unwrap_or("unknown");
    line.chars().take(300).collect()
}

fn prop_size(props: &[w::Prop]) -> usize {
    props.iter().map(|p| p.key.len() + p.value.len() + 16).sum()
}

fn about_size(a: &w::About) -> usize {
    let kinds: usize = a.kinds.iter().map(|k| k.id.len() + k.veryl.len() + k.props_schema.len() + 32).sum();
    a.name.len() + a.version.len() + a.summary.len() + a.params_schema.len() + kinds
}

fn shape_size(s: &w::Shape) -> usize {
    let ports: usize =
        s.ports.iter().map(|p| p.name.len() + p.kind.len() + p.domain.len() + 4 * p.widths.len() + prop_size(&p.props) + 64).sum();
    let domains: usize = s.domains.iter().map(|d| d.name.len() + 48).sum();
    ports + domains + s.tables.len()
}

fn output_size(o: &w::Output) -> usize {
    let sources: usize = o.sources.iter().map(|s| s.path.len() + s.text.len() + 32).sum();
    let timing: usize = o.timing.iter().map(|t| t.start.len() + t.end.len() + t.why.len() + 48).sum();
    o.top.len() + prop_size(&o.parameters) + sources + timing + o.docs.len()
}
