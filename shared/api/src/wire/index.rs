//! The shape of the time index as it travels.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use tidegate_domain::shard::ExpressionShards;
use tidegate_domain::time::{LaunchExpression, parse_zone, zone_database_version};
use tidegate_protocol::{IndexView, SplitView};
use tidegate_store::index::IndexShape;
use utoipa::ToSchema;

use crate::form::Form;
use crate::problem::FieldErrors;
use crate::wire::bounds::bounded_fields;
use crate::wire::number::Number;

/// How many shards a LaunchExpression of a zone is to have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShardsBody {
    /// The zone whose rows are many.
    #[schema(example = "Europe/Berlin")]
    zone: String,
    /// The LaunchExpression whose rows are many, as the logs and the key of the table show it.
    #[schema(example = "H:03")]
    launch_expression: String,
    /// How many partitions its children are spread over, 1 to 64. A number below the present one changes nothing.
    #[schema(value_type = u32, example = 8)]
    shards: Number<ExpressionShards>,
}

bounded_fields!(ShardsBody: shards);

impl Form for ShardsBody {
    fn note_faults(self, _: DateTime<Utc>, errors: &mut FieldErrors) {
        self.check(errors);
    }
}

impl ShardsBody {
    /// Checks every field; `None` when one is wrong, and then `errors` says which.
    pub(crate) fn check(&self, errors: &mut FieldErrors) -> Option<(chrono_tz::Tz, LaunchExpression, u32)> {
        let zone = errors.keep("zone", &*self.zone, parse_zone(&self.zone));
        let expression = self.launch_expression.parse::<LaunchExpression>().map_err(|e| {
            format!("{e}: write it as in the key of the table, such as 'H:03', 'W:1:*' or 'MM:12-25:00'")
        });
        let expression = errors.keep("launch_expression", &*self.launch_expression, expression);
        let shards = self.shards.check(errors);
        Some((zone?, expression?, shards?.get()))
    }
}

/// The index as it is answered.
pub(crate) fn view(shape: &IndexShape) -> IndexView {
    let split = shape.split().filter_map(|(name, shards)| {
        let (zone, launch_expression) = name.split_once('|')?;
        let (zone, launch_expression) = (zone.to_owned(), launch_expression.to_owned());
        Some(SplitView { zone, launch_expression, shards })
    });
    IndexView {
        zones: shape.zones.iter().map(|(zone, _)| zone.name().to_owned()).collect(),
        split: split.collect(),
        zone_database: zone_database_version().to_owned(),
    }
}
