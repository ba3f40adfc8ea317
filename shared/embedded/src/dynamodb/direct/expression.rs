//! Conditions and changes of the plain kind: of whole attributes, whole numbers and texts. Everything else is the library's.
//!
//! Deliberately absent: errors. Whoever gets no answer here asks the library, which knows what is wrong.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

/// A row, or values by their names: as JSON, each attribute with its type.
pub(super) type Attributes = Map<String, Value>;

/// How long an expression may be, in bytes.
const EXPRESSION_BYTES: usize = 4096;
/// How many digits a number may have: what a word holds.
const DIGITS: usize = 20;
/// How deep conditions stand in one another at the most.
const DEPTH: u32 = 4;
/// Names that are neither attributes nor functions, in any case.
const KEYWORDS: [&str; 8] = ["SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "IN"];

/// What must hold of a row.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Exists(String),
    Absent(String),
    Compare(Operand, Comparison, Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Operand {
    Attribute(String),
    Value(String),
}

/// What an attribute is set to.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    Operand(Operand),
    Sum(Operand, Operand),
    Difference(Operand, Operand),
    /// The attribute as it is, or the operand where there is none.
    Otherwise(String, Operand),
    /// What one list has, then what the other has.
    Joined(Operand, Operand),
}

/// What an update asks and does.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    condition: Option<Condition>,
    set: Vec<(String, Source)>,
    remove: Vec<String>,
    /// Numbers that are added to attributes.
    add: Vec<(String, String)>,
    /// Attributes that stand for themselves: reserved words may be among them.
    pub(super) bare: HashSet<String>,
}

/// The placeholders of a request.
pub(super) struct Placeholders<'a> {
    pub(super) names: Option<&'a HashMap<String, String>>,
    pub(super) values: &'a Attributes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    /// A keyword, a function or an attribute.
    Word(&'t str),
    /// A name with its `#`.
    Name(&'t str),
    /// A value with its `:`.
    Value(&'t str),
    Sign(&'t str),
}

impl Expressions {
    /// What expressions say, if they are plain, use each placeholder and no other.
    pub(super) fn read(
        changes: &str,
        condition: Option<&str>,
        placeholders: &Placeholders<'_>,
    ) -> Option<Self> {
        let mut read = Self::default();
        let mut used = HashSet::new();
        if let Some(condition) = condition {
            let mut reader = Reader::of(condition, placeholders, &mut used, &mut read.bare)?;
            read.condition = Some(Condition::Any(reader.alternatives(0)?));
            reader.is_over().then_some(())?;
        }
        let (mut set, mut remove, mut add) = (Vec::new(), Vec::new(), Vec::new());
        let mut reader = Reader::of(changes, placeholders, &mut used, &mut read.bare)?;
        while !reader.is_over() {
            match reader.word()?.to_ascii_uppercase().as_str() {
                "SET" if set.is_empty() => reader.list(&mut set, Reader::assignment)?,
                "REMOVE" if remove.is_empty() => reader.list(&mut remove, Reader::attribute)?,
                "ADD" if add.is_empty() => reader.list(&mut add, Reader::addition)?,
                _ => return None,
            }
        }
        let given = placeholders.values.len() + placeholders.names.map_or(0, HashMap::len);
        let read = Self { set, remove, add, ..read };
        let targets: HashSet<&str> = read.targets().collect();
        if targets.is_empty() {
            return None;
        }
        (used.len() == given && targets.len() == read.targets().count()).then_some(read)
    }

    /// The attributes that change.
    pub(super) fn targets(&self) -> impl Iterator<Item = &str> {
        let set = self.set.iter().map(|(name, _)| name);
        let add = self.add.iter().map(|(name, _)| name);
        set.chain(&self.remove).chain(add).map(String::as_str)
    }

    /// The attributes of `row` that change, with what they are then; `None` in the place of what is removed. Nothing when the
    /// condition does not hold, or nobody knows here.
    pub(super) fn changes<'e>(
        &'e self,
        row: &Attributes,
        values: &Attributes,
    ) -> Option<Vec<(&'e str, Option<Value>)>> {
        if let Some(condition) = &self.condition {
            condition.holds(row, values)?.then_some(())?;
        }
        let mut changes = Vec::with_capacity(self.set.len() + self.remove.len() + self.add.len());
        for (name, source) in &self.set {
            changes.push((name.as_str(), Some(source.value(row, values)?)));
        }
        changes.extend(self.remove.iter().map(|name| (name.as_str(), None)));
        for (name, more) in &self.add {
            let more = number(values.get(more)?)?;
            let there = row.get(name).map_or(Some(0), number)?;
            changes.push((name, Some(whole(there.checked_add(more)?))));
        }
        Some(changes)
    }
}

impl Condition {
    /// Nothing when nobody knows here.
    fn holds(&self, row: &Attributes, values: &Attributes) -> Option<bool> {
        match self {
            Self::All(all) => decided(all.iter().map(|one| one.holds(row, values)), false),
            Self::Any(any) => decided(any.iter().map(|one| one.holds(row, values)), true),
            Self::Exists(name) => Some(row.contains_key(name)),
            Self::Absent(name) => Some(!row.contains_key(name)),
            Self::Compare(left, comparison, right) => {
                comparison.holds(left.value(row, values), right.value(row, values))
            }
        }
    }
}

/// What parts come to of which one that is `decisive` says all.
fn decided(parts: impl Iterator<Item = Option<bool>>, decisive: bool) -> Option<bool> {
    let mut is_known = true;
    for part in parts {
        match part {
            Some(part) if part == decisive => return Some(decisive),
            part => is_known &= part.is_some(),
        }
    }
    is_known.then_some(!decisive)
}

impl Comparison {
    fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" => Self::Equal,
            "<>" => Self::Unequal,
            "<" => Self::Less,
            "<=" => Self::AtMost,
            ">" => Self::More,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }

    fn holds(self, left: Option<&Value>, right: Option<&Value>) -> Option<bool> {
        let (Some(left), Some(right)) = (left, right) else {
            // What is not there is unlike anything, which is the library's to say.
            return (self != Self::Unequal).then_some(false);
        };
        let is_of_sameness = matches!(self, Self::Equal | Self::Unequal);
        let order = match (text(left), text(right)) {
            (Some(left), Some(right)) => left.as_bytes().cmp(right.as_bytes()),
            (None, None) => match (left.get("BOOL"), right.get("BOOL")) {
                (Some(left), Some(right)) if is_of_sameness => left.as_bool()?.cmp(&right.as_bool()?),
                _ if is_of_sameness && digits(left)? == digits(right)? => Ordering::Equal,
                _ => number(left)?.cmp(&number(right)?),
            },
            _ => return None,
        };
        Some(match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::More => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        })
    }
}

impl Operand {
    fn value<'v>(&self, row: &'v Attributes, values: &'v Attributes) -> Option<&'v Value> {
        match self {
            Self::Attribute(name) => row.get(name),
            Self::Value(name) => values.get(name),
        }
    }
}

impl Source {
    fn value(&self, row: &Attributes, values: &Attributes) -> Option<Value> {
        let there = |operand: &Operand| operand.value(row, values);
        match self {
            Self::Operand(operand) => there(operand).cloned(),
            Self::Sum(left, right) => Some(whole(number(there(left)?)?.checked_add(number(there(right)?)?)?)),
            Self::Difference(left, right) => {
                Some(whole(number(there(left)?)?.checked_sub(number(there(right)?)?)?))
            }
            Self::Otherwise(name, operand) => row.get(name).or_else(|| there(operand)).cloned(),
            Self::Joined(left, right) => {
                let list = |operand| there(operand)?.get("L")?.as_array();
                let (left, right) = (list(left)?, list(right)?);
                Some(json!({"L": left.iter().chain(right).collect::<Vec<_>>()}))
            }
        }
    }
}

/// What a value says, if it is of this kind and of no other.
fn of_kind<'v>(value: &'v Value, kind: &str) -> Option<&'v Value> {
    value.as_object().filter(|kinds| kinds.len() == 1)?.get(kind)
}

pub(super) fn text(value: &Value) -> Option<&str> {
    of_kind(value, "S")?.as_str()
}

/// A whole number that is written as it is stored.
fn digits(value: &Value) -> Option<&str> {
    let number = of_kind(value, "N")?.as_str()?;
    is_whole(number).then_some(number)
}

/// Whether a number is whole, of few digits, and written as it is stored.
pub(super) fn is_whole(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_whole = (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && (!digits.starts_with('0') || number == "0")
}

/// One that is counted with here.
fn number(value: &Value) -> Option<i64> {
    digits(value)?.parse().ok()
}

fn whole(number: i64) -> Value {
    json!({"N": number.to_string()})
}

/// Whether a value is stored as it is sent: a text, a flag, a whole number or a list of them.
pub(super) fn is_plain(value: &Value) -> bool {
    let is_flat = |value: &Value| text(value).is_some() || digits(value).is_some();
    let is_flag = || of_kind(value, "BOOL").is_some_and(Value::is_boolean);
    let list = || of_kind(value, "L").and_then(Value::as_array);
    is_flat(value) || is_flag() || list().is_some_and(|list| list.iter().all(is_flat))
}

/// Reads an expression from its first token to its last.
struct Reader<'r, 't> {
    tokens: Vec<Token<'t>>,
    place: usize,
    placeholders: &'r Placeholders<'r>,
    used: &'r mut HashSet<&'t str>,
    bare: &'r mut HashSet<String>,
}

impl<'r, 't> Reader<'r, 't> {
    fn of(
        expression: &'t str,
        placeholders: &'r Placeholders<'r>,
        used: &'r mut HashSet<&'t str>,
        bare: &'r mut HashSet<String>,
    ) -> Option<Self> {
        Some(Self { tokens: tokens(expression)?, place: 0, placeholders, used, bare })
    }

    fn is_over(&self) -> bool {
        self.place == self.tokens.len()
    }

    fn next(&mut self) -> Option<Token<'t>> {
        let token = self.tokens.get(self.place).copied();
        self.place += 1;
        token
    }

    /// Passes a token if it is the next one.
    fn passes(&mut self, token: Token<'_>) -> bool {
        let is_next = self.tokens.get(self.place) == Some(&token);
        self.place += usize::from(is_next);
        is_next
    }

    /// Passes a keyword if it is the next token.
    fn passes_word(&mut self, keyword: &str) -> bool {
        let next = self.tokens.get(self.place);
        let is_next = matches!(next, Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.place += usize::from(is_next);
        is_next
    }

    fn sign(&mut self, sign: &str) -> Option<()> {
        self.passes(Token::Sign(sign)).then_some(())
    }

    fn word(&mut self) -> Option<&'t str> {
        match self.next()? {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    fn list<T>(&mut self, all: &mut Vec<T>, one: impl Fn(&mut Self) -> Option<T>) -> Option<()> {
        loop {
            all.push(one(self)?);
            if !self.passes(Token::Sign(",")) {
                return Some(());
            }
        }
    }

    /// What stands between each two `OR`s.
    fn alternatives(&mut self, depth: u32) -> Option<Vec<Condition>> {
        let mut alternatives = vec![self.all(depth)?];
        while self.passes_word("OR") {
            alternatives.push(self.all(depth)?);
        }
        Some(alternatives)
    }

    fn all(&mut self, depth: u32) -> Option<Condition> {
        let mut all = vec![self.one(depth)?];
        while self.passes_word("AND") {
            all.push(self.one(depth)?);
        }
        if all.len() == 1 { all.pop() } else { Some(Condition::All(all)) }
    }

    fn one(&mut self, depth: u32) -> Option<Condition> {
        if self.passes(Token::Sign("(")) {
            let within = if depth < DEPTH { self.alternatives(depth + 1)? } else { return None };
            self.sign(")")?;
            // What needs no parentheses may be refused.
            return (within.len() > 1).then_some(Condition::Any(within));
        }
        for (function, made) in [
            ("attribute_exists", Condition::Exists as fn(String) -> Condition),
            ("attribute_not_exists", Condition::Absent),
        ] {
            if self.passes(Token::Word(function)) {
                self.sign("(")?;
                let name = self.attribute()?;
                self.sign(")")?;
                return Some(made(name));
            }
        }
        let left = self.operand()?;
        let Token::Sign(sign) = self.next()? else { return None };
        let comparison = Comparison::of(sign)?;
        let right = self.operand()?;
        let are_values = matches!((&left, &right), (Operand::Value(_), Operand::Value(_)));
        (left != right && !are_values).then_some(Condition::Compare(left, comparison, right))
    }

    fn assignment(&mut self) -> Option<(String, Source)> {
        let name = self.attribute()?;
        self.sign("=")?;
        if self.passes(Token::Word("if_not_exists")) {
            self.sign("(")?;
            let there = self.attribute()?;
            let otherwise = self.pair()?;
            return Some((name, Source::Otherwise(there, otherwise)));
        }
        if self.passes(Token::Word("list_append")) {
            self.sign("(")?;
            let first = self.operand()?;
            let second = self.pair()?;
            return Some((name, Source::Joined(first, second)));
        }
        let left = self.operand()?;
        let source = if self.passes(Token::Sign("+")) {
            Source::Sum(left, self.operand()?)
        } else if self.passes(Token::Sign("-")) {
            Source::Difference(left, self.operand()?)
        } else {
            Source::Operand(left)
        };
        Some((name, source))
    }

    /// The second operand of a function.
    fn pair(&mut self) -> Option<Operand> {
        self.sign(",")?;
        let second = self.operand()?;
        self.sign(")")?;
        Some(second)
    }

    fn addition(&mut self) -> Option<(String, String)> {
        let name = self.attribute()?;
        match self.operand()? {
            Operand::Value(value) => Some((name, value)),
            Operand::Attribute(_) => None,
        }
    }

    fn attribute(&mut self) -> Option<String> {
        match self.operand()? {
            Operand::Attribute(name) => Some(name),
            Operand::Value(_) => None,
        }
    }

    fn operand(&mut self) -> Option<Operand> {
        match self.next()? {
            Token::Word(word) if KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) => None,
            Token::Word(word) => {
                if !self.bare.contains(word) {
                    self.bare.insert(word.to_owned());
                }
                Some(Operand::Attribute(word.to_owned()))
            }
            Token::Name(name) => {
                self.used.insert(name);
                Some(Operand::Attribute(self.placeholders.names?.get(name)?.clone()))
            }
            Token::Value(value) => {
                self.used.insert(value);
                self.placeholders.values.contains_key(value).then(|| Operand::Value(value.to_owned()))
            }
            Token::Sign(_) => None,
        }
    }
}

/// The tokens of an expression, if it has no others.
fn tokens<'t>(expression: &'t str) -> Option<Vec<Token<'t>>> {
    if expression.len() > EXPRESSION_BYTES {
        return None;
    }
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut tokens = Vec::with_capacity(expression.len() / 4);
    let mut rest = expression.trim_ascii_start();
    while let Some(first) = rest.bytes().next() {
        let word = rest.bytes().skip(1).take_while(is_of_word).count() + 1;
        let (length, made): (usize, fn(&'t str) -> Token<'t>) = match first {
            b'#' if word > 1 => (word, Token::Name),
            b':' if word > 1 => (word, Token::Value),
            first if first.is_ascii_alphabetic() => (word, Token::Word),
            b'<' if rest.starts_with("<=") || rest.starts_with("<>") => (2, Token::Sign),
            b'>' if rest.starts_with(">=") => (2, Token::Sign),
            b'(' | b')' | b',' | b'=' | b'<' | b'>' | b'+' | b'-' => (1, Token::Sign),
            _ => return None,
        };
        let (token, after) = rest.split_at_checked(length)?;
        tokens.push(made(token));
        rest = after.trim_ascii_start();
    }
    Some(tokens)
}
