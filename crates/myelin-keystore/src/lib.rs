//! Keystores of DDS Security in the layout of SROS 2: made, filled, listed and checked by the command
//! `myelin keystore`, and by ROS 2's own tool `ros2 security`, each of which reads what the other has
//! written.
//!
//! ```text
//! public/            the certificates of two authorities: of identities and of permissions, which in a
//!                    keystore of SROS 2's tool are one; crl.pem, the certificates that the first one has
//!                    revoked (Myelin's own; SROS 2 has none)
//! private/           their keys: whoever has them can add enclaves. They stay off the robots
//! enclaves/          governance.xml and .p7s (signed): what a domain protects
//! enclaves/<name>/   for one robot or process: cert.pem and key.pem, its identity; permissions.xml
//!                    and .p7s, its rights; links to the public files
//! ```
//!
//! A keystore belongs to its owner (folders 0700, keys 0600). Nothing here is for use at run time: the
//! library reads an enclave by itself.

mod certificate;
mod check;
mod documents;
mod error;
mod files;
mod keystore;
mod smime;

pub use check::Finding;
pub use error::Error;
pub use keystore::{Added, Enclave, Keystore, Rights};
