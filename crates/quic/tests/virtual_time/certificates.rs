//! Certificates: the calls that succeed, and the errors of the others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use punctual_quic::pki_types::{CertificateDer, PrivatePkcs8KeyDer, UnixTime};
use punctual_quic::tls::TlsFailure;
use punctual_quic::{
    CertificateHash, ClientTls, Event, Identity, Protocol, QuicCloseReason, Renewal, ServerTls,
    Trust,
};
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

use crate::duo::{CLIENT, Duo, SERVER};

const DATAGRAMS: &[Protocol] = &[Protocol::Datagrams];

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("it signs")
}

fn root(authority: &Authority) -> CertificateDer<'static> {
    authority.der().clone()
}

/// An identity that `authority` has issued for `name`.
fn issued(
    authority: &Authority,
    name: &str,
    change: impl FnOnce(&mut CertificateParams),
) -> Identity {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, authority).expect("it signs");
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    Identity::new(vec![certificate.into()], key.into())
}

fn server(identity: Identity) -> ServerTls {
    ServerTls::new(identity, DATAGRAMS)
}

fn trusting(authority: &Authority) -> ClientTls {
    ClientTls::new(Trust::Authorities(vec![root(authority)]), DATAGRAMS)
}

/// The failure of a call to `name`, as the client sees it.
fn failure(client: &ClientTls, server: &ServerTls, name: &str) -> TlsFailure {
    let duo = Duo::called(client, server, name);
    match duo.closed(CLIENT) {
        Some(QuicCloseReason::Tls(failure)) => failure.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_certificate_of_a_trusted_authority_for_the_name_is_accepted() {
    let authority = authority("ours");
    let server = server(issued(&authority, "studio.example", |_| {}));
    let duo = Duo::called(&trusting(&authority), &server, "studio.example");
    let established =
        |end: usize| matches!(duo.events[end][0], Event::Established(_, Protocol::Datagrams));
    assert!(established(CLIENT) && established(SERVER), "{:?}", duo.events);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let authority = authority("ours");
    let server = server(issued(&authority, "studio.example", |_| {}));
    let failure = failure(&trusting(&authority), &server, "other.example");
    assert!(matches!(failure, TlsFailure::WrongName(_)), "{failure:?}");
    assert!(failure.to_string().contains("other.example"), "{failure}");
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused() {
    let server = server(issued(&authority("theirs"), "studio.example", |_| {}));
    let failure = failure(&trusting(&authority("ours")), &server, "studio.example");
    assert_eq!(failure, TlsFailure::UnknownIssuer);
}

#[test]
fn a_certificate_that_has_expired_is_refused() {
    let authority = authority("ours");
    let expired = issued(&authority, "studio.example", |params| {
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    });
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_767_225_600));
    let told = expired.check_dates(now).unwrap_err().to_string();
    assert!(told.contains("expired 1826 days ago"), "{told}");
    let failure = failure(&trusting(&authority), &server(expired), "studio.example");
    assert!(matches!(failure, TlsFailure::Expired(_)), "{failure:?}");
    assert!(issued(&authority, "studio.example", |_| {}).check_dates(now).is_ok());
}

#[test]
fn a_renewed_certificate_is_shown_and_a_broken_one_is_not() {
    let authority = authority("ours");
    let hash = |identity: &Identity| identity.hash().expect("there is a certificate");
    let [first, second] = [(); 2].map(|()| issued(&authority, "studio.example", |_| {}));
    let (old, new) = (hash(&first), hash(&second));
    // A certificate with the key of another one, as while two files are replaced.
    let mixed = {
        let params = CertificateParams::new(vec!["studio.example".to_owned()]).expect("a name");
        let [key, other] = [(); 2].map(|()| KeyPair::generate().expect("a key"));
        let certificate = params.signed_by(&key, &authority).expect("it signs");
        let other = PrivatePkcs8KeyDer::from(other.serialize_der());
        Identity::new(vec![certificate.into()], other.into())
    };
    let handshakes = AtomicUsize::new(0);
    let ask = move || match handshakes.fetch_add(1, Ordering::Relaxed) {
        1 => Some(Ok(mixed.clone())),
        2 => Some(Ok(second.clone())),
        _ => None,
    };
    let server = server(first).with_renewal(Renewal::new(ask));
    for shown in [old, old, new, new] {
        let client = ClientTls::new(Trust::Pinned(shown), DATAGRAMS);
        let duo = Duo::called(&client, &server, "studio.example");
        duo.id(CLIENT);
    }
}

#[test]
fn the_certificate_of_an_authority_itself_is_refused_with_a_remedy() {
    let authority = authority("ours");
    let server = server(issued(&authority, "studio.example", |params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }));
    let failure = failure(&trusting(&authority), &server, "studio.example");
    assert_eq!(failure, TlsFailure::IsAuthority);
    assert!(failure.to_string().contains("CA:FALSE"), "{failure}");
}

#[test]
fn a_pinned_certificate_is_accepted_whatever_its_name() {
    let identity = Identity::self_signed(&["elsewhere.example"]).expect("a name");
    let hash = identity.hash().expect("there is a certificate");
    let client = ClientTls::new(Trust::Pinned(hash), DATAGRAMS);
    let duo = Duo::called(&client, &server(identity), "studio.example");
    duo.id(CLIENT);
}

#[test]
fn another_certificate_than_the_pinned_one_is_refused() {
    let identity = Identity::self_signed(&["studio.example"]).expect("a name");
    let client = ClientTls::new(Trust::Pinned(CertificateHash([7; 32])), DATAGRAMS);
    let failure = failure(&client, &server(identity), "studio.example");
    assert_eq!(failure, TlsFailure::NotPinned);
}

#[test]
fn an_insecure_client_accepts_any_certificate() {
    let identity = Identity::self_signed(&["elsewhere.example"]).expect("a name");
    let client = ClientTls::new(Trust::Insecure, DATAGRAMS);
    Duo::called(&client, &server(identity), "192.0.2.2").id(CLIENT);
}

#[test]
fn a_server_may_require_client_certificates() {
    let (servers, clients) = (authority("of servers"), authority("of clients"));
    let server = server(issued(&servers, "studio.example", |_| {}))
        .require_client_certificates(vec![root(&clients)]);
    let camera = issued(&clients, "camera.example", |_| {});
    let client = trusting(&servers).with_identity(camera);
    Duo::called(&client, &server, "studio.example").id(SERVER);

    let stranger = issued(&authority("strange"), "stranger.example", |_| {});
    let client = trusting(&servers).with_identity(stranger);
    let refused = failure(&client, &server, "studio.example");
    assert!(matches!(refused, TlsFailure::Refused(_)), "{refused:?}");

    let missing = failure(&trusting(&servers), &server, "studio.example");
    assert_eq!(missing, TlsFailure::CertificateRequired);
}

#[test]
fn ends_without_a_common_protocol_say_so_over_tls() {
    let authority = authority("ours");
    let server = server(issued(&authority, "studio.example", |_| {}));
    let roots = Trust::Authorities(vec![root(&authority)]);
    let client = ClientTls::new(roots, &[Protocol::Srt]);
    let failure = failure(&client, &server, "studio.example");
    assert_eq!(failure, TlsFailure::NoCommonProtocol);
}
