//! API calls, as the OpenAPI document describes them.

use serde_json::Value;

use super::schema::{Document, list};

/// An API call.
pub struct Call<'a> {
    document: Document<'a>,
    /// In upper case.
    pub method: String,
    pub path: &'a str,
    operation: &'a Value,
}

/// A way to make a call. There is one for each alternative of the body's schema.
pub struct Way<'a> {
    pub about: Option<&'a str>,
    pub parameters: Vec<Parameter<'a>>,
}

/// A parameter of a call, in any of its positions.
pub struct Parameter<'a> {
    pub name: &'a str,
    /// The positions of the parameter, such as `query`.
    pub places: Vec<&'a str>,
    pub required: bool,
    pub meaning: String,
    pub example: Option<String>,
}

/// Returns the calls with the key in the path. All other calls are the same ones with the key in a
/// header.
pub fn calls(document: &Value) -> Vec<Call<'_>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let with_key = paths.filter(|(path, _)| path.contains("{key}"));
    let calls = with_key.flat_map(|(path, operations)| {
        let operations = operations.as_object().into_iter().flatten();
        operations.map(|(method, operation)| Call {
            document: Document(document),
            method: method.to_uppercase(),
            path,
            operation,
        })
    });
    calls.collect()
}

impl<'a> Call<'a> {
    /// Returns the path segment that names the resource.
    pub fn subject(&self) -> &'a str {
        self.path.split('/').nth(2).unwrap_or_default()
    }

    pub fn id(&self) -> &'a str {
        self.operation["operationId"].as_str().unwrap_or_default()
    }

    pub fn summary(&self) -> &'a str {
        self.operation["summary"].as_str().unwrap_or_default()
    }

    pub fn description(&self) -> Option<&'a str> {
        self.operation["description"].as_str()
    }

    pub fn about_body(&self) -> Option<&'a str> {
        self.operation["requestBody"]["description"].as_str()
    }

    /// Returns the media types of the body.
    pub fn kinds_of_body(&self) -> Vec<&'a str> {
        let kinds = self.operation["requestBody"]["content"].as_object();
        kinds.into_iter().flatten().map(|(kind, _)| kind.as_str()).collect()
    }

    /// Returns the first form of the body, or null.
    fn body(&self) -> &'a Value {
        let bodies = self.operation["requestBody"]["content"].as_object();
        bodies.and_then(|bodies| bodies.values().next()).unwrap_or(&Value::Null)
    }

    /// Returns the ways to make the call, without the key. Required parameters come first.
    pub fn ways(&self) -> Vec<Way<'a>> {
        let ways = self.document.ways(&self.body()["schema"]);
        let names = |schema: &'a Value| {
            let members = schema["properties"].as_object().into_iter().flatten();
            members.map(|(name, _)| name.as_str())
        };
        let of_bodies: Vec<&str> = ways.iter().flat_map(|(_, schema)| names(schema)).collect();
        let made = ways.into_iter().map(|(about, schema)| {
            let own: Vec<&str> = names(schema).collect();
            // Skip parameters that only another way's body has.
            let is_others = |name| of_bodies.contains(&name) && !own.contains(&name);
            let outside = self.outside().filter(|parameter| !is_others(parameter.name));
            let mut way = Way { about, parameters: Vec::new() };
            (outside.chain(self.in_body(schema))).for_each(|parameter| way.add(parameter));
            way.parameters.sort_by_key(|parameter| !parameter.required);
            way
        });
        made.collect()
    }

    fn in_body(&self, schema: &'a Value) -> impl Iterator<Item = Parameter<'a>> {
        let document = self.document;
        let required = list(&schema["required"]);
        let members = schema["properties"].as_object().into_iter().flatten();
        members.map(move |(name, member)| Parameter {
            name,
            places: vec!["body"],
            required: required.iter().any(|word| word == name),
            meaning: document.meaning(member),
            example: document.example(member),
        })
    }

    /// Returns the parameters in the address and the headers, without the key.
    fn outside(&self) -> impl Iterator<Item = Parameter<'a>> {
        let document = self.document;
        let parameters = list(&self.operation["parameters"])
            .iter()
            .filter(|parameter| parameter["name"] != "key");
        parameters.map(move |parameter| {
            let meaning = document.meaning(&parameter["schema"]);
            Parameter {
                name: parameter["name"].as_str().unwrap_or_default(),
                places: parameter["in"].as_str().into_iter().collect(),
                required: parameter["required"] == true,
                meaning: match parameter["description"].as_str() {
                    Some(description) => format!("{description} {meaning}"),
                    None => meaning,
                },
                example: document.example(&parameter["schema"]),
            }
        })
    }

    fn answer(&self) -> &'a Value {
        let contents = &self.operation["responses"]["200"]["content"];
        &contents["application/json"]
    }

    /// Returns an example of the 200 response.
    pub fn example(&self) -> Option<String> {
        let example = self.answer().get("example")?;
        serde_json::to_string_pretty(example).ok()
    }

    /// Returns the fields of the 200 response.
    pub fn fields(&self) -> Vec<super::schema::Field> {
        self.document.fields(&self.answer()["schema"])
    }

    /// Returns the other responses: HTTP status and reasons.
    pub fn refusals(&self) -> Vec<(&'a str, Vec<&'a str>)> {
        let answers = self.operation["responses"].as_object().into_iter().flatten();
        let refused = answers.filter(|(status, _)| *status != "200");
        let reasons = refused.map(|(status, answer)| {
            // Each reason has an example under its code.
            let examples = answer["content"]["application/json"]["examples"].as_object();
            let words = examples.into_iter().flatten();
            let words = words.map(|(word, _)| word.as_str()).collect();
            (status.as_str(), words)
        });
        reasons.collect()
    }

    /// Returns the curl command for the call, with its required parameters and those in the example
    /// of its body.
    pub fn curl(&self, way: &Way<'_>, base_url: &str, key: &str) -> String {
        let required = || way.parameters.iter().filter(|parameter| parameter.required);
        let mut path = self.path.replace("{key}", key);
        for parameter in required().filter(|parameter| parameter.places == ["path"]) {
            let example = parameter.example.as_deref().unwrap_or_default();
            path = path.replace(&format!("{{{}}}", parameter.name), example);
        }
        let in_example = self.body()["example"].as_object().into_iter().flatten();
        let in_example =
            in_example.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
        let given: Vec<_> = required()
            .filter(|parameter| parameter.places != ["path"])
            .map(|parameter| (parameter.name, parameter.example.as_deref().unwrap_or_default()))
            .chain(in_example)
            .collect();
        // A text of several lines is sent as a file.
        let has_file = given.iter().any(|(_, example)| example.contains('\n'));
        let get = if self.method == "GET" && !given.is_empty() { "--get " } else { "" };
        let mut command = format!("curl --retry 3 {get}{base_url}{path}");
        if (way.parameters.iter()).any(|parameter| parameter.name == "Idempotency-Key") {
            command += " \\\n  --header \"Idempotency-Key: order-$(date +%s)-$$\"";
        }
        for (name, example) in given {
            let (option, value) = if example.contains('\n') {
                ("--form", format!("@{name}.txt"))
            } else if has_file {
                ("--form", example.to_owned())
            } else {
                ("--data-urlencode", example.to_owned())
            };
            command.extend([" \\\n  ", option, " '", name, "=", &value, "'"]);
        }
        command
    }
}

impl<'a> Way<'a> {
    /// Adds a parameter, or another position if the parameter is already there.
    fn add(&mut self, parameter: Parameter<'a>) {
        let known = self.parameters.iter_mut().find(|known| known.name == parameter.name);
        match known {
            Some(known) => {
                known.places.extend(parameter.places);
                known.required |= parameter.required;
                // The longer description includes the shorter one.
                if parameter.meaning.len() > known.meaning.len() {
                    known.meaning = parameter.meaning;
                }
            }
            None => self.parameters.push(parameter),
        }
    }
}
