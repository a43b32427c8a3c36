//! `myelin view`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueHint};
use myelin_tools::session::Session;
use myelin_tools::signals::Stop;
use myelin_tools::text::counted;
use myelin_tools::view::{self, FileOptions, Summary, View};
use serde_json::json;

use crate::attach::Attach;
use crate::complete;
use crate::output::{has_no_reader, note, print};

#[derive(Args)]
#[command(after_help = SHOWS)]
pub struct Options {
    /// An MCAP file to show; without it, the robot that runs.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Show only these topics; * stands for any text and ? for one character. May be repeated.
    #[arg(long = "topic", short, value_name = "TOPIC", add = complete::topics())]
    topics: Vec<String>,
    /// Play a file so many times as fast as it was recorded.
    #[arg(long, short, value_name = "FACTOR", default_value = "1", value_parser = rate)]
    rate: f64,
    /// Begin a file again at its end.
    #[arg(long = "loop")]
    is_loop: bool,
    /// Show a file's begin, and play it when a viewer starts it.
    #[arg(long)]
    paused: bool,
    /// Listen on this port; 0 is a free one.
    #[arg(long, value_name = "NUMBER", default_value_t = PORT)]
    port: u16,
    /// Listen on this address, such as 0.0.0.0 or 0.0.0.0:8765; on one of other hosts, clients need
    /// the token that is printed.
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<Listen>,
    /// Let pages of this origin connect, such as http://localhost:8080. May be repeated.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Let viewers publish on topics of the robot.
    #[arg(long, conflicts_with = "file")]
    publish: bool,
    /// Print who connects and disconnects, and problems.
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON: what to open, and at the end what was done.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

/// An address with or without a port.
#[derive(Clone, Copy)]
struct Listen(IpAddr, Option<u16>);

pub fn run(options: Options) -> Result<ExitCode> {
    let stop = Stop::on_signals();
    let Listen(ip, port) = options.listen.unwrap_or(Listen(Ipv4Addr::LOCALHOST.into(), None));
    let listen = SocketAddr::new(ip, port.unwrap_or(options.port));
    let view_options =
        view::Options { listen, origins: options.origins, can_publish: options.publish };
    let view = match &options.file {
        Some(file) => {
            let Options { rate, is_loop, paused, .. } = options;
            let file_options = FileOptions { rate, is_loop, is_paused: paused };
            View::file(file, &options.topics, file_options, &view_options)?
        }
        None => {
            let place = options.attach.place();
            let session = Session::open("myelin view", &place)?;
            View::robot(session, &place, options.topics, &view_options)?
        }
    };
    let opening = if options.json { opening_json(&view) } else { opening_lines(&view) };
    let mut has_reader = print(&opening)?;
    while has_reader && !stop.is_set() {
        std::thread::sleep(SLICE);
        let events = view.events();
        if options.verbose {
            events.iter().for_each(|line| note(line));
        }
        has_reader = !has_no_reader();
    }
    let summary = view.close();
    let text = match options.json {
        true => format!("{}\n", summary_json(&summary)),
        false => summary_line(&summary),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn opening_lines(view: &View) -> String {
    let urls = view.urls();
    let token = match view.token() {
        Some(_) => "Whoever knows the token sees everything; nothing is encrypted.\n",
        None => "",
    };
    format!(
        "browser:    {}\nviewers:    {}\nFoxglove:   {}\n{token}Ctrl-C ends.\n",
        urls.page, urls.websocket, urls.foxglove
    )
}

fn opening_json(view: &View) -> String {
    let urls = view.urls();
    let opening = json!({
        "address": view.address().to_string(),
        "page_url": urls.page,
        "websocket_url": urls.websocket,
        "foxglove_url": urls.foxglove,
        "token": view.token(),
    });
    format!("{opening}\n")
}

fn summary_json(of: &Summary) -> serde_json::Value {
    json!({
        "summary": true,
        "clients": of.clients,
        "refused": of.refused,
        "messages": of.messages,
        "bytes": of.bytes,
        "dropped": of.dropped,
        "overwritten": of.overwritten,
    })
}

fn summary_line(of: &Summary) -> String {
    let Summary { clients, refused, messages, bytes, dropped, overwritten, .. } = of;
    let (clients, messages) = (counted(*clients, "client"), counted(*messages, "message"));
    let mut line = format!("{clients}, {messages}, {:.1} MB sent", *bytes as f64 / 1e6);
    for (count, what) in [
        (dropped, "dropped for slow clients"),
        (overwritten, "overwritten before they were taken"),
        (refused, "connections refused"),
    ] {
        if *count > 0 {
            line += &format!("; {count} {what}");
        }
    }
    line + "\n"
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|it: &f64| (0.01..=1000.0).contains(it));
    rate.ok_or_else(|| "a factor from 0.01 to 1000".to_owned())
}

fn address(text: &str) -> Result<Listen, String> {
    let with_port = text.parse::<SocketAddr>().map(|it| Listen(it.ip(), Some(it.port())));
    let ip = text.trim_start_matches('[').trim_end_matches(']').parse();
    let bad = |_| "an IP address such as 127.0.0.1, 0.0.0.0:8765 or [::1]:8765".to_owned();
    with_port.or_else(|_| ip.map(|ip| Listen(ip, None))).map_err(bad)
}

const SHOWS: &str = "\
Foxglove, Lichtblick and PlotJuggler connect to the address that it prints; a browser shows a page with
rates, last values, a picture and a plot. A topic is subscribed to while somebody looks at it. It takes
samples like any other best-effort subscriber. A viewer that is too slow misses messages and slows
nobody.";
/// That of Foxglove's protocol.
const PORT: u16 = 8765;
/// How long a wait is at most, so that Ctrl-C is noticed.
const SLICE: Duration = Duration::from_millis(50);
