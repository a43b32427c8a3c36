//! The line that says where a player is.

use myelin_bag::player::Status;
use myelin_tools::text::counted;

/// The line in at most so many characters: what matters least is left out first.
pub fn line(status: &Status, typed: &str, columns: usize) -> String {
    let seconds = |ns: u64| ns.saturating_sub(status.begin_ns) as f64 / 1e9;
    let mut line = if status.is_paused { "paused " } else { "playing" }.to_owned();
    let parts = match typed {
        "" => [
            format!(" {:.1}/{:.1} s", seconds(status.position_ns), seconds(status.end_ns)),
            format!(" x{}", shown_rate(status.rate)),
            format!("  {}", counted(status.messages, "message")),
            "  [space s <- -> + - q]".to_owned(),
        ],
        typed => [
            format!(" {:.1}/{:.1} s", seconds(status.position_ns), seconds(status.end_ns)),
            format!("  go to {typed}_ s"),
            " [Enter]".to_owned(),
            String::new(),
        ],
    };
    for part in parts {
        if line.chars().count() + part.chars().count() > columns {
            break;
        }
        line += &part;
    }
    line.chars().take(columns).collect()
}

fn shown_rate(rate: f64) -> String {
    let text = format!("{rate:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
