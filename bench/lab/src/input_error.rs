//! Errors in what the user gave: one line with file, line, what is wrong and what to do.

use std::fmt;
use std::ops::Range;

/// A text that the user wrote, with its name.
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

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where `needle` first stands; the start of the text if nowhere.
    pub fn find(&self, needle: &str) -> Range<usize> {
        self.text.find(needle).map_or(0..0, |at| at..at + needle.len())
    }

    /// Where `needle` stands after `from`; `None` for an empty needle or none there.
    pub fn find_after(&self, from: usize, needle: &str) -> Option<Range<usize>> {
        let found = self.text[from..].find(needle).filter(|_| !needle.is_empty())?;
        Some(from + found..from + found + needle.len())
    }

    /// Where the value `value` of the array or scalar `key` stands: for values that pass a parser
    /// and fail later. Falls back to the key.
    pub fn find_value(&self, key: &str, value: &str) -> Range<usize> {
        let key_at = self.find_after(0, &format!("\n{key} =")).unwrap_or_else(|| self.find(key));
        let key_at = key_at.end..key_at.end;
        self.find_after(key_at.end, value).unwrap_or(key_at)
    }

    /// An error at a place of this text.
    pub fn error(&self, place: Range<usize>, message: impl Into<String>) -> InputError {
        let line = self.text[..place.start.min(self.text.len())].matches('\n').count() + 1;
        InputError { place: format!("{}:{line}: ", self.name), ..InputError::new(message) }
    }

    /// A parser's error, in one line, with the nearest valid key where a key is unknown.
    pub fn toml_error(&self, error: &toml::de::Error) -> InputError {
        let message = error.message().replace('\n', " ");
        let place = error.span().unwrap_or(0..0);
        let Some((head, expected)) = message.split_once(", expected ") else {
            return self.error(place, message);
        };
        let words: Vec<&str> = head.split('`').chain(expected.split('`')).collect();
        let (wrong, known) = (words.get(1).copied().unwrap_or(""), expected.split('`').skip(1));
        match nearest(wrong, known.step_by(2)) {
            Some(word) => self
                .error(place, format!("{head}; did you mean `{word}`?"))
                .remedy(format!("expected {expected}")),
            None => self.error(place, head).remedy(format!("expected {expected}")),
        }
    }
}

/// What is wrong with something the user gave. Exit status 2.
#[derive(Clone, Debug)]
pub struct InputError {
    place: String,
    message: String,
    remedy: String,
}

impl InputError {
    /// An error that belongs to no place in a file.
    pub fn new(message: impl Into<String>) -> Self {
        InputError { place: String::new(), message: message.into(), remedy: String::new() }
    }

    /// An unknown name of something, with the nearest known one.
    pub fn unknown<'a>(
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        match nearest(name, known) {
            Some(word) => Self::new(format!("no {what} `{name}`; did you mean `{word}`?")),
            None => Self::new(format!("no {what} `{name}`")),
        }
    }

    /// The same error with what to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// The same error at a place of `source`.
    #[must_use]
    pub fn at(self, source: &Source, place: Range<usize>) -> Self {
        InputError { place: source.error(place, "").place, ..self }
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

/// The known word that is most like `word`, if one is alike at all.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Jaro-Winkler likeness above which a word is offered.
const ALIKE: f64 = 0.7;
