//! Consumed capacity: asked for on every request, told to the meter, and given to the caller only as the caller asked.
//!
//! DynamoDB reports no capacity for a conditional write that fails, yet bills it by the size of the item that was there.
//! To count that, single-item writes always ask for the old item; the caller sees it only when it asked for it.

use std::borrow::Cow;

use dynoxide::DynoxideError;
use dynoxide::actions::{
    batch_get_item::{BatchGetItemRequest, BatchGetItemResponse},
    batch_write_item::{BatchWriteItemRequest, BatchWriteItemResponse},
    delete_item::{DeleteItemRequest, DeleteItemResponse},
    get_item::{GetItemRequest, GetItemResponse},
    put_item::{PutItemRequest, PutItemResponse},
    query::{QueryRequest, QueryResponse},
    scan::{ScanRequest, ScanResponse},
    transact_get_items::{TransactGetItemsRequest, TransactGetItemsResponse},
    transact_write_items::{TransactWriteItemsRequest, TransactWriteItemsResponse},
    update_item::{UpdateItemRequest, UpdateItemResponse},
};
use dynoxide::types::{ConsumedCapacity, item_size, write_capacity_units};

use crate::meter::Units;

/// A request that consumes capacity.
pub(super) trait MeteredRequest {
    /// Its `ReturnConsumedCapacity`.
    fn capacity(&mut self) -> &mut Option<String>;
    /// The table and the `ReturnValuesOnConditionCheckFailure` of a single-item write.
    fn on_failure(&mut self) -> Option<(&str, &mut Option<String>)> {
        None
    }
    /// The tables that a transaction writes or checks, one for each action.
    fn transaction(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The response to a [`MeteredRequest`].
pub(super) trait MeteredResponse {
    /// What it consumed, by table.
    fn consumed(&self) -> &[ConsumedCapacity];
    /// Leaves in the response what the caller asked for.
    fn report(&mut self, asked: Reported);
}

/// How much about capacity the caller asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reported {
    Nothing,
    Total,
    Indexes,
}

/// What the caller asked for, and what it takes to bill a failure.
pub(super) struct Asked {
    pub(super) capacity: Reported,
    /// The table of a single-item write, and whether the caller wants the old item of a failed condition.
    single_write: Option<(String, bool)>,
    transaction: Vec<String>,
}

/// Turns `request` into one that reports everything; remembers what was asked.
pub(super) fn ask(request: &mut impl MeteredRequest) -> Asked {
    let mode = request.capacity();
    let capacity = match mode.as_deref() {
        None | Some("NONE") => Reported::Nothing,
        Some("TOTAL") => Reported::Total,
        // An unknown mode is left for the library to refuse.
        Some(_) => Reported::Indexes,
    };
    if capacity != Reported::Indexes {
        *mode = Some("INDEXES".to_owned());
    }
    let single_write = request.on_failure().map(|(table, values)| {
        let table = table.to_owned();
        let wanted = values.as_deref().is_some_and(|mode| mode != "NONE");
        if !wanted {
            *values = Some("ALL_OLD".to_owned());
        }
        (table, wanted)
    });
    Asked { capacity, single_write, transaction: request.transaction() }
}

impl Asked {
    /// The units of a request that failed with `error`. A cancelled transaction counts two units for each action: what
    /// its writes cost when their items are small.
    pub(super) fn units_of_failure(&self, error: &DynoxideError) -> Vec<(Cow<'static, str>, Units)> {
        match (error, &self.single_write) {
            (DynoxideError::ConditionalCheckFailedException(_, item), Some((table, _))) => {
                let write = write_capacity_units(item.as_ref().map_or(0, item_size));
                vec![(table.clone().into(), Units { write, read: 0.0 })]
            }
            (DynoxideError::TransactionCanceledException(..), _) => {
                let units = Units { write: 2.0, read: 0.0 };
                self.transaction.iter().map(|table| (table.clone().into(), units)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The error without the item that only the meter asked for.
    pub(super) fn as_the_caller_wished(&self, error: DynoxideError) -> DynoxideError {
        match (error, &self.single_write) {
            (DynoxideError::ConditionalCheckFailedException(message, _), Some((_, false))) => {
                DynoxideError::ConditionalCheckFailedException(message, None)
            }
            (error, _) => error,
        }
    }
}

/// The units of each table and index in `consumed`.
pub(super) fn units<'a>(
    operation: &str,
    consumed: &'a [ConsumedCapacity],
) -> impl Iterator<Item = (Cow<'a, str>, Units)> {
    let reads = matches!(operation, "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems");
    consumed.iter().flat_map(move |table| {
        // A transaction that is repeated under its token is billed as a read.
        let reads = reads || (table.read_capacity_units.is_some() && table.write_capacity_units.is_none());
        let units = move |units| {
            if reads { Units { write: 0.0, read: units } } else { Units { write: units, read: 0.0 } }
        };
        let own = table.table.as_ref().map_or(table.capacity_units, |own| own.capacity_units);
        let indexes = [&table.global_secondary_indexes, &table.local_secondary_indexes];
        let indexes = indexes.into_iter().flatten().flatten().map(move |(index, detail)| {
            (Cow::Owned(format!("{}/{index}", table.table_name)), units(detail.capacity_units))
        });
        std::iter::once((Cow::Borrowed(table.table_name.as_str()), units(own))).chain(indexes)
    })
}

fn strip_details(capacity: &mut ConsumedCapacity) {
    capacity.table = None;
    capacity.global_secondary_indexes = None;
    capacity.local_secondary_indexes = None;
}

macro_rules! metered {
    ($($request:ident $(, $failure:ident)?;)*) => {$(
        impl MeteredRequest for $request {
            fn capacity(&mut self) -> &mut Option<String> {
                &mut self.return_consumed_capacity
            }
            $(fn on_failure(&mut self) -> Option<(&str, &mut Option<String>)> {
                Some((&self.table_name, &mut self.$failure))
            })?
        }
    )*};
}

metered! {
    PutItemRequest, return_values_on_condition_check_failure;
    UpdateItemRequest, return_values_on_condition_check_failure;
    DeleteItemRequest, return_values_on_condition_check_failure;
    GetItemRequest;
    QueryRequest;
    ScanRequest;
    BatchGetItemRequest;
    BatchWriteItemRequest;
    TransactGetItemsRequest;
}

impl MeteredRequest for TransactWriteItemsRequest {
    fn capacity(&mut self) -> &mut Option<String> {
        &mut self.return_consumed_capacity
    }

    fn transaction(&self) -> Vec<String> {
        let table = |action: &dynoxide::actions::transact_write_items::TransactWriteItem| {
            let put = action.put.as_ref().map(|put| &put.table_name);
            let update = action.update.as_ref().map(|update| &update.table_name);
            let delete = action.delete.as_ref().map(|delete| &delete.table_name);
            let check = action.condition_check.as_ref().map(|check| &check.table_name);
            put.or(update).or(delete).or(check).cloned()
        };
        self.transact_items.iter().filter_map(table).collect()
    }
}

macro_rules! reports {
    ($as_slice:expr, $strip:expr; $($response:ident),*) => {$(
        impl MeteredResponse for $response {
            fn consumed(&self) -> &[ConsumedCapacity] {
                $as_slice(&self.consumed_capacity)
            }
            fn report(&mut self, asked: Reported) {
                match asked {
                    Reported::Nothing => self.consumed_capacity = None,
                    Reported::Total => $strip(&mut self.consumed_capacity),
                    Reported::Indexes => {}
                }
            }
        }
    )*};
}

reports! {
    Option::as_slice, |one: &mut Option<ConsumedCapacity>| one.iter_mut().for_each(strip_details);
    PutItemResponse, UpdateItemResponse, DeleteItemResponse, GetItemResponse, QueryResponse, ScanResponse
}

reports! {
    |many| Option::as_deref(many).unwrap_or_default(),
    |many: &mut Option<Vec<ConsumedCapacity>>| many.iter_mut().flatten().for_each(strip_details);
    BatchGetItemResponse, BatchWriteItemResponse, TransactGetItemsResponse, TransactWriteItemsResponse
}
