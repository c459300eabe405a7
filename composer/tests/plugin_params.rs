//! Parameters against schemas as Rust types make them.

use gateweave::plugin::params::{check, check_schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// With documentation, so that the schema is `oneOf` constants.
    #[default]
    Compute,
    /// Off.
    None,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Phy {
    Rgmii { delay_ps: u32 },
    Stream,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(dead_code)]
struct Params {
    /// IPv4 address and prefix length.
    #[schemars(regex(pattern = r"^[0-9.]+/[0-9]+$"))]
    ip: String,
    #[serde(default = "mtu")]
    #[schemars(range(min = 576, max = 9000))]
    mtu: u32,
    #[serde(default)]
    mode: Mode,
    gateway: Option<String>,
    #[serde(default)]
    #[schemars(length(max = 3))]
    ports: Vec<u16>,
    #[serde(default)]
    nested: Nested,
    phy: Option<Phy>,
}

fn mtu() -> u32 {
    1500
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case")]
struct Nested {
    cache_entries: u8,
}

fn schema() -> Value {
    serde_json::to_value(schemars::schema_for!(Params)).unwrap()
}

fn problems(params: Value) -> Vec<(String, String, String)> {
    let list = check(&schema(), &params).unwrap_err();
    list.into_iter().map(|d| (d.code, d.pointer, format!("{} | {}", d.message, d.help.unwrap_or_default()))).collect()
}

fn one(params: Value, code: &str, pointer: &str, words: &str) {
    let found = problems(params);
    assert_eq!(found.len(), 1, "{found:?}");
    let (c, p, m) = &found[0];
    assert_eq!((c.as_str(), p.as_str()), (code, pointer), "{m}");
    assert!(m.contains(words), "{words:?} in {m:?}");
}

#[test]
fn the_schema_is_understood() {
    check_schema(&schema()).unwrap();
    assert!(check_schema(&json!({ "if": {} })).unwrap_err().contains("`if`"));
    assert!(check_schema(&json!({ "$ref": "#/$defs/absent" })).is_err());
    assert!(check_schema(&json!({ "$ref": "https://example.com/x" })).is_err());
}

#[test]
fn defaults_are_filled_in() {
    let full = check(&schema(), &json!({ "ip": "10.0.0.2/24" })).unwrap();
    assert_eq!(full, json!({ "ip": "10.0.0.2/24", "mtu": 1500, "mode": "compute", "ports": [], "nested": { "cache-entries": 0 } }));
    assert!(serde_json::from_value::<Params>(full.clone()).is_ok());
    assert_eq!(check(&schema(), &full).unwrap(), full, "canonical form is stable");
}

#[test]
fn each_kind_of_mistake_is_named_at_its_place() {
    one(json!({}), "GW0313", "", "`ip` is missing");
    one(json!({ "ip": "1.2.3.4/24", "mtuu": 1 }), "GW0311", "/mtuu", "did you mean `mtu`?");
    one(json!({ "ip": "1.2.3.4/24", "mtu": 9001 }), "GW0312", "/mtu", "576 to 9000");
    one(json!({ "ip": "1.2.3.4/24", "mtu": "1500" }), "GW0312", "/mtu", "an integer should be");
    one(json!({ "ip": "1.2.3.4/24", "mtu": 1500.5 }), "GW0312", "/mtu", "an integer should be");
    one(json!({ "ip": "here" }), "GW0312", "/ip", "IPv4 address and prefix length");
    one(json!({ "ip": "1.2.3.4/24", "mode": "compte" }), "GW0312", "/mode", "did you mean `compute`?");
    one(json!({ "ip": "1.2.3.4/24", "ports": [1, 70_000] }), "GW0312", "/ports/1", "at most 65535");
    one(json!({ "ip": "1.2.3.4/24", "ports": [1, 2, 3, 4] }), "GW0312", "/ports", "at most 3");
    one(json!({ "ip": "1.2.3.4/24", "nested": { "cache-entries": 256 } }), "GW0312", "/nested/cache-entries", "at most 255");
    one(json!({ "ip": "1.2.3.4/24", "nested": { "cache-entrys": 2 } }), "GW0311", "/nested/cache-entrys", "cache-entries");
    one(json!({ "ip": "1.2.3.4/24", "gateway": 7 }), "GW0312", "/gateway", "a string should be");
    one(json!({ "ip": "1.2.3.4/24", "phy": { "type": "rgmii", "delay_ps": -1 } }), "GW0312", "/phy/delay_ps", "at least 0");
    one(json!([]), "GW0312", "", "a table should be");
}

#[test]
fn all_mistakes_of_one_table_are_found() {
    let found = problems(json!({ "mtu": 1, "mode": "x", "zzz": 1 }));
    let codes: Vec<&str> = found.iter().map(|f| f.0.as_str()).collect();
    assert_eq!(codes, ["GW0312", "GW0312", "GW0311", "GW0313"], "{found:?}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    /// Any JSON as schema and as parameters ends in an answer.
    #[test]
    fn nothing_panics(schema in any_json(), params in any_json()) {
        let _ = check_schema(&schema);
        let _ = check(&schema, &params);
    }
}

fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let words = "(type|object|integer|string|properties|required|items|\\$ref|#|#/\\$defs/a|\\$defs|a|b|enum|const|anyOf|oneOf|minimum|default|pattern|\\()";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        words.prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(words, inner, 0..5).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}
