//! One change to a JSON text that was good.

use tidegate_simulation::sim::Dice;

use crate::extremes::{self, any_of, shapes, texts};
use crate::json::Json;
use crate::known::Known;

/// Names of fields as other systems spell them, and names that mean something to some readers.
const STRANGE_FIELDS: &[&str] = &[
    "timezone",
    "tz",
    "cron_expression",
    "schedule",
    "enabled",
    "tags",
    "revision",
    "name",
    "every",
    "interval",
    "",
    " ",
    "__proto__",
    "$ref",
    "Trigger",
    "trigger ",
    "job_id\u{0}",
    "client_id",
    "max",
    "rate_per_second",
];

/// Changes one node of a tree, wherever it is: to an extreme value of its kind most often.
pub(crate) fn mutate(dice: &Dice, json: &mut Json, known: &Known) {
    let places = json.places();
    let Some(place) = dice.pick(&places) else { return };
    let name = json.name_at(place).to_owned();
    let other = dice.pick(&places).and_then(|other| json.at(other)).cloned();
    let Some(node) = json.at_mut(place) else { return };
    match dice.below(20) {
        0..11 => *node = extremes::for_field(dice, &name, known),
        11 => *node = extremes::anything(dice, known),
        12 => *node = shapes::deep(dice),
        13 => *node = shapes::payload(dice),
        14 => *node = wrapped(dice, node.clone()),
        15 => *node = turned(node.clone()),
        16 => *node = other.unwrap_or_else(Json::null),
        _ => change_members(dice, node, known),
    }
}

fn wrapped(dice: &Dice, node: Json) -> Json {
    match dice.below(3) {
        0 => Json::List(vec![node]),
        1 => Json::Object(vec![(any_of(dice, &["Text", "Every", "value", "at", ""]), node)]),
        _ => Json::text(node.to_string()),
    }
}

/// An array in place of an object, an object in place of an array, and a text in place of the rest.
fn turned(node: Json) -> Json {
    match node {
        Json::Object(members) => Json::List(members.into_iter().map(|(_, value)| value).collect()),
        Json::List(items) => {
            let named = |(number, item): (usize, Json)| (number.to_string(), item);
            Json::Object(items.into_iter().enumerate().map(named).collect())
        }
        Json::Raw(text) => Json::Text(text),
        Json::Text(text) => Json::List(vec![Json::Text(text)]),
    }
}

/// Takes members or items out, doubles them, or adds some.
fn change_members(dice: &Dice, node: &mut Json, known: &Known) {
    match node {
        Json::Object(members) => {
            let number = dice.below(members.len() as u64) as usize;
            match (dice.below(4), members.get(number).cloned()) {
                (0, Some(_)) => drop(members.remove(number)),
                (1, Some((name, _))) => members.push((name, extremes::anything(dice, known))),
                (2, Some((name, value))) => members.push((name, value)),
                _ => {
                    let name =
                        if dice.chance(700) { any_of(dice, STRANGE_FIELDS) } else { texts::text(dice) };
                    members.push((name, extremes::anything(dice, known)));
                }
            }
        }
        Json::List(items) => {
            let number = dice.below(items.len() as u64) as usize;
            match (dice.below(4), items.get(number).cloned()) {
                (0, Some(_)) => drop(items.remove(number)),
                (1, Some(item)) => items.push(item),
                (2, item) => {
                    let count = dice.pick(&[9, 51, 101, 1_001]).copied().unwrap_or(2);
                    items.resize(count, item.filter(|_| dice.chance(500)).unwrap_or_else(Json::null));
                }
                _ => items.push(extremes::anything(dice, known)),
            }
        }
        Json::Raw(_) => *node = Json::Raw(texts::raw(dice)),
        Json::Text(text) => text.push_str(&texts::text(dice)),
    }
}
