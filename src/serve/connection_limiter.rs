//! Limits the number of connections, and closes idle ones: a client that opens a thousand must not exhaust the file descriptors
//! that the ledger needs.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// How long a connection may stay idle in both directions. Event streams are written to more often.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A listener that accepts a limited number of connections; further ones wait in the backlog.
pub struct ConnectionLimiter {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    idle_timeout: Duration,
}

impl ConnectionLimiter {
    pub fn new(listener: TcpListener, max: usize) -> Self {
        ConnectionLimiter { listener, permits: Arc::new(Semaphore::new(max)), idle_timeout: IDLE_TIMEOUT }
    }
}

impl Listener for ConnectionLimiter {
    type Io = TimedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TimedStream, SocketAddr) {
        loop {
            // The semaphore is never closed.
            let Ok(permit) = self.permits.clone().acquire_owned().await else { continue };
            let (stream, address) = Listener::accept(&mut self.listener).await;
            // Events are small and must not wait for more data; if this fails they are late, not lost.
            drop(stream.set_nodelay(true));
            let idle_timeout = self.idle_timeout;
            return (
                TimedStream { stream, idle_timeout, deadline: Box::pin(sleep(idle_timeout)), _permit: permit },
                address,
            );
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that times out when nothing was read or written for some time.
pub struct TimedStream {
    stream: TcpStream,
    idle_timeout: Duration,
    deadline: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl TimedStream {
    fn with_timeout<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match done {
            Poll::Ready(done) => {
                let deadline = Instant::now() + self.idle_timeout;
                self.deadline.as_mut().reset(deadline);
                Poll::Ready(done)
            }
            Poll::Pending if self.deadline.as_mut().poll(cx).is_ready() => {
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_read(cx, into);
        self.with_timeout(cx, done)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.with_timeout(cx, done)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use axum::Router;

    use super::*;

    #[test]
    fn silent_connections_are_let_in_up_to_a_number_and_end() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let idle_timeout = Duration::from_millis(300);
            let mut limiter = ConnectionLimiter { idle_timeout, ..ConnectionLimiter::new(listener, 2) };
            let _silent = [TcpStream::connect(address).unwrap(), TcpStream::connect(address).unwrap()];
            let (mut first, _) = limiter.accept().await;
            let (second, _) = limiter.accept().await;
            let _third = TcpStream::connect(address).unwrap();
            assert!(tokio::time::timeout(idle_timeout / 3, limiter.accept()).await.is_err(), "no place");
            let mut byte = [0; 1];
            let read = poll_fn(|cx| Pin::new(&mut first).poll_read(cx, &mut ReadBuf::new(&mut byte))).await;
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
            drop((first, second));
            assert!(tokio::time::timeout(IDLE_TIMEOUT, limiter.accept()).await.is_ok(), "a place is free again");
        });
    }

    #[test]
    fn whoever_asks_is_answered() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().route("/", axum::routing::get(async || "here"));
        runtime.spawn(axum::serve(ConnectionLimiter::new(listener, 1), routes).into_future());
        for _ in 0..3 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("here"), "{answer}");
        }
    }
}
