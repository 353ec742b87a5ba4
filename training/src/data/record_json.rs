//! Writes the fields of a record.

use serde_json::{Map, Value};

/// Sets a field; `a.b` is field `b` of the object `a`.
pub fn set_field(record: &mut Value, field: &str, value: Value) {
    let mut place = record;
    for name in field.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_fields_are_written_as_they_are_read() {
        let mut record = json!({});
        set_field(&mut record, "message.label", "joy".into());
        set_field(&mut record, "message.text", "well done".into());
        assert_eq!(record, json!({ "message": { "label": "joy", "text": "well done" } }));
    }
}
