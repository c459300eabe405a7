//! The sources of all instances of one plugin, each once.

use std::collections::BTreeMap;

use super::error::PluginError;
use super::names;
use super::types::{Output, Plan, PluginSource};

/// Puts the sources of several instances of one plugin (one version of it) together.
///
/// Static files are the same for all instances and appear once. A file whose global names all start with the instance's prefix
/// belongs to that instance and moves to a folder of its name.
///
/// # Errors
/// GW0318, with the instance, if two instances give one path different texts and the names lack the prefix.
pub fn sources(instances: &[(&Plan, &Output)]) -> Result<Vec<PluginSource>, (String, PluginError)> {
    let mut merged: BTreeMap<String, (PluginSource, &str)> = BTreeMap::new();
    for (plan, output) in instances {
        for source in &output.sources {
            let globals = names::globals(source.language, &source.text);
            let own = !globals.is_empty() && globals.iter().all(|g| g.starts_with(&plan.prefix));
            let path = if own { format!("{}/{}", plan.instance, source.path) } else { source.path.clone() };
            match merged.get(&path) {
                Some((first, _)) if first.text == source.text && first.language == source.language => {}
                Some((_, other)) => {
                    let message = format!("its source `{}` differs from that of instance `{other}` of the same plugin", source.path);
                    let error = PluginError::new("GW0318", message)
                        .help("instances differ by module parameters; a text that differs must start its global names with `plan.prefix`");
                    return Err((plan.instance.clone(), error));
                }
                None => {
                    let source = PluginSource { path: path.clone(), ..source.clone() };
                    merged.insert(path, (source, &plan.instance));
                }
            }
        }
    }
    Ok(merged.into_values().map(|(source, _)| source).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugin::types::{Language, Purpose, Target};

    fn plan(instance: &str) -> Plan {
        Plan {
            instance: instance.into(),
            prefix: format!("p_{instance}_"),
            params: serde_json::Value::Null,
            board: serde_json::Value::Null,
            target: Target::Lint,
            links: Vec::new(),
            register_base: None,
            register_data_bits: 32,
        }
    }

    fn output(sources: &[(&str, &str)]) -> Output {
        let sources = sources
            .iter()
            .map(|(path, text)| PluginSource {
                path: (*path).into(),
                language: Language::Veryl,
                purpose: Purpose::Design,
                text: (*text).into(),
            })
            .collect();
        Output { top: "m".into(), parameters: Vec::new(), sources, timing: Vec::new(), docs: String::new() }
    }

    #[test]
    fn static_files_once_and_own_files_apart() {
        let (a, b) = (plan("a"), plan("b"));
        let of = |own: &str| output(&[("m.veryl", "module m {}"), ("t.veryl", own)]);
        let (x, y) = (of("module p_a_t {}"), of("module p_b_t {}"));
        let paths: Vec<_> = sources(&[(&a, &x), (&b, &y)]).unwrap().into_iter().map(|s| s.path).collect();
        assert_eq!(paths, ["a/t.veryl", "b/t.veryl", "m.veryl"]);
    }

    #[test]
    fn one_path_with_two_texts_is_an_error() {
        let (a, b) = (plan("a"), plan("b"));
        let (x, y) = (output(&[("m.veryl", "module m { }")]), output(&[("m.veryl", "module m {}")]));
        let (instance, error) = sources(&[(&a, &x), (&b, &y)]).unwrap_err();
        assert_eq!((instance.as_str(), error.code), ("b", "GW0318"));
    }
}
