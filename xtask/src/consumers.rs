//! What the end-to-end tests point jobs at: the stack of `tests/e2e/template.yaml`, which has a target in each service and the
//! consumers' examples for Lambda, and the examples that read a queue, ready to run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command::{capture, run};
use crate::deployment::{Deployment, STACK};
use crate::tools;
use crate::venv::Venv;
use crate::workspace::Workspace;

/// Whose events the functions consume. The tests schedule them with the key that is registered here.
const CLIENT: &str = "functions";
/// The address under which MiniStack serves a function URL to callers that cannot choose where a name leads.
const BY_PATH: &str = "_aws/lambda-url";

/// The examples, and the code of the functions.
pub struct Consumers<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
}

impl<'a> Consumers<'a> {
    /// Builds the examples of all languages, and lays the functions' code beside a copy of their template, in `folder`.
    ///
    /// # Errors
    /// When one of them cannot be built.
    pub fn build(workspace: &'a Workspace, folder: &Path) -> Result<Self> {
        let built = Self { workspace, folder: folder.join("consumers") };
        for language in ["python", "typescript/node_modules/@tidegate/consumer", "rust"] {
            fs::create_dir_all(built.folder.join(language))?;
        }
        fs::copy(workspace.root().join("tests/e2e/template.yaml"), built.template())?;
        built.python()?;
        built.typescript()?;
        built.rust()?;
        Ok(built)
    }

    /// Deploys the stack beside Tidegate, and gives what the tests are told of it and of the examples.
    ///
    /// # Errors
    /// When the client cannot be registered, or the deployment fails.
    pub fn deploy(
        &self,
        deployment: &Deployment<'_>,
        endpoint: &str,
        api_url: &str,
        admin_key: &str,
    ) -> Result<Value> {
        let url = reachable(endpoint, api_url);
        let key = register(self.workspace, &url, CLIENT, admin_key)?;
        let parameters = [format!("TidegateUrl={url}"), format!("TidegateApiKey={key}")];
        deployment.deploy_template(endpoint, &stack(), &self.template(), &parameters)?;
        let outputs = deployment.outputs(endpoint, &stack())?;
        Ok(
            json!({"url": url, "key": key, "client": CLIENT, "outputs": outputs, "examples": self.examples()?}),
        )
    }

    /// How the examples that read a queue are called.
    fn examples(&self) -> Result<Value> {
        let python = self.client("python");
        let interpreter = Venv::readme(self.workspace)?.bin().join("python");
        // It runs from its sources: what it needs beside them is what the README's consumer needs.
        let sources = format!("PYTHONPATH={}", python.join("src").display());
        Ok(json!({
            "rust": [self.rust_example("consume")],
            "python": ["env", sources, interpreter, python.join("examples/consume.py")],
            "typescript": ["node", self.client("typescript").join("examples/consume.mjs")],
        }))
    }

    fn python(&self) -> Result<()> {
        let (client, code) = (self.client("python"), self.folder.join("python"));
        fs::copy(client.join("examples/lambda_function.py"), code.join("lambda_function.py"))?;
        copy_files(&client.join("src/tidegate_consumer"), &code.join("tidegate_consumer"))
    }

    /// A function needs no other package: only who reads a queue waits for the SDK to load.
    fn typescript(&self) -> Result<()> {
        let (client, code) = (self.client("typescript"), self.folder.join("typescript"));
        let npm = |arguments: &[&str]| run(Command::new("npm").args(arguments).current_dir(&client));
        npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"])?;
        npm(&["run", "--silent", "build"])?;
        fs::copy(client.join("examples/lambda.mjs"), code.join("lambda.mjs"))?;
        let package = code.join("node_modules/@tidegate/consumer");
        fs::copy(client.join("package.json"), package.join("package.json"))?;
        copy_files(&client.join("dist"), &package.join("dist"))
    }

    fn rust(&self) -> Result<()> {
        tools::build_tests(self.workspace)?;
        let bootstrap = self.folder.join("rust/bootstrap");
        fs::copy(self.rust_example("consume_lambda"), bootstrap)
            .context("the example is not where cargo builds it")?;
        Ok(())
    }

    fn rust_example(&self, name: &str) -> PathBuf {
        self.workspace.target().join("debug/examples").join(name)
    }

    fn client(&self, language: &str) -> PathBuf {
        self.workspace.root().join("clients").join(language)
    }

    fn template(&self) -> PathBuf {
        self.folder.join("template.yaml")
    }
}

/// Registers a client, and gives its key.
///
/// # Errors
/// When it cannot be registered.
pub fn register(workspace: &Workspace, url: &str, client: &str, admin_key: &str) -> Result<String> {
    let mut register = Venv::sam(workspace)?.program("python");
    register.arg(workspace.root().join("infra/register_client.py")).args([url, client]);
    Ok(capture(register.env("TIDEGATE_E2E_ADMIN_KEY", admin_key))?.trim().to_owned())
}

/// The name of the stack.
pub fn stack() -> String {
    format!("{STACK}-consumers")
}

/// The address of the API for programs that follow DNS. An emulator on this machine hands out the names of AWS, which lead to
/// AWS.
pub fn reachable(endpoint: &str, api_url: &str) -> String {
    let is_here = ["http://127.0.0.1:", "http://localhost:"].iter().any(|here| endpoint.starts_with(here));
    match api_url.split_once("://").and_then(|(_, host)| host.split_once(".lambda-url.")) {
        Some((id, host)) if is_here && host.contains(".on.aws") => {
            format!("{}/{BY_PATH}/{id}", endpoint.trim_end_matches('/'))
        }
        _ => api_url.trim_end_matches('/').to_owned(),
    }
}

/// Copies the files of a folder, and none of the folders in it.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to read {}", from.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn names_of_aws_are_reached_by_path_at_an_emulator_of_this_machine_only() {
        let aws = "https://abc.lambda-url.us-east-1.on.aws/";
        let here = "http://127.0.0.1:4566";
        assert_eq!(reachable(here, aws), "http://127.0.0.1:4566/_aws/lambda-url/abc");
        assert_eq!(reachable("https://lambda.us-east-1.amazonaws.com", aws), aws.trim_end_matches('/'));
        let own = "http://abc.lambda-url.us-east-1.localhost.localstack.cloud:4566/";
        assert_eq!(reachable(here, own), own.trim_end_matches('/'));
    }
}
