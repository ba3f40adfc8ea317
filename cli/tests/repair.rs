//! `tidegate repair` on the folder of a `tidegate local` that was stopped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn tidegate(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for variable in ["LOG", "ADMIN_KEY", "PORT", "SQS_PORT", "DATA"] {
        command.env_remove(format!("TIDEGATE_{variable}"));
    }
    command.args(args).output().unwrap()
}

/// A folder in which a deployment ran for a moment.
fn used(folder: &Path) {
    let data = folder.to_str().unwrap();
    let ran = tidegate(&["local", "--data", data, "--port", "0", "--sqs-port", "0", "--for", "3s"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn a_repair_says_what_it_would_do_then_does_it_and_then_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    used(folder.path());
    let repair = |more: &[&str]| {
        let args =
            [&["repair", "--data", folder.path().to_str().unwrap(), "--output", "json"], more].concat();
        let said = tidegate(&args);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        serde_json::from_slice::<Value>(&said.stdout).unwrap()
    };
    let planned = repair(&[]);
    assert_eq!((&planned["applied"], &planned["counts"]["watermark_set_back"]), (&false.into(), &1.into()));
    assert_eq!(repair(&[])["counts"], planned["counts"], "a rehearsal has written something");
    let done = repair(&["--apply"]);
    assert_eq!((&done["applied"], &done["counts"]), (&true.into(), &planned["counts"]));
    assert_eq!(repair(&[])["counts"], serde_json::json!({}));
    used(folder.path());
}

#[test]
fn people_read_a_table() {
    let folder = tempfile::tempdir().unwrap();
    used(folder.path());
    let said = tidegate(&["repair", "--data", folder.path().to_str().unwrap()]);
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("1  watermark_set_back") && text.contains("Nothing was written."), "{text}");
}

#[test]
fn what_names_no_tables_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent");
    for args in [&["repair"][..], &["repair", "--data", absent.to_str().unwrap()]] {
        let said = tidegate(args);
        assert!(!said.status.success() && said.stdout.is_empty(), "{args:?}");
    }
    assert!(!absent.exists());
}
