//! Whether this process may have what its worker needs.

use std::fs;
use std::path::Path;

use super::{bytes_fetched, bytes_in_words, least_memory, most_readers};
use crate::cli::failure::Failure;
use bernstream_config::WorkerSettings;

/// Threads of a worker whose cluster has three brokers, each with a stack of [`STACK`]. Measured: 27 with one broker.
const THREADS: u64 = 48;
/// Threads of each further reader: its own, and those of its client.
const MORE_THREADS: u64 = 7;
const STACK: u64 = 8 << 20;
/// Bytes that the allocator of the C library reserves for an arena; it has up to eight for each processor, but one for each thread.
const ARENA: u64 = 64 << 20;

/// Compares what a worker needs with what this process may have.
///
/// # Errors
///
/// [`Failure::Other`] if a limit is too low.
pub fn check_limits(settings: &WorkerSettings) -> Result<(), Failure> {
    let resident = least_memory(settings);
    let arenas = std::env::var("MALLOC_ARENA_MAX")
        .ok()
        .and_then(|text| text.parse().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let readers = most_readers(settings);
    let address_space = address_space(resident, readers, arenas.unwrap_or(8 * processors));
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(limit) = address_space_limit(&limits).filter(|limit| *limit < address_space) {
        return Err(Failure::Other(format!(
            "the address space of this process is limited to {} (`ulimit -v`), and a worker needs {}, most of which it reserves \
             without using it: limit the memory that is used instead (memory.max of a cgroup), or raise the limit; with \
             MALLOC_ARENA_MAX=1 in its environment it needs {}",
            bytes_in_words(limit),
            bytes_in_words(address_space),
            bytes_in_words(self::address_space(resident, readers, 1)),
        )));
    }
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    if let Some(limit) =
        cgroup_limit(Path::new("/sys/fs/cgroup"), &groups).filter(|limit| *limit < resident)
    {
        return Err(Failure::Other(format!(
            "the memory of this process is limited to {} (memory.max of its cgroup), and its windows need {} in all: raise the \
             limit, or let fewer windows, keys or cells be open at once, or fewer readers (input.kafka.readers) hold them; `bernstream \
             check` shows what they need",
            bytes_in_words(limit),
            bytes_in_words(resident),
        )));
    }
    Ok(())
}

/// Address space of a worker that uses `resident` bytes and has up to `arenas`.
fn address_space(resident: u64, readers: u64, arenas: u64) -> u64 {
    let threads = THREADS + MORE_THREADS * (readers - 1);
    resident
        .saturating_add(bytes_fetched(readers))
        .saturating_add(threads * STACK + arenas.min(threads) * ARENA)
}

/// The soft limit of the address space in the text of `/proc/self/limits`, if there is one.
fn address_space_limit(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The lowest limit of memory of the cgroups that this process is in, if there is one: `groups` is the text of
/// `/proc/self/cgroup`, and `root` is where cgroups are mounted.
fn cgroup_limit(root: &Path, groups: &str) -> Option<u64> {
    groups
        .lines()
        .filter_map(|line| limit_of_group(root, line))
        .min()
}

/// The lowest limit of a group, which is a line of `/proc/self/cgroup`, and of those that it lies in.
fn limit_of_group(root: &Path, line: &str) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let controllers = parts.next()?;
    let path = parts.next()?;
    // Version 2 has one hierarchy, without names of controllers.
    if controllers.is_empty() {
        lowest_limit(root, path, "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        lowest_limit(&root.join("memory"), path, "memory.limit_in_bytes")
    } else {
        None
    }
}

fn lowest_limit(root: &Path, group: &str, file: &str) -> Option<u64> {
    let group = root.join(group.trim_start_matches('/'));
    let mut lowest = None;
    for folder in group.ancestors().take_while(|at| at.starts_with(root)) {
        let limit = fs::read_to_string(folder.join(file)).unwrap_or_default();
        if let Ok(limit) = limit.trim().parse::<u64>() {
            lowest = Some(limit.min(lowest.unwrap_or(limit)));
        }
    }
    lowest
}

#[cfg(test)]
mod tests {
    use super::super::ANSWER;
    use super::*;

    #[test]
    fn every_reader_adds_threads_and_what_it_has_fetched() {
        let [one, four] = [1, 4].map(|readers| address_space(0, readers, 1000));
        assert_eq!(four - one, 3 * (ANSWER + MORE_THREADS * (STACK + ARENA)));
    }

    #[test]
    fn the_limit_of_the_address_space_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max address space         157286400            unlimited            bytes     \n";
        assert_eq!(address_space_limit(limits), Some(157_286_400));
        assert_eq!(
            address_space_limit(&limits.replace("157286400", "unlimited")),
            None
        );
        assert_eq!(address_space_limit(""), None);
    }

    #[test]
    fn the_limit_of_every_cgroup_above_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("pod/worker")).unwrap();
        fs::create_dir_all(root.join("memory/old")).unwrap();
        let limit = |groups: &str| cgroup_limit(root, groups);
        assert_eq!(limit("0::/pod/worker\n"), None);
        fs::write(root.join("pod/worker/memory.max"), "max\n").unwrap();
        assert_eq!(limit("0::/pod/worker\n"), None);
        fs::write(root.join("pod/memory.max"), "300\n").unwrap();
        assert_eq!(limit("0::/pod/worker\n"), Some(300));
        fs::write(root.join("pod/worker/memory.max"), "200\n").unwrap();
        assert_eq!(limit("9:cpu:/\n0::/pod/worker\n"), Some(200));
        fs::write(root.join("memory/old/memory.limit_in_bytes"), "100\n").unwrap();
        assert_eq!(limit("4:cpu,memory:/old\n0::/pod\n"), Some(100));
    }
}
