//! What no repair can know, on purpose: each case must be listed, by what it is about.
//!
//! What the snapshots of a region that is as busy as this one do not show by chance is taken out of them, as if their table had
//! been cut a moment earlier or later.

use std::time::Duration;

use anyhow::{Result, ensure};
use tidegate_domain::job::{Count, Terms, Trigger};
use tidegate_domain::policy::{OnExpiry, PolicyTerms};
use tidegate_engine::{FindingKind, JobDraft, RepairReport};
use tidegate_store::tables::Table;
use tidegate_testkit::rows::Row;

use super::super::jobs::{named, policy_of, terms};
use super::super::{Report, midnight, minutes};
use crate::cloud::Cloud;

/// The client whose jobs these are.
const LISTED: &str = "listed";
/// Tokens that are held, and nobody releases them.
const HELD: u32 = 3;
/// What is listed, and a part of the name of what it is about.
const CASES: [(FindingKind, &str); 5] = [
    (FindingKind::RunUnknown, "unknown-run"),
    (FindingKind::JobUnknown, "unknown-job"),
    (FindingKind::PackUnknown, ""),
    (FindingKind::TokenHeld, "listed"),
    (FindingKind::JobChanged, "changed"),
];

/// Jobs and policies of each case.
pub(super) async fn add(cloud: &Cloud) -> Result<()> {
    let (engine, plain) = (cloud.engine(), terms(&cloud.target("listed").await?)?);
    policy_of(&engine, LISTED, &"waits".parse()?, PolicyTerms::new(1, 3_600)?).await?;
    policy_of(&engine, LISTED, &"old".parse()?, PolicyTerms::new(1, 3_600)?).await?;
    let holds = PolicyTerms::new(HELD, 60)?.with_on_expiry(OnExpiry::Hold);
    policy_of(&engine, LISTED, &"holds".parse()?, holds).await?;
    let under = |policy: &str, count: u64| {
        let terms = Terms { count: Count::new(count)?, policy: Some(policy.parse()?), ..plain.clone() };
        Ok::<_, anyhow::Error>(terms)
    };
    let at = |at, terms| JobDraft::new(Trigger::at(at), terms);
    named(&engine, LISTED, "unknown-run", at(midnight()?, under("waits", 5)?)).await?;
    named(&engine, LISTED, "held", at(midnight()?, under("holds", u64::from(HELD))?)).await?;
    let later = midnight()? + minutes(90);
    named(&engine, LISTED, "unknown-job", at(later, plain.clone())).await?;
    named(&engine, LISTED, "changed", at(later, plain.clone())).await?;
    // They wait in a pack that launched before what is emitted again.
    let early = midnight()? - minutes(17);
    for single in ["old-a", "old-b", "old-c"] {
        named(&engine, LISTED, single, at(early, under("old", 1)?)).await?;
    }
    Ok(())
}

/// Changes a job right before the tables are cut.
pub(super) async fn change(cloud: &Cloud) -> Result<()> {
    let plain = terms(&cloud.target("listed").await?)?;
    let later = midnight()? + minutes(91);
    let draft = JobDraft::new(Trigger::at(later), plain);
    cloud.engine().jobs().replace(&LISTED.parse()?, "changed".parse()?, draft, None).await?;
    cloud.until_instant(cloud.now() + Duration::from_millis(100)).await;
    Ok(())
}

/// Takes out of the snapshots what their tables would not have had a moment earlier: runs and packs that were not emitted; or
/// later: a job that its client deleted.
pub(super) fn cut_earlier(snapshots: &mut [(Table, Vec<Row>)]) -> Result<()> {
    let text =
        |row: &Row, name: &str| row.get(name).and_then(|key| key.as_s().ok()).cloned().unwrap_or_default();
    for (table, rows) in snapshots {
        let before = rows.len();
        rows.retain(|row| {
            let (partition, sort_key) = (text(row, "pk"), text(row, "sk"));
            match table {
                Table::Runs => {
                    let is_pack = partition.starts_with("listed|~") && sort_key.starts_with("old|");
                    !is_pack && partition != "listed|unknown-run"
                }
                Table::Jobs => !(partition == LISTED && sort_key.starts_with("unknown-")),
                Table::Launch => !sort_key.ends_with("|unknown-run"),
                _ => true,
            }
        });
        let is_cut = matches!(table, Table::Runs | Table::Jobs);
        ensure!(!is_cut || rows.len() < before, "nothing was taken out of {}", table.name());
    }
    Ok(())
}

/// Holds that each case is listed.
pub(super) fn must_be_found(report: &mut Report, found: &RepairReport) {
    for (kind, about) in CASES {
        let of_kind =
            found.findings.iter().filter(|finding| finding.kind == kind && finding.client == LISTED);
        let subjects: Vec<&str> = of_kind.map(|finding| finding.subject.as_str()).collect();
        let is_listed = !subjects.is_empty() && subjects.iter().all(|subject| subject.contains(about));
        report.must(is_listed, format!("a repair lists {}: {subjects:?}", kind.code()));
        let least = if kind == FindingKind::TokenHeld { HELD as usize } else { 1 };
        report.must(subjects.len() >= least, format!("{} of them, at least {least}", subjects.len()));
    }
}
