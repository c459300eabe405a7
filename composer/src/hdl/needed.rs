//! Which files of the library a design needs, from the words of the texts alone.
//!
//! Veryl's analysis is most of the time of a cold `generate`, and a design uses about half of the library. A file of the
//! library is needed if a needed file names what it declares: bare within one Veryl project, `project::name` from
//! another. What a word stands for is not asked, so too much may be taken, and an instance named as a module takes that
//! module's file along. The other way round is impossible: what is named nowhere cannot be resolved.

use std::collections::{BTreeSet, HashMap};

use super::Source;

/// The sources without the files of the library that no other names, in the order given. All of project `root` are needed.
pub(super) fn needed(root: &str, sources: &[Source]) -> Vec<Source> {
    let words: Vec<Words> = sources.iter().map(|s| Words::of(&s.text)).collect();
    let mut owners: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, (source, words)) in sources.iter().zip(&words).enumerate() {
        for name in &words.declared {
            owners.entry((&source.project, name)).or_default().push(index);
        }
    }
    let mut taken = BTreeSet::new();
    let mut open: Vec<usize> =
        (0..sources.len()).filter(|&i| !sources[i].library || sources[i].project == root || words[i].always).collect();
    while let Some(index) = open.pop() {
        if !taken.insert(index) {
            continue;
        }
        let own = sources[index].project.as_str();
        for &(project, name) in &words[index].named {
            open.extend(owners.get(&(project.unwrap_or(own), name)).into_iter().flatten());
        }
    }
    taken.into_iter().map(|index| sources[index].clone()).collect()
}

/// The words of one text.
#[derive(Default)]
struct Words<'a> {
    /// Names behind `module`, `interface` and `package`, proto and alias ones included.
    declared: BTreeSet<&'a str>,
    /// Every name with the project before it, if one is: `gw::fifo` gives (gw, fifo), `fifo` alone (none, fifo).
    named: BTreeSet<(Option<&'a str>, &'a str)>,
    /// It has an effect without being named: it declares nothing (embedded SystemVerilog), or it binds.
    always: bool,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let mut words = Words::default();
        let mut before: Option<&str> = None;
        // The word that a `::` follows.
        let mut path: Option<&str> = None;
        let mut binds = false;
        for token in (Tokens { rest: text, quoted: false }) {
            match token {
                "::" => path = before.take(),
                ":" => (before, path) = (None, None),
                word => {
                    if matches!(before, Some("module" | "interface" | "package")) {
                        words.declared.insert(word);
                    }
                    binds |= word == "bind";
                    words.named.insert((path.take(), word));
                    before = Some(word);
                }
            }
        }
        words.always = binds || words.declared.is_empty();
        words
    }
}

/// Words, `::`, and `:` for every other sign. Comments are left out; strings and embedded text are not, since what they quote may mean a name.
struct Tokens<'a> {
    rest: &'a str,
    /// Within a string, where `//` begins no comment.
    quoted: bool,
}

impl<'a> Tokens<'a> {
    fn split(&mut self, at: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(at);
        self.rest = rest;
        token
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let text = self.rest;
            let first = text.chars().next()?;
            if first.is_whitespace() {
                // No string goes beyond its line.
                self.quoted &= first != '\n';
                self.split(first.len_utf8());
            } else if !self.quoted && text.starts_with("//") {
                self.split(text.find('\n').unwrap_or(text.len()));
            } else if !self.quoted && text.starts_with("/*") {
                self.split(text.find("*/").map_or(text.len(), |at| at + 2));
            } else if is_word(first) {
                return Some(self.split(text.find(|c| !is_word(c)).unwrap_or(text.len())));
            } else if text.starts_with("::") {
                return Some(self.split(2));
            } else {
                self.quoted ^= first == '"';
                self.split(if text.starts_with("\\\"") { 2 } else { first.len_utf8() });
                return Some(":");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(project: &str, name: &str, text: &str) -> Source {
        Source { project: project.into(), path: format!("{project}/{name}.veryl"), text: text.into(), library: project != "top" }
    }

    /// The names of the library's files that a top level with this text needs.
    fn names(top: &str) -> Vec<String> {
        let sources = [
            source("gw", "fifo", "pub module fifo { inst u: ram; }"),
            source("gw", "ram", "/// Not a fifo_async.\nmodule ram {}"),
            source("gw", "fifo_async", "pub module fifo_async { inst u: gray /* ram */; }"),
            source("gw", "gray", "package gray_pkg { const N: u32 = 1; }\nmodule gray { const M: u32 = gray_pkg::N; }"),
            source("gw", "proto", "pub proto module any_fifo {}\npub alias module short = fifo_async;"),
            source("gw", "same", "module axi4 {}"),
            source("kinds", "axi4", "pub interface axi4 { modport client {} }"),
            source("kinds", "packets", "pub package packets_pkg { struct beat {} }\npub interface packets {}"),
            source("io", "clamp", "bind gw::ram <- u: clamp;"),
            source("top", "top", top),
        ];
        needed("top", &sources).iter().filter(|s| s.library).map(|s| s.path.rsplit_once('/').unwrap().1.replace(".veryl", "")).collect()
    }

    #[test]
    fn what_is_named_is_needed() {
        // What binds is always needed, and with it what it binds to.
        assert_eq!(names("module top {}"), ["ram", "clamp"]);
        assert_eq!(names("module top { inst u: gw::fifo; }"), ["fifo", "ram", "clamp"]);
        assert_eq!(names("module top { inst u: gw::fifo_async; }"), ["ram", "fifo_async", "gray", "clamp"]);
        assert_eq!(names("module top (a: modport kinds::axi4::client,) {}"), ["ram", "axi4", "clamp"]);
        assert_eq!(names("module top { const N: u32 = gw :: gray_pkg::N + 1; }"), ["ram", "gray", "clamp"]);
        assert_eq!(names("import kinds::packets_pkg::*; module top {}"), ["ram", "packets", "clamp"]);
        assert_eq!(names("module top::<T: gw::any_fifo> { inst u: T; }"), ["ram", "fifo_async", "gray", "proto", "clamp"]);
        assert_eq!(names("module top { inst u: lower::<gw::fifo>; }"), ["fifo", "ram", "clamp"]);
        assert_eq!(names("embed (inline) sv{{{ initial $display(\"//\", \\{gw::gray_pkg::N\\}); }}}"), ["ram", "gray", "clamp"]);
    }

    #[test]
    fn names_of_another_project_and_comments_need_nothing() {
        assert_eq!(names("module top { inst fifo: gray; } // gw::fifo\n/* gw::fifo */"), ["ram", "clamp"]);
        assert_eq!(names("module top { initial { $display(\"a \\\" // gw\"); } inst u: gw::fifo; }"), ["fifo", "ram", "clamp"]);
    }

    #[test]
    fn nothing_of_a_plugin_is_left_out() {
        let mut plugin = source("mac_1", "unused", "module unused {}");
        plugin.library = false;
        assert_eq!(needed("top", &[plugin.clone(), source("gw", "fifo", "module fifo {}")]), [plugin]);
    }

    /// The HDL of every plugin of the repository, with the library.
    fn plugins() -> Vec<(String, Vec<Source>)> {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
        let mut plugins = Vec::new();
        for plugin in std::fs::read_dir(folder).unwrap().flatten() {
            let name = plugin.file_name().to_string_lossy().replace('-', "_");
            let mut sources = crate::hdl::library("sim");
            let library = sources.len();
            for file in std::fs::read_dir(plugin.path().join("hdl")).into_iter().flatten().flatten() {
                let path = format!("{name}/{}", file.file_name().to_string_lossy());
                sources.push(Source { project: name.clone(), path, text: std::fs::read_to_string(file.path()).unwrap(), library: false });
            }
            if sources.len() > library {
                sources[library..].sort_by(|a, b| a.path.cmp(&b.path));
                plugins.push((name, sources));
            }
        }
        plugins
    }

    #[test]
    fn what_is_left_out_changes_no_byte() {
        let plugins = plugins();
        assert!(plugins.len() >= 8, "only {} plugins with HDL", plugins.len());
        for (name, sources) in plugins {
            let narrow = needed(&name, &sources);
            assert!(narrow.len() < sources.len(), "{name} needs the whole library");
            let mut whole = sources.clone();
            whole.iter_mut().for_each(|s| s.library = false);
            let whole = crate::hdl::compile(&name, &whole, &[]).unwrap_or_else(|m| panic!("{name}: {m:?}"));
            // As a whole that cannot be narrowed, so that an error of the narrowed one is seen.
            let narrow: Vec<Source> = narrow.into_iter().map(|s| Source { library: false, ..s }).collect();
            let narrow = crate::hdl::compile(&name, &narrow, &[]).unwrap_or_else(|m| panic!("{name}, narrowed: {m:?}"));
            assert!(narrow.files == whole.files, "{name} is emitted otherwise");
        }
    }

    #[test]
    fn errors_are_those_of_the_whole() {
        let mut sources = crate::hdl::library("sim");
        sources.push(source("top", "top", "module top { inst u: gw::fifoo; }"));
        let narrow = crate::hdl::compile("top", &sources, &[]).unwrap_err();
        sources.iter_mut().for_each(|s| s.library = false);
        assert_eq!(narrow, crate::hdl::compile("top", &sources, &[]).unwrap_err());
        assert!(narrow.iter().any(|m| m.error && m.path.as_deref() == Some("top/top.veryl")), "{narrow:?}");
    }
}
