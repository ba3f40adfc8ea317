//! Versions of Tidegate that a region runs one after the other, and side by side while one is deployed.
//!
//! There is one engine to run. Of later versions is known what `docs/decisions/0022-rows-that-live-long.md` allows them:
//! attributes of rows, and members of documents and messages, that this one does not know; and two versions on, another
//! format. So a process of a later version is today's, with what it writes changed on its way out, and what it reads on its
//! way in.

use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use serde_json::{Map, Value, json};
use tidegate_store::FORMAT;

use crate::reply::Answer;

/// What only later versions know: the name of an attribute, and of a member.
pub(crate) const MOON: &str = "moon";
/// The attribute, and the member of a message, that says the format.
const FORMAT_NAME: &str = "v";
/// Documents in rows, to which a later version may add.
const DOCUMENTS: [&str; 3] = ["terms", "rules", "excluded"];

/// A version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    /// This one.
    #[default]
    This,
    /// The next one: it writes what this one does not know, and reads the format of the one after it.
    Next,
    /// The one after that: it writes its own format.
    AfterNext,
}

impl Version {
    /// The format that it writes.
    fn writes(self) -> u32 {
        if self == Self::AfterNext { FORMAT + 1 } else { FORMAT }
    }

    /// A request to the tables, as this version writes it.
    pub(crate) fn writes_rows(self, request: HttpRequest) -> HttpRequest {
        if self == Self::This {
            return request;
        }
        changed(request, |body| {
            let tables = body.get_mut("RequestItems").and_then(Value::as_object_mut).into_iter().flatten();
            for write in tables.filter_map(|(_, writes)| writes.as_array_mut()).flatten() {
                self.puts(write.pointer_mut("/PutRequest/Item"));
            }
            for action in members(body, "TransactItems") {
                self.puts(action.pointer_mut("/Put/Item"));
                if let Some(update) = action.get_mut("Update") {
                    self.updates(update);
                }
            }
            self.puts(body.get_mut("Item"));
            self.updates(body);
        })
    }

    /// A row that is written whole.
    fn puts(self, item: Option<&mut Value>) {
        let Some(item) = item.and_then(Value::as_object_mut) else { return };
        for name in DOCUMENTS {
            renew(item.get_mut(name));
        }
        item.insert(MOON.to_owned(), json!({"S": "full"}));
        if self.writes() != FORMAT {
            item.insert(FORMAT_NAME.to_owned(), json!({"N": self.writes().to_string()}));
        }
    }

    /// A row that is changed where it stands.
    fn updates(self, update: &mut Value) {
        let Some(expression) = update.get("UpdateExpression").and_then(Value::as_str) else { return };
        let format = if self.writes() == FORMAT { "" } else { "#next_format = :next_format, " };
        let sets = format!("SET {format}#moon = :moon");
        let expression = match expression.split_once("SET ") {
            Some((before, after)) => format!("{before}{sets}, {after}"),
            None => format!("{expression} {sets}"),
        };
        update["UpdateExpression"] = expression.into();
        let map = |name: &str| update.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut names = map("ExpressionAttributeNames");
        let mut values = map("ExpressionAttributeValues");
        for (placeholder, _) in names.iter().filter(|(_, name)| DOCUMENTS.iter().any(|known| *name == known))
        {
            renew(values.get_mut(&placeholder.replacen('#', ":", 1)));
        }
        names.insert("#moon".to_owned(), MOON.into());
        values.insert(":moon".to_owned(), json!({"S": "full"}));
        if !format.is_empty() {
            names.insert("#next_format".to_owned(), FORMAT_NAME.into());
            values.insert(":next_format".to_owned(), json!({"N": self.writes().to_string()}));
        }
        update["ExpressionAttributeNames"] = names.into();
        update["ExpressionAttributeValues"] = values.into();
    }

    /// An answer of the tables, as this version reads it: rows of a format that it knows look like those of its own.
    pub(crate) fn reads_rows(self, answer: Answer) -> Answer {
        let answer = answer?;
        let newer = format!(r#""{FORMAT_NAME}":{{"N":"{}"}}"#, FORMAT + 1);
        let Some(text) = answer.body().bytes().and_then(|body| str::from_utf8(body).ok()) else {
            return Ok(answer);
        };
        if self == Self::This || !text.contains(&newer) {
            return Ok(answer);
        }
        let text = text.replace(&newer, &format!(r#""{FORMAT_NAME}":{{"N":"{FORMAT}"}}"#));
        Ok(HttpResponse::new(answer.status(), SdkBody::from(text)))
    }

    /// A request to the queues, as this version writes it. `is_own` says which queues are ours, by their URLs.
    pub(crate) fn writes_messages(self, request: HttpRequest, is_own: impl Fn(&str) -> bool) -> HttpRequest {
        if self == Self::This {
            return request;
        }
        changed(request, |body| {
            if !body.get("QueueUrl").and_then(Value::as_str).is_some_and(is_own) {
                return;
            }
            self.sends(body.get_mut("MessageBody"));
            for entry in members(body, "Entries") {
                self.sends(entry.get_mut("MessageBody"));
            }
        })
    }

    fn sends(self, text: Option<&mut Value>) {
        let Some(text) = text else { return };
        let message = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(mut message) = message.filter(Value::is_object) else { return };
        for (_, of) in message.as_object_mut().into_iter().flatten().filter(|(_, of)| of.is_object()) {
            of[MOON] = "full".into();
        }
        message[FORMAT_NAME] = self.writes().into();
        *text = message.to_string().into();
    }

    /// The event of an event source, as this version reads its messages.
    pub(crate) fn reads_messages(self, mut event: Value) -> Value {
        for record in members(&mut event, "Records") {
            let Some(text) = record["body"].as_str() else { continue };
            let Ok(mut message) = serde_json::from_str::<Value>(text) else { continue };
            if self != Self::This && message[FORMAT_NAME] == FORMAT + 1 {
                message[FORMAT_NAME] = FORMAT.into();
                record["body"] = message.to_string().into();
            }
        }
        event
    }
}

/// The members of a list, or none.
fn members<'a>(of: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    of.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Adds a member to a document.
fn renew(value: Option<&mut Value>) {
    let Some(value) = value else { return };
    let document = value["S"].as_str().and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    if let Some(mut document) = document {
        document.insert(MOON.to_owned(), json!({"full": true}));
        value["S"] = Value::Object(document).to_string().into();
    }
}

/// The request with its body changed.
fn changed(mut request: HttpRequest, change: impl FnOnce(&mut Value)) -> HttpRequest {
    let body = request.body().bytes().and_then(|body| serde_json::from_slice(body).ok());
    if let Some(mut body) = body {
        change(&mut body);
        *request.body_mut() = SdkBody::from(body.to_string());
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version, body: Value) -> Value {
        let request = version.writes_rows(HttpRequest::new(body.to_string().into()));
        serde_json::from_slice(request.body().bytes().unwrap()).unwrap()
    }

    #[test]
    fn this_version_says_what_it_says() {
        let put = json!({"TableName": "t", "Item": {"pk": {"S": "a"}, "terms": {"S": "{\"n\":1}"}}});
        assert_eq!(written(Version::This, put.clone()), put);
    }

    #[test]
    fn later_versions_add_to_rows_and_their_documents() {
        let item = json!({"pk": {"S": "a"}, "terms": {"S": "{\"n\":1}"}, "payload": {"S": "{\"n\":1}"}});
        let newer = json!({"pk": {"S": "a"}, "terms": {"S": "{\"moon\":{\"full\":true},\"n\":1}"},
            "payload": {"S": "{\"n\":1}"}, "moon": {"S": "full"}, "v": {"N": "2"}});
        let delete = json!({"DeleteRequest": {"Key": {"pk": {"S": "b"}}}});
        for (whole, with) in [
            (json!({"Item": item}), json!({"Item": newer})),
            (
                json!({"RequestItems": {"t": [{"PutRequest": {"Item": item}}, delete]}}),
                json!({"RequestItems": {"t": [{"PutRequest": {"Item": newer}}, delete]}}),
            ),
            (
                json!({"TransactItems": [{"Put": {"Item": item}}, {"Delete": {"Key": {}}}]}),
                json!({"TransactItems": [{"Put": {"Item": newer}}, {"Delete": {"Key": {}}}]}),
            ),
            (json!({"Key": {"pk": {"S": "a"}}}), json!({"Key": {"pk": {"S": "a"}}})),
        ] {
            assert_eq!(written(Version::AfterNext, whole), with);
        }
    }

    #[test]
    fn later_versions_add_to_what_they_change() {
        let update = written(
            Version::Next,
            json!({"UpdateExpression": "SET #s0 = :s0 REMOVE gone", "ExpressionAttributeNames": {"#s0": "terms"},
                "ExpressionAttributeValues": {":s0": {"S": "{}"}}}),
        );
        assert_eq!(update["UpdateExpression"], "SET #moon = :moon, #s0 = :s0 REMOVE gone");
        assert_eq!(update["ExpressionAttributeNames"], json!({"#s0": "terms", "#moon": "moon"}));
        assert_eq!(update["ExpressionAttributeValues"][":s0"]["S"], r#"{"moon":{"full":true}}"#);
        let removed = written(Version::AfterNext, json!({"UpdateExpression": "REMOVE gone"}));
        assert_eq!(removed["UpdateExpression"], "REMOVE gone SET #next_format = :next_format, #moon = :moon");
    }

    #[test]
    fn a_later_format_is_read_by_those_who_know_it() {
        let row = r#"{"Item":{"pk":{"S":"a"},"v":{"N":"2"}}}"#;
        let own = r#"{"Item":{"pk":{"S":"a"},"v":{"N":"1"}}}"#;
        let wake = json!({"Records": [{"body": r#"{"v":2,"wake":{}}"#}]});
        let own_wake = json!({"Records": [{"body": r#"{"v":1,"wake":{}}"#}]});
        for (version, row_is, wake_is) in [
            (Version::This, row, &wake),
            (Version::Next, own, &own_wake),
            (Version::AfterNext, own, &own_wake),
        ] {
            let answer = crate::reply::json_reply(200, &serde_json::from_str(row).unwrap());
            let answer = version.reads_rows(answer).unwrap();
            assert_eq!(answer.body().bytes().unwrap(), row_is.as_bytes());
            assert_eq!(version.reads_messages(wake.clone()), *wake_is);
        }
    }

    #[test]
    fn later_versions_add_to_messages_of_ours_only() {
        let body = r#"{"v":1,"wake":{"client":"acme"}}"#;
        for (queue, said) in [("own", r#"{"v":2,"wake":{"client":"acme","moon":"full"}}"#), ("target", body)]
        {
            for send in [
                json!({"QueueUrl": queue, "MessageBody": body}),
                json!({"QueueUrl": queue, "Entries": [{"Id": "0", "MessageBody": body}]}),
            ] {
                let request = HttpRequest::new(send.to_string().into());
                let request = Version::AfterNext.writes_messages(request, |url| url == "own");
                let sent: Value = serde_json::from_slice(request.body().bytes().unwrap()).unwrap();
                let text = sent.get("MessageBody").unwrap_or(&sent["Entries"][0]["MessageBody"]);
                let (text, said): (Value, Value) = (
                    serde_json::from_str(text.as_str().unwrap()).unwrap(),
                    serde_json::from_str(said).unwrap(),
                );
                assert_eq!(text, said);
            }
        }
    }
}
