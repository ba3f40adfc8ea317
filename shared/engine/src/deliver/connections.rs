//! Over which connections endpoints are called: HTTP/2 where they speak it, HTTP/1.1 otherwise, several calls to a connection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reqwest::{Certificate, Version};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tidegate_domain::http_call::HttpCall;
use tidegate_domain::secret::SecretValues;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::http::{Credentials, HttpTarget, endpoints};
use super::request::Request;
use super::{Answered, Sent};
use crate::reach::PrivateTargets;

/// An endpoint behind TLS on loopback, for as long as the test lasts.
struct Endpoint {
    url: String,
    certificate: Vec<u8>,
    connections: Arc<AtomicUsize>,
    /// The version of each call.
    calls: Arc<Mutex<Vec<Version>>>,
}

impl Endpoint {
    /// Speaks these protocols, by their names in ALPN; none: it does not know ALPN.
    async fn speaking(protocols: &[&str]) -> Self {
        let (certificate, key) = self_signed();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
        let config = config.unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![certificate.clone().into()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let (acceptor, listener) =
            (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
        let endpoint = Self { url, certificate, connections: Arc::default(), calls: Arc::default() };
        let (connections, calls) = (Arc::clone(&endpoint.connections), Arc::clone(&endpoint.calls));
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let (acceptor, calls) = (acceptor.clone(), Arc::clone(&calls));
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let stream = acceptor.accept(tcp).await.unwrap();
                    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let service = service_fn(move |request: hyper::Request<Incoming>| {
                        let calls = Arc::clone(&calls);
                        async move {
                            calls.lock().unwrap().push(request.version());
                            request.into_body().collect().await.unwrap();
                            hyper::http::Result::Ok(hyper::Response::new(Empty::<Bytes>::new()))
                        }
                    });
                    let io = TokioIo::new(stream);
                    // Both end in an error when the test is over.
                    if is_h2 {
                        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                        drop(server.serve_connection(io, service).await);
                    } else {
                        drop(hyper::server::conn::http1::Builder::new().serve_connection(io, service).await);
                    }
                });
            }
        });
        endpoint
    }

    /// The way to it, on which its certificate is trusted.
    fn way(&self) -> HttpTarget {
        let trusted = Certificate::from_der(&self.certificate).unwrap();
        let way = HttpTarget::new(PrivateTargets::All);
        way.made_of(endpoints(PrivateTargets::All).tls_certs_only([trusted]))
    }

    async fn call(&self, way: &HttpTarget) -> Sent {
        let (call, run) = (HttpCall::default(), "nightly.3.1790000000".parse().unwrap());
        let request = Request::of_completion(&run, "{}".to_owned(), &call, &SecretValues::new()).unwrap();
        let answered: Answered =
            way.post(&self.url, ("id", None), (request, &call), &Credentials::default(), 0).await;
        answered.sent
    }

    /// What 5 calls one after the other and 20 side by side came by: the version, and over how many connections.
    async fn called(&self) -> (Version, usize) {
        let way = self.way();
        for _ in 0..5 {
            assert_eq!(self.call(&way).await, Sent::Done);
        }
        let one_by_one = self.connections.load(Ordering::Relaxed);
        assert_eq!(one_by_one, 1, "calls one after the other share a connection, whatever its version");
        let together = join_all((0..20).map(|_| self.call(&way))).await;
        assert!(together.iter().all(|sent| *sent == Sent::Done), "{together:?}");
        let calls = self.calls.lock().unwrap().clone();
        assert_eq!(calls.len(), 25);
        assert!(calls.iter().all(|version| *version == calls[0]), "{calls:?}");
        (calls[0], self.connections.load(Ordering::Relaxed))
    }
}

#[tokio::test]
async fn an_endpoint_that_speaks_http_2_is_called_so_over_one_connection() {
    let both = Endpoint::speaking(&["h2", "http/1.1"]).await;
    assert_eq!(both.called().await, (Version::HTTP_2, 1));
}

#[tokio::test]
async fn an_endpoint_that_does_not_speak_http_2_is_called_by_http_1_1() {
    for protocols in [&["http/1.1"] as &[_], &[]] {
        // Of calls side by side, some wait for the connection that is there, and some make others.
        let (version, _) = Endpoint::speaking(protocols).await.called().await;
        assert_eq!(version, Version::HTTP_11);
    }
}

/// A certificate of `localhost` that its own key signed, and the key.
fn self_signed() -> (Vec<u8>, Vec<u8>) {
    const SEQUENCE: u8 = 0x30;
    const WITH_SHA_256: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    const P_256: &[u8] =
        &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1, 0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    const COMMON_NAME: &[u8] = &[0x06, 3, 0x55, 4, 3, 0x0c, 1, b'x'];
    const ALTERNATIVE_NAME: &[u8] = &[0x06, 3, 0x55, 0x1d, 0x11];
    let (random, with) = (SystemRandom::new(), &ECDSA_P256_SHA256_ASN1_SIGNING);
    let key = EcdsaKeyPair::generate_pkcs8(with, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(with, key.as_ref(), &random).unwrap();
    let bits = |bytes: &[u8]| der(0x03, &[&[0], bytes]);
    let algorithm = der(SEQUENCE, &[WITH_SHA_256]);
    let name = der(SEQUENCE, &[&der(0x31, &[&der(SEQUENCE, &[COMMON_NAME])])]);
    let time = |text: &str| der(0x18, &[text.as_bytes()]);
    let validity = der(SEQUENCE, &[&time("20200101000000Z"), &time("21991231235959Z")]);
    let public = der(SEQUENCE, &[&der(SEQUENCE, &[P_256]), &bits(pair.public_key().as_ref())]);
    let localhost = der(SEQUENCE, &[&der(0x82, &[b"localhost"])]);
    let extension = der(SEQUENCE, &[ALTERNATIVE_NAME, &der(0x04, &[&localhost])]);
    let extensions = der(0xa3, &[&der(SEQUENCE, &[&extension])]);
    let (version, number): (&[u8], &[u8]) = (&[0xa0, 3, 2, 1, 2], &[2, 1, 1]);
    let signed = der(SEQUENCE, &[version, number, &algorithm, &name, &validity, &name, &public, &extensions]);
    let signature = pair.sign(&random, &signed).unwrap();
    (der(SEQUENCE, &[&signed, &algorithm, &bits(signature.as_ref())]), key.as_ref().to_vec())
}

/// A value of DER: its tag, its length, its parts one after the other.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    let length: &[u8] = if content.len() < 128 { &length[1..] } else { &[0x82, length[0], length[1]] };
    // Lengths between 128 and 255 must take two bytes.
    let short = [0x81, length.last().copied().unwrap()];
    let length = if (128..256).contains(&content.len()) { &short } else { length };
    [&[tag], length, &content].concat()
}
