//! The Rust side of `link.c`; without LCM at build time, the reason why there is none.

/// Version of the LCM that this driver was compiled against; empty without.
pub use imp::version;

/// Why LCM cannot be used, and what to install; `None` if it can.
pub use imp::missing;

/// Opens one role and returns when both directions are matched.
pub use imp::open;

/// As [`open`], for a stream.
pub use imp::open_stream;

#[cfg(have_lcm)]
mod imp {
    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream, capi};

    unsafe extern "C" {
        static myelin_lcm_link: capi::CLink;
    }

    pub fn version() -> String {
        env!("LCM_VERSION").to_owned()
    }

    pub fn missing() -> Option<String> {
        None
    }

    pub fn open(prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        capi::open(table(), prepare, false)
    }

    pub fn open_stream(prepare: &Prepare) -> Result<Stream, Error> {
        capi::open_stream(table(), prepare, false)
    }

    fn table() -> &'static capi::CLink {
        // SAFETY: a constant of link.c in the layout of the kit's header.
        unsafe { &myelin_lcm_link }
    }
}

#[cfg(not(have_lcm))]
mod imp {
    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream};

    pub fn version() -> String {
        String::new()
    }

    pub fn missing() -> Option<String> {
        Some(env!("LCM_MISSING").to_owned())
    }

    pub fn open(_: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(env!("LCM_MISSING")))
    }

    pub fn open_stream(_: &Prepare) -> Result<Stream, Error> {
        Err(Error::new(env!("LCM_MISSING")))
    }
}
