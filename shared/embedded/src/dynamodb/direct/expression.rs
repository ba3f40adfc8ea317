//! Conditions and changes of the plain kind: of whole attributes, whole numbers and texts. Everything else is the library's.
//!
//! Deliberately absent: errors. Whoever gets no answer here asks the library, which knows what is wrong.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::known::Names;
use super::value::{Name, Stored, Value};

/// How long an expression may be, in bytes.
const EXPRESSION_BYTES: usize = 4096;
/// How deep conditions stand in one another at the most.
const DEPTH: u32 = 4;
/// Names that are neither attributes nor functions, in any case.
const KEYWORDS: [&str; 8] = ["SET", "REMOVE", "ADD", "DELETE", "AND", "OR", "NOT", "IN"];

/// What must hold of a row.
#[derive(Debug, PartialEq, Eq)]
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Exists(Arc<str>),
    Absent(Arc<str>),
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
    Attribute(Arc<str>),
    /// The place of a value among those that are given.
    Value(usize),
}

/// What an attribute is set to.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    Operand(Operand),
    Sum(Operand, Operand),
    Difference(Operand, Operand),
    /// The attribute as it is, or the operand where there is none.
    Otherwise(Arc<str>, Operand),
    /// What one list has, then what the other has.
    Joined(Operand, Operand),
}

/// What an update asks and does.
#[derive(Debug, Default)]
pub(super) struct Expressions {
    condition: Option<Condition>,
    set: Vec<(Arc<str>, Source)>,
    remove: Vec<Arc<str>>,
    /// Values that are added to attributes.
    add: Vec<(Arc<str>, usize)>,
    /// Attributes that stand for themselves and that the library has not taken yet: reserved words may be among them.
    pub(super) unknown: HashSet<Arc<str>>,
}

/// What names and values in expressions stand for.
pub(super) struct Meanings<'a> {
    pub(super) names: Option<&'a BTreeMap<Name<'a>, Name<'a>>>,
    /// The placeholders of values, in order.
    pub(super) values: &'a [Name<'a>],
    /// Names that may stand for themselves.
    pub(super) known: &'a Names,
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
    pub(super) fn read(changes: &str, condition: Option<&str>, meanings: &Meanings<'_>) -> Option<Self> {
        let mut read = Self::default();
        let mut used = HashSet::new();
        if let Some(condition) = condition {
            let mut reader = Reader::of(condition, meanings, &mut used, &mut read.unknown)?;
            read.condition = Some(Condition::Any(reader.alternatives(0)?));
            reader.is_over().then_some(())?;
        }
        let (mut set, mut remove, mut add) = (Vec::new(), Vec::new(), Vec::new());
        let mut reader = Reader::of(changes, meanings, &mut used, &mut read.unknown)?;
        while !reader.is_over() {
            match reader.word()?.to_ascii_uppercase().as_str() {
                "SET" if set.is_empty() => reader.list(&mut set, Reader::assignment)?,
                "REMOVE" if remove.is_empty() => reader.list(&mut remove, Reader::attribute)?,
                "ADD" if add.is_empty() => reader.list(&mut add, Reader::addition)?,
                _ => return None,
            }
        }
        let given = meanings.values.len() + meanings.names.map_or(0, BTreeMap::len);
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
        set.chain(&self.remove).chain(add).map(|name| &**name)
    }

    /// The attributes of `row` that change, with what they are then; `None` in the place of what is removed. Nothing when the
    /// condition does not hold, or nobody knows here.
    pub(super) fn changes<'v>(
        &'v self,
        row: &Stored<'v>,
        values: &'v [Value<'v>],
    ) -> Option<BTreeMap<&'v str, Option<Value<'v>>>> {
        let on = On { row, values };
        if let Some(condition) = &self.condition {
            condition.holds(&on)?.then_some(())?;
        }
        let mut changes = BTreeMap::new();
        for (name, source) in &self.set {
            changes.insert(&**name, Some(source.value(&on)?));
        }
        changes.extend(self.remove.iter().map(|name| (&**name, None)));
        for (name, more) in &self.add {
            let more = values.get(*more)?.number()?;
            let there = row.value(name)?.map_or(Some(0), |there| there.number())?;
            changes.insert(name, Some(Value::whole(there.checked_add(more)?)));
        }
        Some(changes)
    }
}

/// What expressions are read on.
struct On<'o, 'v> {
    row: &'o Stored<'v>,
    values: &'v [Value<'v>],
}

impl Condition {
    /// Nothing when nobody knows here.
    fn holds(&self, on: &On<'_, '_>) -> Option<bool> {
        match self {
            Self::All(all) => decided(all.iter().map(|one| one.holds(on)), false),
            Self::Any(any) => decided(any.iter().map(|one| one.holds(on)), true),
            Self::Exists(name) => Some(on.row.has(name)),
            Self::Absent(name) => Some(!on.row.has(name)),
            Self::Compare(left, comparison, right) => comparison.holds(left.value(on)?, right.value(on)?),
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

    fn holds(self, left: Option<Value<'_>>, right: Option<Value<'_>>) -> Option<bool> {
        let (Some(left), Some(right)) = (left, right) else {
            // What is not there is unlike anything, which is the library's to say.
            return (self != Self::Unequal).then_some(false);
        };
        let is_of_sameness = matches!(self, Self::Equal | Self::Unequal);
        let order = match (&left, &right) {
            (Value::S(left), Value::S(right)) => left.as_bytes().cmp(right.as_bytes()),
            (Value::Bool(left), Value::Bool(right)) if is_of_sameness => left.cmp(right),
            _ if is_of_sameness && left.digits()? == right.digits()? => Ordering::Equal,
            _ => left.number()?.cmp(&right.number()?),
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
    /// Nothing at all when nobody knows here.
    fn value<'v>(&self, on: &On<'_, 'v>) -> Option<Option<Value<'v>>> {
        match self {
            Self::Attribute(name) => on.row.value(name),
            Self::Value(place) => Some(on.values.get(*place).map(Value::lent)),
        }
    }
}

impl Source {
    fn value<'v>(&self, on: &On<'_, 'v>) -> Option<Value<'v>> {
        let there = |operand: &Operand| operand.value(on).flatten();
        let number = |operand: &Operand| there(operand)?.number();
        match self {
            Self::Operand(operand) => there(operand),
            Self::Sum(left, right) => Some(Value::whole(number(left)?.checked_add(number(right)?)?)),
            Self::Difference(left, right) => Some(Value::whole(number(left)?.checked_sub(number(right)?)?)),
            Self::Otherwise(name, operand) => match on.row.value(name)? {
                None => there(operand),
                value => value,
            },
            Self::Joined(left, right) => match (there(left)?, there(right)?) {
                (Value::L(mut all), Value::L(more)) => {
                    all.extend(more);
                    Some(Value::L(all))
                }
                _ => None,
            },
        }
    }
}

/// Reads an expression from its first token to its last.
struct Reader<'r, 't> {
    tokens: Vec<Token<'t>>,
    place: usize,
    meanings: &'r Meanings<'r>,
    used: &'r mut HashSet<&'t str>,
    unknown: &'r mut HashSet<Arc<str>>,
}

impl<'r, 't> Reader<'r, 't> {
    fn of(
        expression: &'t str,
        meanings: &'r Meanings<'r>,
        used: &'r mut HashSet<&'t str>,
        unknown: &'r mut HashSet<Arc<str>>,
    ) -> Option<Self> {
        Some(Self { tokens: tokens(expression)?, place: 0, meanings, used, unknown })
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
            ("attribute_exists", Condition::Exists as fn(Arc<str>) -> Condition),
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

    fn assignment(&mut self) -> Option<(Arc<str>, Source)> {
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

    fn addition(&mut self) -> Option<(Arc<str>, usize)> {
        let name = self.attribute()?;
        match self.operand()? {
            Operand::Value(value) => Some((name, value)),
            Operand::Attribute(_) => None,
        }
    }

    fn attribute(&mut self) -> Option<Arc<str>> {
        match self.operand()? {
            Operand::Attribute(name) => Some(name),
            Operand::Value(_) => None,
        }
    }

    fn operand(&mut self) -> Option<Operand> {
        match self.next()? {
            Token::Word(word) if KEYWORDS.iter().any(|keyword| word.eq_ignore_ascii_case(keyword)) => None,
            Token::Word(word) => Some(Operand::Attribute(match self.meanings.known.get(word) {
                Some(name) => Arc::clone(name),
                None => {
                    let name = Arc::from(word);
                    self.unknown.insert(Arc::clone(&name));
                    name
                }
            })),
            Token::Name(name) => {
                self.used.insert(name);
                Some(Operand::Attribute(Arc::from(&*self.meanings.names?.get(name)?.0)))
            }
            Token::Value(value) => {
                self.used.insert(value);
                let place = self.meanings.values.binary_search_by(|known| (*known.0).cmp(value));
                place.ok().map(Operand::Value)
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
