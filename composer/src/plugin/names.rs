//! What HDL text declares globally, and how deep it nests, without parsing it.
//!
//! A scanner that recurses nowhere: it runs on untrusted text before any parser does.

use super::types::Language;

/// Deepest nesting of brackets, and longest run of unary operators or `else`, that goes to a parser.
pub const DEPTH: usize = 200;

/// A token: a word, or a single other character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Mark(char),
}

/// Cuts text into tokens; comments and strings are left out. In SystemVerilog a directive is a word with its backtick.
fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start();
            let first = rest.chars().next()?;
            if rest.starts_with("//") {
                rest = rest.find('\n').and_then(|i| rest.get(i..)).unwrap_or("");
            } else if let Some(inner) = rest.strip_prefix("/*") {
                rest = inner.find("*/").and_then(|i| inner.get(i + 2..)).unwrap_or("");
            } else if let Some(inner) = rest.strip_prefix('"') {
                let mut escaped = false;
                let end = inner.find(|c| {
                    let ends = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                rest = end.and_then(|i| inner.get(i + 1..)).unwrap_or("");
            } else {
                let body = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
                let start = if first == '`' || first == '\\' { first.len_utf8() } else { 0 };
                let word = rest.get(start..).map_or(0, |r| r.find(|c| !body(c)).unwrap_or(r.len()));
                let cut = if word == 0 { first.len_utf8() } else { start + word };
                let (token, after) = rest.split_at(cut);
                rest = after;
                return Some(if word == 0 { Token::Mark(first) } else { Token::Word(token) });
            }
        }
    })
}

/// Names that `text` puts into the global name space, in order, doubles included.
pub fn globals(language: Language, text: &str) -> Vec<String> {
    match language {
        Language::Veryl => veryl(text),
        Language::SystemVerilog => system_verilog(text),
    }
}

fn veryl(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut declares = false;
    for token in tokens(text) {
        match token {
            Token::Mark('{' | '(' | '[') => depth += 1,
            Token::Mark('}' | ')' | ']') => depth = depth.saturating_sub(1),
            Token::Mark(_) => declares = false,
            Token::Word(word) if depth == 0 => {
                if declares {
                    names.push(word.to_owned());
                }
                declares = matches!(word, "module" | "interface" | "package" | "function");
            }
            Token::Word(_) => {}
        }
    }
    names
}

fn system_verilog(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut wanted = false;
    for token in tokens(text) {
        let Token::Word(word) = token else { continue };
        if wanted {
            // `module automatic m;` and `class virtual c;` put a word before the name.
            if matches!(word, "automatic" | "static" | "virtual") {
                continue;
            }
            names.push(word.trim_start_matches('\\').to_owned());
            wanted = false;
            continue;
        }
        match word {
            "module" | "macromodule" | "interface" | "package" | "program" | "class" | "primitive" | "checker" => {
                wanted = depth == 0;
                depth += 1;
            }
            "endmodule" | "endinterface" | "endpackage" | "endprogram" | "endclass" | "endprimitive" | "endchecker" => {
                depth = depth.saturating_sub(1)
            }
            "`define" => wanted = true,
            _ => {}
        }
    }
    names
}

/// The deepest nesting that a recursive parser would see in `text`.
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut run, mut elses) = (0_usize, 0, 0_usize, 0_usize);
    for token in tokens(text) {
        run = match token {
            Token::Mark('-' | '+' | '!' | '~' | '&' | '|' | '^' | '?' | ':') => run + 1,
            _ => 0,
        };
        match token {
            Token::Mark('(' | '[' | '{') | Token::Word("begin") => depth += 1,
            Token::Mark(')' | ']' | '}') | Token::Word("end") => depth = depth.saturating_sub(1),
            Token::Mark(';') => elses = 0,
            Token::Mark('?') | Token::Word("else" | "if") => elses += 1,
            _ => {}
        }
        deepest = deepest.max(depth).max(run).max(depth + elses);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn veryl_globals() {
        let text = "/// module doc\npub module a::<T> #(param W: u32 = 1,) (x: input logic) { inst u: b; }\n#[ifdef(X)] interface c { } package d { function f () { } }\n// module e\n";
        assert_eq!(globals(Language::Veryl, text), ["a", "c", "d"]);
    }

    #[test]
    fn system_verilog_globals() {
        let text = "`define P_X 1\nmodule automatic m #(parameter W = 1) (input a); endmodule\n/* module n */ package p; class c; endclass endpackage\nmodule m; endmodule";
        assert_eq!(globals(Language::SystemVerilog, text), ["P_X", "m", "p", "m"]);
    }

    #[test]
    fn depth_counts_what_recurses() {
        assert_eq!(depth("a((b))"), 2);
        assert!(depth(&"(".repeat(10_000)) >= 10_000);
        assert!(depth(&"-".repeat(10_000)) >= 10_000);
        assert!(depth(&"if a {} else ".repeat(1000)) >= 1000);
        assert!(depth(&"a ? b : ".repeat(1000)) >= 1000);
    }
}
