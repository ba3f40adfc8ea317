//! A `tidegate local` of a test's own, on free ports.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A process that does not outlive its test.
pub struct Tidegate(Option<Child>);

impl Tidegate {
    pub fn start(data: Option<&Path>, args: &[&str]) -> Self {
        Self::start_with(data, args, &[])
    }

    /// The same with `TIDEGATE_LOG`.
    pub fn start_logging(data: Option<&Path>, args: &[&str], log: &str) -> Self {
        Self::start_with(data, args, &[("TIDEGATE_LOG", log)])
    }

    /// The same with these variables in its environment.
    pub fn start_with(data: Option<&Path>, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.arg("local").args(args);
        for port in ["--port", "--sqs-port"] {
            if !args.contains(&port) {
                command.args([port, "0"]);
            }
        }
        if let Some(folder) = data {
            command.arg("--data").arg(folder);
        }
        // Logs of the machine's user must not decide what stderr holds.
        for variable in ["LOG", "ADMIN_KEY", "PORT", "SQS_PORT", "DATA"] {
            command.env_remove(format!("TIDEGATE_{variable}"));
        }
        for service in ["", "_EVENTBRIDGE", "_SNS", "_LAMBDA", "_SFN"] {
            command.env_remove(format!("AWS_ENDPOINT_URL{service}"));
        }
        command.envs(variables.iter().copied());
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(Some(command.spawn().unwrap()))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// The first line of its stdout, which stays open. Its later lines are lost.
    pub fn first_line(&mut self) -> String {
        let mut lines = BufReader::new(self.child().stdout.as_mut().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line
    }

    /// Its lines up to the first that has `text` in it. Later ones are lost.
    pub fn lines_until(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for line in BufReader::new(self.child().stdout.as_mut().unwrap()).lines() {
            lines.push(line.unwrap());
            if lines.last().is_some_and(|line| line.contains(text)) {
                return lines;
            }
        }
        panic!("it ended without {text:?}: {lines:?}")
    }

    /// Lets it live for a while and then ends it as a power switch would: no handler runs.
    pub fn kill_after(mut self, time: Duration) {
        std::thread::sleep(time);
        let child = self.child();
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// What Ctrl-C does.
    #[cfg(unix)]
    pub fn interrupt(&mut self) {
        let id = self.child().id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }

    /// Waits for its end.
    pub fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Tidegate {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Stdout as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Stderr as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// One request over a plain connection; the whole answer.
pub fn request(origin: &str, head: &str, body: &str) -> String {
    request_to(origin, "localhost", head, body)
}

/// The same with a Host header of its own.
pub fn request_to(origin: &str, host: &str, head: &str, body: &str) -> String {
    let mut connection = TcpStream::connect(origin.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    write!(
        connection,
        "{head}\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}
