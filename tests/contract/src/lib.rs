//! What Tidegate relies on from SQS and DynamoDB, as suites that run wherever Tidegate stands.
//!
//! A case is an `async fn(&Bench) -> Outcome`: it gets a client, a prefix for its queue names and a way to let time pass, and
//! knows nothing of where it runs. `tests/` runs every case against the embedded SQS in process, against the same over
//! HTTP on loopback, and against whatever `AWS_ENDPOINT_URL` names: MiniStack in the end-to-end run, or another emulator (credentials and
//! region are fixed, so not AWS itself).
//! AWS's documentation decides what a case expects; where an emulator differs, [`emulators`] says so by name.

pub mod at_endpoint;
pub mod bench;
pub mod dynamodb;
pub mod emulators;
pub mod endpoint;
pub mod sqs;

pub use bench::{Bench, Outcome, Passage};

/// Calls `$run!` with the path of every case, once.
#[macro_export]
macro_rules! for_each_sqs_case {
    ($run:ident) => {
        $run! {
            queues::creating_again_finds_the_same_queue,
            queues::names_are_checked,
            queues::fifo_goes_with_its_name,
            queues::a_queue_is_found_by_its_name,
            queues::lists_go_by_prefix_and_page,
            queues::a_deleted_queue_is_gone,
            queues::every_call_needs_its_queue,
            queues::attributes_have_defaults_and_can_be_set,
            queues::attribute_values_are_checked,
            queues::attribute_names_are_checked,
            queues::messages_are_counted,
            queues::tags_are_kept,
            queues::a_purge_empties_the_queue,
            queues::a_second_purge_has_to_wait,
            messages::a_message_makes_the_round_trip,
            messages::system_attributes_tell_of_the_message,
            messages::message_attributes_make_the_round_trip,
            messages::message_attributes_are_checked,
            messages::bodies_are_checked,
            messages::a_message_may_have_one_mebibyte,
            messages::attributes_count_towards_the_size,
            messages::a_queue_may_allow_less,
            messages::receive_parameters_are_checked,
            messages::receipt_handles_are_checked,
            messages::a_deleted_message_stays_deleted,
            messages::deleting_again_succeeds,
            batches::ten_messages_travel_in_one_batch,
            batches::batches_are_checked,
            batches::a_batch_may_have_one_mebibyte,
            batches::one_bad_entry_fails_alone,
            batches::deletes_fail_alone,
            batches::visibility_changes_fail_alone,
            batches::times_out_of_range_fail_alone,
            time::an_unacknowledged_message_comes_back,
            time::a_receipt_outlives_its_timeout,
            time::only_the_last_receipt_deletes,
            time::visibility_can_be_ended_and_extended,
            time::visibility_ends_after_twelve_hours,
            time::a_visible_message_is_not_in_flight,
            time::a_deleted_message_is_not_in_flight,
            time::a_delayed_message_waits,
            time::delays_are_checked,
            time::a_queue_delays_by_default,
            time::a_long_poll_ends_with_a_message,
            time::a_long_poll_ends_with_its_time,
            time::a_long_poll_sees_a_delay_end,
            time::old_messages_expire,
            redrive::a_message_that_keeps_failing_is_moved,
            redrive::a_dead_letter_names_its_source,
            redrive::redrive_policies_are_checked,
            redrive::redrive_targets_are_checked,
            redrive::a_queue_knows_whose_dead_letters_it_gets,
            redrive::a_fifo_line_goes_on_after_a_dead_letter,
            groups::a_standard_queue_takes_message_groups,
            groups::a_standard_queue_takes_no_deduplication_id,
            fifo::a_group_is_received_in_order,
            fifo::a_group_in_flight_blocks_only_itself,
            fifo::a_group_comes_back_in_order,
            fifo::a_repeated_send_is_sent_once,
            fifo::equal_bodies_are_sent_once_when_asked,
            fifo::deduplication_outlives_the_message_and_ends,
            fifo::what_fifo_needs_is_checked,
            fifo::an_expired_receipt_deletes_nothing,
            fifo::a_fifo_queue_delays_as_a_whole,
            fifo::sequence_numbers_rise,
        }
    };
}
