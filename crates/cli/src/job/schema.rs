//! The job file's JSON Schema, for editors.

use serde_json::{Value, json};

use super::{conf, read};

/// The schema, with the same keys that the reader knows.
pub(crate) fn schema() -> Value {
    let options = json!({
        "type": "object",
        "description": "Spark's option names, case-insensitive",
        "additionalProperties": { "type": ["string", "number", "boolean", "object"] }
    });
    let duration = json!({ "type": "string", "examples": ["250ms", "10s", "1 minute 30 seconds"] });
    let mut sink_options = options.clone();
    sink_options["properties"] = json!({ "checkpointLocation": {
        "type": "string", "description": "a path or file:// URL; one job, one checkpoint" } });
    let confs: serde_json::Map<String, Value> = conf::KNOWN
        .iter()
        .map(|key| {
            (
                (*key).to_owned(),
                json!({ "type": ["string", "number", "boolean"] }),
            )
        })
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Baton job",
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "source", "query", "sink"],
        "properties": {
            "name": { "type": "string", "pattern": "^([A-Za-z0-9._-]|\\$\\{[^}]*\\})+$" },
            "version": { "type": "string", "description": "default: short hash of the file" },
            "source": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["format"],
                    "properties": { "format": { "enum": ["kafka"] }, "options": options }
                }
            },
            "query": {
                "type": "object",
                "additionalProperties": false,
                "minProperties": 1,
                "maxProperties": 1,
                "properties": {
                    "sql": { "type": "string" },
                    "file": { "type": "string", "description": "relative to the job file" }
                }
            },
            "sink": {
                "type": "object",
                "additionalProperties": false,
                "required": ["format"],
                "properties": {
                    "format": { "enum": read::SINKS },
                    "outputMode": { "enum": ["append", "update", "complete"], "default": "append" },
                    "options": sink_options
                }
            },
            "trigger": {
                "type": "object",
                "additionalProperties": false,
                "maxProperties": 1,
                "properties": {
                    "processingTime": duration,
                    "availableNow": { "const": true },
                    "once": { "const": true }
                }
            },
            "ownership": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "ifOwned": { "enum": ["fail", "wait", "takeover", "force"], "default": "fail" },
                    "handover": { "enum": ["allow", "deny"], "default": "allow" },
                    "stopTimeout": duration,
                    "rollbackBatches": { "const": 0 }
                }
            },
            "conf": { "type": "object", "properties": confs }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_every_key_that_the_reader_takes() {
        let schema = schema();
        let check = |pointer: &str, keys: &[&str]| {
            let properties = schema
                .pointer(pointer)
                .and_then(Value::as_object)
                .expect("an object");
            for key in keys.iter().filter(|key| **key != "watermark") {
                assert!(properties.contains_key(*key), "{pointer} lacks {key}");
            }
        };
        check("/properties", &read::TOP);
        check(
            "/properties/source/additionalProperties/properties",
            &read::SOURCE,
        );
        check("/properties/query/properties", &read::QUERY);
        check("/properties/sink/properties", &read::SINK);
        check("/properties/trigger/properties", &read::TRIGGER);
        check("/properties/ownership/properties", &read::OWNERSHIP);
    }
}
