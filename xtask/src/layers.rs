//! Which crate may depend on which: one table, held against what `cargo metadata` reports.
//!
//! Dependencies run one way: `functions, cli -> api -> engine -> store -> domain`, with `calls` below
//! `store`, `embedded` beside it, on `calls` too, and `runtime` above both.
//! Dependencies for tests only are free to use any library. The table is complete on purpose: a crate without a
//! row and a row without a crate are both faults, so that the table cannot go stale.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A workspace crate and the workspace crates it may use.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
    /// Whether other crates may use this one at all, be it in tests only.
    is_library: bool,
}

const fn library(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, may_use, is_library: true }
}

const fn top(name: &'static str, may_use: &'static [&'static str]) -> Layer {
    Layer { name, may_use, is_library: false }
}

const LIBRARIES: &[&str] = &[
    "tidegate-protocol",
    "tidegate-domain",
    "tidegate-calls",
    "tidegate-store",
    "tidegate-engine",
    "tidegate-api",
    "tidegate-client",
    "tidegate-embedded",
    "tidegate-runtime",
    "tidegate-aws",
    "tidegate-forecast",
];

/// What the suites stand on: the libraries, and the kit that no program ships.
const SUITE: &[&str] = &[
    "tidegate-protocol",
    "tidegate-domain",
    "tidegate-store",
    "tidegate-engine",
    "tidegate-api",
    "tidegate-embedded",
    "tidegate-runtime",
    "tidegate-testkit",
];

/// The fuzz suite plays on the worlds of the simulation, beside the libraries.
const FUZZ: &[&str] = &[
    "tidegate-protocol",
    "tidegate-domain",
    "tidegate-store",
    "tidegate-engine",
    "tidegate-api",
    "tidegate-embedded",
    "tidegate-testkit",
    "tidegate-simulation",
];

/// The model of the cloud runs what the functions run.
const CLOUD: &[&str] = &[
    "tidegate-protocol",
    "tidegate-domain",
    "tidegate-store",
    "tidegate-engine",
    "tidegate-api",
    "tidegate-aws",
    "tidegate-embedded",
    "tidegate-forecast",
    "tidegate-testkit",
];

const LAYERS: &[Layer] = &[
    library("tidegate-protocol", &[]),
    library("tidegate-domain", &[]),
    library("tidegate-calls", &[]),
    library("tidegate-store", &["tidegate-domain", "tidegate-calls"]),
    library("tidegate-engine", &["tidegate-protocol", "tidegate-domain", "tidegate-calls", "tidegate-store"]),
    library("tidegate-api", &["tidegate-protocol", "tidegate-domain", "tidegate-store", "tidegate-engine"]),
    library("tidegate-embedded", &["tidegate-domain", "tidegate-calls"]),
    library(
        "tidegate-runtime",
        &["tidegate-domain", "tidegate-calls", "tidegate-store", "tidegate-engine", "tidegate-embedded"],
    ),
    library("tidegate-aws", &["tidegate-protocol", "tidegate-store", "tidegate-engine"]),
    library("tidegate-client", &["tidegate-protocol"]),
    library("tidegate-forecast", &["tidegate-domain"]),
    top("tidegate-master", &["tidegate-api", "tidegate-aws"]),
    top("tidegate-emitter", &["tidegate-engine", "tidegate-aws"]),
    top("tidegate-handler", &["tidegate-engine", "tidegate-aws"]),
    top("tidegate", LIBRARIES),
    library(
        "tidegate-testkit",
        &["tidegate-domain", "tidegate-store", "tidegate-engine", "tidegate-embedded"],
    ),
    top("tidegate-contract", LIBRARIES),
    top("tidegate-simulation", SUITE),
    top("tidegate-fuzz", FUZZ),
    top("tidegate-cloud", CLOUD),
    top("tidegate-e2e", LIBRARIES),
    top("tidegate-bench", SUITE),
    top("tidegate-player", &[]),
    top("xtask", &[]),
];

/// What the domain must not reach, not even through another crate; a trailing `*` matches any ending.
const NOT_IN_THE_DOMAIN: &[&str] = &["tokio", "aws-*", "tracing", "reqwest", "hyper", "rusqlite"];

/// Holds the workspace against the table.
///
/// # Errors
/// When the metadata cannot be read or any edge, crate or row is at fault; all faults are named.
pub fn check(metadata: &Value) -> Result<()> {
    let faults = faults(&Graph::read(metadata)?);
    if faults.is_empty() {
        return Ok(());
    }
    bail!("the dependencies break the layers of xtask/src/layers.rs:\n  {}", faults.join("\n  "))
}

fn faults(graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for layer in LAYERS {
        if !graph.members.contains(layer.name) {
            faults
                .push(format!("the table has a row for {}, which is no crate of the workspace", layer.name));
        }
    }
    for member in &graph.members {
        match LAYERS.iter().find(|layer| layer.name == member) {
            Some(layer) => edge_faults(graph, layer, &mut faults),
            None => faults.push(format!("{member} has no row in the table")),
        }
    }
    for reached in graph.reached_from("tidegate-domain") {
        if NOT_IN_THE_DOMAIN.iter().any(|pattern| matches(pattern, &reached)) {
            faults.push(format!("tidegate-domain reaches {reached}, but must stay pure"));
        }
    }
    faults
}

fn edge_faults(graph: &Graph, layer: &Layer, faults: &mut Vec<String>) {
    for (used, use_) in graph.edges_of(layer.name).filter(|(used, _)| graph.members.contains(*used)) {
        let allowed = match use_ {
            Use::Shipped => layer.may_use.contains(&used),
            Use::TestOnly => LAYERS.iter().any(|other| other.name == used && other.is_library),
        };
        if !allowed {
            faults.push(format!("{} must not depend on {used}", layer.name));
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Shipped,
    TestOnly,
}

/// The dependency graph by crate name; two versions of one crate count as one.
#[derive(Default)]
struct Graph {
    members: BTreeSet<String>,
    edges: BTreeMap<String, BTreeSet<(String, Use)>>,
}

impl Graph {
    fn read(metadata: &Value) -> Result<Self> {
        let mut graph = Self::default();
        let mut names = BTreeMap::new();
        for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
            names.insert(text(&package["id"])?, text(&package["name"])?);
        }
        let name_of =
            |id: &Value| names.get(text(id)?).copied().context("cargo metadata names no such package");
        for id in metadata["workspace_members"].as_array().context("cargo metadata lists no members")? {
            graph.members.insert(name_of(id)?.to_owned());
        }
        for node in metadata["resolve"]["nodes"].as_array().context("cargo metadata resolves nothing")? {
            let edges = graph.edges.entry(name_of(&node["id"])?.to_owned()).or_default();
            for dependency in node["deps"].as_array().context("a node lists no dependencies")? {
                let used = name_of(&dependency["pkg"])?;
                for kind in dependency["dep_kinds"].as_array().context("a dependency has no kind")? {
                    let use_ = if kind["kind"] == "dev" { Use::TestOnly } else { Use::Shipped };
                    edges.insert((used.to_owned(), use_));
                }
            }
        }
        Ok(graph)
    }

    fn edges_of(&self, name: &str) -> impl Iterator<Item = (&str, Use)> {
        self.edges.get(name).into_iter().flatten().map(|(used, use_)| (used.as_str(), *use_))
    }

    fn reached_from(&self, start: &str) -> BTreeSet<String> {
        let mut reached = BTreeSet::new();
        let mut waiting = vec![start.to_owned()];
        while let Some(name) = waiting.pop() {
            for (used, use_) in self.edges_of(&name) {
                if use_ == Use::Shipped && reached.insert(used.to_owned()) {
                    waiting.push(used.to_owned());
                }
            }
        }
        reached
    }
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("cargo metadata holds no text where a name belongs")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Graph, LAYERS, check, faults};

    /// Metadata of a workspace with every crate of the table and these edges: (from, to, kind).
    fn metadata(extra_members: &[&str], outside: &[&str], edges: &[(&str, &str, Option<&str>)]) -> Value {
        let members: Vec<&str> =
            LAYERS.iter().map(|layer| layer.name).chain(extra_members.iter().copied()).collect();
        let all: Vec<&str> = members.iter().chain(outside).copied().collect();
        let node = |name: &&str| {
            let deps: Vec<Value> = edges
                .iter()
                .filter(|(from, _, _)| from == name)
                .map(|(_, to, kind)| json!({"pkg": format!("id of {to}"), "dep_kinds": [{"kind": kind}]}))
                .collect();
            json!({"id": format!("id of {name}"), "deps": deps})
        };
        json!({
            "packages": all.iter().map(|name| json!({"id": format!("id of {name}"), "name": name})).collect::<Vec<_>>(),
            "workspace_members": members.iter().map(|name| format!("id of {name}")).collect::<Vec<_>>(),
            "resolve": {"nodes": all.iter().map(node).collect::<Vec<_>>()},
        })
    }

    fn faults_of(extra: &[&str], outside: &[&str], edges: &[(&str, &str, Option<&str>)]) -> Vec<String> {
        faults(&Graph::read(&metadata(extra, outside, edges)).unwrap())
    }

    #[test]
    fn edges_that_run_downwards_pass() {
        let edges = [
            ("tidegate-master", "tidegate-api", None),
            ("tidegate-api", "tidegate-engine", None),
            ("tidegate-engine", "tidegate-store", None),
            ("tidegate-store", "tidegate-domain", None),
            ("tidegate-runtime", "tidegate-engine", None),
            ("tidegate-runtime", "tidegate-embedded", None),
            ("tidegate-contract", "tidegate-embedded", None),
        ];
        assert_eq!(faults_of(&[], &[], &edges), Vec::<String>::new());
        check(&metadata(&[], &[], &edges)).unwrap();
    }

    #[test]
    fn an_edge_that_runs_upwards_fails() {
        for (from, to) in [
            ("tidegate-domain", "tidegate-store"),
            ("tidegate-store", "tidegate-engine"),
            ("tidegate-engine", "tidegate-api"),
            ("tidegate-engine", "tidegate-embedded"),
            ("tidegate-embedded", "tidegate-engine"),
            ("tidegate-embedded", "tidegate-store"),
            ("tidegate-embedded", "tidegate-runtime"),
            ("tidegate-handler", "tidegate-api"),
            ("tidegate", "tidegate-testkit"),
            ("tidegate-api", "tidegate-testkit"),
            ("tidegate-client", "tidegate-domain"),
            ("tidegate-e2e", "tidegate"),
            ("xtask", "tidegate-domain"),
        ] {
            let found = faults_of(&[], &[], &[(from, to, None)]);
            assert_eq!(found, [format!("{from} must not depend on {to}")]);
            check(&metadata(&[], &[], &[(from, to, None)])).unwrap_err();
        }
    }

    #[test]
    fn a_build_dependency_counts_as_shipped() {
        let found = faults_of(&[], &[], &[("tidegate-store", "tidegate-engine", Some("build"))]);
        assert_eq!(found, ["tidegate-store must not depend on tidegate-engine"]);
    }

    #[test]
    fn tests_may_use_any_library_but_no_program() {
        assert_eq!(
            faults_of(&[], &[], &[("tidegate-api", "tidegate-embedded", Some("dev"))]),
            Vec::<String>::new()
        );
        assert_eq!(
            faults_of(&[], &[], &[("tidegate-api", "tidegate-testkit", Some("dev"))]),
            Vec::<String>::new()
        );
        let found = faults_of(&[], &[], &[("tidegate-api", "tidegate-e2e", Some("dev"))]);
        assert_eq!(found, ["tidegate-api must not depend on tidegate-e2e"]);
    }

    #[test]
    fn a_crate_without_a_row_fails() {
        assert_eq!(faults_of(&["tidegate-new"], &[], &[]), ["tidegate-new has no row in the table"]);
    }

    #[test]
    fn a_row_without_a_crate_fails() {
        let mut stale = metadata(&[], &[], &[]);
        stale["workspace_members"].as_array_mut().unwrap().retain(|id| id != "id of xtask");
        let found = faults(&Graph::read(&stale).unwrap());
        assert_eq!(found, ["the table has a row for xtask, which is no crate of the workspace"]);
    }

    #[test]
    fn the_domain_must_not_reach_a_runtime_even_through_another_crate() {
        let through = [("tidegate-domain", "calendar", None), ("calendar", "aws-sdk-sqs", None)];
        let found = faults_of(&[], &["calendar", "aws-sdk-sqs"], &through);
        assert_eq!(found, ["tidegate-domain reaches aws-sdk-sqs, but must stay pure"]);
        let in_tests = [("tidegate-domain", "tokio", Some("dev"))];
        assert_eq!(faults_of(&[], &["tokio"], &in_tests), Vec::<String>::new());
    }
}
