//! Keys that are kept in the data folder, for its owner's eyes only.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::Context as _;

/// The file of the admin key.
const FILE: &str = "admin-key";

/// The admin key: the one that was given, the one in the folder, or a new one, which is then kept there.
///
/// Only for the process that holds the folder's lock: two at once would each keep their own.
pub(super) fn admin_key(given: Option<&str>, folder: Option<&Path>) -> anyhow::Result<String> {
    if let Some(key) = given {
        anyhow::ensure!(!key.trim().is_empty(), "the admin key is empty; leave it out to get one made");
        return Ok(key.trim().to_owned());
    }
    let Some(folder) = folder else { return new_key() };
    let file = folder.join(FILE);
    if let Some(key) = read(&file)? {
        return Ok(key);
    }
    let key = new_key()?;
    keep(&file, &key)?;
    Ok(key)
}

fn new_key() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).context("failed to draw an admin key")?;
    Ok(bytes.iter().fold("tgadmin_".to_owned(), |key, byte| format!("{key}{byte:02x}")))
}

/// A key that was kept; `None` when none was, or the process died before it was whole.
pub(crate) fn read(file: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(file) {
        // The line's end is written last.
        Ok(text) => Ok(text.strip_suffix('\n').filter(|key| !key.is_empty()).map(str::to_owned)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
    }
}

/// Keeps a key in a file that only the owner can read.
pub(crate) fn keep(file: &Path, key: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(file).and_then(|mut file| file.write_all(format!("{key}\n").as_bytes()));
    written.with_context(|| format!("failed to keep a key in {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_key_is_made_once_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let key = admin_key(None, Some(folder.path())).unwrap();
        assert_eq!(key.len(), "tgadmin_".len() + 64);
        assert_eq!(admin_key(None, Some(folder.path())).unwrap(), key);
        assert_ne!(admin_key(None, None).unwrap(), key);
        assert_eq!(admin_key(Some(" mine "), Some(folder.path())).unwrap(), "mine");
        assert!(admin_key(Some(" "), None).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn half_a_key_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "tgadmin_12").unwrap();
        assert_eq!(admin_key(None, Some(folder.path())).unwrap().len(), "tgadmin_".len() + 64);
    }
}
