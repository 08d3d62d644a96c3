//! A callout over TLS, by the certificates of authorities that this system has.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use punctual_relay_access::{AccessConfig, CalloutConfig, CalloutFormat, Refusal};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::server::{Reply, question, write};
use crate::{access, decide, refused};

/// The variable with the port of the server, for the test that runs in another process.
const PORT: &str = "RELAY_ACCESS_TEST_PORT";

/// The certificates of this system are read from the environment, which belongs to the whole
/// process: so the relay's side runs in another one.
#[tokio::test]
async fn a_server_is_trusted_if_this_system_knows_its_certificate() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                while question(&mut stream).await.is_some() {
                    write(&mut stream, &Reply::status(200)).await;
                }
            });
        }
    });
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), cert.pem()).expect("the file is written");
    let other = generate_simple_self_signed(vec!["other".to_owned()]).expect("a certificate");
    let stranger = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(stranger.path(), other.cert.pem()).expect("the file is written");
    for (roots, test) in [(&file, "asks_and_is_admitted"), (&stranger, "asks_and_is_refused")] {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--ignored", "--exact", &format!("https::{test}")]);
        command.env("SSL_CERT_FILE", roots.path()).env_remove("SSL_CERT_DIR");
        command.env(PORT, port.to_string());
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.expect("no panic").expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}

async fn ask() -> punctual_relay_access::Decision {
    let port = std::env::var(PORT).expect("another test sets it");
    let url = format!("https://localhost:{port}/auth").parse().expect("a URL");
    let timeout = Duration::from_secs(30);
    let callout = Some(CalloutConfig { url, format: CalloutFormat::MediaMtx, timeout });
    decide(&access(AccessConfig { callout, ..AccessConfig::default() }), "read:a").await
}

#[tokio::test]
#[ignore = "a part of another test"]
async fn asks_and_is_admitted() {
    let decision = ask().await;
    assert!(decision.is_ok(), "{decision:?}");
}

#[tokio::test]
#[ignore = "a part of another test"]
async fn asks_and_is_refused() {
    let refused = refused(ask().await);
    assert_eq!(refused.reason(), Refusal::CalloutFailed);
    assert!(refused.text().contains("certificate"), "{refused}");
}
