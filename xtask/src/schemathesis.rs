//! Schemathesis against a deployed API: requests that the OpenAPI document allows, and requests that it does not, to each route.
//! No answer may be a 5xx, and none may be anything but what the document says.

use std::path::Path;

use anyhow::Result;

use crate::command::run;
use crate::consumers::register;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// In whose place it calls.
const CLIENT: &str = "schemathesis";
/// A document says which forms are allowed; that a time zone exists, or that a queue does, is no form.
const NOT_HELD: &str = "positive_data_acceptance";
/// Drawn requests of each route, beside those that cover each of its parameters and fields.
const DRAWN: &str = "10";
/// The same requests each time: a run that fails fails again. Another number finds others.
const SEED: &str = "1";

/// Plays it with the admin key, which may call each route, in the place of a client of its own.
///
/// # Errors
/// When an answer is not what the document says, or nothing can be played.
pub fn play(workspace: &Workspace, api_url: &str, admin_key: &str, folder: &Path) -> Result<()> {
    register(workspace, api_url, CLIENT, admin_key)?;
    let mut play = Venv::schemathesis(workspace)?.program("schemathesis");
    // What it writes besides goes into the folder that it runs in.
    play.current_dir(folder)
        .arg("run")
        .arg(workspace.root().join("docs/openapi.json"))
        .args(["--url", api_url]);
    play.args(["--header", &format!("Authorization: Bearer {admin_key}")]);
    play.args(["--header", &format!("Tidegate-Client: {CLIENT}")]);
    play.args(["--phases", "coverage,fuzzing", "--max-examples", DRAWN, "--seed", SEED]);
    play.args(["--exclude-checks", NOT_HELD, "--continue-on-failure", "--warnings", "off", "--no-color"]);
    run(&mut play)
}
