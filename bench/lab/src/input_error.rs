//! Errors in the user's input: one line with file, line, problem and remedy.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// A text by the user, with its name.
#[derive(Clone, Debug, Default)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    /// A text called `name` in errors.
    pub fn new(name: &str, text: &str) -> Self {
        Source { name: name.into(), text: text.into() }
    }

    /// The path of `file`, which this text names: relative to the text's own file.
    pub fn beside(&self, file: &str) -> PathBuf {
        Path::new(&self.name).parent().unwrap_or(Path::new("")).join(file)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text as TOML, with the position of each key and value.
    pub fn document(&self) -> Result<DeTable<'_>, InputError> {
        let document = DeTable::parse(&self.text).map_err(|error| self.toml_error(&error))?;
        Ok(document.into_inner())
    }

    /// The position of the value at `path`, for instance `plan.systems.0`; if it does not exist,
    /// that of its nearest parent.
    pub fn place(&self, path: &str) -> Range<usize> {
        let mut place = 0..0;
        let Ok(document) = self.document() else {
            return place;
        };
        let document = DeValue::Table(document);
        let mut value = &document;
        for key in path.split('.') {
            let index = key.parse::<usize>();
            let found = index.map_or_else(|_| value.get(key), |index| value.get(index));
            let Some(found) = found else { break };
            (place, value) = (found.span(), found.get_ref());
        }
        place
    }

    /// An error about the value at `path`; the message names its last key.
    pub fn wrong(&self, path: &str, what: impl fmt::Display) -> InputError {
        self.wrong_at(self.place(path), path, what)
    }

    /// Like [`Source::wrong`], at a known position.
    pub fn wrong_at(&self, place: Range<usize>, path: &str, what: impl fmt::Display) -> InputError {
        let mut keys = path.rsplit('.').filter(|key| key.parse::<usize>().is_err());
        self.error(place, format!("{}: {what}", keys.next().unwrap_or_default()))
    }

    /// An error at a position of this text.
    pub fn error(&self, place: Range<usize>, message: impl Into<String>) -> InputError {
        InputError::new(message).at(self, place)
    }

    /// A parser's error in one line, with the nearest valid key if a key is unknown.
    pub fn toml_error(&self, error: &toml::de::Error) -> InputError {
        let message = error.message().replace('\n', " ");
        let place = error.span().unwrap_or(0..0);
        let Some((head, expected)) = message.split_once(", expected ") else {
            return self.error(place, message);
        };
        let words: Vec<&str> = head.split('`').chain(expected.split('`')).collect();
        let (wrong, known) = (words.get(1).copied().unwrap_or(""), expected.split('`').skip(1));
        let error = InputError::suggest(head.into(), wrong, known.step_by(2));
        error.at(self, place).remedy(format!("expected {expected}"))
    }
}

/// A mistake in the user's input. Exit status 2.
#[derive(Clone, Debug)]
pub struct InputError {
    place: String,
    message: String,
    remedy: String,
}

impl InputError {
    /// An error without a position in a file.
    pub fn new(message: impl Into<String>) -> Self {
        InputError { place: String::new(), message: message.into(), remedy: String::new() }
    }

    /// An unknown name, with the nearest known one.
    pub fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::suggest(format!("no {what} `{name}`"), name, known)
    }

    /// The indices of the `known` names that a pattern matches; there must be at least one.
    pub(crate) fn matching(
        (what, remedy): (&str, &str),
        pattern: &str,
        known: &[&str],
    ) -> Result<Vec<usize>, Self> {
        fast_glob::validate(pattern)
            .map_err(|error| Self::new(format!("{what} pattern `{pattern}`: {error}")))?;
        let matches = |place: &usize| fast_glob::glob_match(pattern, known[*place]);
        let found: Vec<usize> = (0..known.len()).filter(matches).collect();
        let unknown = || Self::unknown(what, pattern, known.iter().copied()).remedy(remedy);
        if found.is_empty() { Err(unknown()) } else { Ok(found) }
    }

    /// An unknown key, worded like the errors of TOML's parser.
    pub(crate) fn unknown_field<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::suggest(format!("unknown field `{name}`"), name, known)
    }

    /// `message` with the most similar known word, if one is similar enough.
    fn suggest<'a>(message: String, word: &str, known: impl Iterator<Item = &'a str>) -> Self {
        let alike = known
            .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
            .filter(|(likeness, _)| *likeness > ALIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        Self::new(match alike {
            Some((_, nearest)) => format!("{message}; did you mean `{nearest}`?"),
            None => message,
        })
    }

    /// Adds what to do about the error.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// Sets the position of the error, in `source`, unless that has no name.
    #[must_use]
    pub fn at(mut self, source: &Source, place: Range<usize>) -> Self {
        if source.name.is_empty() {
            return self;
        }
        let line = source.text[..place.start.min(source.text.len())].matches('\n').count() + 1;
        self.place = format!("{}:{line}: ", source.name);
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.place, self.message)?;
        if !self.remedy.is_empty() {
            write!(formatter, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for InputError {}

/// Least Jaro-Winkler similarity for a suggestion.
const ALIKE: f64 = 0.7;
