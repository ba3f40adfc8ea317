//! Paths as they arrive: percent-encoded bytes, which must be text once they are decoded.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::problem::{Kind, Problem};

/// Refuses a path that is no text, which no id can be. Without this, the router would answer in words of its own.
pub(crate) async fn must_be_text(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if is_text(path) {
        return next.run(request).await;
    }
    let detail =
        format!("the path {path} is no UTF-8 once its '%' are decoded; encode ids as UTF-8, as in %C3%A4");
    Problem::new(Kind::MalformedRequest, detail).into_response()
}

fn is_text(path: &str) -> bool {
    let mut parts = path.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(part.get(2..).unwrap_or_default().as_bytes());
            }
            // A lone '%' stands for itself.
            None => bytes.extend_from_slice(part.as_bytes()),
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_are_no_utf_8_are_no_text() {
        for text in ["/v1/jobs/nightly", "/v1/jobs/%C3%A4", "/v1/%2F%00", "/%", "/%z", "/100%25", "/%c"] {
            assert!(is_text(text), "{text}");
        }
        for bytes in ["/v1/jobs/%ff", "/%c3%28", "/%C3", "/a%ed%a0%80"] {
            assert!(!is_text(bytes), "{bytes}");
        }
    }
}
