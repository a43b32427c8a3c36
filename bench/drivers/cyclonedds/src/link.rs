//! The Rust side of `link.c`; without CycloneDDS at build time, the reason why there is none.

/// Version of the CycloneDDS that this driver was compiled against; empty without.
pub use imp::version;

/// Why CycloneDDS cannot be used, and what to install; `None` if it can.
pub use imp::missing;

/// Opens one role in a domain configured by `xml` and returns when both directions are matched.
pub use imp::open;

/// As [`open`], for a stream.
pub use imp::open_stream;

#[cfg(have_cyclonedds)]
mod imp {
    use std::ffi::{CStr, CString, c_char, c_int};

    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream, capi};

    unsafe extern "C" {
        static myelin_cyclonedds_link: capi::CLink;
        fn myelin_cyclonedds_configure(xml: *const c_char, shared_memory: c_int);
        fn myelin_cyclonedds_version() -> *const c_char;
    }

    pub fn version() -> String {
        // SAFETY: returns a string literal.
        let version = unsafe { CStr::from_ptr(myelin_cyclonedds_version()) };
        version.to_string_lossy().into_owned()
    }

    pub fn missing() -> Option<String> {
        None
    }

    pub fn open(
        prepare: &Prepare,
        xml: &str,
        shared_memory: bool,
        loans: bool,
    ) -> Result<Box<dyn RoundTrip>, Error> {
        configured(xml, shared_memory, |table| capi::open(table, prepare, loans))
    }

    pub fn open_stream(
        prepare: &Prepare,
        xml: &str,
        shared_memory: bool,
        loans: bool,
    ) -> Result<Stream, Error> {
        configured(xml, shared_memory, |table| capi::open_stream(table, prepare, loans))
    }

    fn configured<T>(
        xml: &str,
        shared_memory: bool,
        open: impl FnOnce(&'static capi::CLink) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let xml = CString::new(xml).map_err(|_| Error::new("a NUL character in the XML"))?;
        // SAFETY: `xml` outlives the open below, the only one to read it; one thread.
        unsafe { myelin_cyclonedds_configure(xml.as_ptr(), c_int::from(shared_memory)) };
        // SAFETY: a constant of link.c in the layout of the kit's header.
        open(unsafe { &myelin_cyclonedds_link })
    }
}

#[cfg(not(have_cyclonedds))]
mod imp {
    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream};

    pub fn version() -> String {
        String::new()
    }

    pub fn missing() -> Option<String> {
        Some(env!("CYCLONEDDS_MISSING").to_owned())
    }

    pub fn open(_: &Prepare, _: &str, _: bool, _: bool) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(env!("CYCLONEDDS_MISSING")))
    }

    pub fn open_stream(_: &Prepare, _: &str, _: bool, _: bool) -> Result<Stream, Error> {
        Err(Error::new(env!("CYCLONEDDS_MISSING")))
    }
}
