//! Decides which part of a corpus a process counts.

use std::env;
use std::path::PathBuf;
use std::str::FromStr;

use dp_tokenizer::count::{Shard, UnknownShard};

use super::failure::refuse;

/// The value of `--shard`.
#[derive(Clone, Copy)]
pub(super) enum ShardName {
    /// The part whose number the launcher gave this process.
    Auto,
    /// The part K/N.
    Given(Shard),
}

/// The variables in which launchers put the number of a process, from 0, and the number of processes: Open MPI, MPICH
/// and Intel MPI, Slurm.
const LAUNCHERS: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["PMI_RANK", "PMI_SIZE"],
    ["SLURM_PROCID", "SLURM_NTASKS"],
];

/// The placeholder for the number of the part in names of files.
const NUMBER: &str = "{}";

impl FromStr for ShardName {
    type Err = UnknownShard;

    fn from_str(text: &str) -> Result<Self, UnknownShard> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Given) }
    }
}

impl ShardName {
    /// Returns the part. Where the launcher numbers it, its number replaces `{}` in the names of files.
    pub(super) fn resolve(self, input: &mut [PathBuf], out: &mut PathBuf) -> anyhow::Result<Shard> {
        if let Self::Given(shard) = self {
            return Ok(shard);
        }
        let [rank, count] = launched().ok_or_else(|| {
            refuse(
                "--shard auto: no launcher started several processes; start this command with mpirun -np N or srun -n N, or give \
                 --shard K/N",
            )
        })?;
        let shard = format!("{}/{count}", rank + 1).parse().map_err(refuse)?;
        for path in input.iter_mut().chain([out]) {
            let name = path.to_string_lossy().into_owned();
            if !name.contains(NUMBER) {
                return Err(refuse(format!(
                    "--shard auto: {name} would be the same file for every part; write {{}} in the names of --input and --out, \
                     which stands for the number of the part"
                )));
            }
            *path = name.replace(NUMBER, &(rank + 1).to_string()).into();
        }
        Ok(shard)
    }
}

/// Returns the number of this process and the number of processes, if there are several.
fn launched() -> Option<[u64; 2]> {
    let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
    let found = LAUNCHERS.iter().find_map(|[rank, count]| Some([number(rank)?, number(count)?]));
    found.filter(|[_, count]| *count > 1)
}
