//! Parameters of an instance against the plugin's JSON Schema.
//!
//! A validator of its own for the part of JSON Schema that Rust types lead to: it fills in
//! defaults in the same walk, gives a pointer for every problem, offers the nearest name for a misspelt one, and treats
//! keys that the schema does not name as errors. [`check_schema`] refuses schemas that use more than it
//! understands, so that nothing goes unchecked silently.

use std::cell::Cell;

use regex::Regex;
use serde_json::{Map, Value as Json};

use crate::diag::nearest;

use super::types::{PluginDiagnostic, PluginSeverity};

/// Deepest nesting of `$ref`, and of parameters.
const DEPTH: usize = 32;
/// Most values and schemas that one check looks at.
const STEPS: u32 = 200_000;

/// Keywords with an effect here.
const CHECKED: [&str; 24] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "pattern",
    "oneOf",
    "anyOf",
    "allOf",
    "$ref",
    "default",
];

/// Keywords that say something to people only (`x-` ones too).
const NOTES: [&str; 12] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "format",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Checks `params` and returns them in canonical form: defaults filled in, keys sorted.
///
/// # Errors
/// Every problem, with a JSON Pointer: `GW0311` for unknown keys, `GW0313` for missing ones, `GW0312` for values that do not fit.
pub fn check(schema: &Json, params: &Json) -> Result<Json, Vec<PluginDiagnostic>> {
    let mut problems = Vec::new();
    let params = if params.is_null() { Json::Object(Map::new()) } else { params.clone() };
    let value = Walk { root: schema, steps: Cell::new(0) }.value(schema, &params, "", 0, &mut problems);
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

/// Checks that a schema uses only what [`check`] understands.
///
/// # Errors
/// What it uses beyond that, and where.
pub fn check_schema(schema: &Json) -> Result<(), String> {
    schema_node(schema, schema, "", 0)
}

fn schema_node(root: &Json, schema: &Json, at: &str, depth: usize) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("nests deeper than {DEPTH} at `{at}`"));
    }
    let map = match schema {
        Json::Bool(_) => return Ok(()),
        Json::Object(map) => map,
        other => return Err(format!("`{at}` is {} where a schema should be", kind_of(other))),
    };
    for (key, value) in map {
        let here = format!("{at}/{}", escape(key));
        match key.as_str() {
            "properties" | "$defs" | "definitions" => {
                for (name, inner) in value.as_object().ok_or(format!("`{here}` is not an object"))? {
                    schema_node(root, inner, &format!("{here}/{}", escape(name)), depth + 1)?;
                }
            }
            "additionalProperties" | "items" => schema_node(root, value, &here, depth + 1)?,
            "oneOf" | "anyOf" | "allOf" | "prefixItems" => {
                for (i, inner) in value.as_array().ok_or(format!("`{here}` is not a list"))?.iter().enumerate() {
                    schema_node(root, inner, &format!("{here}/{i}"), depth + 1)?;
                }
            }
            "pattern" => {
                let pattern = value.as_str().ok_or(format!("`{here}` is not a string"))?;
                Regex::new(pattern).map_err(|e| format!("`{here}` is not a regular expression: {}", first_line(&e.to_string())))?;
            }
            "$ref" => {
                let target = value.as_str().and_then(|r| r.strip_prefix('#')).and_then(|p| root.pointer(p));
                target.ok_or(format!("`{here}` does not lead into the schema"))?;
            }
            key if CHECKED.contains(&key) || NOTES.contains(&key) || key.starts_with("x-") => {}
            _ => return Err(format!("keyword `{key}` at `{at}` is not supported")),
        }
    }
    Ok(())
}

struct Walk<'a> {
    root: &'a Json,
    /// Schemas refer to themselves in more than one place; this ends what depth alone does not.
    steps: Cell<u32>,
}

impl<'a> Walk<'a> {
    fn resolve(&self, mut schema: &'a Json) -> &'a Json {
        for _ in 0..DEPTH {
            let Some(target) =
                schema.get("$ref").and_then(Json::as_str).and_then(|r| r.strip_prefix('#')).and_then(|p| self.root.pointer(p))
            else {
                break;
            };
            schema = target;
        }
        schema
    }

    fn value(&self, schema: &'a Json, value: &Json, at: &str, depth: usize, problems: &mut Vec<PluginDiagnostic>) -> Json {
        self.steps.set(self.steps.get().saturating_add(1));
        if depth > DEPTH || self.steps.get() > STEPS {
            if problems.is_empty() {
                problems.push(problem("GW0312", at, format!("{} nests too deep or is too large", named(at))));
            }
            return Json::Null;
        }
        let Some(map) = schema.as_object() else {
            if schema == &Json::Bool(false) {
                problems.push(problem("GW0312", at, format!("{} cannot be given", named(at))));
            }
            return value.clone();
        };
        let mut value = value.clone();
        if map.contains_key("$ref") {
            value = self.value(self.resolve(schema), &value, at, depth + 1, problems);
        }
        for inner in list(map, "allOf") {
            value = self.value(inner, &value, at, depth + 1, problems);
        }
        for key in ["anyOf", "oneOf"] {
            if map.contains_key(key) {
                value = self.choice(list(map, key), key == "oneOf", &value, at, depth, problems);
            }
        }
        let before = problems.len();
        self.kind(map, &value, at, problems);
        if problems.len() > before {
            return value;
        }
        match value {
            Json::Object(object) => self.object(map, object, at, depth, problems),
            Json::Array(array) => self.array(map, array, at, depth, problems),
            other => {
                scalar(map, &other, at, problems);
                other
            }
        }
    }

    fn kind(&self, map: &'a Map<String, Json>, value: &Json, at: &str, problems: &mut Vec<PluginDiagnostic>) {
        let kinds: Vec<&str> = match map.get("type") {
            Some(Json::String(kind)) => vec![kind],
            Some(Json::Array(kinds)) => kinds.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        if !kinds.is_empty() && !kinds.iter().any(|k| is(k, value)) {
            let wanted: Vec<&str> = kinds.iter().copied().filter(|k| *k != "null").map(article).collect();
            problems.push(problem("GW0312", at, format!("{} is {} where {} should be", named(at), show(value), wanted.join(" or "))));
            return;
        }
        let allowed: Vec<&Json> = map.get("const").into_iter().chain(list(map, "enum")).collect();
        if !allowed.is_empty() && !allowed.contains(&value) {
            problems.push(one_of(at, value, &allowed));
        }
    }

    /// `anyOf` and `oneOf`: the branch that fits, or the problems of the one that comes nearest.
    fn choice(&self, branches: &'a [Json], one: bool, value: &Json, at: &str, depth: usize, problems: &mut Vec<PluginDiagnostic>) -> Json {
        let mut fits = Vec::new();
        let mut nearest: Option<Vec<PluginDiagnostic>> = None;
        let mut constants = Vec::new();
        for branch in branches {
            let mut found = Vec::new();
            let result = self.value(branch, value, at, depth + 1, &mut found);
            if found.is_empty() {
                fits.push(result);
                continue;
            }
            let target = self.resolve(branch);
            constants.extend(target.get("const"));
            constants.extend(target.get("enum").and_then(Json::as_array).into_iter().flatten());
            // A branch that fails deeper inside, or in fewer places, is likelier the one that was meant.
            let rank = |p: &[PluginDiagnostic]| (std::cmp::Reverse(p.iter().map(|d| d.pointer.len()).max()), p.len());
            if target.get("type") != Some(&Json::String("null".into())) && nearest.as_ref().is_none_or(|n| rank(&found) < rank(n)) {
                nearest = Some(found);
            }
        }
        match (fits.len(), one) {
            (1, _) | (2.., false) => return fits.swap_remove(0),
            (2.., true) => problems.push(problem("GW0312", at, format!("{} fits more than one of the alternatives", named(at)))),
            _ if constants.len() >= branches.len() => problems.push(one_of(at, value, &constants)),
            _ => problems
                .extend(nearest.unwrap_or_else(|| vec![problem("GW0312", at, format!("{} fits none of the alternatives", named(at)))])),
        }
        value.clone()
    }

    fn object(
        &self,
        map: &'a Map<String, Json>,
        object: Map<String, Json>,
        at: &str,
        depth: usize,
        problems: &mut Vec<PluginDiagnostic>,
    ) -> Json {
        let properties = map.get("properties").and_then(Json::as_object);
        let names = || properties.into_iter().flatten().map(|(name, _)| name.as_str());
        let rest = map.get("additionalProperties");
        // Composed schemas name their keys elsewhere; where none are named anything goes.
        let open = !map.contains_key("properties") && rest.is_none();
        let mut result = Map::new();
        for (key, value) in &object {
            let here = format!("{at}/{}", escape(key));
            let value = match (find(map, key), rest) {
                (Some(schema), _) => self.value(schema, value, &here, depth + 1, problems),
                (None, Some(schema)) if schema != &Json::Bool(false) => self.value(schema, value, &here, depth + 1, problems),
                (None, _) if open => value.clone(),
                (None, _) => {
                    problems.push(unknown(&here, key, names()));
                    continue;
                }
            };
            result.insert(key.clone(), value);
        }
        let required: Vec<&str> = list(map, "required").iter().filter_map(Json::as_str).collect();
        for key in names().chain(required.iter().copied().filter(|r| find(map, r).is_none())) {
            if object.contains_key(key) {
                continue;
            }
            let here = format!("{at}/{}", escape(key));
            let schema = find(map, key);
            let default = schema.and_then(|s| s.get("default").or_else(|| self.resolve(s).get("default")));
            if let (Some(schema), Some(default)) = (schema, default) {
                let value = self.value(schema, default, &here, depth + 1, problems);
                result.insert(key.to_owned(), value);
            } else if required.contains(&key) {
                let mut missing = problem("GW0313", at, format!("parameter `{key}` is missing"));
                missing.help =
                    schema.and_then(|s| s.get("description")).and_then(Json::as_str).map(|d| format!("`{key}`: {}", first_line(d)));
                problems.push(missing);
            }
        }
        Json::Object(result)
    }

    fn array(&self, map: &'a Map<String, Json>, array: Vec<Json>, at: &str, depth: usize, problems: &mut Vec<PluginDiagnostic>) -> Json {
        let count = array.len() as u64;
        if let Some(least) = map.get("minItems").and_then(Json::as_u64).filter(|n| count < *n) {
            problems.push(problem("GW0312", at, format!("{} has {count} entries, at least {least} are needed", named(at))));
        }
        if let Some(most) = map.get("maxItems").and_then(Json::as_u64).filter(|n| count > *n) {
            problems.push(problem("GW0312", at, format!("{} has {count} entries, at most {most} are possible", named(at))));
        }
        if map.get("uniqueItems") == Some(&Json::Bool(true)) {
            for (i, item) in array.iter().enumerate() {
                if array.iter().take(i).any(|other| other == item) {
                    problems.push(problem("GW0312", &format!("{at}/{i}"), format!("{} stands twice in {}", show(item), named(at))));
                }
            }
        }
        let first = list(map, "prefixItems");
        let rest = map.get("items");
        let items = array.into_iter().enumerate().map(|(i, item)| match first.get(i).or(rest) {
            Some(schema) => self.value(schema, &item, &format!("{at}/{i}"), depth + 1, problems),
            None => item,
        });
        Json::Array(items.collect())
    }
}

fn find<'a>(map: &'a Map<String, Json>, key: &str) -> Option<&'a Json> {
    map.get("properties")?.get(key)
}

fn list<'a>(map: &'a Map<String, Json>, key: &str) -> &'a [Json] {
    map.get(key).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn scalar(map: &Map<String, Json>, value: &Json, at: &str, problems: &mut Vec<PluginDiagnostic>) {
    if let Some(number) = value.as_f64() {
        type Rule = (&'static str, fn(f64, f64) -> bool, &'static str);
        const RULES: [Rule; 5] = [
            ("minimum", |n, l| n >= l, "at least"),
            ("maximum", |n, l| n <= l, "at most"),
            ("exclusiveMinimum", |n, l| n > l, "more than"),
            ("exclusiveMaximum", |n, l| n < l, "less than"),
            ("multipleOf", |n, l| l == 0.0 || n % l == 0.0, "a multiple of"),
        ];
        for (key, holds, words) in RULES {
            if let Some(limit) = map.get(key).filter(|l| l.as_f64().is_some_and(|l| !holds(number, l))) {
                let mut found = problem("GW0312", at, format!("{} is {value}, it must be {words} {limit}", named(at)));
                found.help = range(map);
                problems.push(found);
            }
        }
    }
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as u64;
        if let Some(least) = map.get("minLength").and_then(Json::as_u64).filter(|n| length < *n) {
            problems.push(problem("GW0312", at, format!("{} has {length} characters, at least {least} are needed", named(at))));
        }
        if let Some(most) = map.get("maxLength").and_then(Json::as_u64).filter(|n| length > *n) {
            problems.push(problem("GW0312", at, format!("{} has {length} characters, at most {most} are possible", named(at))));
        }
        let pattern = map.get("pattern").and_then(Json::as_str);
        if let Some(pattern) = pattern.filter(|p| Regex::new(p).is_ok_and(|r| !r.is_match(text))) {
            let mut found = problem("GW0312", at, format!("{} is {}, which does not have the right form", named(at), show(value)));
            let words = map.get("description").and_then(Json::as_str).map(first_line);
            found.help = Some(words.map_or_else(|| format!("it must match `{pattern}`"), |w| format!("{w} (`{pattern}`)")));
            problems.push(found);
        }
    }
}

fn range(map: &Map<String, Json>) -> Option<String> {
    let (low, high) = (map.get("minimum")?, map.get("maximum")?);
    Some(format!("{low} to {high}"))
}

fn is(kind: &str, value: &Json) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 9e15),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn article(kind: &str) -> &str {
    match kind {
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "a list",
        "object" => "a table",
        other => other,
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "nothing",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a table",
    }
}

fn show(value: &Json) -> String {
    match value {
        Json::String(text) if text.chars().count() <= 60 => format!("`\"{text}\"`"),
        Json::Bool(_) | Json::Number(_) => format!("`{value}`"),
        other => kind_of(other).to_owned(),
    }
}

fn named(at: &str) -> String {
    if at.is_empty() { "the parameter table".into() } else { format!("parameter `{}`", at.trim_start_matches('/').replace('/', ".")) }
}

fn one_of(at: &str, value: &Json, allowed: &[&Json]) -> PluginDiagnostic {
    let mut found = problem("GW0312", at, format!("{} cannot be {}", named(at), show(value)));
    let words: Vec<String> = allowed.iter().map(|a| a.as_str().map_or_else(|| a.to_string(), str::to_owned)).collect();
    let best = value.as_str().and_then(|v| nearest(v, words.iter().map(String::as_str)));
    found.help = Some(match best {
        Some(best) => format!("did you mean `{best}`?"),
        None => format!("possible: {}", words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ")),
    });
    found
}

fn unknown<'k>(at: &str, key: &str, known: impl Iterator<Item = &'k str>) -> PluginDiagnostic {
    let known: Vec<&str> = known.collect();
    let mut found = problem("GW0311", at, format!("there is no parameter `{key}`"));
    found.help = match nearest(key, known.iter().copied()) {
        Some(best) => Some(format!("did you mean `{best}`?")),
        None if known.is_empty() => Some("the plugin has no parameters".into()),
        None => Some(format!("known here: {}", known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", "))),
    };
    found
}

fn problem(code: &str, at: &str, message: String) -> PluginDiagnostic {
    PluginDiagnostic { severity: PluginSeverity::Error, code: code.into(), pointer: at.into(), message, help: None }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
