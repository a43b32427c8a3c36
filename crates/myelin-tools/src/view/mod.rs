//! A server that shows a running robot or a file in Foxglove, Lichtblick, PlotJuggler, and on a page
//! of its own: `myelin view`.
//!
//! ```text
//! source (robot, file) ──▶ hub ──▶ queue of a client ──▶ its writer ──▶ socket
//!          ▲                ▲ subscriptions                    reader ◀──┘
//!          └── what is wanted ┘
//! ```
//!
//! A message of a robot is written to the socket from its publisher's memory. A client that reads
//! slowly loses messages of its own queue, and slows nobody.

mod access;
mod channel;
mod client;
mod file;
mod http;
mod hub;
mod image;
mod page;
mod protocol;
mod publishing;
mod queue;
mod robot;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use serde::Serialize;

use crate::Error;
use crate::session::{Place, Session};
use access::Access;
pub use file::FileOptions;
use file::{FilePlayer, Opened};
use hub::Hub;
use robot::Robot;

/// Where to listen, and which clients may connect.
#[derive(Clone, Debug)]
pub struct Options {
    /// By default `127.0.0.1:8765`. Port 0 is a free one.
    pub listen: SocketAddr,
    /// Origins of pages that may connect, besides that of its own page and of known programs.
    pub origins: Vec<String>,
    /// Whether viewers may publish on the topics of a robot.
    pub can_publish: bool,
}

/// A server that runs.
pub struct View {
    hub: Arc<Hub>,
    address: SocketAddr,
    token: Option<String>,
    listener: TcpListener,
    acceptor: Option<JoinHandle<()>>,
    source: Option<Source>,
}

/// Where messages come from.
#[expect(dead_code, reason = "they are kept until the end")]
enum Source {
    Robot(Robot),
    File(FilePlayer),
}

/// What to open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Urls {
    /// The page, for a browser.
    pub page: String,
    /// What viewers connect to.
    pub websocket: String,
    /// Opens Foxglove.
    pub foxglove: String,
}

/// What a server has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Clients that have connected.
    pub clients: u64,
    /// Connections that were refused.
    pub refused: u64,
    /// Messages that were sent, to all clients together.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that clients missed because they read too slowly.
    pub dropped: u64,
    /// Messages that were overwritten before they were taken.
    pub overwritten: u64,
}

impl View {
    /// Shows the topics of a running robot whose names are among the patterns; all if there are none.
    ///
    /// # Errors
    /// An address that is in use or not of this host; those of the graph.
    pub fn robot(
        session: Session,
        place: &Place,
        topics: Vec<String>,
        options: &Options,
    ) -> Result<View, Error> {
        let name = "myelin view".to_owned();
        let mut view = View::open(options, Hub::new(name, session_name(), None))?;
        if options.can_publish {
            view.hub.allow_publishing(session.clone(), place.clone());
        }
        view.source = Some(Source::Robot(Robot::start(session, place, topics, view.hub.clone())?));
        view.start(options)?;
        Ok(view)
    }

    /// Shows a file, with the topics whose names are among the patterns; all if there are none. It is
    /// played from its begin once there is a viewer.
    ///
    /// # Errors
    /// A file that is not there or no MCAP file, a topic that it does not have; an address as for
    /// [`robot`](View::robot).
    pub fn file(
        path: &Path,
        topics: &[String],
        file: FileOptions,
        options: &Options,
    ) -> Result<View, Error> {
        let opened = Opened::open(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut view = View::open(options, Hub::new(name, session_name(), Some(opened.range)))?;
        let player = FilePlayer::start(opened, topics, file, view.hub.clone())?;
        view.source = Some(Source::File(player));
        view.start(options)?;
        Ok(view)
    }

    /// Takes the address first: it is what fails most often.
    fn open(options: &Options, hub: Hub) -> Result<View, Error> {
        let listener =
            TcpListener::bind(options.listen).map_err(|error| cannot_listen(options, error))?;
        let address = listener.local_addr().map_err(|error| cannot_listen(options, error))?;
        let (hub, token) = (Arc::new(hub), None);
        Ok(View { hub, address, token, listener, acceptor: None, source: None })
    }

    fn start(&mut self, options: &Options) -> Result<(), Error> {
        let access = Access::new(&self.address, options.origins.clone())?;
        self.token = access.token().map(str::to_owned);
        let failed = |error| Error::Io { what: "a thread".to_owned(), error };
        let listener = self.listener.try_clone().map_err(failed)?;
        let (hub, access) = (self.hub.clone(), Arc::new(access));
        let accept = move || accept(&listener, &hub, &access);
        let thread = std::thread::Builder::new().name("view accept".to_owned()).spawn(accept);
        self.acceptor = Some(thread.map_err(failed)?);
        Ok(())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The token that clients need; `None` on the loopback address.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// What to open.
    pub fn urls(&self) -> Urls {
        let (ip, port) = (self.address.ip(), self.address.port());
        let host = match ip {
            _ if ip.to_canonical().is_loopback() && ip.is_ipv4() => "localhost".to_owned(),
            _ if ip.is_unspecified() => host_name().unwrap_or_else(|| "localhost".to_owned()),
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let query = self.token.as_ref().map(|it| format!("?token={it}")).unwrap_or_default();
        let websocket = format!("ws://{host}:{port}/{query}");
        let quoted = websocket.replace('?', "%3F").replace('=', "%3D");
        Urls {
            page: format!("http://{host}:{port}/{query}"),
            foxglove: format!("foxglove://open?ds=foxglove-websocket&ds.url={quoted}"),
            websocket,
        }
    }

    /// What has happened since the last call, a line each, with nothing that a terminal obeys.
    pub fn events(&self) -> Vec<String> {
        self.hub.events()
    }

    /// What it has done so far.
    pub fn summary(&self) -> Summary {
        self.hub.summary()
    }

    /// Ends all connections.
    pub fn close(mut self) -> Summary {
        self.end();
        self.hub.summary()
    }

    fn end(&mut self) {
        let Some(acceptor) = self.acceptor.take() else { return };
        // It ends the accept that waits.
        let _ = rustix::net::shutdown(self.listener.as_fd(), rustix::net::Shutdown::Both);
        let _ = acceptor.join();
        self.hub.close();
        self.source = None;
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.end();
    }
}

fn accept(listener: &TcpListener, hub: &Arc<Hub>, access: &Arc<Access>) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, address) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(_) => {
                // Such as too many open files: others may close some.
                std::thread::sleep(ACCEPT_PAUSE);
                continue;
            }
        };
        // ORDER: Relaxed: a count that guards nothing. Only this thread adds to it.
        if open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let (hub, access, ended) = (hub.clone(), access.clone(), Ended(open.clone()));
        let serve = move || {
            let _ended = ended;
            client::serve(stream, address, &hub, &access);
        };
        // Without a thread the connection is closed.
        let _ = std::thread::Builder::new().name("view client".to_owned()).spawn(serve);
    }
}

/// Counts a connection's end.
struct Ended(Arc<AtomicUsize>);

impl Drop for Ended {
    fn drop(&mut self) {
        // ORDER: Relaxed: as in `accept`.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn cannot_listen(options: &Options, error: io::Error) -> Error {
    let listen = options.listen;
    match error.kind() {
        io::ErrorKind::AddrInUse => Error::Failed(format!(
            "{listen} is in use, perhaps by another `myelin view`; choose another port with --port, or \
             a free one with --port 0"
        )),
        io::ErrorKind::AddrNotAvailable => Error::BadInput(format!(
            "--listen {listen}: this host does not have the address; 0.0.0.0 stands for all that it has"
        )),
        io::ErrorKind::PermissionDenied => Error::Failed(format!(
            "{listen}: only root may listen on ports below 1024; choose another one with --port"
        )),
        _ => Error::Io { what: listen.to_string(), error },
    }
}

fn host_name() -> Option<String> {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_str().ok()?;
    let is_plain = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '-' || it == '.');
    (is_plain && !name.is_empty()).then(|| name.to_owned())
}

/// Another one in each run: clients then forget what they had before.
fn session_name() -> String {
    format!("{}-{}", std::process::id(), myelin::now())
}

/// Also those whose request has not come yet.
const CONNECTIONS_MAX: usize = 128;
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
