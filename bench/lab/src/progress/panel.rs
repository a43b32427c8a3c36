//! Lines at the bottom of a terminal that are drawn anew in place.
//!
//! What is said in between goes above them, after [`Panel::clear`]. The cursor rests below the last
//! line, at its beginning.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use console::{Style, Term, colors_enabled_stderr};

use super::view::{Line, Tone};

/// See the module. Dropped, it is gone from the screen.
pub(super) struct Panel {
    terminal: Term,
    /// Lines on the screen.
    drawn: usize,
}

impl Panel {
    /// On standard error; `None` if that is no terminal, or one that cannot move its cursor.
    pub(super) fn open() -> Option<Self> {
        let terminal = Term::buffered_stderr();
        let kind = std::env::var("TERM").unwrap_or_default();
        if !terminal.is_term() || matches!(kind.as_str(), "" | "dumb" | "unknown") {
            return None;
        }
        step_aside_for_panics();
        Some(Panel { terminal, drawn: 0 })
    }

    /// Rows and columns that lines may take.
    pub(super) fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.terminal.size_checked().unwrap_or((24, 80));
        // The last row is the cursor's. A line that fills the last column wraps on some terminals.
        (usize::from(rows).saturating_sub(1), usize::from(columns).saturating_sub(1))
    }

    /// Puts `lines` in the place of those before. Each fits into a row.
    pub(super) fn draw(&mut self, lines: &[Line]) {
        let put = || {
            self.up()?;
            for Line { text, tone } in lines {
                self.terminal.clear_line()?;
                self.terminal.write_line(&style(*tone).apply_to(text).to_string())?;
            }
            self.terminal.clear_to_end_of_screen()?;
            self.terminal.flush()
        };
        // ORDER: Relaxed, the flag carries nothing else.
        if PANICKED.load(Ordering::Relaxed) {
            return;
        }
        // A terminal that has gone away needs no view.
        let _: std::io::Result<()> = put();
        self.drawn = lines.len();
    }

    /// Takes the lines off the screen; what is written next stands where they began.
    pub(super) fn clear(&mut self) {
        self.draw(&[]);
    }

    /// To the beginning of the first line, or of the screen if that has become shorter.
    fn up(&self) -> std::io::Result<()> {
        // What the user has typed, `^C` for instance, is echoed there.
        self.terminal.clear_line()?;
        self.terminal.move_cursor_up(self.drawn.min(self.size().0))
    }
}

impl Drop for Panel {
    fn drop(&mut self) {
        self.clear();
    }
}

fn style(tone: Tone) -> Style {
    let plain = Style::new().force_styling(colors_enabled_stderr());
    match tone {
        Tone::Plain => plain,
        Tone::Heading => plain.dim(),
        Tone::Now => plain.bold(),
        Tone::Bad => plain.red(),
    }
}

/// What a panic says goes to the same place, and must not be drawn over.
fn step_aside_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // ORDER: Relaxed, the flag carries nothing else.
            PANICKED.store(true, Ordering::Relaxed);
            before(panic);
        }));
    });
}

static PANICKED: AtomicBool = AtomicBool::new(false);
