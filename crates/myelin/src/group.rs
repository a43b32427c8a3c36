//! A group of the system, by number or by name: a node meets the programs of its members.

use std::ffi::CString;

use crate::Error;

/// A group of users that share a domain, for [`NodeBuilder::group`](crate::NodeBuilder::group): a
/// number (gid), or a name that the system knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// A gid.
    Id(u32),
    /// A name, looked up when the node is opened.
    Name(String),
}

impl From<u32> for Group {
    fn from(id: u32) -> Self {
        Group::Id(id)
    }
}

impl From<&str> for Group {
    fn from(name: &str) -> Self {
        Group::Name(name.to_string())
    }
}

impl From<String> for Group {
    fn from(name: String) -> Self {
        Group::Name(name)
    }
}

impl Group {
    /// The group's gid.
    pub(crate) fn id(&self) -> Result<u32, Error> {
        match self {
            Group::Id(id) => Ok(*id),
            Group::Name(name) => look_up(name)?.ok_or_else(|| unknown(name)),
        }
    }
}

fn unknown(name: &str) -> Error {
    let remedy = "there is no such group; create it (groupadd), or use a name from `getent group`";
    Error::Setting { topic: None, field: "group", value: format!("{name:?}"), remedy }
}

fn look_up(name: &str) -> Result<Option<u32>, Error> {
    let Ok(text) = CString::new(name) else { return Ok(None) };
    let mut buffer = vec![0; BUFFER_BYTES_FIRST];
    loop {
        let mut group = std::mem::MaybeUninit::<libc::group>::uninit();
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are valid for the call, and the buffer has the length given.
        let status = unsafe {
            let (to, length) = (buffer.as_mut_ptr(), buffer.len());
            libc::getgrnam_r(text.as_ptr(), group.as_mut_ptr(), to, length, &raw mut found)
        };
        match status {
            libc::ERANGE if buffer.len() < BUFFER_BYTES_MAX => buffer.resize(buffer.len() * 4, 0),
            libc::EINTR => {}
            _ if found.is_null() && matches!(status, 0 | libc::ENOENT | libc::ESRCH) => {
                return Ok(None);
            }
            _ if found.is_null() => {
                let source = std::io::Error::from_raw_os_error(status);
                return Err(Error::system("looking up a group", source));
            }
            // SAFETY: `found` is not null, so it points to `group`, which is filled in.
            _ => return Ok(Some(unsafe { (*found).gr_gid })),
        }
    }
}

const BUFFER_BYTES_FIRST: usize = 4 << 10;
/// Enough for a group of a hundred thousand members.
const BUFFER_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_an_unknown_one_is_named() {
        assert_eq!(Group::from("root").id().unwrap(), 0);
        assert_eq!(Group::from(17).id().unwrap(), 17);
        for name in ["no-such-group-here", "nul\0inside", ""] {
            let error = Group::from(name).id().unwrap_err().to_string();
            assert!(error.contains("no such group"), "{error}");
        }
    }
}
