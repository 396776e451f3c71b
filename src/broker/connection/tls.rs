use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::broker::connection::dial::Stream;
use crate::broker::connection::invalid::RedisConfigError;
use crate::broker::connection::problem::{ConnectProblem, Failure};

/// The PEM files that a secure connection is made with.
#[derive(Debug, Clone, Default)]
pub(super) struct TlsFiles {
    /// Of the authorities that are trusted, instead of the system's.
    pub(super) authority: Option<PathBuf>,
    /// Our certificate and its key.
    pub(super) identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    pub(super) fn are_given(&self) -> bool {
        self.authority.is_some() || self.identity.is_some()
    }
}

/// Makes connections to one host secure.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// Reads the files, and the system's certificates where no authority is given.
    pub(super) fn new(host: &str, files: &TlsFiles) -> Result<Self, RedisConfigError> {
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| RedisConfigError::Tls(Box::new(error)))?;
        // What the program has chosen, or else ours.
        let provider = CryptoProvider::get_default().cloned();
        let provider = provider.unwrap_or_else(|| Arc::new(ring::default_provider()));
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| RedisConfigError::Tls(Box::new(error)))?
            .with_root_certificates(authorities(files.authority.as_deref())?);
        let config = match &files.identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => config
                .with_client_auth_cert(
                    certificates(certificate)?,
                    PrivateKeyDer::from_pem_file(key).map_err(|error| bad_file(key, error))?,
                )
                .map_err(|error| bad_file(key, error))?,
        };
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self { connector, name })
    }

    /// Fails as a TLS problem, whatever happens: no failure here may lead anybody to plain text.
    pub(super) async fn secure(
        &self,
        stream: TcpStream,
        until: Instant,
    ) -> Result<Box<dyn Stream>, Failure> {
        let secured = self.connector.connect(self.name.clone(), stream);
        let secured = timeout_at(until, secured).await;
        match secured.unwrap_or_else(|elapsed| Err(elapsed.into())) {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(Failure::new(ConnectProblem::Tls, error)),
        }
    }
}

fn authorities(file: Option<&Path>) -> Result<RootCertStore, RedisConfigError> {
    let mut store = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file)? {
                store
                    .add(certificate)
                    .map_err(|error| bad_file(file, error))?;
            }
        }
        None => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if store.is_empty() {
                return Err(RedisConfigError::NoAuthority);
            }
        }
    }
    Ok(store)
}

/// All of a file, of which there must be one.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, RedisConfigError> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| bad_file(file, error))?;
    if all.is_empty() {
        let nothing = io::Error::new(io::ErrorKind::InvalidData, "it holds no certificate");
        return Err(bad_file(file, nothing));
    }
    Ok(all)
}

fn bad_file(
    path: &Path,
    source: impl std::error::Error + Send + Sync + 'static,
) -> RedisConfigError {
    RedisConfigError::TlsFile {
        path: path.to_owned(),
        source: Box::new(source),
    }
}
