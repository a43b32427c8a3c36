//! Conditions on a sample's fields: `velocity.x > 2 && (mode == "auto" || !is_valid)`.
//!
//! ```text
//! condition = all { "||" all }            all  = one { "&&" one }
//! one       = "!" one | "(" condition ")" | operand [ compare operand ]
//! compare   = "==" | "!=" | "<" | "<=" | ">" | ">="
//! operand   = number | "text" | 'text' | true | false | path such as pose.points[3].x
//! ```

use std::cmp::Ordering;

use myelin_value::{Kind, Primitive, ReadError, ReadErrorKind, Scalar, Type};

use crate::document::{Document, type_at};

/// A condition, parsed once.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    root: Condition,
}

/// A condition that cannot be used, with the character at which it fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter, character {at}: {what}")]
pub struct FilterError {
    /// The character, from 1 on.
    pub at: usize,
    /// What is wrong there.
    pub what: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Any(Vec<Condition>),
    All(Vec<Condition>),
    Not(Box<Condition>),
    Compare { left: Operand, how: Compare, right: Operand },
    IsTrue(Operand),
}

#[derive(Clone, Debug, PartialEq)]
struct Operand {
    /// The character where it begins, from 1 on.
    at: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    Constant(Item),
    Path(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    Whole(i128),
    Float(f64),
    /// A constant is rounded as the field was: `x == 0.1`.
    Single(f32),
    Text(String),
    Bool(bool),
    /// An element beyond the length, or a field that this JSON text does not have.
    Absent,
}

impl Filter {
    /// Parses a condition.
    ///
    /// # Errors
    /// The first character that does not fit.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let root = parser.any()?;
        match parser.peek() {
            None => Ok(Filter { root }),
            Some(_) => Err(parser.error("&&, || or the end is needed here")),
        }
    }

    /// Checks the paths and the kinds that are compared against the type of a topic's samples.
    ///
    /// # Errors
    /// A field that the type does not have; two kinds that cannot be compared.
    pub fn check(&self, ty: &Type) -> Result<(), FilterError> {
        self.root.check(ty)
    }

    /// Whether a sample fulfils it. A comparison with an element beyond the length is false.
    ///
    /// # Errors
    /// Broken bytes; two kinds that cannot be compared.
    pub fn holds(&self, sample: &Document<'_>) -> Result<bool, FilterError> {
        self.root.holds(sample)
    }
}

impl Condition {
    fn holds(&self, sample: &Document<'_>) -> Result<bool, FilterError> {
        match self {
            Condition::Any(all) => {
                for each in all {
                    if each.holds(sample)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::All(all) => {
                for each in all {
                    if !each.holds(sample)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Not(one) => Ok(!one.holds(sample)?),
            Condition::IsTrue(operand) => match operand.item(sample)? {
                Item::Bool(value) => Ok(value),
                Item::Absent => Ok(false),
                other => Err(operand.error(not_a_condition(other.kind()))),
            },
            Condition::Compare { left, how, right } => {
                let (one, other) = (left.item(sample)?, right.item(sample)?);
                if let (Item::Absent, _) | (_, Item::Absent) = (&one, &other) {
                    return Ok(false);
                }
                compare(&one, *how, &other)
                    .ok_or_else(|| right.error(not_comparable(one.kind(), *how, other.kind())))
            }
        }
    }

    fn check(&self, ty: &Type) -> Result<(), FilterError> {
        match self {
            Condition::Any(all) | Condition::All(all) => all.iter().try_for_each(|it| it.check(ty)),
            Condition::Not(one) => one.check(ty),
            Condition::IsTrue(operand) => match operand.kind(ty)? {
                "a truth value" => Ok(()),
                other => Err(operand.error(not_a_condition(other))),
            },
            Condition::Compare { left, how, right } => {
                let (one, other) = (left.kind(ty)?, right.kind(ty)?);
                let has_order = one != "a truth value" || how.is_equality();
                if one == other && has_order {
                    return Ok(());
                }
                Err(right.error(not_comparable(one, *how, other)))
            }
        }
    }
}

impl Operand {
    fn item(&self, sample: &Document<'_>) -> Result<Item, FilterError> {
        let path = match &self.what {
            What::Constant(item) => return Ok(item.clone()),
            What::Path(path) => path,
        };
        match sample.get(path).and_then(|part| part.scalar()) {
            Ok(Some(Scalar::Bool(value))) => Ok(Item::Bool(value)),
            Ok(Some(Scalar::Signed(value))) => Ok(Item::Whole(value)),
            Ok(Some(Scalar::Unsigned(value))) => {
                Ok(i128::try_from(value).map_or(Item::Float(value as f64), Item::Whole))
            }
            Ok(Some(Scalar::F32(value))) => Ok(Item::Single(value)),
            Ok(Some(Scalar::F64(value))) => Ok(Item::Float(value)),
            Ok(None) => match sample.get(path).and_then(|part| part.string()) {
                Ok(text) => Ok(Item::Text(text)),
                Err(error) => Err(self.error(error.to_string())),
            },
            Err(error) if is_absent(&error, sample) => Ok(Item::Absent),
            Err(error) => Err(self.error(error.to_string())),
        }
    }

    fn kind(&self, ty: &Type) -> Result<&'static str, FilterError> {
        let path = match &self.what {
            What::Constant(item) => return Ok(item.kind()),
            What::Path(path) => path,
        };
        let part = type_at(ty, path).map_err(|error| self.error(error))?;
        match part.kind() {
            Kind::Primitive(Primitive::Bool) => Ok("a truth value"),
            Kind::Primitive(_) => Ok("a number"),
            Kind::String { .. } => Ok("a text"),
            _ => Err(self.error(format!(
                "{path} is a {part}; name a number, a text or a truth value in it"
            ))),
        }
    }

    fn error(&self, what: impl Into<String>) -> FilterError {
        FilterError { at: self.at, what: what.into() }
    }
}

impl Item {
    fn kind(&self) -> &'static str {
        match self {
            Item::Whole(_) | Item::Float(_) | Item::Single(_) => "a number",
            Item::Text(_) => "a text",
            Item::Bool(_) => "a truth value",
            Item::Absent => "absent",
        }
    }
}

impl Compare {
    fn is_equality(self) -> bool {
        matches!(self, Compare::Equal | Compare::NotEqual)
    }

    /// `None`: there is no order, as with a NaN.
    fn of(self, order: Option<Ordering>) -> bool {
        match self {
            Compare::Equal => order == Some(Ordering::Equal),
            Compare::NotEqual => order != Some(Ordering::Equal),
            Compare::Less => order == Some(Ordering::Less),
            Compare::LessOrEqual => order.is_some_and(Ordering::is_le),
            Compare::Greater => order == Some(Ordering::Greater),
            Compare::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// `None` if the two cannot be compared.
fn compare(one: &Item, how: Compare, other: &Item) -> Option<bool> {
    use Item::{Bool, Float, Single, Text, Whole};
    let order = match (one, other) {
        (Whole(a), Whole(b)) => a.partial_cmp(b),
        (Float(a), Float(b)) => a.partial_cmp(b),
        (Single(a), Single(b)) => a.partial_cmp(b),
        (Single(a), Float(b)) => a.partial_cmp(&(*b as f32)),
        (Float(a), Single(b)) => (*a as f32).partial_cmp(b),
        (Single(a), Whole(b)) => f64::from(*a).partial_cmp(&(*b as f64)),
        (Whole(a), Single(b)) => (*a as f64).partial_cmp(&f64::from(*b)),
        (Float(a), Whole(b)) => a.partial_cmp(&(*b as f64)),
        (Whole(a), Float(b)) => (*a as f64).partial_cmp(b),
        (Text(a), Text(b)) => a.partial_cmp(b),
        (Bool(a), Bool(b)) if how.is_equality() => a.partial_cmp(b),
        _ => return None,
    };
    Some(how.of(order))
}

pub(crate) fn is_absent(error: &ReadError, sample: &Document<'_>) -> bool {
    let is_json = matches!(sample, Document::Json(_));
    match error.kind {
        ReadErrorKind::NoElement { .. } => true,
        ReadErrorKind::NoField { .. } | ReadErrorKind::WrongKind { .. } => is_json,
        _ => false,
    }
}

fn not_a_condition(kind: &str) -> String {
    format!("this is {kind}; compare it with something, as in speed > 2")
}

fn not_comparable(one: &str, how: Compare, other: &str) -> String {
    if one == other {
        return format!("{one} is equal or not, and has no order; use == or !=");
    }
    let sign = OPERATORS.iter().find(|(_, it)| *it == how).map_or("", |(sign, _)| sign);
    format!("{one} {sign} {other} cannot be compared")
}

struct Parser<'t> {
    text: &'t str,
    /// In bytes.
    at: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn any(&mut self) -> Result<Condition, FilterError> {
        let first = self.all()?;
        self.chain("||", first, Parser::all, Condition::Any)
    }

    fn all(&mut self) -> Result<Condition, FilterError> {
        let first = self.one()?;
        self.chain("&&", first, Parser::one, Condition::All)
    }

    fn chain(
        &mut self,
        sign: &str,
        first: Condition,
        next: fn(&mut Self) -> Result<Condition, FilterError>,
        of: fn(Vec<Condition>) -> Condition,
    ) -> Result<Condition, FilterError> {
        let mut parts = vec![first];
        while self.eat(sign) {
            parts.push(next(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { of(parts) })
    }

    fn one(&mut self) -> Result<Condition, FilterError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(format!("more than {DEPTH_MAX} levels of ! and ()")));
        }
        let condition = if !self.rest().starts_with("!=") && self.eat("!") {
            Condition::Not(Box::new(self.one()?))
        } else if self.eat("(") {
            let inner = self.any()?;
            if !self.eat(")") {
                return Err(self.error(") is needed here"));
            }
            inner
        } else {
            let left = self.operand()?;
            match OPERATORS.iter().find(|(sign, _)| self.eat(sign)) {
                Some((_, how)) => Condition::Compare { left, how: *how, right: self.operand()? },
                None if self.rest().starts_with('=') => {
                    return Err(self.error("write == for equal"));
                }
                None => Condition::IsTrue(left),
            }
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn operand(&mut self) -> Result<Operand, FilterError> {
        let Some(first) = self.peek() else {
            return Err(self.error("a field, a number or a text is needed here"));
        };
        let at = self.position();
        let what = match first {
            '"' | '\'' => What::Constant(Item::Text(self.quoted(first)?)),
            '-' | '+' | '.' | '0'..='9' => What::Constant(self.number()?),
            first if is_name(first) => {
                let rest = self.rest();
                let end = rest.find(|c| !is_name(c) && !matches!(c, '.' | '[' | ']'));
                let word = &rest[..end.unwrap_or(rest.len())];
                self.at += word.len();
                match word {
                    "true" => What::Constant(Item::Bool(true)),
                    "false" => What::Constant(Item::Bool(false)),
                    path => What::Path(path.to_owned()),
                }
            }
            _ => return Err(self.error("a field, a number or a text is needed here")),
        };
        Ok(Operand { at, what })
    }

    fn number(&mut self) -> Result<Item, FilterError> {
        let rest = self.rest();
        let mut end = 0;
        let mut before = ' ';
        for c in rest.chars() {
            let is_sign = matches!(c, '-' | '+') && (end == 0 || matches!(before, 'e' | 'E'));
            if !(is_sign || c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E')) {
                break;
            }
            end += 1;
            before = c;
        }
        let text = &rest[..end];
        let number = text.parse().map(Item::Whole).or_else(|_| text.parse().map(Item::Float));
        let number = number.map_err(|_| self.error(format!("{text:?} is not a number")))?;
        self.at += end;
        Ok(number)
    }

    fn quoted(&mut self, quote: char) -> Result<String, FilterError> {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(text);
                }
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                c => text.push(c),
            }
        }
        Err(self.error(format!("the text that begins here has no {quote} at its end")))
    }

    /// The next character, behind spaces.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn rest(&mut self) -> &'t str {
        self.peek();
        &self.text[self.at..]
    }

    fn eat(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        self.at += if is_next { sign.len() } else { 0 };
        is_next
    }

    fn position(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    fn error(&mut self, what: impl Into<String>) -> FilterError {
        self.peek();
        FilterError { at: self.position(), what: what.into() }
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The longer one first.
const OPERATORS: [(&str, Compare); 6] = [
    ("==", Compare::Equal),
    ("!=", Compare::NotEqual),
    ("<=", Compare::LessOrEqual),
    (">=", Compare::GreaterOrEqual),
    ("<", Compare::Less),
    (">", Compare::Greater),
];
/// Of parentheses and negations.
const DEPTH_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use myelin_value::{Schema, Value, encode_json};
    use proptest::prelude::*;

    const LAYOUT: &str = "Robot{id: u64 @0, velocity: V{x: f32 @0, y: f32 @4} 8 @8, \
        big: i64 @16, points: BoundedVec<u8, 3>{length: u64 @0, items: [u8; 3] @8} 16 @24, \
        ok: Bool @40, mode: FixedString<11>{length: [u8; 4] @0, bytes: [u8; 11] @4} 15 @41} 56";

    fn holds(text: &str) -> Result<bool, FilterError> {
        let ty = Schema::layout(LAYOUT).parse().unwrap();
        let json = serde_json::json!({
            "id": u64::MAX, "velocity": { "x": 0.1, "y": -3 }, "big": (1_i64 << 53) + 1,
            "ok": true, "mode": "auto"
        });
        let bytes = encode_json(&ty, &json).unwrap();
        let filter = Filter::parse(text)?;
        filter.check(&ty)?;
        filter.holds(&Document::Value(Value::new(&ty, &bytes).unwrap()))
    }

    #[test]
    fn conditions_hold_or_not() {
        for (text, expected) in [
            ("velocity.x == 0.1", true),
            ("velocity.x > 0.1", false),
            ("velocity.y<-2.5e0", true),
            ("id == 18446744073709551615", true),
            ("big == 9007199254740993", true),
            ("big == 9007199254740992", false),
            ("ok", true),
            ("!ok", false),
            ("ok == true && mode == 'auto'", true),
            ("mode != \"auto\" || !(velocity.y >= -3)", false),
            ("!(mode == 'manual') && (ok || velocity.x > 5)", true),
            ("mode < 'b'", true),
            ("false || true && false", false),
            ("(1 < 2)", true),
        ] {
            assert_eq!(holds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        for (text, at, what) in [
            ("", 1, "is needed"),
            ("velocity.x >", 13, "is needed"),
            ("velocity.z > 1", 1, "did you mean"),
            ("velocity > 1", 1, "name a number"),
            ("mode > 1", 8, "a text > a number"),
            ("ok > true", 6, "no order"),
            ("velocity.x", 1, "compare it"),
            ("ok & ok", 4, "&&, ||"),
            ("id = 1", 4, "=="),
            ("(ok", 4, ") is needed"),
            ("mode == 'aut", 9, "no '"),
            ("id == 1.2.3", 7, "not a number"),
            ("ok && é > 1 && ß", 7, "no field"),
        ] {
            let error = holds(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
            assert!(error.what.contains(what), "{text}: {error}");
        }
        let deep = format!("{}ok", "(".repeat(1000));
        assert!(holds(&deep).unwrap_err().what.contains("levels"));
    }

    #[test]
    fn what_json_does_not_have_is_not_so() {
        let json = serde_json::json!({ "a": { "b": [1, 2.5] }, "c": "x" });
        let sample = Document::Json(std::borrow::Cow::Owned(json));
        let holds = |text| Filter::parse(text).unwrap().holds(&sample).unwrap();
        assert!(holds("a.b[1] == 2.5 && c == 'x'"));
        assert!(!holds("a.b[2] == 2.5") && !holds("d > 1") && !holds("c.d > 1"));
    }

    proptest! {
        /// Any text is a condition or an error within it, and nothing panics.
        #[test]
        fn any_text_is_parsed_or_refused(text in "[a-c.()!&|<>=\\[\\]0-9eE+\\-'\"\\\\ é]{0,40}") {
            match Filter::parse(&text) {
                Err(error) => prop_assert!(error.at <= text.chars().count() + 1, "{error}"),
                Ok(filter) => {
                    let sample = Document::Json(std::borrow::Cow::Owned(serde_json::json!({ "a": 1 })));
                    let _ = filter.holds(&sample);
                }
            }
        }

        /// The order of numbers is that of Rust.
        #[test]
        fn numbers_compare_as_numbers(a in -1000_i64..1000, b in -1000_i64..1000) {
            let sample = Document::Json(std::borrow::Cow::Owned(serde_json::json!({ "a": a })));
            for (sign, expected) in [("<", a < b), ("<=", a <= b), ("==", a == b), (">", a > b)] {
                let filter = Filter::parse(&format!("a {sign} {b}")).unwrap();
                prop_assert_eq!(filter.holds(&sample), Ok(expected));
                let filter = Filter::parse(&format!("a {sign} {b}.0")).unwrap();
                prop_assert_eq!(filter.holds(&sample), Ok(expected));
            }
        }
    }
}
