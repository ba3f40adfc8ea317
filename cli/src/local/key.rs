//! The admin key: one that a person chose, or one that is made once and kept in the data folder.

use std::path::Path;
use std::{env, fs};

use anyhow::Context as _;

use crate::kept_key;

/// The file of the admin key.
const FILE: &str = "admin-key";

/// What an admin key begins with that is made here.
const PREFIX: &str = "tgadmin_";

/// The variable that may hold the admin key. Neither it nor a file shows in the list of processes, as an argument would.
const VARIABLE: &str = "TIDEGATE_ADMIN_KEY";
/// The fewest characters of an admin key. Keys that are made here have 64 hexadecimal digits; a person's key is at least
/// not found by trying.
const KEY_CHARACTERS: usize = 16;

/// The admin key that a person chose, if one did: what the file holds, or the variable.
pub(super) fn given(file: Option<&Path>) -> anyhow::Result<Option<String>> {
    let (key, whence) = match (file, env::var(VARIABLE)) {
        (Some(file), _) => {
            let key = fs::read_to_string(file)
                .with_context(|| format!("failed to read the admin key from {}", file.display()))?;
            (key, file.display().to_string())
        }
        (None, Ok(key)) => (key, format!("the variable {VARIABLE}")),
        (None, Err(env::VarError::NotPresent)) => return Ok(None),
        (None, Err(error)) => return Err(error).with_context(|| format!("failed to read {VARIABLE}")),
    };
    checked(&key, &whence).map(Some)
}

fn checked(key: &str, whence: &str) -> anyhow::Result<String> {
    let key = key.trim();
    let characters = key.chars().count();
    anyhow::ensure!(
        characters >= KEY_CHARACTERS,
        "the admin key in {whence} has {characters} characters; give it at least {KEY_CHARACTERS}, or leave it out to get \
         one made"
    );
    Ok(key.to_owned())
}

/// The admin key: the one that was given, the one in the folder, or a new one, which is then kept there.
///
/// Only for the process that holds the folder's lock: two at once would each keep their own.
pub(super) fn admin_key(given: Option<String>, folder: Option<&Path>) -> anyhow::Result<String> {
    if let Some(key) = given {
        return Ok(key);
    }
    let Some(folder) = folder else { return kept_key::new(PREFIX) };
    let file = folder.join(FILE);
    if let Some(key) = kept_key::read(&file)? {
        return Ok(key);
    }
    let key = kept_key::new(PREFIX)?;
    kept_key::keep(&file, &key)?;
    Ok(key)
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
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_key_that_a_person_chose_has_sixteen_characters() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        fs::write(&file, " sixteen-is-enough\n").unwrap();
        let key = given(Some(&file)).unwrap();
        assert_eq!(key.as_deref(), Some("sixteen-is-enough"));
        assert_eq!(admin_key(key, Some(folder.path())).unwrap(), "sixteen-is-enough");
        for (short, characters) in [("", 0), (" \n", 0), ("x", 1), ("fifteen-is-few!", 15)] {
            fs::write(&file, short).unwrap();
            let error = given(Some(&file)).unwrap_err().to_string();
            let says =
                format!("has {characters} characters; give it at least 16, or leave it out to get one made");
            assert!(error.ends_with(&says), "{error}");
        }
        assert!(given(Some(&folder.path().join("none"))).is_err());
    }

    #[test]
    fn half_a_key_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "tgadmin_12").unwrap();
        assert_eq!(admin_key(None, Some(folder.path())).unwrap().len(), "tgadmin_".len() + 64);
    }
}
