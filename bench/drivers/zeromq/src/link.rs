//! The Rust side of `link.c`; without ZeroMQ at build time, the reason why there is none.

/// Version of the ZeroMQ that this driver is linked with; empty without.
pub use imp::version;

/// Why ZeroMQ cannot be used, and what to install; `None` if it can.
pub use imp::missing;

/// Opens one role and returns when both directions are matched.
pub use imp::open;

/// As [`open`], for a stream.
pub use imp::open_stream;

#[cfg(have_zeromq)]
mod imp {
    use std::ffi::{CStr, c_char};

    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream, capi};

    unsafe extern "C" {
        static myelin_zeromq_link: capi::CLink;
        fn myelin_zeromq_version() -> *const c_char;
    }

    pub fn version() -> String {
        // SAFETY: returns a text that is written by each call and read by this one thread.
        let version = unsafe { CStr::from_ptr(myelin_zeromq_version()) };
        version.to_string_lossy().into_owned()
    }

    pub fn missing() -> Option<String> {
        None
    }

    pub fn open(prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        capi::open(table(), prepare, true)
    }

    pub fn open_stream(prepare: &Prepare) -> Result<Stream, Error> {
        capi::open_stream(table(), prepare, true)
    }

    fn table() -> &'static capi::CLink {
        // SAFETY: a constant of link.c in the layout of the kit's header.
        unsafe { &myelin_zeromq_link }
    }
}

#[cfg(not(have_zeromq))]
mod imp {
    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream};

    pub fn version() -> String {
        String::new()
    }

    pub fn missing() -> Option<String> {
        Some(env!("ZEROMQ_MISSING").to_owned())
    }

    pub fn open(_: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(env!("ZEROMQ_MISSING")))
    }

    pub fn open_stream(_: &Prepare) -> Result<Stream, Error> {
        Err(Error::new(env!("ZEROMQ_MISSING")))
    }
}
