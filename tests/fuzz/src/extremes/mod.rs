//! Values from the edges of what can be sent: each kind a pool of known troublemakers, and combinations drawn from parts.
//!
//! Deliberately absent: HTTP addresses of other machines that anything here would call. See [`addresses`].

pub mod addresses;
pub mod instants;
pub mod numbers;
pub mod schedules;
pub mod shapes;
pub mod texts;

use tidegate_simulation::sim::Dice;

use crate::json::Json;
use crate::known::Known;

/// One of a pool.
pub(crate) fn any_of(dice: &Dice, pool: &[&str]) -> String {
    dice.pick(pool).copied().unwrap_or_default().to_owned()
}

/// An extreme value of the kind that a field of this name takes.
pub fn for_field(dice: &Dice, name: &str, known: &Known) -> Json {
    match name {
        "cron" | "expression" => Json::text(schedules::cron(dice)),
        "rate" | "Text" => Json::text(schedules::rate(dice)),
        "zone" => Json::text(schedules::zone(dice)),
        "queue_url" | "q" => Json::text(addresses::queue(dice, known)),
        "url" if dice.chance(200) => Json::text(addresses::foreign(dice)),
        "url" | "u" => Json::text(addresses::endpoint(dice, known)),
        "allowed_targets" => Json::text(addresses::pattern(dice)),
        "at" | "after" | "anchor" | "until" | "from" | "to" | "date" | "dates" => {
            Json::text(instants::instant(dice))
        }
        _ if name.ends_with("_at") => Json::text(instants::instant(dice)),
        "token" | "tokens" => Json::text(addresses::token(dice, known)),
        _ if name.ends_with("_id")
            || matches!(name, "calendars" | "only_on" | "client" | "policy" | "run" | "part") =>
        {
            Json::text(addresses::id(dice, known))
        }
        "l" | "o" | "e" | "due_s" | "lease_end_ms" if dice.chance(500) => Json::raw(numbers::whole(dice)),
        "a" | "b" | "n" | "r" | "t" if dice.chance(600) => Json::Raw(any_of(dice, numbers::OF_EVENTS)),
        "c" | "j" => Json::text(addresses::id(dice, known)),
        "payload" | "payloads" | "payload_template" => shapes::payload(dice),
        _ => Json::Raw(numbers::number(dice)),
    }
}

/// An extreme value of any kind.
pub fn anything(dice: &Dice, known: &Known) -> Json {
    match dice.below(8) {
        0 => Json::Raw(numbers::number(dice)),
        1 => Json::text(texts::text(dice)),
        2 => Json::text(instants::instant(dice)),
        3 => Json::Raw(texts::raw(dice)),
        4 => Json::null(),
        5 => Json::raw(dice.chance(500)),
        6 => shapes::empty(dice),
        _ => Json::text(addresses::id(dice, known)),
    }
}
