//! What is seen while it plays: each event as it happens, and on a terminal a table that stays below them.

use std::io::{self, IsTerminal as _, Write as _};

use chrono::Local;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_client::Event;

use super::LIMIT;
use super::look_around::LookAround;
use super::score::Score;
use crate::args::Output;

/// Where it is shown.
pub(super) enum Display {
    /// A terminal.
    Table(Box<Table>),
    /// A file or a pipe: a line for each event.
    Lines,
    /// Nowhere: stdout is for the JSON.
    Silent,
}

pub(super) struct Table {
    all: MultiProgress,
    waiting: ProgressBar,
    in_flight: ProgressBar,
    done: ProgressBar,
}

impl Table {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let row = |name: &'static str| {
            let style = ProgressStyle::with_template("  {prefix:10} {bar:40} {msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("█▌ ");
            all.add(ProgressBar::new(1).with_style(style).with_prefix(name))
        };
        let (waiting, in_flight, done) = (row("waiting"), row("in flight"), row("done"));
        Self { all, waiting, in_flight, done }
    }
}

impl Display {
    pub(super) fn new(output: Output) -> Self {
        match output {
            Output::Json => Self::Silent,
            Output::Text if io::stdout().is_terminal() => Self::Table(Box::new(Table::new())),
            Output::Text => Self::Lines,
        }
    }

    /// It begins, or goes on with a book that has so many events.
    pub(super) fn begun(&self, events_before: usize) {
        if events_before > 0 {
            self.line(format!(
                "The demonstration goes on: {events_before} events arrived before this start."
            ));
        }
    }

    /// What a reader may try meanwhile.
    pub(super) fn told(&self, look_around: &LookAround) {
        self.line(look_around.to_string());
    }

    /// An event arrived; `done_before` when its work was finished at an earlier arrival.
    pub(super) fn arrived(&self, event: &Event, done_before: bool) {
        let what = match (&event.token, done_before) {
            (_, true) => "arrives again, its work is done",
            (Some(_), false) => "arrives, work begins",
            (None, false) => "arrives, needs no token",
        };
        self.say(event, what);
    }

    /// An event's work is done; its token is released next.
    pub(super) fn finished(&self, event: &Event) {
        self.say(event, "is done, releases its token");
    }

    fn say(&self, event: &Event, what: &str) {
        let time = Local::now().time().format("%H:%M:%S%.3f");
        let number = if event.count > 1 {
            format!("{:>2} of {}", event.index + 1, event.count)
        } else {
            String::new()
        };
        self.line(format!("{time}  {:<16} {number:<8} {what}", event.job_id));
    }

    fn line(&self, line: String) {
        match self {
            Self::Table(table) => drop(table.all.println(line)),
            // Whoever closed the pipe does not want the lines; the summary will say so.
            Self::Lines => drop(writeln!(io::stdout().lock(), "{line}")),
            Self::Silent => {}
        }
    }

    /// Draws the table anew.
    pub(super) fn draw(&self, due: u64, score: &Score) {
        let Self::Table(table) = self else { return };
        let arrived = score.events.len() as u64;
        let done = score.events.values().filter(|fate| fate.released).count() as u64;
        let waiting = due.saturating_sub(arrived);
        let in_flight = score.in_flight() as u64;
        show(&table.waiting, waiting, due, format!("{waiting}"));
        show(&table.in_flight, in_flight, LIMIT.into(), format!("{in_flight} of {LIMIT}"));
        show(&table.done, done, due, format!("{done} of {due}"));
    }

    /// Leaves the table as it is: what is written now comes below it.
    pub(super) fn end(&self) {
        if let Self::Table(table) = self {
            for row in [&table.waiting, &table.in_flight, &table.done] {
                row.abandon();
            }
        }
    }
}

fn show(row: &ProgressBar, position: u64, length: u64, message: String) {
    row.set_length(length.max(1));
    row.set_position(position);
    row.set_message(message);
}
