use redis::{ConnectionAddr, IntoConnectionInfo};

use crate::broker::connection::address::Address;
use crate::broker::connection::credentials::Credentials;
use crate::broker::connection::invalid::{RedisConfigError, UrlProblem};

/// Where a URL points, and how to log in there.
pub(super) struct Target {
    pub(super) address: Address,
    pub(super) login: Option<Credentials>,
    pub(super) database: i64,
}

pub(super) fn parse(url: &str) -> Result<Target, RedisConfigError> {
    let problem = |problem| RedisConfigError::Url {
        url: scheme_of(url),
        problem,
    };
    let malformed = || problem(UrlProblem::Malformed);
    let (scheme, rest) = url
        .split_once("://")
        .ok_or_else(|| problem(UrlProblem::Scheme))?;
    let (has_tls, library_scheme) = match scheme {
        "rediss" if !cfg!(feature = "tls") => return Err(problem(UrlProblem::TlsFeature)),
        "rediss" => (true, "redis"),
        "redis" | "unix" | "redis+unix" => (false, scheme),
        _ => return Err(problem(UrlProblem::Scheme)),
    };
    let is_plain = match library_scheme {
        "redis" => is_plain(rest),
        _ => is_plain_path(rest),
    };
    if !is_plain {
        return Err(malformed());
    }
    // The library takes URLs apart; it knows TLS only where it does TLS, which it need not for us.
    let info = format!("{library_scheme}://{rest}").into_connection_info();
    let info = info.map_err(|_| malformed())?;
    let address = match info.addr() {
        ConnectionAddr::Tcp(host, port) if is_host(host) => Address::Tcp {
            host: host.clone(),
            port: *port,
            tls: has_tls,
        },
        ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
        _ => return Err(malformed()),
    };
    let redis = info.redis_settings();
    let login = match (redis.username(), redis.password()) {
        (None, None) => None,
        (None, Some(password)) => Some(Credentials::password(password)),
        // A user may need no password, and Redis then takes any.
        (Some(user), password) => Some(Credentials::user(user, password.unwrap_or_default())),
    };
    Ok(Target {
        address,
        login,
        database: redis.db(),
    })
}

/// As much of a URL as may be shown: where it points, if it can be used.
pub(super) fn shown(url: &str) -> String {
    match parse(url) {
        Ok(target) => target.address.to_string(),
        Err(_) => scheme_of(url),
    }
}

fn scheme_of(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, _))
            if scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '+') =>
        {
            format!("{scheme}://…")
        }
        _ => "…".to_owned(),
    }
}

/// Nothing after `?` or `#` is understood. Where one of them is in a password, the password's rest
/// would be taken for the host, or its beginning for the port.
fn is_plain(rest: &str) -> bool {
    !rest.contains(['?', '#'])
}

fn is_plain_path(rest: &str) -> bool {
    let settings = rest.split_once('?').map_or("", |(_, settings)| settings);
    let known = |setting: &str| {
        ["db=", "user=", "pass="]
            .iter()
            .any(|name| setting.starts_with(name))
    };
    !rest.contains('#') && (settings.is_empty() || settings.split('&').all(known))
}

/// Whether it is a name or an IP address, and not a host with settings behind it, such as a password.
fn is_host(host: &str) -> bool {
    host.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_bad_url_only_the_scheme_is_shown() {
        for (url, shown) in [
            ("", "…"),
            ("127.0.0.1:6379", "…"),
            ("http://127.0.0.1", "http://…"),
            ("redis://:secret@host:port", "redis://…"),
            ("redis://u:secret@h/x", "redis://…"),
            ("redis://u:secret", "redis://…"),
            ("redis://host/0/secret", "redis://…"),
            ("redis://host;password=secret", "redis://…"),
            ("redis://u:12?secret@h/", "redis://…"),
            ("redis://u:12#secret@h/", "redis://…"),
            ("redis://h/?password=secret", "redis://…"),
            ("u:secret@h:6379", "…"),
            ("secret@h", "…"),
            ("secret@h/://x", "…"),
            ("unix:///s?pass=secret&user=a@b&db=x", "unix://…"),
            ("unix:///s?password=secret", "unix://…"),
            ("redis://u:sec?secret@h:port", "redis://…"),
            ("redis://:x@secret#x@h/", "redis://…"),
        ] {
            let error = parse(url).err().expect(url);
            let said = format!("{error} {error:?}");
            assert!(said.contains("cannot be used"), "{said}");
            assert!(said.contains(shown) && !said.contains("secret"), "{said}");
            assert!(!super::shown(url).contains("secret"), "{url}");
        }
    }

    #[test]
    fn of_a_good_url_only_the_address_is_shown() {
        for (url, address) in [
            ("redis://u:secret@host/3", "host:6379"),
            ("redis://:s%3Fecret@127.0.0.1:1/", "127.0.0.1:1"),
            ("unix:///s?pass=secret&user=a@b&db=1", "/s"),
        ] {
            assert_eq!(shown(url), address);
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn tls_urls_without_the_feature_name_the_feature() {
        let error = parse("rediss://127.0.0.1").err().expect("it needs TLS");
        assert!(error.to_string().contains("feature `tls`"), "{error}");
    }
}
