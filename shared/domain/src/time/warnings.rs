//! What is taken, but probably not meant, or costly.

use super::cron::CronSpec;
use super::decompose::reads_per_launch;

/// Reads per launch above which a shape is worth a warning.
const MANY_READS: f64 = 10.0;

impl CronSpec {
    /// A sentence for each thing in it that often surprises. For people: takes some time.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = self.surprises();
        let reads = reads_per_launch(self.compiled());
        if reads > MANY_READS {
            found.push(format!(
                "its shape is found by reading more of the time index than it launches: about {reads:.0} rows for each launch"
            ));
        }
        found
    }
}
