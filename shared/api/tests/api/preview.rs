//! Previews: what a trigger means and when it fires, without a job.

use http::StatusCode;
use serde_json::{Value, json};

use crate::world::{Answer, World};

async fn preview(body: Value) -> Answer {
    let world = World::new().await;
    let key = world.register("acme").await;
    let before = world.everything().await;
    let answer = world.post("/v1/schedules/preview", &key, &body).await;
    assert_eq!(world.everything().await, before);
    answer
}

async fn shown(body: Value) -> Value {
    let answer = preview(body.clone()).await;
    assert_eq!(answer.status, StatusCode::OK, "{body}: {}", answer.text);
    answer.json
}

#[tokio::test]
async fn an_expression_is_shown_with_its_firings_and_what_it_means() {
    let shown = shown(json!({"expression": "0 9 * * Mon-FRI", "zone": "Europe/London", "count": 2})).await;
    assert_eq!(shown["canonical"], "0 9 * * MON-FRI");
    assert_eq!((&shown["zone"], &shown["reads_per_launch"]), (&json!("Europe/London"), &json!(1.0)));
    assert!(shown["description"].as_str().unwrap().ends_with("(Europe/London)"), "{shown}");
    assert!(shown["zone_database"].as_str().unwrap().starts_with("20"), "{shown}");
    assert_eq!(
        shown["firings"],
        json!([
            {"launch_at": "2026-11-23T09:00:00Z", "local": "2026-11-23T09:00:00+00:00", "dst": ""},
            {"launch_at": "2026-11-24T09:00:00Z", "local": "2026-11-24T09:00:00+00:00", "dst": ""}
        ])
    );
    assert_eq!(shown["warnings"], json!([]));
}

#[tokio::test]
async fn every_kind_of_trigger_is_shown_within_its_bounds() {
    let rate = shown(json!({
        "trigger": {"rate": "90 minutes", "anchor": "2026-11-21T00:00:00Z"},
        "after": "2026-11-21T12:00:00Z", "count": 2, "jitter_seconds": 60
    }))
    .await;
    assert_eq!((&rate["canonical"], &rate["zone"]), (&json!("@every 5400s"), &json!("UTC")));
    assert_eq!(rate["description"], "Every 90 minutes, from 2026-11-21T00:00:00Z");
    assert_eq!(
        rate["firings"][0],
        json!({
            "launch_at": "2026-11-21T13:30:00Z", "local": "2026-11-21T13:30:00+00:00", "dst": "",
            "latest_at": "2026-11-21T13:31:00Z"
        })
    );
    let again = shown(json!({"expression": rate["canonical"]})).await;
    assert_eq!(again["canonical"], rate["canonical"]);
    let at = shown(json!({
        "trigger": {"at": ["2026-11-20T00:00:00Z", "2026-12-01T00:00:00Z", "2026-12-02T00:00:00Z"]},
        "end_at": "2026-12-02T00:00:00Z"
    }))
    .await;
    assert_eq!(at["firings"].as_array().unwrap().len(), 1, "{at}");
    assert_eq!(at["canonical"], Value::Null);
    let bounded = shown(json!({
        "expression": "@hourly", "start_at": "2026-12-01T00:00:00Z", "end_at": "2026-12-01T02:00:00Z"
    }))
    .await;
    let firings = bounded["firings"].as_array().unwrap().iter().map(|firing| firing["launch_at"].clone());
    assert_eq!(firings.collect::<Vec<_>>(), ["2026-12-01T00:00:00Z", "2026-12-01T01:00:00Z"]);
}

#[tokio::test]
async fn what_never_fires_is_shown_with_a_warning_and_no_firings() {
    for (body, says) in [
        (json!({"expression": "0 0 30 2 *", "zone": "Europe/Berlin"}), "none of its years has such a day"),
        (json!({"trigger": {"cron": "0 0 31 4 *"}}), "none of its years has such a day"),
        (json!({"expression": "0 0 0 1 1 ? 2020"}), "it has no firing after 2026-11-21T12:00:00Z"),
        (
            json!({"trigger": {"at": "2026-11-20T00:00:00Z"}}),
            "no instant of it lies after 2026-11-21T12:00:00Z",
        ),
        (
            json!({"expression": "@daily", "end_at": "2026-11-21T18:00:00Z"}),
            "it has no firing after 2026-11-21T12:00:00Z and before end_at 2026-11-21T18:00:00Z",
        ),
    ] {
        let shown = shown(body.clone()).await;
        assert_eq!(shown["firings"], json!([]), "{body}");
        let warning = shown["warnings"][0].as_str().unwrap();
        assert!(warning.starts_with("never fires: ") && warning.contains(says), "{body}: {warning}");
        assert_eq!(warning.matches("never fires").count(), 1, "{warning}");
        assert_eq!(shown["zone"], *body.get("zone").unwrap_or(&json!("UTC")), "{body}");
    }
}

#[tokio::test]
async fn firings_on_changes_of_the_clocks_and_costly_shapes_are_warned_of() {
    let touched = shown(json!({"expression": "30 2 * * *", "zone": "Europe/Berlin"})).await;
    assert_eq!(
        touched["warnings"],
        json!([
            "2 firings of the next year fall on a change of the clocks: 2027-03-28T03:00:00+02:00 (gap), \
            2027-10-31T02:30:00+02:00 (overlap); 'dst' says what becomes of such times"
        ])
    );
    let often = shown(json!({"expression": "*/10 * * * *", "zone": "Europe/Berlin"})).await;
    let warning = often["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("12 firings of the next year") && warning.contains(" and 8 more;"),
        "{warning}"
    );
    let skipping =
        json!({"cron": "30 2 * * *", "zone": "Europe/Berlin", "dst": {"gap": "skip", "overlap": "first"}});
    let skipping = shown(json!({"trigger": skipping})).await;
    assert!(
        skipping["warnings"][0].as_str().unwrap().starts_with("1 firing of the next year falls"),
        "{skipping}"
    );
    let costly = shown(json!({"expression": "rate(61 minutes)"})).await;
    assert!(costly["reads_per_launch"].as_f64().unwrap() > 10.0, "{costly}");
    assert!(costly["warnings"][0].as_str().unwrap().contains("rows for each launch"), "{costly}");
}

#[tokio::test]
async fn what_does_not_read_is_refused_by_its_field() {
    for (body, field, says) in [
        (json!({"expression": "61 * * * *"}), "expression", "minute: '61' is outside 0-59"),
        (json!({"expression": "0 9 * * *", "zone": "GMT+3"}), "zone", "is a fixed offset, not a zone"),
        (json!({"trigger": {"cron": "H * * * *"}}), "trigger.cron", "minute: 'H'"),
        (json!({"trigger": {"rate": "0s"}}), "trigger.rate", "a rate of 0 seconds is not possible"),
        (json!({}), "trigger", "the body has neither 'trigger' nor 'expression'"),
        (
            json!({"expression": "@daily", "trigger": {"rate": "1h"}}),
            "trigger",
            "has both 'trigger' and 'expression'",
        ),
        (json!({"trigger": {"cron": "@daily"}, "zone": "UTC"}), "zone", "name it inside 'trigger'"),
        (json!({"expression": "@daily", "count": 0}), "count", "count is 0; it must lie between 1 and 1000"),
        (json!({"expression": "@daily", "count": 1_001}), "count", "it must lie between 1 and 1000"),
        (json!({"expression": "@daily", "after": "now"}), "after", "after 'now' is no instant"),
        (json!({"expression": "@daily", "jitter_seconds": 3_601}), "jitter_seconds", "between 0 and 3600"),
        (json!({"expression": 5}), "expression", "expression must be a string such as \"30 2 * * *\", not 5"),
    ] {
        let answer = preview(body.clone()).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", answer.text);
        assert_eq!(answer.json["errors"][0]["field"], field, "{body}: {}", answer.text);
        let message = answer.json["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(says), "{body}: {message}");
    }
}
