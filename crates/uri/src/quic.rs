//! The keys of QUIC in `srt+quic://` URIs: certificates, trust and the transport.

use std::path::{Path, PathBuf};

use punctual::AppliesTo::{self, Both, Caller, Listener};
use punctual::quic::pki_types::CertificateDer;
use punctual::quic::{
    CertificateHash, ClientTls, CongestionControl, Identity, PemError, Protocol, QuicConfig,
    ServerTls, TransportConfig, Trust, certificates_from_pem, system_authorities,
};
use zeroize::Zeroizing;

use crate::certificate_files::CertificateFiles;
use crate::error::{Problem, ValueError};
use crate::key::{KeyEffect, UriKey, number, switch};
use crate::place::is_wildcard;

type Done = Result<(), ValueError>;

/// The values of the keys of QUIC, before the role of this end is known.
#[derive(Default)]
pub(crate) struct QuicKeys {
    /// The file of this end's certificates, and its contents.
    chain: Option<(PathBuf, Vec<u8>)>,
    /// The file of its private key, and its contents.
    key: Option<(PathBuf, Zeroizing<Vec<u8>>)>,
    authorities: Vec<CertificateDer<'static>>,
    hash: Option<CertificateHash>,
    insecure: bool,
    client_authorities: Vec<CertificateDer<'static>>,
    server_name: Option<String>,
    transport: TransportConfig,
}

/// The keys of QUIC.
pub(crate) const QUIC_KEYS: &[UriKey<QuicKeys>] = &[
    key(
        "cert",
        "text",
        Both,
        "path; default at a listener: a self-signed certificate, whose hash is logged",
        "PEM file of this end's certificate, then those of its issuers",
        |keys, path| {
            keys.chain = Some((path.into(), read(path)?));
            Ok(())
        },
    ),
    key(
        "key",
        "text",
        Both,
        "path; default: the file of cert",
        "PEM file of the certificate's private key",
        |keys, path| {
            keys.key = Some((path.into(), Zeroizing::new(read(path)?)));
            Ok(())
        },
    ),
    key(
        "ca",
        "text",
        Caller,
        "path; default: the system's authorities",
        "PEM file of the authorities that may issue the listener's certificate",
        |keys, path| {
            keys.authorities = certificates(path)?;
            Ok(())
        },
    ),
    key(
        "certhash",
        "text",
        Caller,
        "64 hexadecimal digits; default none",
        "SHA-256 of the one certificate that the listener may have; names and dates do not count",
        certificate_hash,
    ),
    key(
        "insecure",
        "switch",
        Caller,
        "switch; default off",
        "accept any certificate: an attacker on the path can read and change the stream",
        |keys, value| {
            // A variable of a script that is not set asks for nothing.
            if value.is_empty() {
                return Err(ValueError("it is empty; write insecure=1".to_owned()));
            }
            keys.insecure = switch(value)?;
            Ok(())
        },
    ),
    key(
        "servername",
        "text",
        Caller,
        "name; default: the host",
        "the name that the listener's certificate has to be for",
        |keys, name| {
            keys.server_name = Some(name.to_owned());
            Ok(())
        },
    ),
    key(
        "clientca",
        "text",
        Listener,
        "path; default none",
        "PEM file of authorities: only callers with a certificate of theirs are accepted",
        |keys, path| {
            keys.client_authorities = certificates(path)?;
            Ok(())
        },
    ),
    key(
        "quiccc",
        "text",
        Both,
        "none, cubic, newreno or bbr; default none",
        "congestion control of QUIC, below SRT's own limits of the rate",
        congestion,
    ),
    key(
        "quicmtu",
        "bytes",
        Both,
        "1200 to 1452 bytes; default 1400",
        "largest UDP payload before larger or smaller ones have been found to fit the path",
        |keys, value| {
            let mtu = number(value, 1_200, 1_452)?;
            keys.transport.initial_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            Ok(())
        },
    ),
];

const fn key(
    name: &'static str,
    unit: &'static str,
    applies_to: AppliesTo,
    value: &'static str,
    about: &'static str,
    set: fn(&mut QuicKeys, &str) -> Done,
) -> UriKey<QuicKeys> {
    let key = UriKey::new(name, &[], value, about, KeyEffect::Set(set));
    UriKey { unit, applies_to: Some(applies_to), ..key }
}

impl QuicKeys {
    /// The options of a listener at `host`, and warnings.
    pub(crate) fn listener(
        self,
        host: &str,
        protocols: &[Protocol],
    ) -> Result<(QuicConfig, Vec<String>), Problem> {
        if self.trusts() || self.server_name.is_some() {
            return Err(Problem::Mode(
                "`ca`, `certhash`, `insecure` and `servername` belong to a caller; a listener \
                 checks its callers by `clientca`",
            ));
        }
        let identity = match self.identity()? {
            Some(identity) => identity,
            None => self_signed(host)?,
        };
        let (log, transport) = (logs_keys(), self.transport);
        let mut server = ServerTls::new(identity, protocols)
            .require_client_certificates(self.client_authorities)
            .with_key_log(log.is_some());
        if let Some((chain, _)) = self.chain {
            let key = self.key.map(|(path, _)| path);
            server = server.with_renewal(CertificateFiles { chain, key }.renewal());
        }
        let server = Some(server);
        let config = QuicConfig { server, transport, ..QuicConfig::default() };
        Ok((config, log.into_iter().collect()))
    }

    /// The options of a caller of `host`, and warnings.
    pub(crate) fn caller(
        self,
        host: &str,
        protocols: &[Protocol],
    ) -> Result<(QuicConfig, Vec<String>), Problem> {
        if !self.client_authorities.is_empty() {
            return Err(Problem::Mode(
                "`clientca` belongs to a listener; a caller checks the listener by `ca` or \
                 `certhash`",
            ));
        }
        let (identity, transport) = (self.identity()?, self.transport);
        let log = logs_keys();
        let mut warnings: Vec<String> = log.iter().cloned().collect();
        if self.insecure {
            warnings.push(INSECURE.to_owned());
        }
        let trust = self.trust()?;
        let mut client = ClientTls::new(trust, protocols).with_key_log(log.is_some());
        if let Some(identity) = identity {
            client = client.with_identity(identity);
        }
        let server_name = Some(self.server_name.unwrap_or_else(|| host.to_owned()));
        let (client, transport) = (Some(client), transport);
        Ok((QuicConfig { client, server_name, transport, server: None }, warnings))
    }

    fn trusts(&self) -> bool {
        !self.authorities.is_empty() || self.hash.is_some() || self.insecure
    }

    /// The certificates that a caller trusts.
    fn trust(&self) -> Result<Trust, Problem> {
        match (self.authorities.is_empty(), self.hash, self.insecure) {
            (true, Some(hash), false) => Ok(Trust::Pinned(hash)),
            (true, None, true) => Ok(Trust::Insecure),
            (false, None, false) => Ok(Trust::Authorities(self.authorities.clone())),
            (true, None, false) => match system_authorities() {
                Ok(authorities) => Ok(Trust::Authorities(authorities)),
                Err(error) => Err(Problem::Certificate {
                    keys: "ca",
                    fault: format!(
                        "the system's authorities cannot be read ({error}); set `ca` or `certhash`"
                    ),
                }),
            },
            _ => Err(Problem::Mode("only one of `ca`, `certhash` and `insecure` may be set")),
        }
    }

    /// The certificate and the key of this end, if it has them.
    fn identity(&self) -> Result<Option<Identity>, Problem> {
        let (chain, key) = match (&self.chain, &self.key) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(Problem::Mode("`key` needs `cert`")),
            (Some((_, chain)), None) => (chain, chain),
            (Some((_, chain)), Some((_, key))) => (chain, &**key),
        };
        let error = |error| match (error, &self.key) {
            (PemError::NoKey, None) => {
                Problem::Mode("the file of `cert` has no private key: set `key` to its file")
            }
            (error @ PemError::NoCertificate, _) => {
                Problem::Certificate { keys: "cert", fault: error.to_string() }
            }
            (error, _) => Problem::Certificate { keys: "cert, key", fault: error.to_string() },
        };
        Identity::from_pem(chain, key).map(Some).map_err(error)
    }
}

const INSECURE: &str = "`insecure=1`: the listener's certificate is not verified, so that anybody \
                        on the path can read and change the stream; `certhash` verifies a \
                        self-signed certificate";

/// The warning that secrets are written to a file, if the environment asks for it.
fn logs_keys() -> Option<String> {
    let path = std::env::var_os("SSLKEYLOGFILE")?;
    Some(format!(
        "SSLKEYLOGFILE is set: who can read {} can decrypt the QUIC connections of this program",
        Path::new(&path).display()
    ))
}

/// A self-signed certificate for `localhost` and the host.
fn self_signed(host: &str) -> Result<Identity, Problem> {
    let is_name = !host.is_empty() && !is_wildcard(host);
    let names: Vec<&str> = std::iter::once("localhost").chain(is_name.then_some(host)).collect();
    Identity::self_signed(&names)
        .map_err(|error| Problem::Certificate { keys: "cert", fault: error.to_string() })
}

fn read(path: &str) -> Result<Vec<u8>, ValueError> {
    std::fs::read(path).map_err(|error| {
        let why = error.to_string();
        ValueError(format!("it cannot be read: {}", punctual_units::without_os_error(&why)))
    })
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, ValueError> {
    certificates_from_pem(&read(path)?).map_err(|error| ValueError(error.to_string()))
}

fn certificate_hash(keys: &mut QuicKeys, value: &str) -> Done {
    let hash = CertificateHash::parse(value);
    keys.hash = Some(hash.ok_or_else(|| {
        ValueError("it must be a SHA-256 of 64 hexadecimal digits, colons allowed".to_owned())
    })?);
    Ok(())
}

fn congestion(keys: &mut QuicKeys, value: &str) -> Done {
    keys.transport.congestion = match value.to_lowercase().as_str() {
        "none" => CongestionControl::None,
        "cubic" => CongestionControl::Cubic,
        "newreno" => CongestionControl::NewReno,
        "bbr" => CongestionControl::Bbr,
        _ => return Err(ValueError("it must be none, cubic, newreno or bbr".to_owned())),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, Uri};

    const CERT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificate.pem");
    const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/key.pem");
    const HASH: &str = "certhash=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn parse(rest: &str) -> Result<crate::SrtTarget, String> {
        let uri: Uri = format!("srt+quic://{rest}").parse().map_err(|error| format!("{error}"))?;
        match uri.target {
            Target::Srt(target) => Ok(*target),
            other => panic!("{other:?}"),
        }
    }

    fn config(rest: &str) -> std::sync::Arc<QuicConfig> {
        match parse(rest).unwrap().port_config.carriage {
            punctual::Carriage::Quic(config) => config,
            other => panic!("{other:?}"),
        }
    }

    fn error(rest: &str) -> String {
        parse(rest).unwrap_err()
    }

    #[test]
    fn keys_of_srt_and_of_quic_are_read_from_one_query() {
        let target = parse(&format!("host:443?latency=250ms&{HASH}&streamid=a")).unwrap();
        assert_eq!(target.config.receive_latency().as_millis(), 250);
        assert_eq!(target.config.stream_id(), "a");
        let config = config(&format!("host:443?{HASH}&quiccc=BBR&quicmtu=1280"));
        assert_eq!(config.transport.congestion, CongestionControl::Bbr);
        assert_eq!(config.transport.initial_mtu, 1_280);
        assert_eq!(config.server_name.as_deref(), Some("host"));
        let named = format!("10.0.0.7:443?{HASH}&servername=studio.example");
        assert_eq!(self::config(&named).server_name.as_deref(), Some("studio.example"));
    }

    #[test]
    fn a_caller_has_one_way_to_trust_and_a_listener_has_none() {
        assert!(config(&format!("host:443?{HASH}")).client.is_some());
        assert!(config(&format!("host:443?ca={CERT}")).client.is_some());
        let insecure = parse("host:443?insecure=1").unwrap();
        assert!(insecure.warnings[0].contains("not verified"), "{:?}", insecure.warnings);
        assert!(error(&format!("host:443?insecure=1&{HASH}")).contains("only one of"));
        assert!(error(&format!(":443?{HASH}")).contains("`clientca`"));
        assert!(error(&format!("host:443?{HASH}&clientca={CERT}")).contains("a listener"));
    }

    #[test]
    fn a_listener_without_a_certificate_makes_one() {
        let hash = |rest: &str| config(rest).server.as_ref().unwrap().identity().hash().unwrap();
        assert_ne!(hash(":443"), hash(":443"), "each has a key of its own");
        let of_file = format!(":443?cert={CERT}&key={KEY}&clientca={CERT}");
        let certificate = certificates(CERT).unwrap();
        assert_eq!(hash(&of_file), CertificateHash::of(&certificate[0]));
    }

    #[test]
    fn errors_name_the_wrong_certificate_or_key() {
        assert!(error(&format!(":443?cert={CERT}")).contains("set `key` to its file"));
        assert!(error(&format!(":443?key={KEY}")).contains("`key` needs `cert`"));
        assert!(
            error(&format!(":443?cert={KEY}&key={KEY}")).contains("cert: the file has no certif")
        );
        assert!(error(&format!(":443?cert={CERT}&key={CERT}")).contains("no private key"));
        assert!(error("host:443?ca=/nonexistent").contains("cannot be read"));
        assert!(error(&format!("host:443?ca={KEY}")).contains("no certificate"));
        assert!(error("host:443?certhash=12").contains("64 hexadecimal digits"));
        assert!(error(&format!("host:443?{HASH}&quiccc=vegas")).contains("cubic, newreno or bbr"));
        assert!(error(&format!("host:443?{HASH}&quicmtu=1199")).contains("1200 to 1452"));
    }

    #[test]
    fn errors_name_keys_that_belong_elsewhere() {
        assert!(error("host:443?mode=rendezvous").contains("only for `srt://`"));
        assert!(error(&format!("host:443?{}", HASH.replace("cert", "cret"))).contains("certhash"));
        let plain = format!("srt://host:443?{HASH}").parse::<Uri>().unwrap_err().to_string();
        assert!(plain.contains("a key of `srt+quic://`, not of `srt://`"), "{plain}");
    }
}
