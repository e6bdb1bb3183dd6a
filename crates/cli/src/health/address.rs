//! Where to listen: `127.0.0.1:9090`, `[::1]:9090`, `:9090` for every address of the machine.

use baton_core::ErrorKind;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use crate::failure::{Failure, Result};

/// A port that is ours and that nobody answers at yet.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(super) listener: TcpListener,
    /// Where it is, with the port that the system chose for 0.
    pub(crate) address: SocketAddr,
}

/// Takes the port. It comes before everything that takes time, so that a port in use is said at once.
///
/// # Errors
/// E0520 for what is no address, E0521 when the system does not give the port.
pub(crate) fn listen(text: &str) -> Result<Listening> {
    let bound = bind(&candidates(text)?).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, address })
    });
    bound.map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "somebody else has this port; pass another one, or port 0 for any that is free".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
            io::ErrorKind::PermissionDenied => {
                "not permitted; ports below 1024 take a privilege, pass a higher one".to_owned()
            }
            _ => error.to_string(),
        };
        Failure::new(
            ErrorKind::Failed,
            "E0521",
            format!("cannot listen on `{text}`: {advice}"),
        )
    })
}

/// What an address may stand for, in the order in which it is tried.
fn candidates(text: &str) -> Result<Vec<SocketAddr>> {
    let refused = |why: &str| {
        Failure::invalid(
            "E0520",
            format!(
                "`--listen {text}`: {why}; pass 127.0.0.1:9090, [::1]:9090, or :9090 for every address of this machine"
            ),
        )
    };
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(refused("there is no port"));
    };
    let port: u16 = port
        .parse()
        .ok()
        .filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()))
        .ok_or_else(|| refused("the port is no number from 0 to 65535"))?;
    let hosts = match host {
        // One socket for both families, where the machine has both.
        "" => vec![
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ],
        "localhost" => vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        _ => vec![
            ip(host)
                .ok_or_else(|| refused("the host is no IP address (an IPv6 address stands in brackets)"))?,
        ],
    };
    Ok(hosts
        .into_iter()
        .map(|host| SocketAddr::new(host, port))
        .collect())
}

fn ip(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => inner.parse().ok().map(IpAddr::V6),
        None => host.parse().ok().map(IpAddr::V4),
    }
}

/// The first that can be had; only a family that the machine lacks is passed over.
fn bind(candidates: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut last = None;
    for candidate in candidates {
        match TcpListener::bind(candidate) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => last = Some(error),
            decided => return decided,
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("there is no address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = candidates(text)
            .expect("an address")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn an_address_is_an_ip_with_a_port_and_a_port_alone_is_every_address() {
        check("127.0.0.1:9090", &["127.0.0.1:9090"]);
        check("[::1]:0", &["[::1]:0"]);
        check(":9090", &["[::]:9090", "0.0.0.0:9090"]);
        check("localhost:1", &["127.0.0.1:1"]);
    }

    #[test]
    fn what_is_no_address_is_a_matter_of_usage_and_says_what_is() {
        for text in [
            "",
            "9090",
            "127.0.0.1",
            "127.0.0.1:",
            "::1:9090",
            ":65536",
            ":+1",
            "host:1",
            "[127.0.0.1]:1",
        ] {
            let failure = candidates(text).expect_err(text);
            assert_eq!(
                (failure.kind, failure.code),
                (ErrorKind::Invalid, "E0520"),
                "{text}"
            );
            assert!(failure.to_string().contains("127.0.0.1:9090"), "{failure}");
        }
    }

    #[test]
    fn a_port_in_use_is_said_with_what_to_pass_instead() {
        let first = listen("127.0.0.1:0").expect("a free port");
        assert_ne!(first.address.port(), 0);
        let failure = listen(&first.address.to_string()).expect_err("it is taken");
        assert_eq!((failure.kind, failure.code), (ErrorKind::Failed, "E0521"));
        assert!(failure.to_string().contains("port 0"), "{failure}");
    }
}
