//! The file of limits: TOML, whose names are those of `tidegate_forecast::account::Account`.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use tidegate_forecast::account::Account;

/// Reads it.
pub(super) fn read(path: &Path) -> anyhow::Result<Account> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to open {}", path.display()))?;
    parse(&text).with_context(|| format!("failed to read {}", path.display()))
}

fn parse(text: &str) -> anyhow::Result<Account> {
    // Its message shows the line, what is wrong in it, and which names there are.
    let account: Account =
        toml::from_str(text).map_err(|error| anyhow::anyhow!("{}", error.to_string().trim_end()))?;
    account.check()?;
    Ok(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_names_replaces_what_a_new_account_has() {
        let account = parse("lambda_concurrency = 5000\n[prices]\nmillion_write_units = 0.7\n").unwrap();
        assert_eq!((account.lambda_concurrency, account.prices.million_write_units), (5_000.0, 0.7));
        assert_eq!(account.table_writes, Account::default().table_writes);
        assert_eq!(parse("").unwrap(), Account::default());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_what_there_is() {
        for (text, says) in [
            (
                "lambda_concurency = 10",
                &["line 1", "unknown field `lambda_concurency`", "`lambda_concurrency`"][..],
            ),
            ("\ntable_writes = \"many\"", &["line 2", "invalid type: string"]),
            ("table_writes = 0", &["table_writes is 0; it must be a number from 1 on"]),
            ("[prices]\ngb_second = -1", &["prices.gb_second is -1; it must be a number from 0 on"]),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(says.iter().all(|says| error.contains(says)), "{text}: {error}");
        }
    }
}
