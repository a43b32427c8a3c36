//! `myelin-driver-os-tls`: `os.tcp` with TLS, the floor of systems that authenticate and encrypt. A program of its
//! own, because rustls doubles the time to link: `make bench` does without.

mod tls;

use std::process::ExitCode;

use myelin_bench_kit::protocol::{Prepare, System};
use myelin_bench_kit::{Driver, Error, RoundTrip, Stream};
use myelin_driver_os::Encrypted;

use tls::TlsStream;

fn main() -> ExitCode {
    myelin_bench_kit::main(&OverTls(Encrypted(TlsStream::open)))
}

struct OverTls(Encrypted<TlsStream>);

impl Driver for OverTls {
    fn systems(&self) -> Vec<System> {
        let about = "os.tcp with TLS 1.3 by rustls; both sides show certificates";
        vec![self.0.system("os.tcp-tls", about)]
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        self.0.open(prepare)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        self.0.open_stream(prepare)
    }
}
