//! The template built, deployed and removed with the SAM CLI, at whatever endpoint it is given.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::command::{capture, run};
use crate::venv::Venv;
use crate::workspace::Workspace;

/// The name of the stack.
pub const STACK: &str = "tidegate-e2e";

/// What the stack is given beside its defaults: the end-to-end test listens on loopback, names its queues as it likes, and
/// leaves nothing behind.
const PARAMETERS: &[&str] = &[
    "TablePrefix=tidegate-e2e.tables",
    "TableDeletionPolicy=Delete",
    "TableDeletionProtection=false",
    "TargetQueueArns=arn:aws:sqs:*:*:*",
    // What the stack beside it has in other services.
    "TargetArns=arn:aws:events:*:*:event-bus/tidegate-e2e-consumers-*,arn:aws:sns:*:*:tidegate-e2e-consumers-*,\
     arn:aws:lambda:*:*:function:tidegate-e2e-consumers-*,arn:aws:states:*:*:stateMachine:tidegate-e2e-consumers-*",
    // Emulators speak HTTP.
    "DemandTls=false",
    "AllowPrivateTargets=true",
    "LogRetentionDays=1",
    // Which calls the functions make: their roles are compared with them.
    "LogLevel=info,tidegate_aws::calls=debug",
];

/// The three functions by their names in the template, and what their binaries are called.
pub const FUNCTIONS: &[(&str, &str)] =
    &[("MasterFunction", "master"), ("EmitterFunction", "emitter"), ("HandlerFunction", "handler")];

/// One way to build and deploy the template: an environment with SAM, a build folder and an AWS to talk to.
pub struct Deployment<'a> {
    workspace: &'a Workspace,
    sam: Venv,
    build: PathBuf,
}

impl<'a> Deployment<'a> {
    /// Prepares the environment; nothing is built yet.
    ///
    /// # Errors
    /// When the SAM CLI cannot be installed.
    pub fn new(workspace: &'a Workspace, folder: &Path) -> Result<Self> {
        Ok(Self { workspace, sam: Venv::sam(workspace)?, build: folder.join("build") })
    }

    /// Lints the template and builds the three functions for this machine's own architecture.
    ///
    /// # Errors
    /// When the template or a build is at fault.
    pub fn build(&self) -> Result<()> {
        run(self.sam(["validate", "--lint"]).env("AWS_DEFAULT_REGION", region()))?;
        let architecture = format!("Architecture={}", architecture());
        run(self
            .sam(["build", "--build-in-source", "--parameter-overrides", &architecture, "--build-dir"])
            .arg(&self.build)
            // The functions run here: cargo alone builds them, no cross-compiler is needed.
            .env("CARGO_LAMBDA_COMPILER", "cargo")
            .env("CARGO_TARGET_DIR", self.workspace.target()))
    }

    /// Builds the three functions as a user's `sam build` does, with the template's own architecture and its compiler, zig. Cargo's
    /// files go to `target`.
    ///
    /// # Errors
    /// When a build is at fault.
    pub fn build_as_template(&self, target: &Path) -> Result<()> {
        let mut build = self.sam(["build", "--build-in-source", "--build-dir"]);
        build.arg(&self.build).env("CARGO_TARGET_DIR", target);
        run(build.env_remove("CARGO_LAMBDA_COMPILER"))
    }

    /// The built binary of a function, by its name in the template.
    pub fn binary(&self, function: &str) -> PathBuf {
        self.build.join(function).join("bootstrap")
    }

    /// Deploys what was built and gives the address of its API.
    ///
    /// # Errors
    /// When the deployment fails or the stack has no such output.
    pub fn deploy(&self, endpoint: &str, admin_key_sha256: &str) -> Result<String> {
        let mut parameters: Vec<String> = PARAMETERS.iter().map(|&parameter| parameter.to_owned()).collect();
        parameters.push(format!("AdminKeySha256={admin_key_sha256}"));
        self.deploy_template(endpoint, STACK, &self.build.join("template.yaml"), &parameters)?;
        let outputs = self.outputs(endpoint, STACK)?;
        Ok(outputs["ApiUrl"].as_str().context("the stack has no ApiUrl")?.to_owned())
    }

    /// Deploys a template as a stack of this name. It is told the architecture of this machine beside the parameters.
    ///
    /// # Errors
    /// When the deployment fails.
    pub fn deploy_template(
        &self,
        endpoint: &str,
        stack: &str,
        template: &Path,
        parameters: &[String],
    ) -> Result<()> {
        let mut deploy = self.sam_at(endpoint, ["deploy", "--stack-name", stack, "--template-file"]);
        deploy.arg(template);
        // SAM looks beside the template, and the built one lies elsewhere.
        deploy.arg("--config-file").arg(self.workspace.root().join("samconfig.toml"));
        deploy.arg("--parameter-overrides").args(parameters);
        run(deploy.arg(format!("Architecture={}", architecture())))
    }

    /// The outputs of a stack, by their names.
    ///
    /// # Errors
    /// When it is not there or has none.
    pub fn outputs(&self, endpoint: &str, stack: &str) -> Result<Map<String, Value>> {
        let mut list = self.sam_at(endpoint, ["list", "stack-outputs", "--stack-name", stack]);
        let outputs: Value = serde_json::from_str(&capture(list.args(["--output", "json"]))?)?;
        let outputs = outputs.as_array().context("the stack has no outputs")?;
        let named =
            |output: &Value| Some((output["OutputKey"].as_str()?.to_owned(), output["OutputValue"].clone()));
        Ok(outputs.iter().filter_map(named).collect())
    }

    /// Removes a stack, with what it holds.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, endpoint: &str, stack: &str) -> Result<()> {
        run(&mut self.sam_at(endpoint, ["delete", "--no-prompts", "--stack-name", stack]))
    }

    fn sam<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut sam = self.sam.program("sam");
        sam.args(arguments).current_dir(self.workspace.root()).env("SAM_CLI_TELEMETRY", "0");
        sam
    }

    fn sam_at<const N: usize>(&self, endpoint: &str, arguments: [&str; N]) -> Command {
        let mut sam = self.sam(arguments);
        aim(&mut sam, endpoint);
        sam
    }
}

/// Points a program at the endpoint; an emulator takes any credentials, so where there are none these will do.
pub fn aim(command: &mut Command, endpoint: &str) {
    command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_REGION", region()).env("AWS_DEFAULT_REGION", region());
    if env::var_os("AWS_ACCESS_KEY_ID").is_none() {
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    }
}

/// The region to deploy to.
pub fn region() -> String {
    env::var("AWS_REGION").unwrap_or_else(|_| "us-east-1".to_owned())
}

fn architecture() -> &'static str {
    if env::consts::ARCH == "aarch64" { "arm64" } else { "x86_64" }
}
