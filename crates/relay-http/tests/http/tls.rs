//! HTTPS.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use punctual_relay_http::{Certificate, Limits, Settings};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::client::Service;
use crate::stand_in::Open;

/// Writes a new certificate for `localhost` to the folder.
fn renew(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    fs::write(folder.join("chain.pem"), made.cert.pem()).unwrap();
    made.cert.der().clone()
}

/// The status of `/livez` for a client that trusts this certificate alone.
async fn livez(service: &Service, trusted: &CertificateDer<'static>) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(service.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    let mut stream = connected.map_err(|error| error.to_string())?;
    let request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.map_err(|error| error.to_string())?;
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).await;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let first = renew(folder.path());
    let files = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    let certificate = Certificate::from_files(files.0.clone(), files.1).unwrap();
    let (access, settings) = (Arc::new(Open), Settings::default());
    let service = Service::start(access, settings, Limits::default(), Some(certificate)).await;
    assert_eq!(livez(&service, &first).await.unwrap(), "HTTP/1.1 200 OK");

    let second = renew(folder.path());
    assert_eq!(livez(&service, &second).await.unwrap(), "HTTP/1.1 200 OK");
    assert!(livez(&service, &first).await.is_err(), "the old one is not shown any more");

    fs::write(&files.0, "no certificate").unwrap();
    assert_eq!(livez(&service, &second).await.unwrap(), "HTTP/1.1 200 OK");

    // A client without TLS harms nobody.
    let plain = service.exchange(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    assert_eq!(plain.status, 0);
    assert_eq!(livez(&service, &second).await.unwrap(), "HTTP/1.1 200 OK");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = (folder.path().join("chain.pem"), folder.path().join("key.pem"));
    let error = |chain, key| match Certificate::from_files(chain, key) {
        Ok(_) => panic!("the files are not right"),
        Err(error) => error.to_string(),
    };
    assert!(error(chain.clone(), key.clone()).contains("chain.pem"));
    renew(folder.path());
    fs::write(&key, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    assert!(error(chain, key).contains("chain.pem"), "the key is another's");
}
