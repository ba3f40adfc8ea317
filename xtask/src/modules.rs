//! Which module of a crate may import which: one table for each of the crates that have many, held against their files. And
//! files beside each other, in every crate: their imports never run in a circle.
//!
//! Read from the text: what stands in comments and in test modules does not count. A name that a crate's `lib.rs` gives out
//! again counts as an import of the module that it is from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A module and the modules of its crate that it may import, which all stand above it in its table.
type Row = (&'static str, &'static [&'static str]);

/// A crate whose modules have a table.
struct Table {
    /// Where its files lie.
    root: &'static str,
    /// What every module may import, and that imports nothing but each other, downwards.
    base: &'static [&'static str],
    rows: &'static [Row],
}

const TABLES: &[Table] = &[
    Table {
        root: "shared/store/src",
        base: &["tables", "error", "item", "journal", "pause", "rows", "transact", "doc"],
        rows: &[
            ("create", &[]),
            ("secrets", &[]),
            ("changes", &[]),
            ("calendars", &["changes"]),
            ("client_secrets", &["changes"]),
            ("sidelines", &["changes"]),
            ("index", &[]),
            ("clients", &["changes", "sidelines", "index"]),
            ("keys", &["changes", "clients"]),
            ("pace", &[]),
            ("policies", &["changes"]),
            ("samples", &[]),
            ("lateness", &["samples"]),
            ("usage", &[]),
            ("ticker", &[]),
            ("targets", &[]),
            ("launch", &[]),
            ("jobs", &["changes", "launch"]),
            ("one_times", &["launch", "jobs"]),
            ("quotas", &["calendars", "policies", "jobs"]),
            ("watches", &["launch"]),
            ("made", &["clients", "keys"]),
            ("triggers", &["keys", "launch"]),
            ("backfills", &["keys", "launch", "jobs", "triggers"]),
            ("deletions", &["changes", "sidelines", "clients", "keys", "index", "launch", "triggers"]),
            ("runs", &[]),
            ("overdue", &["runs"]),
            ("scans", &["runs"]),
            ("line", &["runs"]),
            ("packs", &["runs", "line"]),
            ("aside", &["line"]),
            ("slots", &["runs", "line"]),
            ("dead_letters", &["runs", "line", "slots"]),
            ("failures", &[]),
            ("events", &["runs", "slots", "dead_letters", "failures"]),
            (
                "repair",
                &[
                    "changes", "policies", "ticker", "launch", "jobs", "runs", "scans", "line", "packs",
                    "slots", "events",
                ],
            ),
        ],
    },
    Table {
        root: "shared/engine/src",
        base: &[
            "clock", "random", "contain", "error", "deadline", "expect", "figures", "gather", "author",
            "outgoing",
        ],
        rows: &[
            ("regions", &[]),
            ("reach", &[]),
            ("pauses", &[]),
            ("services", &[]),
            ("bus", &["regions"]),
            ("queues", &["regions", "bus", "pauses", "services", "reach"]),
            ("index", &[]),
            ("token_key", &[]),
            ("sealing", &[]),
            ("secrets", &["token_key", "sealing"]),
            ("effect", &[]),
            ("contents", &["queues"]),
            ("throttle", &["queues", "effect", "contents"]),
            ("scan", &["contents"]),
            ("counters", &[]),
            (
                "deliver",
                &[
                    "counters",
                    "regions",
                    "bus",
                    "reach",
                    "services",
                    "queues",
                    "token_key",
                    "secrets",
                    "effect",
                    "contents",
                    "scan",
                ],
            ),
            ("samples", &["throttle"]),
            ("heartbeat", &[]),
            ("effect_loop", &["bus", "queues", "effect", "throttle", "deliver"]),
            ("tokens", &["queues", "token_key", "effect", "contents", "throttle", "effect_loop"]),
            ("emit", &["bus", "queues", "index", "contents", "throttle", "scan", "counters"]),
            ("queries", &["contents", "throttle", "scan"]),
            ("watches", &["queues", "contents", "queries"]),
            ("quotas", &[]),
            ("dead_letters", &["queues", "contents", "queries"]),
            ("calendars", &["contents"]),
            ("policies", &["effect", "throttle", "effect_loop", "tokens", "queries"]),
            (
                "jobs",
                &["index", "effect", "contents", "throttle", "effect_loop", "tokens", "emit", "queries"],
            ),
            ("sidelining", &["queues", "contents", "policies", "tokens"]),
            ("suspension", &["sidelining"]),
            ("deletions", &["queues", "sidelining"]),
            (
                "handle",
                &[
                    "queues",
                    "effect",
                    "deliver",
                    "effect_loop",
                    "samples",
                    "tokens",
                    "emit",
                    "deletions",
                    "watches",
                ],
            ),
            ("repair", &[]),
            (
                "engine",
                &[
                    "regions",
                    "bus",
                    "queues",
                    "index",
                    "pauses",
                    "token_key",
                    "secrets",
                    "contents",
                    "throttle",
                    "deliver",
                    "heartbeat",
                    "effect_loop",
                    "tokens",
                    "emit",
                    "queries",
                    "quotas",
                    "dead_letters",
                    "calendars",
                    "policies",
                    "sidelining",
                    "suspension",
                    "deletions",
                    "watches",
                    "samples",
                    "counters",
                    "jobs",
                    "handle",
                ],
            ),
        ],
    },
];

/// Crates of which files only are looked at. In the API, `form` judges bodies by the finished document, which names all routes;
/// in the simulation, checkers look at the history that calls them.
const FILES_ONLY: &[&str] = &["shared/api/src", "tests/simulation/src"];

/// Which folders of a crate count as files beside their neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folders {
    /// None: files only.
    None,
    /// Those within modules; the order of the modules is that of a table.
    WithinModules,
    /// All of them.
    All,
}

impl Folders {
    fn of(source: &Path) -> Self {
        if TABLES.iter().any(|table| source.ends_with(table.root)) {
            return Self::WithinModules;
        }
        if FILES_ONLY.iter().any(|root| source.ends_with(root)) { Self::None } else { Self::All }
    }

    fn count_at(self, level: usize) -> bool {
        match self {
            Self::None => false,
            Self::WithinModules => level > 0,
            Self::All => true,
        }
    }
}

/// Folders with the sources of crates, of which every file is looked at for circles.
const CRATES: &[&str] = &["shared", "functions", "tests", "."];

/// Holds the files of the workspace against the tables.
///
/// # Errors
/// When a file cannot be read, or an import is at fault; all faults are named.
pub fn check(root: &Path) -> Result<()> {
    let mut faults = Vec::new();
    for table in TABLES {
        let files = Files::read(&root.join(table.root))?;
        faults.extend(table.faults(&files).into_iter().map(|fault| format!("{}: {fault}", table.root)));
    }
    for folder in CRATES {
        for entry in fs::read_dir(root.join(folder)).with_context(|| format!("failed to list {folder}"))? {
            let source = entry?.path().join("src");
            if source.is_dir() {
                let circles = Files::read(&source)?.circles(Folders::of(&source));
                let name = source.strip_prefix(root).unwrap_or(&source).display().to_string();
                faults.extend(circles.into_iter().map(|circle| format!("{name}: {circle}")));
            }
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("imports break the order of xtask/src/modules.rs:\n  {}", faults.join("\n  "))
}

impl Table {
    fn faults(&self, files: &Files) -> Vec<String> {
        let mut faults = Vec::new();
        let modules = files.modules();
        let known: Vec<&str> =
            self.base.iter().copied().chain(self.rows.iter().map(|(name, _)| *name)).collect();
        for module in modules.iter().filter(|module| !known.contains(&module.as_str())) {
            faults.push(format!("{module} has no row in the table"));
        }
        for name in known.iter().filter(|name| !modules.contains(**name)) {
            faults.push(format!("the table has a row for {name}, which is no module"));
        }
        for (place, (name, may_import)) in self.rows.iter().enumerate() {
            for import in may_import.iter() {
                if !self.rows.iter().take(place).any(|(above, _)| above == import) {
                    faults.push(format!("the row of {name} names {import}, which does not stand above it"));
                }
            }
        }
        for (file, import) in files.imports_of_modules() {
            let module = module_of(&file);
            let may = match self.rows.iter().find(|(name, _)| *name == module) {
                Some((_, may_import)) => self.base.contains(&&*import) || may_import.contains(&&*import),
                // Base modules may import those before them, and an error what it is about.
                None => self.base.contains(&&*import),
            };
            if module != import && !may {
                faults.push(format!("{file} must not import {import}"));
            }
        }
        faults
    }
}

/// The text of a crate's files, by their path, without comments and test modules.
struct Files {
    by_path: BTreeMap<String, String>,
    /// The modules that the names are from which `lib.rs` gives out again.
    given_out: BTreeMap<String, String>,
}

impl Files {
    fn read(source: &Path) -> Result<Self> {
        let (mut by_path, mut waiting) = (BTreeMap::new(), vec![source.to_owned()]);
        while let Some(folder) = waiting.pop() {
            for entry in
                fs::read_dir(&folder).with_context(|| format!("failed to list {}", folder.display()))?
            {
                let path = entry?.path();
                if path.is_dir() {
                    waiting.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let text = fs::read_to_string(&path)
                        .with_context(|| format!("failed to read {}", path.display()))?;
                    let name = path.strip_prefix(source)?.to_string_lossy().replace('\\', "/");
                    by_path.insert(name, text);
                }
            }
        }
        Ok(Self::new(by_path))
    }

    fn new(by_path: BTreeMap<String, String>) -> Self {
        let by_path: BTreeMap<String, String> =
            by_path.into_iter().map(|(path, text)| (path, shipped(&text))).collect();
        let mut given_out = BTreeMap::new();
        for statement in by_path.get("lib.rs").map_or("", String::as_str).split(';') {
            let Some((_, used)) = statement.split_once("pub use ") else { continue };
            let module = words(used).next().unwrap_or_default().to_owned();
            given_out.extend(words(used).skip(1).map(|name| (name.to_owned(), module.clone())));
        }
        Self { by_path, given_out }
    }

    /// The modules right under the crate's root.
    fn modules(&self) -> BTreeSet<String> {
        let roots = ["lib", "main"];
        self.by_path.keys().map(|path| module_of(path)).filter(|module| !roots.contains(&&**module)).collect()
    }

    /// Each file with each module of its crate that it imports something of.
    fn imports_of_modules(&self) -> BTreeSet<(String, String)> {
        let modules = self.modules();
        let mut imports = BTreeSet::new();
        for (path, text) in self.by_path.iter().filter(|(path, _)| *path != "lib.rs") {
            for name in imported_after(text, "crate::") {
                let module = self.given_out.get(name).map_or(name, String::as_str);
                if modules.contains(module) {
                    imports.insert((path.clone(), module.to_owned()));
                }
            }
        }
        imports
    }

    /// The circles of imports among files that stand beside each other. The `mod.rs` of a folder stands above its files, and
    /// `folders` says which folders count as files beside their neighbours.
    fn circles(&self, folders: Folders) -> Vec<String> {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, text) in &self.by_path {
            let units: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
            for (level, own) in units.iter().enumerate() {
                let is_file = level + 1 == units.len();
                let is_above = is_file && matches!(*own, "mod" | "lib" | "main" | "tests");
                if is_above || (!is_file && !folders.count_at(level)) {
                    continue;
                }
                let above = units.get(..level).unwrap_or_default();
                let whole =
                    format!("crate::{}", above.iter().map(|name| format!("{name}::")).collect::<String>());
                let beside = if is_file { imported_after(text, "super::") } else { Vec::new() };
                let folder = above.join("/");
                for name in beside.into_iter().chain(imported_after(text, &whole)) {
                    if name != *own && self.is_beside(&folder, name) {
                        edges.entry(join(&folder, own)).or_default().insert(join(&folder, name));
                    }
                }
            }
        }
        let mut left: BTreeSet<&String> = edges.keys().collect();
        loop {
            let is_free = |file: &&String| {
                !edges.get(*file).is_some_and(|used| used.iter().any(|used| left.contains(used)))
            };
            let free: Vec<&String> = left.iter().copied().filter(is_free).collect();
            if free.is_empty() {
                break;
            }
            left.retain(|file| !free.contains(file));
        }
        if left.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = left.into_iter().map(String::as_str).collect();
        vec![format!("imports run in a circle through, or to one from: {}", names.join(", "))]
    }

    fn is_beside(&self, folder: &str, name: &str) -> bool {
        let path = join(folder, name);
        self.by_path.contains_key(&format!("{path}.rs"))
            || self.by_path.contains_key(&format!("{path}/mod.rs"))
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The module right under the crate's root that a file belongs to.
fn module_of(path: &str) -> String {
    path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned()
}

/// The text of a file without comments, and up to its test module.
fn shipped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The first names after a prefix, be it one or a group in braces.
fn imported_after<'t>(text: &'t str, prefix: &str) -> Vec<&'t str> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices(prefix) {
        let is_word_before =
            text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
        let rest = &text[at + prefix.len()..];
        if is_word_before {
            continue;
        }
        match rest.strip_prefix('{') {
            Some(group) => names.extend(first_names(group)),
            None => names.extend(words(rest).next()),
        }
    }
    names
}

/// The first name of each entry of a group, up to its closing brace.
fn first_names(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut names) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.extend(words(&group[start..at]).next());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.extend(words(&group[start..at]).next());
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Files, Folders, Table, check};

    const SMALL: Table = Table {
        root: "small",
        base: &["error"],
        rows: &[("throttle", &[]), ("deliver", &[]), ("effects", &["throttle", "deliver"])],
    };

    fn files(texts: &[(&str, &str)]) -> Files {
        let mut all = vec![
            ("lib.rs", "pub use throttle::release::{Released, Other};"),
            ("error.rs", ""),
            ("throttle/mod.rs", "use crate::error::Error;"),
            ("deliver.rs", ""),
            ("effects.rs", "use crate::{deliver::Sent, throttle};"),
        ];
        all.retain(|(path, _)| texts.iter().all(|(other, _)| other != path));
        all.extend(texts);
        Files::new(all.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    fn faults(texts: &[(&str, &str)]) -> Vec<String> {
        SMALL.faults(&files(texts))
    }

    #[test]
    fn imports_that_run_downwards_pass() {
        assert_eq!(faults(&[]), Vec::<String>::new());
        let in_comments =
            "// use crate::deliver::Sent;\n#[cfg(test)]\nmod tests { use crate::deliver::Sent; }";
        assert_eq!(faults(&[("throttle/serve.rs", in_comments)]), Vec::<String>::new());
    }

    #[test]
    fn an_import_that_is_in_no_row_fails_however_it_is_written() {
        for text in [
            "use crate::deliver::Sent;",
            "use crate::{error::Error, deliver::{self, Sent}};",
            "pub(crate) use crate::{\n    deliver, \n};",
            "fn f() { crate::deliver::send() }",
        ] {
            let found = faults(&[("throttle/serve.rs", text)]);
            assert_eq!(found, ["throttle/serve.rs must not import deliver"], "{text}");
        }
        // By the name that the crate gives it.
        let found = faults(&[("deliver.rs", "use crate::{Other, error::Error};")]);
        assert_eq!(found, ["deliver.rs must not import throttle"]);
        let found = faults(&[("error.rs", "use crate::throttle::Lease;")]);
        assert_eq!(found, ["error.rs must not import throttle"]);
    }

    #[test]
    fn a_module_without_a_row_and_a_row_without_a_module_fail() {
        let found = faults(&[("emit/mod.rs", "")]);
        assert_eq!(found, ["emit has no row in the table"]);
        let mut fewer = files(&[]);
        fewer.by_path.remove("deliver.rs");
        assert_eq!(SMALL.faults(&fewer), ["the table has a row for deliver, which is no module"]);
    }

    #[test]
    fn a_row_that_names_one_below_it_fails() {
        let upwards =
            Table { rows: &[("throttle", &["deliver"]), ("deliver", &[]), ("effects", &[])], ..SMALL };
        let found = upwards.faults(&files(&[("effects.rs", "")]));
        assert_eq!(found, ["the row of throttle names deliver, which does not stand above it"]);
    }

    #[test]
    fn files_beside_each_other_that_import_in_a_circle_fail() {
        let circle = [("throttle/a.rs", "use super::b::B;"), ("throttle/b.rs", "use crate::throttle::a::A;")];
        let found = files(&circle).circles(Folders::None);
        assert_eq!(found, ["imports run in a circle through, or to one from: throttle/a, throttle/b"]);
        let chain =
            [("throttle/a.rs", "use super::{Throttle, b::B};"), ("throttle/b.rs", "use super::Throttle;")];
        assert_eq!(files(&chain).circles(Folders::WithinModules), Vec::<String>::new());
    }

    #[test]
    fn a_folder_within_a_module_counts_as_a_file_where_the_modules_have_a_table() {
        let circle = [
            ("throttle/a/mod.rs", "use crate::throttle::b::B;"),
            ("throttle/a/deep.rs", ""),
            ("throttle/b.rs", "use super::a::A;"),
        ];
        let found = files(&circle).circles(Folders::WithinModules);
        assert_eq!(found, ["imports run in a circle through, or to one from: throttle/a, throttle/b"]);
        assert_eq!(files(&circle).circles(Folders::None), Vec::<String>::new());
    }

    #[test]
    fn folders_right_under_the_root_count_where_no_table_orders_them() {
        let circle = [
            ("demo/mod.rs", ""),
            ("demo/setup.rs", "use crate::local::keep_key;"),
            ("local/mod.rs", "use crate::demo;"),
        ];
        let found = files(&circle).circles(Folders::All);
        assert_eq!(found, ["imports run in a circle through, or to one from: demo, local"]);
        assert_eq!(files(&circle).circles(Folders::WithinModules), Vec::<String>::new());
        let with_a_file =
            [("args.rs", "use crate::dry_run::DAYS;"), ("dry_run/mod.rs", "use crate::args::Args;")];
        let found = files(&with_a_file).circles(Folders::All);
        assert_eq!(found, ["imports run in a circle through, or to one from: args, dry_run"]);
    }

    #[test]
    fn the_workspace_holds() {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        check(Path::new(&manifest).parent().unwrap()).unwrap();
    }
}
