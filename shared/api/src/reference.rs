//! The OpenAPI document as a page for people, with nothing to load: each route with what it takes and answers, each body with its
//! fields.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// What a browser may load for it: no script, no picture, nothing of another address.
pub(crate) const CONTENT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}\
    code{font-family:ui-monospace,monospace;font-size:.92em}table{border-collapse:collapse;width:100%;margin:.5rem 0 1rem}\
    th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid #ddd}section{margin:2rem 0}\
    h3{border-top:2px solid #ddd;padding-top:1rem}nav ul{columns:2;list-style:none;padding:0}a{color:#0b5cad}\
    @media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}a{color:#7db8f0}th,td,h3{border-color:#444}}";
const NOTHING: &Value = &Value::Null;

/// A route with one of its methods.
struct Operation<'d> {
    method: String,
    path: &'d str,
    told: &'d Value,
}

/// The page of a document.
pub(crate) fn page(document: &Value) -> String {
    let info = &document["info"];
    let operations = operations(document);
    let mut tags: Vec<&str> = operations.iter().map(|operation| operation.tag()).collect();
    tags.sort_unstable();
    tags.dedup();
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title} API</title><style>{STYLE}</style><h1>{title} API {version}</h1><p>{description}</p>\
         <p>The same for programs: <a href=\"/v1/openapi.json\">openapi.json</a></p><nav>",
        title = escaped(text(&info["title"])),
        version = escaped(text(&info["version"])),
        description = prose(text(&info["description"])),
    );
    for tag in &tags {
        let _ = write!(page, "<h2>{}</h2><ul>", escaped(tag));
        for operation in operations.iter().filter(|operation| operation.tag() == *tag) {
            let id = escaped(text(&operation.told["operationId"]));
            let _ = write!(page, "<li><a href=\"#{id}\"><code>{}</code></a></li>", operation.name());
        }
        page.push_str("</ul>");
    }
    page.push_str("</nav>");
    for tag in tags {
        let of_tag = operations.iter().filter(|operation| operation.tag() == tag);
        of_tag.for_each(|operation| operation.show(&mut page));
    }
    page.push_str("<h2>Bodies</h2>");
    for (name, schema) in members(document.pointer("/components/schemas").unwrap_or(NOTHING)) {
        show_schema(name, schema, &mut page);
    }
    page
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut all = Vec::new();
    for (path, methods) in members(&document["paths"]) {
        let each = members(methods);
        all.extend(each.map(|(method, told)| Operation { method: method.to_uppercase(), path, told }));
    }
    all
}

impl<'d> Operation<'d> {
    fn tag(&self) -> &'d str {
        text(self.told.pointer("/tags/0").unwrap_or(NOTHING))
    }

    fn name(&self) -> String {
        format!("{} {}", escaped(&self.method), escaped(self.path))
    }

    fn show(&self, page: &mut String) {
        let told = self.told;
        let id = escaped(text(&told["operationId"]));
        let _ = write!(page, "<section id=\"{id}\"><h3><code>{}</code></h3>", self.name());
        for part in ["summary", "description"] {
            if !told[part].is_null() {
                let _ = write!(page, "<p>{}</p>", prose(text(&told[part])));
            }
        }
        let key = match &told["security"] {
            Value::Null => "A key of a client.",
            open if open[0] == Value::Object(Map::new()) => "No key is needed.",
            _ => "The admin key.",
        };
        let _ = write!(page, "<p>{key}</p>");
        let parameters = told["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !parameters.is_empty() {
            page.push_str("<table><tr><th>parameter</th><th>where</th><th>type</th><th></th></tr>");
            for parameter in parameters {
                let _ = write!(
                    page,
                    "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                    escaped(text(&parameter["name"])),
                    escaped(text(&parameter["in"])),
                    kind(&parameter["schema"]),
                    prose(text(&parameter["description"])),
                );
            }
            page.push_str("</table>");
        }
        if let Some(body) = schema_of(&told["requestBody"]) {
            let _ = write!(page, "<p>Body: {}</p>", kind(body));
        }
        page.push_str("<table><tr><th>answer</th><th>body</th><th></th></tr>");
        for (status, response) in members(&told["responses"]) {
            let (status, body, description) = match response["$ref"].is_null() {
                true => {
                    let body = schema_of(response).map(kind).unwrap_or_default();
                    (status.as_str(), body, text(&response["description"]))
                }
                false => ("any other", link("Problem"), "It names the field, the value and the fix"),
            };
            let _ = write!(
                page,
                "<tr><td>{}</td><td>{body}</td><td>{}</td></tr>",
                escaped(status),
                prose(description)
            );
        }
        page.push_str("</table></section>");
    }
}

fn show_schema(name: &str, schema: &Value, page: &mut String) {
    let _ = write!(page, "<section id=\"{}\"><h3><code>{}</code></h3>", anchor(name), escaped(name));
    let _ = write!(page, "<p>{}</p>", prose(text(&schema["description"])));
    let required: Vec<&str> =
        schema["required"].as_array().map(|names| names.iter().map(text).collect()).unwrap_or_default();
    if schema["properties"].is_null() {
        let _ = write!(page, "<p>{}</p>", kind(schema));
    } else {
        page.push_str("<table><tr><th>field</th><th>type</th><th></th></tr>");
        for (field, told) in members(&schema["properties"]) {
            let must = if required.contains(&field.as_str()) { "" } else { " (may be left out)" };
            let _ = write!(
                page,
                "<tr><td><code>{}</code></td><td>{}{must}</td><td>{}</td></tr>",
                escaped(field),
                kind(told),
                prose(text(description(told))),
            );
        }
        page.push_str("</table>");
    }
    page.push_str("</section>");
}

/// Where a field is described: beside its type, or beside what that refers to.
fn description(told: &Value) -> &Value {
    if !told["description"].is_null() {
        return &told["description"];
    }
    let parts = ["oneOf", "allOf", "anyOf"].iter().filter_map(|of| told[*of].as_array()).flatten();
    parts.map(|part| &part["description"]).find(|text| !text.is_null()).unwrap_or(NOTHING)
}

/// The type of what a schema describes, with its bounds.
fn kind(schema: &Value) -> String {
    let mut kind = match schema["$ref"].as_str() {
        Some(reference) => link(reference.rsplit('/').next().unwrap_or_default()),
        None => kind_of_parts(schema),
    };
    for (name, says) in [
        ("minimum", "from"),
        ("maximum", "to"),
        ("maxLength", "of at most"),
        ("maxItems", "at most"),
        ("default", "default"),
    ] {
        if !schema[name].is_null() {
            let _ = write!(kind, ", {says} <code>{}</code>", escaped(&schema[name].to_string()));
        }
    }
    kind
}

fn kind_of_parts(schema: &Value) -> String {
    for of in ["oneOf", "anyOf", "allOf"] {
        if let Some(parts) = schema[of].as_array() {
            let parts = parts.iter().map(kind).filter(|part| !part.is_empty());
            return parts.collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().map(|word| format!("<code>{}</code>", escaped(&word.to_string())));
        return words.collect::<Vec<_>>().join(", ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect(),
        one => vec![text(one)],
    };
    let named = types.iter().filter(|name| !name.is_empty()).map(|name| match *name {
        "array" => format!("list of {}", kind(&schema["items"])),
        "string" if schema["format"] == "date-time" => "instant".to_owned(),
        other => escaped(other),
    });
    named.collect::<Vec<_>>().join(" or ")
}

/// The schema of a body, whatever its media type is.
fn schema_of(told: &Value) -> Option<&Value> {
    members(&told["content"]).next().map(|(_, content)| &content["schema"])
}

fn link(name: &str) -> String {
    format!("<a href=\"#{}\">{}</a>", anchor(name), escaped(name))
}

fn anchor(name: &str) -> String {
    format!("body-{}", escaped(name))
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text with what stands between backticks as code.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    parts.collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::openapi_json;

    /// What follows each `before` up to the next quotation mark.
    fn all<'p>(page: &'p str, before: &str) -> BTreeSet<&'p str> {
        page.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn every_route_and_every_body_is_on_the_page_and_every_link_leads_somewhere() {
        let document: Value = serde_json::from_str(openapi_json()).unwrap();
        let page = page(&document);
        let anchors = all(&page, " id=\"");
        for operation in operations(&document) {
            assert!(anchors.contains(text(&operation.told["operationId"])), "{}", operation.name());
        }
        for (name, _) in members(&document["components"]["schemas"]) {
            assert!(anchors.contains(&*anchor(name)), "{name}");
        }
        let links = all(&page, "href=\"#");
        assert!(links.len() > 100, "{}", links.len());
        assert_eq!(links.difference(&anchors).collect::<Vec<_>>(), [&""; 0]);
    }

    #[test]
    fn what_the_document_says_is_text_and_never_markup() {
        let document = json!({
            "info": {"title": "<b>", "version": "1", "description": "a < `b<c` & \"d\""},
            "paths": {"/v1/<x>": {"get": {"tags": ["t"], "operationId": "o", "security": [{}], "responses": {}}}},
            "components": {"schemas": {"S": {"properties": {"f": {"type": ["array", "null"], "items": {"type": "integer", "maximum": 3}}}}}},
        });
        let page = page(&document);
        assert!(page.contains("a &lt; <code>b&lt;c</code> &amp; &quot;d&quot;"), "{page}");
        assert!(
            page.contains("GET /v1/&lt;x&gt;") && !page.contains("<x>") && !page.contains("<b>"),
            "{page}"
        );
        assert!(page.contains("list of integer, to <code>3</code> or null (may be left out)"), "{page}");
        assert!(page.contains("No key is needed."), "{page}");
    }
}
