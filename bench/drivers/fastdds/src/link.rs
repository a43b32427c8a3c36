//! The Rust side of `link.cpp`; without Fast DDS at build time, the reason why there is none.

/// What the adaptor has to know besides the profiles.
#[cfg_attr(not(have_fastdds), expect(dead_code, reason = "only the adaptor reads it"))]
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The transport is the one in shared memory, and nothing else.
    pub shared_memory: bool,
    /// Samples go by data sharing.
    pub data_sharing: bool,
    /// The subscriber copies instead of reading in place.
    pub copies: bool,
}

/// Version of the Fast DDS that this driver was compiled against; empty without.
pub use imp::version;

/// Why Fast DDS cannot be used, and what to install; `None` if it can.
pub use imp::missing;

/// Opens one role as the profiles in `xml` say and returns when both directions are matched.
pub use imp::open;

/// As [`open`], for a stream.
pub use imp::open_stream;

#[cfg(have_fastdds)]
mod imp {
    use std::ffi::{CStr, CString, c_char, c_int};

    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream, capi};

    use super::Settings;

    unsafe extern "C" {
        static myelin_fastdds_link: capi::CLink;
        fn myelin_fastdds_configure(
            profiles: *const c_char,
            shared_memory: c_int,
            data_sharing: c_int,
            copies: c_int,
        );
        fn myelin_fastdds_version() -> *const c_char;
    }

    pub fn version() -> String {
        // SAFETY: returns a string literal.
        let version = unsafe { CStr::from_ptr(myelin_fastdds_version()) };
        version.to_string_lossy().into_owned()
    }

    pub fn missing() -> Option<String> {
        None
    }

    pub fn open(
        prepare: &Prepare,
        xml: &str,
        settings: Settings,
        loans: bool,
    ) -> Result<Box<dyn RoundTrip>, Error> {
        configured(xml, settings, |table| capi::open(table, prepare, loans))
    }

    pub fn open_stream(
        prepare: &Prepare,
        xml: &str,
        settings: Settings,
        loans: bool,
    ) -> Result<Stream, Error> {
        configured(xml, settings, |table| capi::open_stream(table, prepare, loans))
    }

    fn configured<T>(
        xml: &str,
        settings: Settings,
        open: impl FnOnce(&'static capi::CLink) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let xml = CString::new(xml).map_err(|_| Error::new("a NUL character in the XML"))?;
        let Settings { shared_memory, data_sharing, copies } = settings;
        let [shared_memory, data_sharing, copies] =
            [shared_memory, data_sharing, copies].map(c_int::from);
        // SAFETY: `xml` outlives the open below, the only one to read it; one thread.
        unsafe { myelin_fastdds_configure(xml.as_ptr(), shared_memory, data_sharing, copies) };
        // SAFETY: a constant of link.cpp in the layout of the kit's header.
        open(unsafe { &myelin_fastdds_link })
    }
}

#[cfg(not(have_fastdds))]
mod imp {
    use myelin_bench_kit::protocol::Prepare;
    use myelin_bench_kit::{Error, RoundTrip, Stream};

    use super::Settings;

    pub fn version() -> String {
        String::new()
    }

    pub fn missing() -> Option<String> {
        Some(env!("FASTDDS_MISSING").to_owned())
    }

    pub fn open(_: &Prepare, _: &str, _: Settings, _: bool) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(env!("FASTDDS_MISSING")))
    }

    pub fn open_stream(_: &Prepare, _: &str, _: Settings, _: bool) -> Result<Stream, Error> {
        Err(Error::new(env!("FASTDDS_MISSING")))
    }
}
