//! Keys, and what they mean.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End the program.
    Quit,
    /// Leave what is open; at last the program.
    Back,
    /// Stop, until the shell continues it.
    Suspend,
    /// Draw everything again.
    Redraw,
    /// Go so many rows down.
    Move(isize),
    /// Go so many pages down.
    Page(isize),
    /// Go to the first row.
    First,
    /// Go to the last row.
    Last,
    /// Sort by the column with this key.
    Sort(char),
    /// Show the other table.
    Switch,
    /// Show the details of the selected row.
    Open,
    /// Stop changing, or go on.
    Freeze,
    /// Show the help, or hide it.
    Help,
    /// Begin to type a filter.
    Filter,
    /// A character of the filter.
    Type(char),
    /// Delete the filter's last character.
    Erase,
    /// Delete the filter.
    EraseAll,
    /// Keep the filter.
    Accept,
}

/// What keys mean depends on what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A table.
    Table,
    /// The details of a row.
    Details,
    /// The help.
    Help,
    /// A filter is typed.
    Filter,
}

/// What a key means; `None`: nothing.
pub fn action(key: KeyEvent, mode: Mode) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Action::Quit),
            KeyCode::Char('z') => Some(Action::Suspend),
            KeyCode::Char('l') => Some(Action::Redraw),
            KeyCode::Char('u') if mode == Mode::Filter => Some(Action::EraseAll),
            _ => None,
        };
    }
    if mode == Mode::Filter { while_typing(key.code) } else { otherwise(key.code, mode) }
}

fn while_typing(code: KeyCode) -> Option<Action> {
    match code {
        KeyCode::Char(c) => Some(Action::Type(c)),
        KeyCode::Backspace => Some(Action::Erase),
        KeyCode::Enter => Some(Action::Accept),
        KeyCode::Esc => Some(Action::Back),
        KeyCode::Up => Some(Action::Move(-1)),
        KeyCode::Down => Some(Action::Move(1)),
        _ => None,
    }
}

fn otherwise(code: KeyCode, mode: Mode) -> Option<Action> {
    match code {
        KeyCode::Char('q') => Some(Action::Quit),
        KeyCode::Char('?') | KeyCode::F(1) => Some(Action::Help),
        KeyCode::Char(' ') => Some(Action::Freeze),
        KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => Some(Action::Back),
        KeyCode::Up | KeyCode::Char('k') => Some(Action::Move(-1)),
        KeyCode::Down | KeyCode::Char('j') => Some(Action::Move(1)),
        KeyCode::PageUp => Some(Action::Page(-1)),
        KeyCode::PageDown => Some(Action::Page(1)),
        KeyCode::Home | KeyCode::Char('g') => Some(Action::First),
        KeyCode::End | KeyCode::Char('G') => Some(Action::Last),
        KeyCode::Tab | KeyCode::BackTab if mode != Mode::Help => Some(Action::Switch),
        KeyCode::Enter | KeyCode::Right if mode == Mode::Table => Some(Action::Open),
        KeyCode::Char('/') if mode == Mode::Table => Some(Action::Filter),
        KeyCode::Char(c) if mode == Mode::Table => Some(Action::Sort(c)),
        _ => None,
    }
}

/// For the help.
pub const KEYS: [(&str, &str); 11] = [
    ("Up Down PgUp PgDn", "select a row, or scroll"),
    ("Home End", "first and last row"),
    ("Enter", "details of the row: matches, periods, samples"),
    ("Esc", "leave: details, then the filter, then top"),
    ("Tab", "topics or nodes"),
    ("/", "filter: a part of a name, or a pattern with * and ?"),
    ("Space", "freeze, and go on"),
    ("?", "this help"),
    ("Ctrl-L", "draw everything again"),
    ("Ctrl-Z", "stop; `fg` continues"),
    ("q  Ctrl-C", "quit"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::snapshot::{NodeRow, TopicRow};
    use crate::top::table::Row;

    fn press(code: KeyCode, mode: Mode) -> Option<Action> {
        action(KeyEvent::new(code, KeyModifiers::NONE), mode)
    }

    #[test]
    fn letters_are_text_while_a_filter_is_typed() {
        for c in ['q', '?', '/', ' ', 'j'] {
            assert_eq!(press(KeyCode::Char(c), Mode::Filter), Some(Action::Type(c)));
        }
        assert_eq!(press(KeyCode::Char('q'), Mode::Table), Some(Action::Quit));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        for mode in [Mode::Table, Mode::Details, Mode::Help, Mode::Filter] {
            assert_eq!(action(interrupt, mode), Some(Action::Quit));
            assert!(press(KeyCode::Esc, mode) == Some(Action::Back));
        }
    }

    #[test]
    fn each_column_has_a_key_of_its_own_that_sorts() {
        fn check<R: Row>() {
            let mut keys: Vec<_> = R::COLUMNS.iter().map(|it| it.key).collect();
            for &key in &keys {
                assert_eq!(press(KeyCode::Char(key), Mode::Table), Some(Action::Sort(key)));
            }
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), R::COLUMNS.len());
        }
        check::<TopicRow>();
        check::<NodeRow>();
    }
}
