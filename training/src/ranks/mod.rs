//! The ranks of a run: one process, or several that MPI started.
//!
//! The first rank owns the run folder, its ledger and its checkpoint, and only this rank shows
//! anything. All ranks draw the same lots from one key, and each takes its own micro-batches. A
//! step:
//!
//! | step | ranks |
//! |---|---|
//! | charge the step | the first; the others wait for its word |
//! | sample the lot | each, all of it; each reads the examples of its own micro-batches |
//! | clip and sum | each, its own micro-batches, in integers on one grid |
//! | add up the sums | all: once where a model has few parameters, else after each micro-batch (`DividedSum`) |
//! | add noise, update the weights | each, its own part of the parameters (`Shards`) |
//! | collect the weights | all |
//!
//! Integer sums do not depend on how a lot is cut, noise has an address, and a micro-batch is
//! computed as a whole. Therefore the weights have the same bits for any number of ranks.
//!
//! Every rank makes the same calls in the same order, even if one of them fails: [`Ranks::agree`]
//! spreads a failure before the next call. If a rank ends without a message, the program that
//! started the ranks ends them all. A rank that failed ends so if others take long to come.

mod alone;
mod divided_sum;
#[cfg(feature = "mpi")]
mod mpi;
mod shards;
#[cfg(test)]
pub(crate) mod threads;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use divided_sum::{DividedSum, Stretches};
pub(crate) use shards::{FromRank, Grain, Piece, Shards, block_rows, row_length, share_of};

use crate::RunError;
use crate::progress;

/// Messages among ranks. Each call waits for the same call on all ranks.
pub(crate) trait Messages: Send + Sync {
    /// Returns the number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn count(&self) -> usize;

    /// Replaces `bytes` by those of the first rank. They have the same length everywhere.
    fn broadcast(&self, bytes: &mut [u8]);

    /// Collects the bytes of all ranks, by rank. They have the same length everywhere.
    ///
    /// # Shapes
    /// - own: `[n]`, all: `[ranks · n]`
    fn all_gather(&self, own: &[u8], all: &mut [u8]);

    /// Collects the bytes of all ranks on the first one, by rank. They have the same length everywhere. `gathered` is empty on other
    /// ranks.
    ///
    /// # Shapes
    /// - own: `[n]`, gathered: `[ranks · n]`
    fn gather(&self, own: &[u8], gathered: &mut [u8]);

    /// Adds up the numbers of all ranks; each rank gets its own block of the sums.
    ///
    /// # Shapes
    /// - blocks: `[ranks · n]`, own: `[n]`
    fn sum_scatter(&self, blocks: &[i64], own: &mut [i64]);

    /// Sends each rank its own block, and receives a block from each.
    ///
    /// # Shapes
    /// - blocks, received: `[ranks · n]`, by rank
    fn all_to_all(&self, blocks: &[u8], received: &mut [u8]);

    /// Leaves the other ranks after success. No call may follow.
    fn leave(&self);

    /// Ends all ranks with an exit code.
    fn abort(&self, code: u8);

    /// Ends this rank with an exit code, and thereby all others, from any thread and while they compute.
    fn end(&self, code: u8);
}

/// The ranks and machines of a run, as its ledger and its certificate state them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// Number of ranks.
    pub ranks: u64,
    /// Number of machines on which the ranks ran.
    pub hosts: u64,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.hosts {
            1 => write!(f, "{} on one machine", self.ranks),
            hosts => write!(f, "{} on {hosts} machines", self.ranks),
        }
    }
}

/// The micro-batches of a lot that a rank computes: one in every `count`. A micro-batch is computed
/// by one rank as a whole, so that floating-point sums within it do not depend on the number of
/// ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of this rank, from 0.
    pub rank: usize,
    /// Number of ranks.
    pub count: usize,
    /// Examples in a micro-batch.
    pub physical_batch: usize,
}

impl Share {
    /// All micro-batches of a lot, for one process.
    #[cfg(test)]
    pub const WHOLE: Self = Self { rank: 0, count: 1, physical_batch: 1 };

    /// Returns whether the rank computes the example at `place` of a lot.
    pub fn has(self, place: usize) -> bool {
        self.rank_of(place) == self.rank
    }

    /// Returns the rank that computes the example at `place` of a lot.
    pub(crate) fn rank_of(self, place: usize) -> usize {
        place / self.physical_batch % self.count
    }
}

/// See [`Ranks::wait_with`].
pub(crate) struct Waiting(#[expect(dead_code, reason = "dropping it ends the wait")] Sender<()>);

/// All ranks, as seen by one of them.
#[derive(Clone)]
pub struct Ranks {
    messages: Arc<dyn Messages>,
    /// The machine of each rank.
    hosts: Arc<[String]>,
}

impl fmt::Debug for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.count())
    }
}

impl Ranks {
    /// Creates the only rank of a single process.
    pub fn alone() -> Self {
        Self { messages: Arc::new(alone::Alone), hosts: Arc::new([String::new()]) }
    }

    /// Joins the ranks that this process was started with.
    ///
    /// # Errors
    /// [`RunError::Refused`] if it was started as one of several and cannot reach the others.
    #[cfg(feature = "mpi")]
    pub fn join() -> Result<Self, RunError> {
        let Some((world, host)) = mpi::World::join()? else { return Ok(Self::alone()) };
        let ranks = Self { messages: Arc::new(world), hosts: Arc::new([]) };
        let names = ranks.exchange(host.as_bytes());
        let hosts = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Ok(Self { hosts, ..ranks })
    }

    /// Returns the only rank of a program without MPI.
    ///
    /// # Errors
    /// [`RunError::Refused`] if it was started as one of several ranks.
    #[cfg(not(feature = "mpi"))]
    pub fn join() -> Result<Self, RunError> {
        let started = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].into_iter().find_map(std::env::var_os);
        if started.is_none_or(|count| count == "1") {
            return Ok(Self::alone());
        }
        Err(RunError::Refused(
            "this program was started as one of several ranks, but it was built without MPI; build it with `cargo build --release \
             -p trainer-native --features mpi`, or start it without mpirun"
                .to_owned(),
        ))
    }

    /// Creates ranks that exchange messages in another way.
    #[cfg(test)]
    pub(crate) fn of(messages: impl Messages + 'static) -> Self {
        let hosts = vec![String::new(); messages.count()].into();
        Self { messages: Arc::new(messages), hosts }
    }

    /// Returns the number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.messages.rank()
    }

    /// Returns the number of ranks.
    pub fn count(&self) -> usize {
        self.messages.count()
    }

    /// Describes the ranks and whom they trust, in a program with MPI.
    pub fn listing(&self) -> Option<String> {
        #[cfg(feature = "mpi")]
        let library = Some(mpi::library());
        #[cfg(not(feature = "mpi"))]
        let library: Option<String> = None;
        let here = match self.placement() {
            None => "1 here; `mpirun -np P` starts P".to_owned(),
            Some(placement) => placement.to_string(),
        };
        library.map(|library| {
            format!(
                "ranks: {here} ({library}); the machines of all ranks and the network between them are trusted with the run's key, \
                 sums without noise, and tokens, counts and hashes of the text"
            )
        })
    }

    /// Returns this rank's micro-batches of `physical_batch` examples.
    pub fn share(&self, physical_batch: usize) -> Share {
        Share { rank: self.rank(), count: self.count(), physical_batch }
    }

    /// Returns whether there is more than one rank.
    pub fn are_several(&self) -> bool {
        self.count() > 1
    }

    /// Returns whether this rank owns the run folder.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Returns the number of ranks on this rank's machine.
    pub(crate) fn on_this_host(&self) -> usize {
        self.hosts.iter().filter(|host| **host == self.hosts[self.rank()]).count()
    }

    /// Returns the number of ranks and machines, if there are several ranks.
    pub fn placement(&self) -> Option<Placement> {
        let mut hosts: Vec<&String> = self.hosts.iter().collect();
        hosts.sort_unstable();
        hosts.dedup();
        self.are_several().then(|| Placement { ranks: self.count() as u64, hosts: hosts.len() as u64 })
    }

    /// Spreads a failure: if a rank failed, all ranks get an error, and the error of the first rank
    /// says what failed. If another rank takes long to call this, a rank that failed says so itself, and ends all ranks.
    ///
    /// # Errors
    /// This rank's, or [`RunError::Elsewhere`].
    pub fn agree<T>(&self, own: Result<T, RunError>) -> Result<T, RunError> {
        if !self.are_several() {
            return own;
        }
        let failure = own.as_ref().err().map_or_else(Vec::new, encoded);
        let waiting = own.as_ref().err().map(|error| self.wait_with(error));
        let failures = self.exchange(&failure);
        drop(waiting);
        let Some((rank, failure)) = (0..).zip(&failures).find(|(_, failure)| !failure.is_empty()) else {
            return own;
        };
        match own {
            Err(own) if self.is_first() => Err(own),
            _ if self.is_first() => Err(self.failure_of(rank, failure)),
            _ => Err(RunError::Elsewhere { code: failure[0] }),
        }
    }

    /// Begins to wait for the other ranks after a failure. Unless the returned value is dropped in time, shows the failure, and ends
    /// all ranks.
    pub(crate) fn wait_with(&self, error: &RunError) -> Waiting {
        let (others_came, waits) = channel();
        let (messages, code) = (Arc::clone(&self.messages), error.exit_code());
        let error = match self.is_first() {
            true => error.to_string(),
            false => self.failure_of(self.rank(), &encoded(error)).to_string(),
        };
        // If several ranks failed, the first of them says so.
        let patience = PATIENCE + Duration::from_millis(100) * self.rank().min(20) as u32;
        std::thread::spawn(move || {
            if waits.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                progress::error(&format!("trainer-native: {error}"));
                messages.end(code);
            }
        });
        Waiting(others_came)
    }

    /// Returns the error of a rank, for the first one to show.
    fn failure_of(&self, rank: usize, failure: &[u8]) -> RunError {
        let text = String::from_utf8_lossy(&failure[1..]).into_owned();
        let place = format!("rank {rank} of {} on {}", self.count(), self.hosts[rank]);
        match failure[0] {
            130 => RunError::Interrupted { resume: text },
            2 => RunError::Refused(format!("{place}: {text}")),
            _ => RunError::Failed(format!("{place}: {text}")),
        }
    }

    /// Spreads the failure of work that the first rank does alone. `own` is `None` on the others.
    ///
    /// # Errors
    /// The first rank's, or [`RunError::Elsewhere`].
    pub(crate) fn outcome_of_first<T>(
        &self,
        own: Result<Option<T>, RunError>,
    ) -> Result<Option<T>, RunError> {
        let mut code = [own.as_ref().err().map_or(0, RunError::exit_code)];
        self.messages.broadcast(&mut code);
        match (own, code) {
            (own, _) if self.is_first() => own,
            (own, [0]) => own,
            (_, [code]) => Err(RunError::Elsewhere { code }),
        }
    }

    /// Returns the first rank's bytes.
    pub fn broadcast(&self, own: Vec<u8>) -> Vec<u8> {
        let mut length = (own.len() as u64).to_le_bytes();
        self.messages.broadcast(&mut length);
        let mut bytes = own;
        bytes.resize(u64::from_le_bytes(length) as usize, 0);
        self.broadcast_in_place(&mut bytes);
        bytes
    }

    /// Replaces `bytes` by those of the first rank, without a copy in this process. They have the
    /// same length on all ranks.
    pub(crate) fn broadcast_in_place(&self, bytes: &mut [u8]) {
        bytes.chunks_mut(MAX_MESSAGE_LENGTH).for_each(|piece| self.messages.broadcast(piece));
    }

    /// Returns the first rank's value.
    ///
    /// # Errors
    /// [`RunError::Failed`] if it cannot be read, as between ranks of two versions of this program.
    pub(crate) fn of_first<T: Serialize + DeserializeOwned>(&self, own: T) -> Result<T, RunError> {
        if !self.are_several() {
            return Ok(own);
        }
        let unreadable =
            |error: serde_json::Error| RunError::Failed(format!("a message of the first rank: {error}"));
        let bytes = serde_json::to_vec(&own).map_err(unreadable)?;
        serde_json::from_slice(&self.broadcast(bytes)).map_err(unreadable)
    }

    /// Returns the bytes of every rank, by rank.
    pub fn exchange(&self, own: &[u8]) -> Vec<Vec<u8>> {
        let mut lengths = vec![0; 8 * self.count()];
        self.messages.all_gather(&(own.len() as u64).to_le_bytes(), &mut lengths);
        let lengths: Vec<usize> = lengths.chunks_exact(8).map(|eight| u64_of(eight) as usize).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut all: Vec<Vec<u8>> = lengths.iter().map(|&length| Vec::with_capacity(length)).collect();
        // Every rank sends as many bytes as the rank with the longest message.
        for begin in (0..longest).step_by(MAX_MESSAGE_LENGTH) {
            let length = MAX_MESSAGE_LENGTH.min(longest - begin);
            let mut piece: Vec<u8> = own.iter().skip(begin).take(length).copied().collect();
            piece.resize(length, 0);
            let mut pieces = vec![0; length * self.count()];
            self.messages.all_gather(&piece, &mut pieces);
            for ((bytes, length_of_all), piece) in
                all.iter_mut().zip(&lengths).zip(pieces.chunks_exact(length))
            {
                bytes.extend_from_slice(&piece[..length.min(length_of_all.saturating_sub(begin))]);
            }
        }
        all
    }

    /// Sends `to[rank]` to each rank, and returns the bytes that each rank sent to this one, by rank.
    pub(crate) fn all_to_all(&self, to: &[Vec<u8>]) -> Vec<Vec<u8>> {
        if !self.are_several() {
            return to.to_vec();
        }
        let count = self.count();
        let sent: Vec<u8> = to.iter().flat_map(|bytes| (bytes.len() as u64).to_le_bytes()).collect();
        let mut lengths = vec![0; 8 * count];
        self.messages.all_to_all(&sent, &mut lengths);
        let lengths: Vec<usize> = lengths.chunks_exact(8).map(|eight| u64_of(eight) as usize).collect();
        // All ranks take part in as many rounds as the longest message needs.
        let own_longest = to.iter().map(Vec::len).max().unwrap_or(0);
        let longest = self.numbers(own_longest as u64).into_iter().max().unwrap_or(0) as usize;
        let mut received: Vec<Vec<u8>> = lengths.iter().map(|&length| Vec::with_capacity(length)).collect();
        for begin in (0..longest).step_by((MAX_ROUND_LENGTH / count).max(1)) {
            let length = (MAX_ROUND_LENGTH / count).max(1).min(longest - begin);
            let mut blocks = vec![0; length * count];
            for (block, bytes) in blocks.chunks_exact_mut(length).zip(to) {
                let piece = &bytes[begin.min(bytes.len())..(begin + length).min(bytes.len())];
                block[..piece.len()].copy_from_slice(piece);
            }
            let mut others = vec![0; length * count];
            self.messages.all_to_all(&blocks, &mut others);
            for ((bytes, length_of_all), block) in
                received.iter_mut().zip(&lengths).zip(others.chunks_exact(length))
            {
                bytes.extend_from_slice(&block[..length.min(length_of_all.saturating_sub(begin))]);
            }
        }
        received
    }

    /// Collects bytes of all ranks on the first one, piece by piece. `fill` takes the next bytes of this rank, of which there are
    /// `lengths[rank]`, and `take` gets those of each rank in order. All ranks call this together, with the same lengths.
    ///
    /// # Errors
    /// The first one of `fill` or `take` on this rank.
    pub(crate) fn collect_bytes<E>(
        &self,
        lengths: &[u64],
        mut fill: impl FnMut(&mut [u8]) -> Result<(), E>,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let round = (MAX_ROUND_LENGTH / self.count()).max(1);
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut outcome = Ok(());
        let (mut own, mut all) =
            (vec![0; round], vec![0; if self.is_first() { round * self.count() } else { 0 }]);
        for begin in (0..longest).step_by(round) {
            let in_round = |end: u64| end.saturating_sub(begin).min(round as u64) as usize;
            let length = in_round(longest);
            if outcome.is_ok() {
                outcome = fill(&mut own[..in_round(lengths[self.rank()])]);
            }
            let gathered = if self.is_first() { length * self.count() } else { 0 };
            self.messages.gather(&own[..length], &mut all[..gathered]);
            for (rank, block) in all[..gathered].chunks_exact(length).enumerate() {
                outcome = outcome.and_then(|()| take(rank, &block[..in_round(lengths[rank])]));
            }
        }
        outcome
    }

    /// Returns the number that each rank passes, by rank.
    pub(crate) fn numbers(&self, own: u64) -> Vec<u64> {
        let mut all = vec![0; 8 * self.count()];
        self.messages.all_gather(&own.to_le_bytes(), &mut all);
        all.chunks_exact(8).map(u64_of).collect()
    }

    /// Returns whether any rank passes `true`.
    pub fn any(&self, own: bool) -> bool {
        if !self.are_several() {
            return own;
        }
        let mut all = vec![0; self.count()];
        self.messages.all_gather(&[u8::from(own)], &mut all);
        all.contains(&1)
    }

    /// Returns the sum of the ranks' figures.
    pub fn total(&self, own: i128) -> i128 {
        let mut all = vec![0; 16 * self.count()];
        self.messages.all_gather(&own.to_le_bytes(), &mut all);
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, i128::from_le_bytes);
        all.chunks_exact(16).map(number).sum()
    }

    /// Refuses ranks whose bytes differ from those of the first rank. All ranks call this together.
    ///
    /// # Errors
    /// [`RunError::Refused`] with this reason on a rank that differs, as [`Self::agree`] on the others.
    pub fn check_same(&self, own: &[u8], refusal: &str) -> Result<(), RunError> {
        if !self.are_several() {
            return Ok(());
        }
        let is_same = self.exchange(own).first().is_some_and(|first| first == own);
        self.agree(if is_same { Ok(()) } else { Err(RunError::Refused(refusal.to_owned())) })
    }

    /// Leaves the other ranks after all of them succeeded.
    pub fn leave(&self) {
        self.messages.leave();
    }

    /// Ends all ranks after a failure that the first one has shown.
    pub fn abort(&self, code: u8) {
        if self.are_several() {
            self.messages.abort(code);
        }
    }
}

/// Time that a rank that failed waits for the others.
const PATIENCE: Duration = if cfg!(test) { Duration::from_millis(200) } else { Duration::from_secs(5) };

/// Largest number of bytes of a message. A 32-bit count holds it, with room for those of all ranks.
const MAX_MESSAGE_LENGTH: usize = 1 << 18;

/// Largest number of bytes that a rank sends to all others in one round of [`Ranks::all_to_all`].
const MAX_ROUND_LENGTH: usize = 1 << 22;

fn u64_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Encodes an error as a message: its exit code and its text.
fn encoded(error: &RunError) -> Vec<u8> {
    let text = match error {
        RunError::Interrupted { resume } => resume.clone(),
        other => other.to_string(),
    };
    [&[error.exit_code()], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests;
