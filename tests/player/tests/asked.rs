//! What the player is asked for. `cargo xtask bench peers --quick` plays with it.

use std::process::Command;

#[test]
fn what_cannot_be_played_is_said() {
    let work = r#"{"server": {"api": "http://127.0.0.1:1", "sqs": "localhost", "queue": "q", "admin_key": "k", "pid": 1},
        "work": {"kind": "herd"}}"#;
    let cases = [
        (vec![], "what to play is missing"),
        (vec!["{}"], "missing field `server`"),
        (vec![work], "localhost is no http address of a number and a port"),
    ];
    for (arguments, wanted) in cases {
        let mut player = Command::new(env!("CARGO_BIN_EXE_tidegate-player"));
        let played = player.args(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&played.stderr).into_owned();
        assert!(!played.status.success() && said.contains(wanted), "{arguments:?}: {said}");
        assert!(played.stdout.is_empty());
    }
}
