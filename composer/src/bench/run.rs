//! Builds one bench with one set of values, and runs it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::diag::Diagnostic;

use super::header::{Bench, Values};
use super::{Options, Outcome, problem};

/// What benches include: names and texts.
const HEADERS: [(&str, &str); 3] = [
    ("bench.hpp", include_str!("../../../templates/sim/bench.hpp")),
    ("axi4_memory.h", include_str!("../../../templates/sim/axi4_memory.h")),
    ("sdram_chip.h", include_str!("../../../templates/sim/sdram_chip.h")),
];

/// Part of the cache key: change it when the way of building changes.
const RECIPE: &str = "1: -O1 -std=c++17 --x-initial unique";

pub(super) fn one(
    options: &Options,
    bench: &Bench,
    module: &str,
    values: &Values,
    files: &[(String, String)],
) -> Result<Outcome, Diagnostic> {
    let folder = options.cache.join(key(options, bench, module, values, files));
    let passed = folder.join("passed");
    let outcome = |passed, cached, output| Outcome { bench: bench.name.clone(), values: values.clone(), passed, cached, output };
    if options.seed.is_none()
        && let Ok(output) = fs::read_to_string(&passed)
    {
        return Ok(outcome(true, true, output));
    }
    let program = folder.join("dut");
    if !program.is_file()
        && let Err(output) = build(options, bench, module, values, files, &folder, &program)?
    {
        return Ok(outcome(false, false, output));
    }
    let (good, output) = execute(&program, options.seed, options.limit)?;
    if good {
        fs::write(&passed, &output).map_err(|e| cannot_write(&passed, &e))?;
    }
    Ok(outcome(good, false, output))
}

fn key(options: &Options, bench: &Bench, module: &str, values: &Values, files: &[(String, String)]) -> String {
    let mut hash = Sha256::new();
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    };
    add(RECIPE);
    add(HEADERS[0].1);
    if bench.text.contains(HEADERS[1].0) {
        add(HEADERS[1].1);
    }
    add(&options.verilator.used().version);
    add(&bench.text);
    for (name, text) in &bench.headers {
        add(name);
        add(text);
    }
    add(module);
    for (name, value) in values {
        add(name);
        add(value);
    }
    for (path, text) in files {
        add(path);
        add(text);
    }
    let digest = hash.finalize();
    let hex: String = digest.iter().take(12).map(|b| format!("{b:02x}")).collect();
    format!("{}-{hex}", bench.name)
}

/// The inner error is the compilers' text.
fn build(
    options: &Options,
    bench: &Bench,
    module: &str,
    values: &Values,
    files: &[(String, String)],
    folder: &Path,
    program: &Path,
) -> Result<Result<(), String>, Diagnostic> {
    let obj = folder.join("obj");
    let _ = fs::remove_dir_all(&obj);
    fs::create_dir_all(&obj).map_err(|e| cannot_write(&obj, &e))?;
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(|e| cannot_write(path, &e));
    let source = folder.join("dut.sv");
    let text: Vec<&str> = files.iter().map(|(_, text)| text.as_str()).collect();
    write(&source, &text.join("\n"))?;
    for (name, text) in HEADERS {
        write(&folder.join(name), text)?;
    }
    for (name, text) in &bench.headers {
        write(&folder.join(name), text)?;
    }
    write(&folder.join("bench.cpp"), &bench.text)?;

    let defines: String = values.iter().map(|(name, value)| format!(" -D{name}={value}")).collect();
    let mut make: Vec<String> = options.verilator.make_variables().into_iter().filter(|v| !v.starts_with("OPT_")).collect();
    make.extend(["OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1"].map(String::from));
    let mut command = options.verilator.command();
    command
        .args(["--cc", "--exe", "--build", "-j", "1", "-O3", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--x-initial", "unique"])
        .args(["--x-assign", "unique", "--prefix", "Vdut", "--top-module", module, "--Mdir", "obj", "-o", "../dut"])
        .args(["-CFLAGS", &format!("-O1 -std=c++17 -I..{defines}")])
        .args(values.iter().map(|(name, value)| format!("-G{name}={value}")))
        .args(["-MAKEFLAGS", &make.join(" ")])
        .args(["dut.sv", "bench.cpp"])
        .current_dir(folder)
        .stdin(Stdio::null());
    let output = command.output().map_err(|e| {
        problem("GW0335", format!("cannot run Verilator: {e}"))
    })?;
    if output.status.success() && program.is_file() {
        let _ = fs::remove_dir_all(&obj);
        return Ok(Ok(()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok(Err(text.lines().filter(|l| !l.starts_with("g++") && !l.starts_with("make")).collect::<Vec<_>>().join("\n")))
}

fn execute(program: &Path, seed: Option<u64>, limit: Duration) -> Result<(bool, String), Diagnostic> {
    let failed = |e: std::io::Error| problem("GW0335", format!("cannot run `{}`: {e}", program.display()));
    let mut command = Command::new(absolute(program));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(seed) = seed {
        command.env("GATEWEAVE_SEED", seed.to_string());
    }
    let mut child = command.spawn().map_err(failed)?;
    let pipe = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before a broken pipe still says something.
            let _ = pipe.read_to_end(&mut text);
        }
        text
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break Some(status);
        }
        if start.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut output = String::from_utf8_lossy(&reader.join().unwrap_or_default()).into_owned();
    if status.is_none() {
        output += &format!("FAIL: no end within {} s\n", limit.as_secs());
    }
    Ok((status.is_some_and(|s| s.success()), output))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Diagnostic {
    problem("GW0336", format!("cannot write `{}`: {error}", path.display()))
}
