//! The Rust side of `link.cpp`; without iceoryx at build time, the reason why there is none.

/// Why iceoryx cannot be used, and what to install; `None` if it can.
pub use imp::missing;

/// Opens one role and returns when both directions are matched. With `waits` it sleeps on a
/// WaitSet, otherwise it polls. RouDi must be running: iceoryx would wait for it, and then abort.
pub use imp::open;

/// As [`open`], for a stream.
pub use imp::open_stream;

#[cfg(have_iceoryx)]
mod imp {
    use std::ffi::c_int;

    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream, capi};

    unsafe extern "C" {
        static myelin_iceoryx_link: capi::CLink;
        fn myelin_iceoryx_configure(waits: c_int);
    }

    pub fn missing() -> Option<String> {
        None
    }

    pub fn open(prepare: &Prepare, waits: bool) -> Result<Box<dyn RoundTrip>, Error> {
        capi::open(configured(waits), prepare, true)
    }

    pub fn open_stream(prepare: &Prepare, waits: bool) -> Result<Stream, Error> {
        capi::open_stream(configured(waits), prepare, true)
    }

    fn configured(waits: bool) -> &'static capi::CLink {
        // SAFETY: sets a number that only the open that follows reads, in this thread.
        unsafe { myelin_iceoryx_configure(c_int::from(waits)) };
        // SAFETY: a constant of link.cpp in the layout of the kit's header.
        unsafe { &myelin_iceoryx_link }
    }
}

#[cfg(not(have_iceoryx))]
mod imp {
    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream};

    pub fn missing() -> Option<String> {
        Some(env!("ICEORYX_MISSING").to_owned())
    }

    pub fn open(_: &Prepare, _: bool) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(env!("ICEORYX_MISSING")))
    }

    pub fn open_stream(_: &Prepare, _: bool) -> Result<Stream, Error> {
        Err(Error::new(env!("ICEORYX_MISSING")))
    }
}
