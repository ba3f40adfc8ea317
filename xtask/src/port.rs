//! Ports for servers of a recipe's own.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Result;

/// A port that was free a moment ago; the kernel does not hand it out again at once.
///
/// # Errors
/// When none is free.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
