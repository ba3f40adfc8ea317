//! Where an emulator differs from what AWS documents, case by case, and which cases take too long in real time.
//!
//! `docs/emulator-differences.md` explains each. A listed case still runs and has to fail: one that passes has to leave the
//! list.

/// What is known of a case at an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// It passes.
    Passes,
    /// It fails, for this reason.
    Differs(&'static str),
    /// It waits for longer than an end-to-end run does: it runs where the clock can be moved.
    TooSlow,
}

/// Cases that wait for a minute or more.
const SLOW: [&str; 2] = ["time::old_messages_expire", "fifo::deduplication_outlives_the_message_and_ends"];

/// How MiniStack differs (1.5.33).
const MINISTACK: [(&str, &str); 19] = [
    ("queues::names_are_checked", "accepts any name"),
    ("queues::fifo_goes_with_its_name", "accepts a FIFO name without the attribute"),
    ("queues::attribute_names_are_checked", "accepts unknown attributes"),
    ("queues::a_second_purge_has_to_wait", "allows a purge at any time"),
    ("messages::message_attributes_are_checked", "checks no message attributes"),
    ("messages::attributes_count_towards_the_size", "counts the body only"),
    ("messages::receive_parameters_are_checked", "clamps numbers that are out of range"),
    ("messages::deleting_again_succeeds", "refuses the second delete"),
    ("batches::times_out_of_range_fail_alone", "checks no delays and timeouts"),
    ("time::only_the_last_receipt_deletes", "refuses an older receipt"),
    ("time::visibility_ends_after_twelve_hours", "knows no longest timeout"),
    ("time::a_visible_message_is_not_in_flight", "changes visible messages"),
    ("time::a_deleted_message_is_not_in_flight", "refuses with another code"),
    ("time::delays_are_checked", "accepts any delay"),
    ("redrive::redrive_policies_are_checked", "refuses with another code"),
    ("redrive::redrive_targets_are_checked", "refuses with another code"),
    ("redrive::a_queue_knows_whose_dead_letters_it_gets", "does not serve the call"),
    ("groups::a_standard_queue_takes_no_deduplication_id", "accepts it"),
    ("fifo::an_expired_receipt_deletes_nothing", "deletes"),
];

/// How moto's server differs (5.2.5).
const MOTO: [(&str, &str); 20] = [
    ("queues::fifo_goes_with_its_name", "accepts a FIFO name without the attribute"),
    ("queues::attribute_values_are_checked", "accepts any value"),
    ("queues::attribute_names_are_checked", "accepts unknown attributes"),
    ("messages::message_attributes_are_checked", "checks no message attributes"),
    ("messages::bodies_are_checked", "accepts any body"),
    ("messages::attributes_count_towards_the_size", "counts the body only"),
    ("messages::receive_parameters_are_checked", "accepts numbers that are out of range"),
    ("batches::one_bad_entry_fails_alone", "accepts any body"),
    ("time::only_the_last_receipt_deletes", "deletes with an older receipt"),
    ("time::a_visible_message_is_not_in_flight", "changes visible messages"),
    ("time::a_deleted_message_is_not_in_flight", "refuses with another code"),
    ("time::delays_are_checked", "accepts any delay"),
    ("redrive::a_dead_letter_names_its_source", "leaves the source out"),
    ("redrive::redrive_policies_are_checked", "accepts any count"),
    ("redrive::redrive_targets_are_checked", "refuses with another code"),
    ("groups::a_standard_queue_takes_no_deduplication_id", "accepts it"),
    ("fifo::a_group_comes_back_in_order", "gives the second message before the first"),
    ("fifo::a_repeated_send_is_sent_once", "gives the repeated send an id of its own"),
    ("fifo::an_expired_receipt_deletes_nothing", "deletes"),
    ("fifo::sequence_numbers_rise", "draws them at random"),
];

/// How `LocalStack` differs. It needs an auth token and was not run here yet: its first run says what belongs here.
const LOCALSTACK: [(&str, &str); 0] = [];

/// The emulators with a list.
const LISTS: [(&str, &[(&str, &str)]); 3] =
    [("ministack", &MINISTACK), ("moto", &MOTO), ("localstack", &LOCALSTACK)];

/// What is known of `case` at `emulator`; an unknown emulator is held to everything, as AWS is.
pub fn expectation(emulator: &str, case: &str) -> Expectation {
    if SLOW.contains(&case) {
        return Expectation::TooSlow;
    }
    let known = LISTS.iter().find(|(name, _)| *name == emulator).map_or(&[][..], |(_, known)| known);
    let differs = known.iter().find(|(name, _)| *name == case);
    differs.map_or(Expectation::Passes, |(_, how)| Expectation::Differs(how))
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! names {
        ($($area:ident::$case:ident,)*) => {
            [$(concat!(stringify!($area), "::", stringify!($case))),*]
        };
    }

    /// A name that is no case would be passed over, and nobody would miss the case that it was meant for.
    #[test]
    fn what_is_listed_is_a_case() {
        let cases = crate::for_each_sqs_case!(names);
        let listed = LISTS.iter().flat_map(|(_, known)| known.iter().map(|(name, _)| *name));
        for name in listed.chain(SLOW) {
            assert!(cases.contains(&name), "{name}");
        }
    }
}
