// SPDX-License-Identifier: Apache-2.0
//
// The coordinator as a thing that one can ask: what it knows (the ledger over its log, the work
// that is out), kept up to date as requests are written, and every operation behind the services.
// No gRPC and no HTTP in here.
//
// A request goes: form and signatures are checked on the caller's thread; then, in order, on the
// writer's (group_commit/), the ledger is asked, the entry appended, the ledger told; the caller
// gets its answer when all is on the disk. Readers see everything that was applied, which for
// milliseconds may not be on the disk yet; receipts are given only for what is.
//
// All functions may be called by any thread and block until the answer is durable. Errors: with a
// reason (rpc::ReasonOf), what the caller did; Unavailable, to be tried again; others, internal.

#ifndef LOCKSTEP_COORDINATOR_CORE_COORDINATOR_H_
#define LOCKSTEP_COORDINATOR_CORE_COORDINATOR_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "audit/evidence/log_entry.h"
#include "audit/ledger/ledger.h"
#include "audit/log/signed_note.h"
#include "base/clock.h"
#include "base/ed25519.h"
#include "coordinator/core/requests.h"
#include "coordinator/core/tallies.h"
#include "coordinator/group_commit/group_commit.h"
#include "coordinator/log/log_writer.h"
#include "coordinator/scheduler/scheduler.h"
#include "coordinator/scheduler/work_table.h"
#include "coordinator/store/service_time.h"
#include "coordinator/store/store.h"

namespace lockstep::coordinator {

struct CoordinatorOptions {
  std::string directory;  // made if it is not there
  std::string origin;     // of the log: audit::IsNoteKeyName
  SchedulerPolicy policy;
  int64_t clock_skew_ms_max = 5 * 60'000;
  int64_t request_ms = 25 * 3'600'000;  // answers are kept
  int64_t challenge_ms = 3'600'000;     // to open what was asked for
  int64_t heartbeat_ms = 20'000;        // asked of lease holders, or a third of their lease
  int64_t attempt_alive_ms = 90'000;    // after which an attempt unheard counts as dead
  // Leases that have ended, with their canaries, and challenges that are closed are known so long
  // after they would have run out; longer than answers are kept.
  int64_t ended_ms = int64_t{30} * 24 * 3'600'000;
  // Of evidence that is not in the log: the first of each key and reason, and the newest in all.
  int64_t evidence_per_key_max = 32;
  int64_t evidence_max = 200'000;
  size_t runs_max = 10'000;
  size_t worker_keys_per_operator_max = 4'096;
  int64_t batch_rows_max = 2'048;
  // Whether an artifact lies here whole. Called by any thread.
  std::function<bool(const Digest&)> has_artifact = [](const Digest&) { return false; };
  // Called once when nothing can be written any more; the process should end.
  std::function<void(const absl::Status&)> on_failure = [](const absl::Status&) {};
  // What has become public, on the writer's thread: a word, and JSON of one line.
  std::function<void(absl::string_view kind, const std::string& json)> on_event =
      [](absl::string_view, const std::string&) {};
  Random random;  // uniform in [0, 1), on the writer's thread; empty: the system's
  const Clock* clock = &RealClock();
};

class Coordinator {
 public:
  // Opens the data directory, or begins one with a new log key; finishes what a crash left.
  static absl::StatusOr<std::unique_ptr<Coordinator>> Open(CoordinatorOptions options);
  // Stop().
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // --- Trainers. Envelopes that are in the log already are answered as the first time.
  absl::StatusOr<audit::EntryRef> RegisterRun(const std::string& envelope,
                                              const std::vector<ArtifactSource>& artifacts);
  absl::StatusOr<Progress> GetProgress(const Digest& run) const;
  // Takes records up to the first refused one, whose error it returns.
  absl::StatusOr<PublishAnswer> PublishRecords(const Digest& run,
                                               const std::vector<std::string>& envelopes);
  absl::StatusOr<audit::EntryRef> AnnounceCheckpoint(const std::string& envelope,
                                                     const std::vector<ArtifactSource>& artifacts);
  absl::StatusOr<audit::EntryRef> PublishEvaluation(const std::string& envelope);

  // --- Auditors.
  absl::StatusOr<audit::EntryRef> SubmitKeyEvent(const std::string& envelope);
  absl::StatusOr<AcquireAnswer> AcquireLease(const Caller& caller, const Capabilities& machine,
                                             int64_t steps_max);
  // Whether to go on.
  absl::StatusOr<bool> Heartbeat(const Caller& caller, const std::string& lease_id);
  // `detail`: what its holder says of it, for people; cut and without control characters.
  absl::Status ReleaseLease(const Caller& caller, const std::string& lease_id, ReleaseReason reason,
                            absl::string_view detail = "");
  // Signed by `key`, of the lease that the envelope names, which is that attempt's. The same again
  // is answered as before.
  absl::StatusOr<AttestationAnswer> SubmitAttestation(const Ed25519PublicKey& key,
                                                      const std::string& attempt_id,
                                                      const std::string& envelope);
  // All of one attestation. The last one's entry.
  absl::StatusOr<audit::EntryRef> SubmitOpenings(const Caller& caller,
                                                 const std::vector<std::string>& envelopes);
  absl::StatusOr<OfferAnswer> OfferState(const Caller& caller, const std::string& envelope,
                                         const std::vector<ArtifactSource>& artifacts);

  // --- Everybody.
  // With the ledger as it is; keep it short, since it holds up the writer.
  void Read(absl::FunctionRef<void(const audit::Ledger& ledger)> body) const;
  void Read(
      absl::FunctionRef<void(const audit::Ledger& ledger, const Tallies& tallies)> body) const;
  absl::StatusOr<Coverage> CoverageOf(const Digest& run) const;
  // Live leases that lie on the step, in no order.
  std::vector<StepLease> LeasesOn(const Digest& run, uint64_t step) const;
  // C2SP tlog-proof. OutOfRange if the log has no such entry.
  absl::StatusOr<std::string> Receipt(uint64_t log_index) const;
  absl::StatusOr<std::unique_ptr<StoreView>> ReadStore() const { return store_->Read(); }
  // Those that neither lie here nor are on a mirror that a trainer named.
  absl::StatusOr<std::vector<Digest>> MissingArtifacts(const std::vector<Digest>& digests) const;

  const LogWriter& log() const { return *log_; }
  const audit::NoteKey& log_key() const { return log_->key(); }
  const std::string& origin() const { return options_.origin; }
  int64_t UnixMs() const { return time_->UnixMs(); }
  // Live leases, and rows that wait to be written.
  size_t LiveLeases() const;
  int64_t RowsQueued() const { return writer_->RowsQueued(); }

  // Whether a key may upload artifacts: a worker's, or that of a run's trainer. PermissionDenied
  // for others.
  absl::StatusOr<Uploader> UploaderOf(const Ed25519PublicKey& key) const;
  // Whether such a key may bring this file: a trainer's any; a worker's those of the states that
  // its operator has offered, with their sizes. PermissionDenied.
  absl::Status CheckUpload(const Ed25519PublicKey& key, const Digest& digest, uint64_t bytes) const;
  // Of files that workers brought, those to be removed now: whose state is doubted, and old ones
  // (the flag); but none that a trainer has named, or a live lease starts from. The states that
  // they are of are no work any more, unless the files come again.
  absl::StatusOr<std::vector<Digest>> GiveUpArtifacts(
      const std::vector<std::pair<Digest, bool>>& artifacts);

  // Ends what has run out, and takes up states whose files have come. Call every second or so.
  absl::Status Tick();
  absl::Status Backup(const std::string& path) const { return store_->Backup(path); }
  // OK, or why nothing can be written.
  absl::Status health() const;
  // Writes what was submitted, and ends the writer.
  void Stop();

 private:
  struct Work;       // a request on the writer's thread
  struct LiveLease;  // with what is left of it
  struct StateRef {
    uint32_t run = 0;         // place in the ledger's runs()
    uint32_t checkpoint = 0;  // in the run's checkpoints()
  };
  struct WaitingState {
    Digest run;
    uint64_t step = 0;
    audit::CheckpointAnnouncement announcement;
    Digest source;  // ArtifactRow::source
  };
  struct NoWork {
    std::string reason;
    int64_t until_ms = 0;
  };

  Coordinator(CoordinatorOptions options, Ed25519PrivateKey log_key);

  // Start.
  absl::Status Rebuild();
  absl::Status RebuildTable(StoreView& view);
  absl::Status RebuildRun(StoreView& view, uint32_t place);
  absl::Status RebuildLease(const LeaseRow& row);

  // The writer. `body`'s error undoes what it wrote, unless work.keep was set.
  template <typename T>
  absl::StatusOr<T> Write(uint64_t source, int64_t rows,
                          absl::FunctionRef<absl::StatusOr<T>(Work& work)> body);
  absl::StatusOr<audit::Outcome> Append(Work& work, const audit::LogEntry& entry,
                                        const std::string& envelope, const Digest* run,
                                        const uint64_t* step, audit::EntryRef* where);
  void TellKey(Work& work, const audit::KeyEvent& event, uint64_t log_index);
  void TellAttestation(Work& work, const audit::RunLedger& run, uint32_t attestation);
  absl::Status AppendDispute(Work& work, const audit::Dispute& dispute);
  absl::Status KeepEvidence(Work& work, absl::string_view reason, const Digest* run,
                            const uint64_t* step, const Digest* key, const std::string& envelope);
  void AddRefused(const Digest& key, absl::string_view reason, uint64_t count);
  void Tell(Work& work, absl::string_view kind, std::string json);
  void TellStep(Work& work, const audit::RunLedger& run, const audit::Outcome& outcome);
  void TellLease(Work& work, const LeaseRow& lease, bool claimed);

  // Requests that may come again: what was answered, and to remember it.
  absl::Status CheckTime(const Caller& caller) const;
  absl::StatusOr<std::optional<std::string>> Answered(Work& work, const Caller& caller);
  absl::Status Remember(Work& work, const Caller& caller, std::string response);
  absl::StatusOr<uint32_t> RequireWorker(const Ed25519PublicKey& key) const;

  // Trainers.
  absl::Status AddRun(const audit::RunLedger& run);
  absl::Status PublishOne(Work& work, const audit::RunLedger& run, const audit::LogEntry& entry,
                          const std::string& envelope, PublishAnswer* answer);
  // `worker`: the key that offers it; null: the run's trainer does.
  absl::StatusOr<audit::EntryRef> Announce(Work& work, const audit::LogEntry& entry,
                                           const std::string& envelope,
                                           const std::vector<ArtifactSource>& artifacts,
                                           const Ed25519PublicKey* worker);
  // Of a registered run.
  absl::StatusOr<Ed25519PublicKey> TrainerKeyOf(const Digest& run_id) const;
  absl::StatusOr<audit::EntryRef> AddEvaluation(Work& work, const audit::LogEntry& entry,
                                                const std::string& envelope);
  absl::Status PutArtifacts(Work& work, const Digest& source, bool by_trainer,
                            const std::vector<ArtifactSource>& artifacts);
  // ArtifactRow::source of who announced a state.
  Digest ArtifactSourceOf(const audit::CheckpointFacts& state) const;
  absl::Status CheckOffer(const audit::CheckpointAnnouncement& offered, uint32_t key_id,
                          const std::vector<ArtifactSource>& artifacts) const;
  absl::Status TakeUpStates(Work& work);
  // Here, or on a mirror that a trainer names, or `source`, if it is not null.
  absl::StatusOr<bool> IsAvailable(StoreView& view, const Digest& digest,
                                   const Digest* source) const;
  absl::StatusOr<std::vector<Digest>> MissingOf(StoreView& view,
                                                const audit::CheckpointAnnouncement& state,
                                                const Digest& source) const;
  // Null: none is available. Until the ledger changes.
  absl::StatusOr<const audit::CheckpointFacts*> StateAt(StoreView& view, const Digest& run,
                                                        uint64_t step) const;
  absl::StatusOr<bool> DoubtState(Work& work, const LeaseRow& row);
  // The newest state of a run, by its files. Under the lock.
  void IndexState(uint32_t run, uint32_t checkpoint);
  const audit::CheckpointFacts& StateOf(const StateRef& ref) const;
  const std::vector<StateRef>& StatesWith(const Digest& digest) const;
  void RelyOn(const Digest& digest) const;
  bool IsTrainers(const audit::CheckpointFacts& state) const;
  absl::StatusOr<bool> MayGo(StoreView& view, const Digest& digest, bool old) const;
  absl::Status EndStateWithout(StoreView& view, const StateRef& ref);

  // Leases.
  absl::StatusOr<AcquireAnswer> Grant(Work& work, const Caller& caller, uint32_t key_id,
                                      const Capabilities& machine, int64_t steps_max);
  absl::StatusOr<LeaseGrant> AddLease(Work& work, const Caller& caller, uint32_t key_id,
                                      const Auditor& auditor, const std::string& backend,
                                      const LeaseDecision& decision, std::vector<bool> attested);
  // Which steps of [first, end) the key has attested.
  static std::vector<bool> AttestedBy(const audit::RunLedger& run, uint32_t key_id, uint64_t first,
                                      uint64_t end);
  absl::StatusOr<AcquireAnswer> AnswerAgain(Work& work, const std::string& response);
  absl::Status CheckAttempt(Work& work, const Caller& caller);
  absl::StatusOr<LiveLease*> FindLive(Work& work, const Ed25519PublicKey& key,
                                      const std::string& attempt_id, const std::string& lease_id);
  absl::Status EndLease(Work& work, LiveLease& lease, LeaseState state, bool excused = false,
                        std::string detail = "");
  KeyTrust AfterLease(const KeyTrust& trust, const LiveLease& lease, LeaseState state,
                      bool unanswered_canary, int64_t now_ms) const;
  // Whether others have settled all that is left of it.
  absl::StatusOr<bool> IsSettled(Work& work, const LiveLease& lease) const;
  // The answer to a key that was told to come later and has not.
  std::optional<AcquireAnswer> TooEarly(uint32_t key_id, int64_t now_ms) const;
  absl::Status ExpireLeases(Work& work);
  absl::Status FinishStep(Work& work, LiveLease& lease, uint64_t step);
  CanaryRow MakeCanary(const LeaseRow& lease, const audit::StepRecord& record);

  // Attestations and openings.
  // What was answered to an attestation that is in the log already. From any thread.
  std::optional<AttestationAnswer> FindLogged(const Ed25519PublicKey& key,
                                              const audit::LogEntry& entry) const;
  absl::StatusOr<AttestationAnswer> Attest(Work& work, const Ed25519PublicKey& key,
                                           const std::string& attempt_id,
                                           const audit::LogEntry& entry,
                                           const std::string& envelope);
  static absl::Status CheckLease(const LiveLease& lease, const audit::Attestation& said);
  bool Saw(const CanaryRow& canary, const audit::Attestation& said) const;
  absl::StatusOr<AttestationAnswer> AnswerCanary(Work& work, LiveLease& lease,
                                                 const CanaryRow& canary,
                                                 const audit::Attestation& said,
                                                 const std::string& envelope);
  AttestationAnswer AnswerOf(const audit::EntryRef& entry, const audit::RunLedger& run,
                             const audit::Attestation& said) const;
  absl::Status AfterMismatch(Work& work, const audit::RunLedger& run, uint32_t attestation,
                             const Digest& leaf_hash);
  absl::Status AfterMatch(Work& work, const audit::RunLedger& run, uint32_t attestation,
                          int operators_before);
  absl::Status AskForOpenings(Work& work, const audit::RunLedger& run,
                              const audit::Attestation& said, const Ed25519PublicKey& key,
                              const audit::EntryRef& entry);
  absl::StatusOr<audit::EntryRef> OpenLeaf(Work& work, const audit::LogEntry& entry,
                                           const std::string& envelope);
  absl::Status PunishOpening(Work& work, const audit::Opening& opening,
                             const std::string& envelope);
  absl::Status CloseChallenge(Work& work, const Digest& attestation, const uint64_t* leaf,
                              ChallengeState state);
  absl::Status ExpireChallenges(Work& work);
  int OperatorsOf(const audit::RunLedger& run, uint64_t step) const;

  template <typename Change>
  absl::Status ChangeTrust(Work& work, const Ed25519PublicKey& key, const Change& change);
  // An operator by the place of its entry in the log, which stays its own whatever keys it has had
  // and whatever others say; or a key that has none.
  Digest OperatorNameOf(uint32_t key_id) const;
  // A key by the first one that it is in the place of.
  Digest FirstKeyOf(uint32_t key_id) const;
  Digest TrustNameOf(const Ed25519PublicKey& key) const;
  Auditor AuditorOf(uint32_t key_id, absl::string_view backend);
  double Uniform();

  const CoordinatorOptions options_;
  const Ed25519PrivateKey log_private_key_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<LogWriter> log_;
  std::optional<ServiceTime> time_;

  // Changed by the writer's thread alone (before it starts, by Open): it reads without the lock,
  // and changes under it; others read under it.
  mutable absl::Mutex mutex_;
  audit::Ledger ledger_;
  Tallies tallies_;
  absl::flat_hash_map<std::string, std::unique_ptr<LiveLease>> live_;
  absl::flat_hash_map<Digest, std::vector<StateRef>> states_by_file_;
  // Log indices of offered states from which somebody could not start.
  absl::flat_hash_set<uint64_t> doubted_;
  // Workers' files that a trainer was told it need not bring.
  mutable absl::flat_hash_set<Digest> relied_on_;

  // The writer's alone.
  WorkTable table_;
  std::deque<WaitingState> waiting_;      // for their files
  int64_t last_evidence_id_ = 0;          // up to which the tallies have it; ids only grow
  absl::flat_hash_set<Digest> given_up_;  // about to be removed, or just gone
  // Keys that were told when to ask again, by their first key's id.
  absl::flat_hash_map<uint32_t, NoWork> no_work_;

  std::atomic<bool> diverged_{false};
  std::unique_ptr<GroupCommit> writer_;
};

}  // namespace lockstep::coordinator

#endif  // LOCKSTEP_COORDINATOR_CORE_COORDINATOR_H_
