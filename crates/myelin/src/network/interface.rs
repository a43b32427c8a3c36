//! The network interfaces of this host: which exist, which one leads to other hosts, and notice of
//! any change. CycloneDDS binds itself to one when it opens a domain, and never looks again. So the
//! choice is made here, in CycloneDDS's order, and made again after a change.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use myelin_dds::Binding;

/// An interface with one of its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    index: u32,
    /// `None` for an interface without an address of this kind.
    pub(super) address: Option<IpAddr>,
    netmask: Option<Ipv4Addr>,
    is_up: bool,
    /// Whether there is a carrier.
    is_running: bool,
    is_loopback: bool,
    has_multicast: bool,
    is_point_to_point: bool,
    /// Whether it is a device, not a bridge, a tunnel or similar.
    is_device: bool,
}

/// The chosen interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) interface: Interface,
    /// Why it leads to no other host, if so.
    pub(super) shortcoming: Option<String>,
}

impl Interface {
    /// For people.
    fn text(&self) -> String {
        match self.address {
            Some(address) => format!("{} ({address})", self.name),
            None => self.name.clone(),
        }
    }

    /// As the way into a domain.
    pub(super) fn binding(&self) -> Option<Binding> {
        self.address.map(|address| Binding { index: self.index, address })
    }

    /// CycloneDDS's order; among equals, a device comes before a bridge that some program has made,
    /// and an interface with a carrier before one without.
    fn rank(&self) -> [u8; 4] {
        let is_link_local =
            matches!(self.address, Some(IpAddr::V6(address)) if address.is_unicast_link_local());
        let reach = match () {
            () if self.is_loopback => 0,
            () if self.has_multicast => 4,
            () if !self.is_point_to_point => 3,
            () => 2,
        };
        let range = u8::from(!self.is_loopback && !is_link_local);
        [range, reach, u8::from(self.is_device), u8::from(self.is_running)]
    }

    fn is_named(&self, wanted: &str) -> bool {
        let Ok(wanted) = wanted.parse::<IpAddr>() else { return self.name == wanted };
        if self.address == Some(wanted) {
            return true;
        }
        // A network's address means the interface in it, as in CycloneDDS.
        let (IpAddr::V4(wanted), Some(IpAddr::V4(own)), Some(mask)) =
            (wanted, self.address, self.netmask)
        else {
            return false;
        };
        wanted & !mask == Ipv4Addr::UNSPECIFIED && wanted == own & mask
    }
}

/// The interface to bind to: `wanted`, by name or address, or the best one. The current interface
/// stays while it has its address, even if its cable is pulled, unless there is a better one.
///
/// # Errors
/// Why there is none.
pub(super) fn choose(
    there: &[Interface],
    wanted: Option<&str>,
    now: Option<Binding>,
) -> Result<Choice, String> {
    let fits = |each: &&Interface| wanted.is_none_or(|wanted| each.is_named(wanted));
    let now =
        now.and_then(|now| there.iter().filter(fits).find(|each| each.binding() == Some(now)));
    let free = there.iter().filter(fits).filter(|each| each.is_up && each.address.is_some());
    // The first one among equals.
    let best = match wanted {
        Some(_) => free.clone().next(),
        None => {
            free.clone().reduce(|best, each| if each.rank() > best.rank() { each } else { best })
        }
    };
    let interface = match (now, best) {
        (Some(now), Some(best)) if wanted.is_none() && best.rank() > now.rank() => best,
        (Some(now), _) => now,
        (None, Some(best)) => best,
        (None, None) => return Err(missing(there, wanted)),
    };
    let shortcoming = (interface.is_loopback && wanted.is_none()).then(|| missing(there, wanted));
    Ok(Choice { interface: interface.clone(), shortcoming })
}

/// Why no interface leads to other hosts.
fn missing(there: &[Interface], wanted: Option<&str>) -> String {
    if let Some(wanted) = wanted {
        let state = match there.iter().find(|each| each.is_named(wanted)) {
            Some(found) if !found.is_up => "is down",
            Some(_) => "has no address",
            None => "does not exist",
        };
        let named: Vec<String> = there.iter().map(Interface::text).collect();
        return format!("interface {wanted} {state}; this host has {}", named.join(", "));
    }
    let others: Vec<String> = there
        .iter()
        .filter(|each| !each.is_loopback)
        .map(|each| match each.is_up {
            true => format!("{} has no address", each.name),
            false => format!("{} is down", each.name),
        })
        .collect();
    match others.is_empty() {
        true => "there is no network interface".to_string(),
        false => format!("no network interface is ready: {}", others.join(", ")),
    }
}

/// Whether an interface can ever have this name, or address.
pub(super) fn can_be_named(wanted: &str) -> bool {
    let is_name = |byte: u8| byte != b'/' && byte != b':' && !byte.is_ascii_whitespace();
    wanted.parse::<IpAddr>().is_ok()
        || (!wanted.is_empty()
            && wanted.len() < libc::IFNAMSIZ
            && !matches!(wanted, "." | "..")
            && wanted.bytes().all(|byte| is_name(byte) && byte != 0))
}

/// All interfaces, each with all its addresses of version 4 or 6, in the kernel's order.
pub(super) fn all(ipv6: bool) -> io::Result<Vec<Interface>> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is valid for the call, which sets it.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found: Vec<Interface> = Vec::new();
    let mut next = list;
    // SAFETY: a list that ends with null, whose parts live until it is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: as above.
        let each = unsafe { interface(entry, ipv6) };
        // The kernel first lists all interfaces without addresses.
        let known = found.iter().position(|known| known.index == each.index);
        match known.filter(|known| found[*known].address.is_none()) {
            Some(bare) if each.address.is_some() => found[bare] = each,
            Some(_) => {}
            None if known.is_some() && each.address.is_none() => {}
            None => found.push(each),
        }
        next = entry.ifa_next;
    }
    // SAFETY: it is what `getifaddrs` has made.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// The addresses of this host for others, at most so many; those of the loopback, if there are none.
pub(super) fn addresses(most: usize) -> Vec<IpAddr> {
    let all: Vec<Interface> = [false, true].into_iter().flat_map(all).flatten().collect();
    let of = |is_loopback: bool| {
        let fit = all.iter().filter(|each| each.is_up && each.is_loopback == is_loopback);
        fit.filter_map(|each| each.address).take(most).collect::<Vec<_>>()
    };
    let outer = of(false);
    if outer.is_empty() { of(true) } else { outer }
}

/// # Safety
/// The entry is one of a list of `getifaddrs`.
unsafe fn interface(entry: &libc::ifaddrs, ipv6: bool) -> Interface {
    // SAFETY: a string that ends with a zero.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) };
    // SAFETY: as above.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    // SAFETY: addresses of the list, or null.
    let (address, netmask) = unsafe { (address(entry.ifa_addr), address(entry.ifa_netmask)) };
    let address = address.filter(|address| address.is_ipv6() == ipv6 && !address.is_unspecified());
    let netmask = match netmask {
        Some(IpAddr::V4(mask)) => Some(mask),
        _ => None,
    };
    let name = name.to_string_lossy().into_owned();
    let has = |flag: libc::c_int| entry.ifa_flags & flag as libc::c_uint != 0;
    Interface {
        index,
        address,
        netmask,
        is_up: has(libc::IFF_UP),
        is_running: has(libc::IFF_RUNNING),
        is_loopback: has(libc::IFF_LOOPBACK),
        has_multicast: has(libc::IFF_MULTICAST),
        is_point_to_point: has(libc::IFF_POINTOPOINT),
        is_device: std::path::Path::new("/sys/class/net").join(&name).join("device").exists(),
        name,
    }
}

/// # Safety
/// It is null or points to an address of the family that it names.
unsafe fn address(pointer: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises.
    let family = i32::from(unsafe { pointer.as_ref() }?.sa_family);
    match family {
        libc::AF_INET => {
            // SAFETY: of this family it is one of these.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in>() };
            Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address = unsafe { &*pointer.cast::<libc::sockaddr_in6>() };
            Some(IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}

/// A descriptor that is readable when an interface or an address has come, gone or changed.
#[derive(Debug)]
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub(super) fn open() -> io::Result<Watch> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no preconditions.
        let socket = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a descriptor that nothing else owns.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // SAFETY: all zeros are an address.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups =
            (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
        let bytes = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is valid for the call and as long as passed.
        match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), bytes) } {
            0 => Ok(Watch(socket)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Discards all notices: the caller asks for the current state afterwards.
    pub(super) fn drain(&self) {
        let mut message = [0_u8; 8 << 10];
        loop {
            // SAFETY: the memory is as long as passed.
            let count = unsafe {
                libc::recv(self.0.as_raw_fd(), message.as_mut_ptr().cast(), message.len(), 0)
            };
            // If the kernel's queue overflowed, it reports that once, and goes on.
            if count < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ENOBUFS) {
                return;
            }
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Up, with a carrier and multicast.
    fn interface(name: &str, index: u32, address: &str) -> Interface {
        Interface {
            name: name.to_string(),
            index,
            address: address.parse().ok(),
            netmask: Some(Ipv4Addr::new(255, 255, 255, 0)),
            is_up: true,
            is_running: true,
            is_loopback: false,
            has_multicast: true,
            is_point_to_point: false,
            is_device: true,
        }
    }

    fn loopback() -> Interface {
        let lo = interface("lo", 1, "127.0.0.1");
        Interface { is_loopback: true, has_multicast: false, is_device: false, ..lo }
    }

    fn name(choice: Result<Choice, String>) -> String {
        choice.map_or_else(|reason| format!("({reason})"), |choice| choice.interface.name)
    }

    #[test]
    fn the_best_interface_is_kept_until_there_is_a_better_one() {
        let eth = interface("eth0", 2, "10.0.0.1");
        let wlan = interface("wlan0", 3, "10.0.1.1");
        let docker = Interface { is_device: false, ..interface("docker0", 4, "172.17.0.1") };
        let tun = Interface {
            has_multicast: false,
            is_point_to_point: true,
            ..interface("tun0", 5, "10.8.0.1")
        };
        let all = [loopback(), eth.clone(), wlan.clone(), docker.clone(), tun.clone()];
        assert_eq!(name(choose(&all, None, None)), "eth0");
        assert_eq!(name(choose(&all, None, wlan.binding())), "wlan0", "it is as good");
        for worse in [&docker, &tun, &loopback()] {
            assert_eq!(name(choose(&all, None, worse.binding())), "eth0");
        }
        let pulled = Interface { is_running: false, is_up: false, ..eth.clone() };
        let alone = [loopback(), pulled.clone(), docker.clone()];
        assert_eq!(
            name(choose(&alone, None, eth.binding())),
            "eth0",
            "a cable is plugged in again"
        );
        assert_eq!(name(choose(&alone, None, None)), "docker0");
        let other = [loopback(), pulled, wlan];
        assert_eq!(name(choose(&other, None, eth.binding())), "wlan0");
    }

    #[test]
    fn the_loopback_is_used_until_there_is_an_interface() {
        let bare = Interface { address: None, ..interface("eth0", 2, "") };
        let only = choose(&[loopback(), bare], None, None).unwrap();
        assert_eq!(only.interface.name, "lo");
        let shortcoming = only.shortcoming.unwrap();
        assert!(shortcoming.contains("eth0 has no address"), "{shortcoming}");
        assert_eq!(name(choose(&[], None, None)), "(there is no network interface)");
        let asked = choose(&[loopback()], Some("lo"), None).unwrap();
        assert_eq!(asked.shortcoming, None);
    }

    #[test]
    fn a_requested_interface_is_waited_for() {
        let eth = interface("eth0", 2, "10.0.0.1");
        let wlan = interface("wlan0", 3, "10.0.1.1");
        let there = [loopback(), wlan.clone()];
        let missing =
            "(interface eth0 does not exist; this host has lo (127.0.0.1), wlan0 (10.0.1.1))";
        assert_eq!(name(choose(&there, Some("eth0"), None)), missing);
        assert_eq!(name(choose(&there, Some("eth0"), eth.binding())), missing);
        let both = [loopback(), wlan.clone(), eth.clone()];
        for wanted in ["eth0", "10.0.0.1", "10.0.0.0"] {
            assert_eq!(name(choose(&both, Some(wanted), None)), "eth0");
        }
        assert_eq!(
            name(choose(&both, Some("10.0.0.2"), None)),
            "(interface 10.0.0.2 does not exist; this host has lo (127.0.0.1), wlan0 (10.0.1.1), \
             eth0 (10.0.0.1))"
        );
        let moved = interface("eth0", 2, "10.0.0.7");
        let bound = choose(std::slice::from_ref(&moved), Some("eth0"), eth.binding()).unwrap();
        assert_eq!(bound.interface, moved, "a new address");
        let down = Interface { is_up: false, ..eth.clone() };
        assert_eq!(
            name(choose(std::slice::from_ref(&down), Some("eth0"), None)),
            "(interface eth0 is down; this host has eth0 (10.0.0.1))"
        );
        assert_eq!(name(choose(&[down], Some("eth0"), eth.binding())), "eth0");
    }

    #[test]
    fn impossible_interface_names_are_refused() {
        for name in ["eth0", "enp3s0f1", "fd00::1", "10.0.0.1", "br-1a2b"] {
            assert!(can_be_named(name), "{name}");
        }
        for name in ["", ".", "a/b", "a b", "an-interface-name", "a:b"] {
            assert!(!can_be_named(name), "{name}");
        }
    }

    #[test]
    fn the_loopback_is_found_with_its_address() {
        let found = all(false).unwrap();
        let lo = found.iter().find(|each| each.is_loopback).expect("every host has one");
        assert!(lo.index > 0 && lo.name == "lo");
        Watch::open().unwrap().drain();
    }
}
