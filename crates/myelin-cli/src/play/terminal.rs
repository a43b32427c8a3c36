//! Keys and the line of a player on a terminal. Ctrl-C and Ctrl-Z stay signals.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use myelin_bag::player::Control;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};

use super::status;
use crate::output::is_dumb;

/// The terminal while it is played on; afterwards it is as it was.
pub struct Keys {
    before: Termios,
    /// The digits of a place that is typed.
    typed: String,
    shown: String,
}

impl Keys {
    /// `None` without a terminal.
    pub fn open() -> Option<Keys> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() || is_dumb() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        Some(Keys { before, typed: String::new(), shown: String::new() })
    }

    /// Shows where the player is, and does what keys say; takes a moment.
    pub fn turn(&mut self, control: &Control) {
        // In the background the terminal belongs to somebody else.
        if !is_foreground() {
            std::thread::sleep(TURN);
            return;
        }
        self.take_terminal();
        self.show(control);
        let mut wait = TURN;
        loop {
            match poll(wait).and_then(|is_there| is_there.then(read).transpose()) {
                Ok(Some(Event::Key(key))) => {
                    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
                    if key.kind != KeyEventKind::Release && !is_control {
                        self.press(key.code, control);
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                // The terminal has gone; a signal says so, too.
                Err(_) => return std::thread::sleep(TURN),
            }
            wait = Duration::ZERO;
        }
    }

    fn press(&mut self, key: KeyCode, control: &Control) {
        match key {
            KeyCode::Char(digit @ ('0'..='9' | '.')) if self.typed.len() < TYPED_MAX => {
                self.typed.push(digit);
            }
            KeyCode::Backspace if !self.typed.is_empty() => {
                self.typed.pop();
            }
            KeyCode::Esc => self.typed.clear(),
            KeyCode::Enter => {
                if let Ok(seconds) = std::mem::take(&mut self.typed).parse::<f64>() {
                    let begin_ns = control.status().begin_ns;
                    control.seek(begin_ns.saturating_add((seconds * 1e9) as u64));
                }
            }
            KeyCode::Char(' ') => control.toggle(),
            KeyCode::Char('s') => control.step(),
            KeyCode::Right if control.status().is_paused => control.step(),
            KeyCode::Right => control.seek_by(SEEK_NS),
            KeyCode::Left => control.seek_by(-SEEK_NS),
            KeyCode::Char('+') | KeyCode::Up => control.scale_rate(2.0),
            KeyCode::Char('-') | KeyCode::Down => control.scale_rate(0.5),
            KeyCode::Char('q') => control.stop(),
            _ => {}
        }
    }

    /// Keys come at once, and are not shown. A shell that has stopped and continued this program may
    /// have changed that.
    fn take_terminal(&self) {
        let Ok(mut now) = tcgetattr(io::stdin()) else { return };
        let by_lines = LocalModes::ICANON | LocalModes::ECHO;
        if now.local_modes.intersects(by_lines) {
            now.local_modes.remove(by_lines);
            now.special_codes[SpecialCodeIndex::VMIN] = 1;
            now.special_codes[SpecialCodeIndex::VTIME] = 0;
            // Without it, keys come after Enter.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &now);
        }
    }

    fn show(&mut self, control: &Control) {
        let size = tcgetwinsize(io::stderr()).ok();
        let columns = size.map(|it| usize::from(it.ws_col)).filter(|it| *it > 0).unwrap_or(80);
        // The last column stays free: some terminals begin a new line there.
        let line = status::line(&control.status(), &self.typed, columns - 1);
        if line != self.shown {
            // Nobody sees it if the terminal has gone.
            let _ = write!(io::stderr(), "\r{line}\x1b[K");
            self.shown = line;
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if !is_foreground() {
            return;
        }
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        if !self.shown.is_empty() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn is_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Between two looks.
const TURN: Duration = Duration::from_millis(50);
const SEEK_NS: i64 = 5_000_000_000;
const TYPED_MAX: usize = 12;
