//! The terminal while the screen is shown; afterwards it is as it was before.

use std::io::{self, Stdout, Write};
use std::sync::Once;

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

/// A terminal with a screen of our own. When it is dropped, and when any thread panics, the terminal
/// gets its old screen and settings back.
pub struct OwnScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl OwnScreen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Those of the terminal; then it is as it was.
    pub fn enter() -> io::Result<OwnScreen> {
        restore_at_panic();
        let taken = take().and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        taken.map(|terminal| OwnScreen { terminal }).inspect_err(|_| restore())
    }

    /// What is drawn on.
    pub fn terminal(&mut self) -> &mut Terminal<CrosstermBackend<Stdout>> {
        &mut self.terminal
    }

    /// Gives the terminal back while `wait` runs, and draws everything again later.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn suspended(&mut self, wait: impl FnOnce()) -> io::Result<()> {
        restore();
        wait();
        take()?;
        self.clear()
    }

    /// Draws everything again at the next time. [`Terminal::clear`] asks the terminal for the place
    /// of its cursor: the answer would go to the thread that reads keys.
    ///
    /// # Errors
    /// Those of the terminal.
    pub fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }
}

impl Drop for OwnScreen {
    fn drop(&mut self) {
        restore();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)
}

/// There is nothing to do if the terminal has gone.
fn restore() {
    let _ = execute!(io::stdout(), Show, LeaveAlternateScreen);
    let _ = io::stdout().flush();
    let _ = disable_raw_mode();
}

/// Before the message, which would go with our screen.
fn restore_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}
