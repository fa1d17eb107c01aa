//! Limits the number of connections: a client that opens a thousand must exhaust neither the file descriptors that the ledger
//! needs, nor the places of those who ask. Where no place is free, the oldest connection without an answer yet is closed: it is
//! the one that takes longest to say what it wants. An answer comes within a deadline that received bytes do not extend.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};
use tracing::warn;

use super::descriptors;
use bernstream_synopsis::clock::Reminder;

/// Number of connections that a server takes, and how long they last.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Name of what the server shows.
    pub of: &'static str,
    pub connections: usize,
    /// Eighths of the files that the process may open which may be connections. All servers together leave half of them to the
    /// ledger and the clients of brokers.
    pub eighths: usize,
    /// From the start of a connection to the first byte of its first answer.
    pub first_answer: Duration,
    /// From one written byte to the next. Event streams are written to more often.
    pub next_answer: Duration,
}

impl ConnectionLimits {
    /// These limits within the limit on open files.
    pub fn within_open_files(self) -> Self {
        let Some(files) = descriptors::open_file_limit() else {
            return self;
        };
        let connections = self.connections.min(files * self.eighths / 8).max(1);
        if connections < self.connections {
            warn!(
                "this process may open {files} files (`ulimit -n`): {} has {connections} connections at most instead of {}, so that \
                 the ledger and the brokers keep theirs",
                self.of, self.connections
            );
        }
        ConnectionLimits {
            connections,
            ..self
        }
    }
}

/// A listener that accepts a limited number of connections.
pub struct ConnectionLimiter {
    listener: TcpListener,
    limits: ConnectionLimits,
    permits: Arc<Semaphore>,
    /// Connections without an answer yet, the oldest first.
    unanswered: Vec<Weak<ConnectionPlace>>,
    reminder: Reminder,
}

/// A connection, as the listener sees it.
#[derive(Debug, Default)]
struct ConnectionPlace {
    is_answered: AtomicBool,
    is_evicted: AtomicBool,
    waker: AtomicWaker,
}

impl ConnectionPlace {
    /// Returns whether the connection is open and has no answer yet.
    fn is_waiting(&self) -> bool {
        !self.is_answered.load(Relaxed) && !self.is_evicted.load(Relaxed)
    }
}

impl ConnectionLimiter {
    pub fn new(listener: TcpListener, limits: ConnectionLimits) -> Self {
        let permits = Arc::new(Semaphore::new(limits.connections));
        ConnectionLimiter {
            listener,
            limits,
            permits,
            unanswered: Vec::new(),
            reminder: Reminder::default(),
        }
    }

    /// Closes the oldest connection without an answer, if there is one.
    fn evict_oldest(&mut self) {
        let Some(oldest) = self.unanswered.first().and_then(Weak::upgrade) else {
            return;
        };
        oldest.is_evicted.store(true, Relaxed);
        oldest.waker.wake();
        if self.reminder.is_due(Instant::now().into_std()) {
            let ConnectionLimits {
                of, connections, ..
            } = self.limits;
            warn!(
                "all {connections} connections of {of} are taken: those are closed that take longest to ask for something"
            );
        }
    }
}

impl Listener for ConnectionLimiter {
    type Io = TimedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TimedStream, SocketAddr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            // Events are small and must not wait for more data; if this fails they are late, not lost.
            drop(stream.set_nodelay(true));
            self.unanswered.retain(|place| {
                let place = place.upgrade();
                place.is_some_and(|place| place.is_waiting())
            });
            if self.permits.available_permits() == 0 {
                self.evict_oldest();
            }
            // Event streams are not closed for others: whoever comes then waits until one ends. The semaphore is never closed.
            let Ok(permit) = self.permits.clone().acquire_owned().await else {
                continue;
            };
            let place = Arc::new(ConnectionPlace::default());
            self.unanswered.push(Arc::downgrade(&place));
            let ConnectionLimits {
                first_answer,
                next_answer,
                ..
            } = self.limits;
            let stream = TimedStream {
                stream,
                place,
                deadline: Box::pin(sleep(first_answer)),
                next_answer,
                _permit: permit,
            };
            return (stream, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when nothing was written for some time, or when its place is needed.
pub struct TimedStream {
    stream: TcpStream,
    place: Arc<ConnectionPlace>,
    deadline: Pin<Box<Sleep>>,
    next_answer: Duration,
    _permit: OwnedSemaphorePermit,
}

impl TimedStream {
    /// # Errors
    ///
    /// If the connection must end.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.place.waker.register(cx.waker());
        if self.place.is_evicted.load(Relaxed) || self.deadline.as_mut().poll(cx).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Bytes that arrive do not extend the deadline: they may come one a second.
        self.poll_end(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for TimedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_end(cx)?;
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(_)) = written {
            self.place.is_answered.store(true, Relaxed);
            let deadline = Instant::now() + self.next_answer;
            self.deadline.as_mut().reset(deadline);
        }
        written
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
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use axum::Router;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A server whose answer to `/` comes at once, and to `/slow` after a second.
    fn serve(limits: ConnectionLimits) -> (tokio::runtime::Runtime, SocketAddr) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let slow = async || {
            sleep(SECOND).await;
            "late"
        };
        let routes = Router::new()
            .route("/", axum::routing::get(async || "here"))
            .route("/slow", axum::routing::get(slow));
        runtime.spawn(axum::serve(ConnectionLimiter::new(listener, limits), routes).into_future());
        (runtime, address)
    }

    fn begin(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(10 * SECOND)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    fn finish(mut stream: TcpStream) -> String {
        let mut answer = String::new();
        // A connection that was closed has no more to say.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn ask(address: SocketAddr, path: &str) -> TcpStream {
        begin(
            address,
            &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
        )
    }

    #[test]
    fn whoever_asks_is_answered_however_many_are_silent() {
        let (_runtime, address) = serve(ConnectionLimits {
            of: "a test",
            eighths: 8,
            connections: 4,
            first_answer: 600 * SECOND,
            next_answer: 600 * SECOND,
        });
        let silent: Vec<TcpStream> = (0..40)
            .map(|_| begin(address, "GET / HTTP/1.1\r\nHo"))
            .collect();
        for _ in 0..10 {
            assert!(finish(ask(address, "/")).ends_with("here"));
        }
        let mut silent = silent.into_iter();
        assert_eq!(finish(silent.next().unwrap()), "", "the oldest were closed");
        let newest = silent.next_back().unwrap();
        newest.set_read_timeout(Some(SECOND / 10)).unwrap();
        let still_open = (&newest).read(&mut [0; 1]).unwrap_err().kind();
        assert!(
            matches!(
                still_open,
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ),
            "{still_open}"
        );
    }

    #[test]
    fn bytes_that_trickle_in_do_not_extend_the_deadline_and_an_answer_does() {
        let (_runtime, address) = serve(ConnectionLimits {
            of: "a test",
            eighths: 8,
            connections: 4,
            first_answer: 3 * SECOND / 2,
            next_answer: SECOND / 2,
        });
        let started = std::time::Instant::now();
        let mut stream = begin(address, "GET / HTTP/1.1\r\n");
        let closed = loop {
            std::thread::sleep(SECOND / 10);
            if stream.write_all(b"a").is_err() || started.elapsed() > 5 * SECOND {
                break started.elapsed();
            }
        };
        assert!((SECOND..3 * SECOND).contains(&closed), "{closed:?}");
        assert!(
            finish(ask(address, "/slow")).ends_with("late"),
            "what is being computed is waited for"
        );
        let kept = begin(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let started = std::time::Instant::now();
        assert!(
            finish(kept).ends_with("here") && started.elapsed() < SECOND,
            "an idle connection ends"
        );
    }

    #[test]
    fn whoever_was_answered_keeps_the_place() {
        let (_runtime, address) = serve(ConnectionLimits {
            of: "a test",
            eighths: 8,
            connections: 1,
            first_answer: 600 * SECOND,
            next_answer: SECOND,
        });
        let mut answered = begin(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut first = [0; 4];
        answered.read_exact(&mut first).unwrap();
        let started = std::time::Instant::now();
        assert!(finish(ask(address, "/")).ends_with("here"));
        assert!(
            started.elapsed() > SECOND / 2,
            "the second waits until the first is idle for too long"
        );
        drop(answered);
    }
}
