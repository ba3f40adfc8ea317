//! What failed once holds.

use tidegate_fuzz::found;
use tidegate_fuzz::stage::Stage;

#[tokio::test]
async fn what_failed_once_holds() {
    let known = Stage::new().await.unwrap().known;
    let mut failed = Vec::new();
    for (name, inputs) in found::all(&known) {
        let mut stage = Stage::new().await.unwrap();
        for step in found::steps(inputs) {
            if let Some(fault) = step.take(&mut stage).await.unwrap() {
                failed.push(format!("{name}: {fault}"));
                break;
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
