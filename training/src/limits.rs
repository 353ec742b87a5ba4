//! Determines the memory that the machine, a container and the process's limits leave.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Returns the bytes that this process can still allocate; `None` if the system does not report
/// them.
pub(crate) fn free() -> Option<u64> {
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = [
        read_to_string("/proc/meminfo").ok().and_then(|text| available(&text)),
        control_groups(Path::new("/sys/fs/cgroup"), &groups),
        address_space(
            &read_to_string("/proc/self/limits").unwrap_or_default(),
            &read_to_string("/proc/self/status").unwrap_or_default(),
        ),
    ];
    limits.into_iter().flatten().min()
}

/// Available memory, from the text of `/proc/meminfo`.
fn available(text: &str) -> Option<u64> {
    kibibytes(text, "MemAvailable:")
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the memory that the control groups of the process leave, in bytes, whether of version 1
/// or 2, including the groups above them. Pages that the system can take back at once count as
/// free.
fn control_groups(mount: &Path, groups: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, names) = match controllers {
            "" => (mount.to_owned(), ["memory.max", "memory.current", "inactive_file "]),
            _ if controllers.split(',').any(|name| name == "memory") => (
                mount.join("memory"),
                ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "],
            ),
            _ => return None,
        };
        // In a container, the path may be that of the host. In that case only the root exists.
        let group = root.join(path.trim_start_matches('/'));
        let up: Vec<PathBuf> =
            group.ancestors().take_while(|at| at.starts_with(&root)).map(Path::to_owned).collect();
        up.iter().filter_map(|at| control_group(at, names)).min()
    };
    groups.lines().filter_map(of_line).min()
}

fn control_group(folder: &Path, [limit, usage, reclaimable]: [&str; 3]) -> Option<u64> {
    let number = |name: &str| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    // The text "max" is no number: there is no limit.
    let limit = number(limit)?;
    let statistics = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let reclaimable = statistics.lines().find_map(|line| line.strip_prefix(reclaimable)?.trim().parse().ok());
    let used = number(usage).unwrap_or(0).saturating_sub(reclaimable.unwrap_or(0));
    Some(limit.saturating_sub(used))
}

/// Returns the address space that `ulimit -v` leaves, in bytes, from the texts of
/// `/proc/self/limits` and `/proc/self/status`.
fn address_space(limits: &str, status: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    // The text "unlimited" is no number.
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(kibibytes(status, "VmSize:").unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_systems_figure_is_read() {
        let text = "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:    8000000 kB\n";
        assert_eq!(available(text), Some(8_192_000_000));
        assert_eq!((available("MemTotal: 1 kB\n"), available("MemAvailable: much\n")), (None, None));
    }

    #[test]
    fn the_tightest_control_group_on_the_way_up_counts() {
        let mount = tempfile::tempdir().unwrap();
        let group = |path: &str, files: &[(&str, &str)]| {
            let folder = mount.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
        };
        let version_2 = "0::/outer/inner\n";
        assert_eq!(control_groups(mount.path(), version_2), None);
        group("outer/inner", &[("memory.max", "max\n"), ("memory.current", "5\n")]);
        assert_eq!(control_groups(mount.path(), version_2), None, "max is no limit");
        group("outer", &[("memory.max", "1000\n"), ("memory.current", "700\n")]);
        group("outer", &[("memory.stat", "anon 300\ninactive_file 400\n")]);
        assert_eq!(control_groups(mount.path(), version_2), Some(700));
        let version_1 = "5:cpu:/x\n4:hugetlb,memory:/docker/of-the-host\n";
        group("memory", &[("memory.limit_in_bytes", "90\n"), ("memory.usage_in_bytes", "100\n")]);
        assert_eq!(control_groups(mount.path(), version_1), Some(0));
    }

    #[test]
    fn the_address_space_is_what_is_left_of_its_limit() {
        let limits = |figure: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax address space  {figure}  unlimited  bytes\n")
        };
        assert_eq!(address_space(&limits("1048576"), "VmPeak: 9 kB\nVmSize:\t  512 kB\n"), Some(524_288));
        assert_eq!(address_space(&limits("unlimited"), ""), None);
    }
}
