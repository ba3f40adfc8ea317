//! The calls that a document shows, in the lines of shell in which it shows them, made one after another.
//!
//! Deliberately absent: a shell. A call is `api <path>` with `-X`, `-H` and `-d`, quotes and variables; what follows a `|`
//! or a `#` is for readers.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::str::Chars;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::page::Page;
use crate::world::{Answer, World};

/// The calls of a document that have not been made yet.
pub struct Script<'w> {
    world: &'w World,
    key: String,
    calls: VecDeque<Call>,
    variables: BTreeMap<String, String>,
}

/// A call as it is written, and the answer that is shown under it.
struct Call {
    line: &'static str,
    shown: Option<Value>,
}

impl<'w> Script<'w> {
    /// The calls of a document, by the client of a key.
    pub fn new(page: Page, world: &'w World, key: &str) -> Self {
        Self { world, key: key.to_owned(), calls: calls(page), variables: BTreeMap::new() }
    }

    /// Gives a variable of the document its value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.insert(name.to_owned(), value.into());
    }

    /// Makes the next call, which must be taken and be answered with all that is shown.
    pub async fn step(&mut self) -> Answer {
        let (line, shown, answer) = self.call().await;
        assert!(answer.status.is_success(), "{line}\nis answered with {}: {}", answer.status, answer.text);
        if let Some(shown) = shown {
            has(&answer.json, &shown, line);
        }
        answer
    }

    /// Makes the next call, which must be answered with a status.
    pub async fn step_as(&mut self, status: StatusCode) -> Answer {
        let (line, _, answer) = self.call().await;
        assert_eq!(answer.status, status, "{line}\n{}", answer.text);
        answer
    }

    /// Makes so many calls.
    pub async fn steps(&mut self, number: usize) {
        for _ in 0..number {
            self.step().await;
        }
    }

    /// Nothing is left to be called.
    pub fn end(self) {
        let left: Vec<&str> = self.calls.iter().map(|call| call.line).collect();
        assert!(left.is_empty(), "not called: {left:#?}");
    }

    async fn call(&mut self) -> (&'static str, Option<Value>, Answer) {
        let Call { line, shown } = self.calls.pop_front().expect("the document shows no further call");
        let words = self.words(line);
        let (mut method, mut body, mut path) = (None, None, None);
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let mut words = words.into_iter().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| panic!("{line}: nothing after {word}"));
            match &*word {
                "-X" => method = Some(Method::from_bytes(value().as_bytes()).unwrap()),
                "-d" => body = Some(value()),
                "-H" => {
                    let (name, text) =
                        value().split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
                    headers.push((name, text));
                }
                _ if path.is_none() => path = Some(word),
                other => panic!("{line}: what is {other}?"),
            }
        }
        if let Some(Err(error)) = body.as_ref().map(|body| serde_json::from_str::<Value>(body)) {
            panic!("{line}\n{error}");
        }
        let implied = if body.is_some() { Method::POST } else { Method::GET };
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, text)| (&**name, &**text)).collect();
        let (method, path, body) = (method.unwrap_or(implied), path.unwrap(), body.unwrap_or_default());
        (line, shown, self.world.send(method, &path, Some(&self.key), &headers, &body).await)
    }

    /// The words of a line, as a shell reads them, up to a pipe or a comment.
    fn words(&self, line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut rest = line.chars().peekable();
        let mut word: Option<String> = None;
        while let Some(character) = rest.next() {
            match character {
                '|' | '#' if word.is_none() => break,
                c if c.is_whitespace() => words.extend(word.take()),
                '\\' if rest.next_if_eq(&'\n').is_some() => {}
                '\'' => word.get_or_insert_default().extend(rest.by_ref().take_while(|c| *c != '\'')),
                '"' => {
                    let inside: String = rest.by_ref().take_while(|c| *c != '"').collect();
                    let mut inside = inside.chars().peekable();
                    let word = word.get_or_insert_default();
                    while let Some(character) = inside.next() {
                        self.push(word, character, &mut inside);
                    }
                }
                c => self.push(word.get_or_insert_default(), c, &mut rest),
            }
        }
        words.extend(word);
        words
    }

    /// A character, or the value of the variable that it begins.
    fn push(&self, word: &mut String, character: char, rest: &mut Peekable<Chars<'_>>) {
        if character != '$' {
            return word.push(character);
        }
        let mut name = String::new();
        while let Some(next) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(next);
        }
        word.push_str(self.variables.get(&name).unwrap_or_else(|| panic!("${name} has no value here")));
    }
}

/// The calls of a document in their order. An answer belongs to the call that stands last before it.
fn calls(page: Page) -> VecDeque<Call> {
    let mut calls: VecDeque<Call> = VecDeque::new();
    let mut shown_next = false;
    // Between fences, every other piece is a block of code.
    for (number, piece) in page.0.split("```").enumerate() {
        if number % 2 == 0 {
            shown_next = shown_next && piece.trim().is_empty();
            continue;
        }
        let (language, block) = piece.split_once('\n').unwrap();
        match language {
            "sh" => {
                let starts = block.match_indices("api ").map(|(at, _)| at);
                let starts: Vec<usize> =
                    starts.filter(|at| *at == 0 || block[..*at].ends_with('\n')).collect();
                let ends = starts.iter().copied().skip(1).chain([block.len()]);
                let lines = starts.iter().zip(ends).map(|(from, to)| block[*from..to].trim_end());
                calls.extend(lines.map(|line| Call { line, shown: None }));
                shown_next = !starts.is_empty();
            }
            "json" if shown_next => {
                let shown = serde_json::from_str(block).unwrap_or_else(|e| panic!("{e}: {block}"));
                calls.back_mut().unwrap().shown = Some(shown);
                shown_next = false;
            }
            _ => shown_next = false,
        }
    }
    calls
}

/// Each field that is shown is there, with a value of the same kind; of a list, the first element is compared.
fn has(real: &Value, shown: &Value, line: &str) {
    match (real, shown) {
        (Value::Object(real), Value::Object(shown)) => {
            for (name, value) in shown {
                let found = real
                    .get(name)
                    .unwrap_or_else(|| panic!("{line}\nhas no '{name}' in its answer: {real:?}"));
                has(found, value, line);
            }
        }
        (Value::Array(real), Value::Array(shown)) => {
            if let Some(first) = shown.first() {
                let found = real.first().unwrap_or_else(|| panic!("{line}\nis answered with an empty list"));
                has(found, first, line);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        _ => assert_eq!(
            std::mem::discriminant(real),
            std::mem::discriminant(shown),
            "{line}\nanswers {real} where {shown} is shown"
        ),
    }
}
