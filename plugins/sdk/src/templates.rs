//! Fragments that module parameters cannot express.

use handlebars::Handlebars;
use serde::Serialize;

use crate::Diagnostic;

/// Renders a Handlebars template. Nothing is escaped; a name that `data` lacks is an error.
///
/// Every global name in the result must start with [`Plan::prefix`](crate::Plan::prefix).
///
/// # Errors
/// One diagnostic with line and column in the template.
pub fn render(template: &str, data: &impl Serialize) -> Result<String, Vec<Diagnostic>> {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(handlebars::no_escape);
    handlebars
        .render_template(template, data)
        .map_err(|e| vec![Diagnostic::error("template", "", format!("the template does not render: {e}"))])
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn renders_without_escaping() {
        let text = render("{{#each lanes}}assign {{this}};\n{{/each}}", &serde_json::json!({ "lanes": ["a = b & c", "d = e"] }));
        assert_eq!(text.unwrap(), "assign a = b & c;\nassign d = e;\n");
    }

    #[test]
    fn a_missing_name_is_an_error() {
        let error = render("{{absent}}", &serde_json::json!({})).unwrap_err();
        assert!(error[0].message.contains("absent"), "{error:?}");
    }
}
