//! Where to look for running nodes: options of all commands that do.

use std::path::PathBuf;

use clap::Args;
use myelin_tools::session::Place;

/// See [`Place`].
#[derive(Args, Clone)]
pub struct Attach {
    /// The domain; by default that of MYELIN_DOMAIN, or else 0.
    #[arg(long, value_name = "NUMBER")]
    domain: Option<u32>,
    /// Look at other hosts and DDS programs, too.
    #[arg(long)]
    network: bool,
    /// The folder that contains the nodes' sockets; by default that of MYELIN_RUNTIME_DIR, or else
    /// /dev/shm.
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Look at the nodes of this Unix group instead of this user's.
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

/// Options of a command that lists all that is there.
#[derive(Args)]
pub struct Listing {
    /// Prints one JSON object a line.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub attach: Attach,
}

impl Attach {
    pub fn place(self) -> Place {
        let Attach { domain, network, runtime_dir, group } = self;
        Place { domain, runtime_dir, group, network }
    }
}
