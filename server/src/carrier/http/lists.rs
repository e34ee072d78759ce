//! Posts that have a list of receipts or messages.

use serde_json::Value;

/// Splits a post with lists into posts with one entry each. Without a leading slash in `name`, only
/// a post that is a list is split. Otherwise `name` is a JSON pointer, and each list whose entry 0
/// it names is split. Each new post keeps the fields beside the lists.
pub(super) fn each(post: Value, name: &str) -> Vec<Value> {
    if !name.starts_with('/') {
        return match post {
            Value::Array(entries) if !entries.is_empty() => entries,
            post => vec![post],
        };
    }
    let ends = name.match_indices("/0").map(|(end, _)| (&name[..end], &name[end + 2..]));
    let paths: Vec<&str> = ends
        .filter(|(_, rest)| rest.is_empty() || rest.starts_with('/'))
        .map(|(path, _)| path)
        .collect();
    split(post, &paths)
}

fn split(mut post: Value, paths: &[&str]) -> Vec<Value> {
    let Some((path, deeper)) = paths.split_first() else {
        return vec![post];
    };
    let list = post.pointer_mut(path).and_then(Value::as_array_mut);
    let Some(entries) = list.map(std::mem::take).filter(|entries| !entries.is_empty()) else {
        return vec![post];
    };
    let with = |entry| {
        let mut one = post.clone();
        if let Some(list) = one.pointer_mut(path).and_then(Value::as_array_mut) {
            list.push(entry);
        }
        split(one, deeper)
    };
    entries.into_iter().flat_map(with).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_split_with_what_is_beside_it() {
        let two = json!([{"id": 1}, {"id": 2}]);
        for (name, post, split) in [
            ("id", json!({"id": 1}), vec![json!({"id": 1})]),
            ("id", two.clone(), vec![json!({"id": 1}), json!({"id": 2})]),
            ("/0/id", two.clone(), vec![json!([{"id": 1}]), json!([{"id": 2}])]),
            (
                "/r/0/id",
                json!({"r": two, "x": "y"}),
                vec![json!({"r": [{"id": 1}], "x": "y"}), json!({"r": [{"id": 2}], "x": "y"})],
            ),
            (
                "/0/r/0/id",
                json!([{"r": two}, {"r": [{"id": 3}]}]),
                vec![
                    json!([{"r": [{"id": 1}]}]),
                    json!([{"r": [{"id": 2}]}]),
                    json!([{"r": [{"id": 3}]}]),
                ],
            ),
            ("id", json!([]), vec![json!([])]),
            ("/r/01/id", json!({"r": two}), vec![json!({"r": two})]),
            ("/r/0/id", json!({"r": []}), vec![json!({"r": []})]),
            ("/r/0/id", json!({"r": "x"}), vec![json!({"r": "x"})]),
            ("/0/id", json!(7), vec![json!(7)]),
        ] {
            assert_eq!(each(post, name), split, "{name}");
        }
    }
}
