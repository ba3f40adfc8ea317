//! `template.yaml`, for tests that compare with it what stands again elsewhere.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value};

/// The template of the checkout that the tests run in, as JSON. A tagged value such as `!Ref Name` is an object with the tag's
/// name: `{"Ref": "Name"}`.
///
/// Asked for at run time, since a target folder may serve several checkouts.
///
/// # Errors
/// When there is no template two folders above the package that runs, or it is no YAML.
pub fn template() -> Result<Value> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").context("not run by cargo")?;
    let text = fs::read_to_string(Path::new(&package).join("../../template.yaml"))?;
    let documents = Yaml::load_from_str(&text)?;
    json(documents.first().context("the template is empty")?)
}

fn json(yaml: &Yaml<'_>) -> Result<Value> {
    Ok(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(value)) => Value::from(*value),
        Yaml::Value(Scalar::Integer(value)) => Value::from(*value),
        Yaml::Value(Scalar::FloatingPoint(value)) => Value::from(**value),
        Yaml::Value(Scalar::String(value)) => Value::from(&**value),
        Yaml::Sequence(items) => Value::Array(items.iter().map(json).collect::<Result<_>>()?),
        Yaml::Mapping(entries) => {
            let entry = |(key, value): (&Yaml<'_>, &Yaml<'_>)| {
                Ok((key.as_str().context("a key is no text")?.to_owned(), json(value)?))
            };
            Value::Object(entries.iter().map(entry).collect::<Result<_>>()?)
        }
        Yaml::Tagged(tag, value) => Value::Object(Map::from_iter([(tag.suffix.clone(), json(value)?)])),
        other => bail!("the template holds what is no value: {other:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_kept_by_name() {
        let documents = Yaml::load_from_str("a: !Ref B\nc: [1, true, !GetAtt D.Arn]").unwrap();
        let expected = serde_json::json!({"a": {"Ref": "B"}, "c": [1, true, {"GetAtt": "D.Arn"}]});
        assert_eq!(json(&documents[0]).unwrap(), expected);
    }
}
