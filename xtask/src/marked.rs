//! Parts of documents that a command writes: the lines between `<!-- NAME: written by COMMAND -->` and `<!-- end of NAME -->`.

use anyhow::{Context, Result};
use std::path::Path;

/// Puts `text` between the marks of `name` in `file`.
pub fn write(file: &Path, name: &str, text: &str) -> Result<()> {
    let before = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let after = replaced(&before, name, text).with_context(|| format!("{} has no part `{name}`", file.display()))?;
    std::fs::write(file, after).with_context(|| format!("writing {}", file.display()))
}

fn replaced(document: &str, name: &str, text: &str) -> Option<String> {
    let head = document.find(&format!("<!-- {name}: "))?;
    let start = head + document[head..].find('\n')? + 1;
    let end = start + document[start..].find(&format!("<!-- end of {name} -->"))?;
    Some(format!("{}\n{}\n\n{}", &document[..start], text.trim_end(), &document[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_marked_part_changes() {
        let text = "a\n<!-- t: written by x -->\nold\nold\n<!-- end of t -->\nb\n";
        let new = replaced(text, "t", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- t: written by x -->\n\nnew\n\n<!-- end of t -->\nb\n");
        assert_eq!(replaced(&new, "t", "new").unwrap(), new);
        assert!(replaced(text, "u", "new").is_none());
    }
}
