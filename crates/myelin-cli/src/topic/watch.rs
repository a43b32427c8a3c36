//! What `hz`, `bw` and `delay` have in common: which topics, how often and how long, and how it is
//! shown: on a terminal in place, otherwise as lines.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use myelin_tools::duration::nanoseconds;
use myelin_tools::session::{Place, Session};
use myelin_tools::signals::Stop;
use myelin_tools::text::counted;
use myelin_tools::watch::{self, Output, Watch};
use myelin_tools::{Error, duration};
use rustix::termios::tcgetwinsize;

use crate::attach::Attach;
use crate::complete;
use crate::output::{is_dumb, print};

/// Options of all of them.
#[derive(Args)]
pub struct Options {
    /// The topics: names, or patterns with * and ?.
    #[arg(required = true, value_name = "TOPIC", add = complete::topics())]
    topics: Vec<String>,
    /// What each line is about: the samples of this time before it.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    window: Duration,
    /// The time between two lines.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    interval: Duration,
    /// Ends after so many lines of each topic.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Ends after this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// Prints one line of each topic, without a summary.
    #[arg(long, short = '1', conflicts_with_all = ["count", "duration"])]
    once: bool,
    /// Ends with status 3 if no sample comes within this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
    /// Waits for topics that are not there yet.
    #[arg(long)]
    wait: bool,
    /// Prints JSON: one object for each publisher and line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

/// Watches until it is stopped, or for as long as the options say.
pub fn run<W: Watch>(
    name: &str,
    options: Options,
    open: impl FnOnce(Session, &Place, &watch::Options) -> Result<W, Error>,
) -> Result<ExitCode> {
    let stop = Stop::on_signals();
    let (session, place) = super::open(name, options.attach)?;
    let watched =
        watch::Options { topics: options.topics, window: options.window, wait: options.wait };
    let mut watch = open(session, &place, &watched)?;
    let mut screen = Screen::new(options.json);
    let interval_ns = nanoseconds(options.interval);
    let begin_ns = myelin_tools::now();
    let end_ns = options.duration.map(|it| begin_ns.saturating_add(nanoseconds(it)));
    let late_ns = options.timeout.map(|it| begin_ns.saturating_add(nanoseconds(it)));
    let mut next_ns = begin_ns.saturating_add(interval_ns);
    let (mut lines, lines_max) = (0, if options.once { Some(1) } else { options.count });
    while !stop.is_set() && lines_max.is_none_or(|most| lines < most) {
        let now_ns = myelin_tools::now();
        if end_ns.is_some_and(|end_ns| end_ns <= now_ns) {
            break;
        }
        if !watch.has_samples() && late_ns.is_some_and(|late_ns| late_ns <= now_ns) {
            let topics = watched.topics.join(", ");
            let error = format!("no sample of {topics} came; `myelin why` looks for the cause");
            return Err(Error::NotFound(error).into());
        }
        let wake_ns = [Some(next_ns), end_ns, late_ns.filter(|it| *it > now_ns)];
        let wake_ns = wake_ns.into_iter().flatten().min().unwrap_or(next_ns);
        watch.look(wake_ns.min(now_ns.saturating_add(SIGNAL_INTERVAL_NS)))?;
        let now_ns = myelin_tools::now();
        if now_ns < next_ns {
            continue;
        }
        next_ns = next_ns.saturating_add(interval_ns).max(now_ns);
        if !watch.has_topics() || late_ns.is_some() && !watch.has_samples() {
            continue;
        }
        lines += 1;
        if !screen.show(&watch.report())? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    if !options.once {
        screen.summary(&watch.total())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Where reports are shown.
struct Screen {
    json: bool,
    /// Whether each report is drawn over the last one.
    in_place: bool,
    drawn: usize,
    is_begun: bool,
}

impl Screen {
    fn new(json: bool) -> Screen {
        let in_place = std::io::stdout().is_terminal() && !is_dumb() && !json;
        Screen { json, in_place, drawn: 0, is_begun: false }
    }

    /// Shows a report. False if nobody reads any more.
    fn show(&mut self, output: &Output) -> Result<bool> {
        if self.json {
            return print(&lines_of(output));
        }
        let (columns, rows) = size();
        if !self.in_place {
            let with_header = !std::mem::replace(&mut self.is_begun, true);
            return print(&text(&output.table.lines(columns, with_header)));
        }
        let mut lines = output.table.lines(columns, true);
        let room = rows.unwrap_or(usize::MAX).saturating_sub(1).max(1);
        if lines.len() > room {
            let hidden = lines.len() - room + 1;
            lines.truncate(room - 1);
            lines.push(format!(".. {}; a pipe shows all", counted(hidden, "more line")));
        }
        let back = match std::mem::replace(&mut self.drawn, lines.len()) {
            0 => String::new(),
            drawn => format!("\x1b[{drawn}A\r\x1b[J"),
        };
        print(&(back + &text(&lines)))
    }

    fn summary(&mut self, output: &Output) -> Result<bool> {
        if self.json {
            return print(&lines_of(output));
        }
        let lines = output.table.lines(size().0, true);
        print(&format!("\nsummary:\n{}", text(&lines)))
    }
}

fn lines_of(output: &Output) -> String {
    output.objects.iter().map(|it| format!("{it}\n")).collect()
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Columns and rows of the terminal, if the output goes to one.
fn size() -> (Option<usize>, Option<usize>) {
    let size = tcgetwinsize(std::io::stdout()).ok();
    let of = |get: fn(rustix::termios::Winsize) -> u16| {
        size.map(get).filter(|it| *it > 0).map(usize::from)
    };
    (of(|it| it.ws_col), of(|it| it.ws_row))
}

/// A time above zero.
fn time(text: &str) -> Result<Duration, String> {
    let above_zero = |it: &Duration| !it.is_zero();
    duration::parse(text)
        .and_then(|it| Some(it).filter(above_zero).ok_or_else(|| "use a time above 0".to_owned()))
}

/// How long a signal may wait.
const SIGNAL_INTERVAL_NS: u64 = 100_000_000;
