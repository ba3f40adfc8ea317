//! The links of the documents to each other: the file is there, and it has the heading.

use std::fs;
use std::path::{Path, PathBuf};

/// The checkout that the tests run in: asked for at run time, since a target folder may serve several.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}
const FOLDERS: [&str; 4] = ["", "docs", "docs/how-to", "docs/decisions"];

fn documents() -> Vec<PathBuf> {
    let files = FOLDERS.iter().flat_map(|folder| fs::read_dir(repository().join(folder)).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "md")).collect()
}

/// A document without its blocks of code.
fn prose(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    text.split("```").step_by(2).collect()
}

/// What a heading is linked by.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn fault(file: &Path, link: &str) -> Option<String> {
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { file.to_owned() } else { file.parent().unwrap().join(path) };
    if !target.exists() {
        return Some("there is no such file".to_owned());
    }
    let is_there = || {
        let text = prose(&target);
        let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
        headings.map(|line| anchor(line.trim_start_matches('#'))).any(|known| known == heading)
    };
    (!heading.is_empty() && !is_there()).then(|| "the file has no such heading".to_owned())
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let (mut links, mut faults) = (0, Vec::new());
    for file in documents() {
        for rest in prose(&file).split("](").skip(1) {
            let link = rest.split(')').next().unwrap();
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            links += 1;
            faults.extend(fault(&file, link).map(|fault| format!("{}: {link}: {fault}", file.display())));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(links > 40, "{links}");
}
