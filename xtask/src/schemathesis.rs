//! Schemathesis against a deployed API: requests that the OpenAPI document allows, and requests that it does not, to each route.
//! No answer may be a 5xx, and none may be anything but what the document says.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::command::run;
use crate::consumers::register;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// In whose place it calls.
const CLIENT: &str = "schemathesis";
/// What each answer is held to. Not whether a valid form is taken: that a zone or a queue exists is no form. Nor whether a wrong one
/// is refused, since of a call with many parts each is answered by itself.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,ignored_auth";
/// Drawn requests of each route: an answer takes a tenth of a second on an emulator.
const DRAWN: &str = "4";
/// The same requests each time: a run that fails fails again. Another number finds others.
const SEED: &str = "1";

/// Plays it in `folder` with the admin key, which may call each route, in the place of a client of its own.
///
/// # Errors
/// When an answer is not what the document says, or nothing can be played.
pub fn play(workspace: &Workspace, api_url: &str, admin_key: &str, folder: &Path) -> Result<()> {
    register(workspace, api_url, CLIENT, admin_key)?;
    // The key is in its environment, so that no command line shows it.
    let headers = format!(
        "[headers]\nAuthorization = \"Bearer ${{TIDEGATE_E2E_ADMIN_KEY}}\"\nTidegate-Client = \"{CLIENT}\"\n"
    );
    fs::write(folder.join("schemathesis.toml"), headers).context("failed to write its configuration")?;
    let mut play = Venv::schemathesis(workspace)?.program("schemathesis");
    play.current_dir(folder)
        .arg("run")
        .arg(workspace.root().join("docs/openapi.json"))
        .args(["--url", api_url]);
    play.args(["--phases", "fuzzing", "--max-examples", DRAWN, "--seed", SEED, "--checks", CHECKS]);
    play.args(["--continue-on-failure", "--warnings", "off", "--no-color"]);
    run(play.env("TIDEGATE_E2E_ADMIN_KEY", admin_key))
}
