//! Reads schemas of the OpenAPI document: an object's fields, and the description of a value.

use std::collections::BTreeSet;

use serde_json::Value;

/// The OpenAPI document, which resolves references.
#[derive(Clone, Copy)]
pub struct Document<'a>(pub &'a Value);

/// A field of an object or of a nested object.
pub struct Field {
    /// With the names of the enclosing fields, like `reports[].cost`.
    pub name: String,
    pub required: bool,
    pub meaning: String,
}

/// The maximum depth of nested fields.
const DEPTH_MAX: usize = 1;

impl<'a> Document<'a> {
    /// Returns a schema and its description. Follows references and drops the null alternative. A
    /// description next to the reference takes precedence.
    fn resolved(self, schema: &'a Value) -> (&'a Value, Option<&'a str>) {
        let own = schema["description"].as_str();
        if let Some(pointer) = schema["$ref"].as_str().and_then(|at| at.strip_prefix('#')) {
            let found = self.0.pointer(pointer).unwrap_or(&Value::Null);
            let (found, described) = self.resolved(found);
            return (found, own.or(described));
        }
        let choices = list(&schema["oneOf"]);
        let mut values = choices.iter().filter(|choice| choice["type"] != "null");
        match (values.next(), values.next()) {
            (Some(only), None) => {
                let (found, described) = self.resolved(only);
                (found, own.or(described))
            }
            _ => (schema, own),
        }
    }

    pub fn meaning(self, schema: &'a Value) -> String {
        let (schema, description) = self.resolved(schema);
        if !schema["items"].is_null() {
            let items = self.meaning(&schema["items"]);
            let list = [description.unwrap_or("A list."), &items];
            return sentences(list.into_iter().map(str::to_owned));
        }
        let description = description.map(|text| text.replace('\n', " "));
        let mut words: Vec<String> = list(&schema["enum"]).iter().map(plain).collect();
        // A string and a JSON value can look the same.
        let mut seen = BTreeSet::new();
        words.retain(|word| seen.insert(word.clone()));
        let choice = match words.as_slice() {
            [] => None,
            [only] => Some(format!("Always {only}.")),
            several => Some(format!("One of {}.", several.join(", "))),
        };
        let range = |least: &str, most: &str, unit| {
            let (least, most) = (schema[least].as_u64(), schema[most].as_u64()?);
            Some(format!("{} to {most}{unit}.", least.unwrap_or_default()))
        };
        let default = &schema["default"];
        let default = (!default.is_null()).then(|| format!("Defaults to {}.", plain(default)));
        let parts = [
            description,
            choice,
            range("minLength", "maxLength", " characters"),
            range("minimum", "maximum", ""),
            default,
        ];
        sentences(parts.into_iter().flatten())
    }

    /// Returns the fields of an object and of its nested objects.
    pub fn fields(self, schema: &'a Value) -> Vec<Field> {
        let mut fields = Vec::new();
        self.add_fields(schema, "", 0, &mut fields);
        fields
    }

    fn add_fields(self, schema: &'a Value, prefix: &str, depth: usize, fields: &mut Vec<Field>) {
        let (schema, _) = self.resolved(schema);
        for part in list(&schema["allOf"]) {
            self.add_fields(part, prefix, depth, fields);
        }
        let required = list(&schema["required"]);
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let (inner, _) = self.resolved(member);
            let (inner, end) = match &inner["items"] {
                Value::Null => (inner, ""),
                items => (items, "[]"),
            };
            let full = format!("{prefix}{name}{end}");
            fields.push(Field {
                name: full.clone(),
                required: required.iter().any(|word| word == name),
                meaning: self.meaning(member),
            });
            if depth < DEPTH_MAX {
                self.add_fields(inner, &format!("{full}."), depth + 1, fields);
            }
        }
    }

    /// Returns the alternative forms of an object: description and schema.
    pub fn ways(self, schema: &'a Value) -> Vec<(Option<&'a str>, &'a Value)> {
        let (schema, _) = self.resolved(schema);
        let ways = list(&schema["oneOf"]);
        if ways.is_empty() {
            return vec![(None, schema)];
        }
        let ways = ways.iter().map(|way| self.resolved(way));
        ways.map(|(way, description)| (description, way)).collect()
    }

    pub fn example(self, schema: &'a Value) -> Option<String> {
        let (schema, _) = self.resolved(schema);
        let example = schema.get("example").or(schema["examples"].get(0));
        example.map(plain)
    }
}

/// Returns the entries of a list, or nothing if the value isn't a list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Formats a value as in a request: a string without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn sentences(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Document;

    #[test]
    fn a_schema_is_told_in_words() {
        let document = json!({"components": {"schemas": {
            "Id": {"type": "string", "description": "An id.", "examples": ["i_1"]},
            "Limit": {
                "type": "integer", "description": "Most entries.", "minimum": 1, "maximum": 1000,
                "default": 100,
            },
            "Thing": {
                "allOf": [
                    {"properties": {"code": {"enum": [200]}}, "required": ["code"]},
                    {"properties": {
                        "id": {"oneOf": [
                            {"$ref": "#/components/schemas/Id", "description": "Null at first."},
                            {"type": "null"},
                        ]},
                        "steps": {"type": "array", "items": {
                            "properties": {"kind": {"enum": ["true", true, "b"]}},
                        }},
                    }},
                ],
            },
        }}});
        let document = Document(&document);
        let limit = json!({"$ref": "#/components/schemas/Limit"});
        assert_eq!(document.meaning(&limit), "Most entries. 1 to 1000. Defaults to 100.");
        let id = json!({"$ref": "#/components/schemas/Id"});
        assert_eq!(document.example(&id).as_deref(), Some("i_1"));
        let thing = json!({"$ref": "#/components/schemas/Thing"});
        let fields = document.fields(&thing);
        let told: Vec<_> = fields
            .iter()
            .map(|field| (field.name.as_str(), field.required, field.meaning.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("code", true, "Always 200."),
                ("id", false, "Null at first."),
                ("steps[]", false, "A list."),
                ("steps[].kind", false, "One of true, b."),
            ]
        );
    }
}
