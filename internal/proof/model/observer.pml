/* The lease of a session on an observer that gets its packets from a follower (observerMasterPort).
 *
 * As lease.pml, with one more server on the way: the observer records that the client has sent something ("touched") and
 * passes that to the follower with its answer to the follower's PING; the follower passes it to the leader with its
 * answer to the leader's PING. Each hop delays the record by a ping interval. The client writes, syncs, and counts
 *   the send time of the write before, as on a follower, or
 *   ONE_FURTHER_BACK: the send time of the write before that one.
 * Both sides queue a PING within tick/2 before they queue a commit.
 */
#define T 8
#define PING_INTERVAL 1
#define PAUSE 2

mtype = { Ping, Commit, SyncAck, Touch, Write, Sync, Written };

chan leaderToFollower   = [2] of { mtype };
chan followerToLeader   = [2] of { mtype };
chan followerToObserver = [2] of { mtype };
chan observerToFollower = [2] of { mtype };
chan committed          = [1] of { mtype };  /* from the observer's main thread to its commit thread */
chan clientToObserver   = [1] of { mtype };
chan observerToClient   = [1] of { mtype };

byte left = T;                             /* leader: time until it may expire the session */
byte pingAge = PING_INTERVAL + 1;          /* leader: its last PING to the follower */
byte followerPingAge = PING_INTERVAL + 1;  /* follower: its last PING to the observer */
byte lease = T;                            /* client: time until its lease ends */
byte pause;
byte age = T, ageBefore = T, ageBeforeThat = T;
byte phase;
bool expired, touched, followerTouched;

inline countUp(t) { if :: t < T -> t++ :: else fi }
inline countDown(t) { if :: t > 0 -> t-- :: else fi }
inline extend(a) {
  if
  :: lease == 0
  :: a >= T
  :: else -> assert(!expired); if :: T - a > lease -> lease = T - a :: else fi
  fi
}

active proctype all() {
  do
  :: atomic { lease == 0 -> break }
  :: d_step { true -> countDown(left); countDown(pingAge); countDown(followerPingAge); countDown(lease); countDown(pause);
              countUp(age); countUp(ageBefore); countUp(ageBeforeThat) }

  /* The leader. */
  :: d_step { pingAge <= PING_INTERVAL && len(leaderToFollower) < 2 -> pingAge = PING_INTERVAL + 1; leaderToFollower!Ping }
  :: d_step { !expired && left == 0 -> expired = true; assert(lease == 0) }
  :: d_step { followerToLeader?[Touch] -> followerToLeader?Touch; if :: !expired -> left = T :: else fi }
  :: d_step { (followerToLeader?[Write] && len(leaderToFollower) < 2 && pingAge > 0) -> followerToLeader?Write;
              if :: !expired -> leaderToFollower!Commit :: else fi }
  :: d_step { (followerToLeader?[Sync] && len(leaderToFollower) < 2) -> followerToLeader?Sync; leaderToFollower!SyncAck }

  /* The follower. */
  :: d_step { (leaderToFollower?[Ping] && len(followerToLeader) < 2) -> leaderToFollower?Ping;
              if :: followerTouched -> followerToLeader!Touch :: else fi; followerTouched = false }
  :: d_step { (leaderToFollower?[Commit] && len(followerToObserver) < 2 && followerPingAge > 0) -> leaderToFollower?Commit; followerToObserver!Commit }
  :: d_step { (leaderToFollower?[SyncAck] && len(followerToObserver) < 2) -> leaderToFollower?SyncAck; followerToObserver!SyncAck }
  :: d_step { followerPingAge <= PING_INTERVAL && len(followerToObserver) < 2 -> followerPingAge = PING_INTERVAL + 1; followerToObserver!Ping }
  :: d_step { observerToFollower?[Touch] -> observerToFollower?Touch; followerTouched = true }
  :: d_step { (observerToFollower?[Write] && len(followerToLeader) < 2) -> observerToFollower?Write; followerToLeader!Write }
  :: d_step { (observerToFollower?[Sync] && len(followerToLeader) < 2) -> observerToFollower?Sync; followerToLeader!Sync }

  /* The observer. */
  :: d_step { (followerToObserver?[Ping] && len(observerToFollower) < 2) -> followerToObserver?Ping;
              if :: touched -> observerToFollower!Touch :: else fi; touched = false }
  :: d_step { (followerToObserver?[Commit] && len(committed) < 1) -> followerToObserver?Commit; committed!Commit }
  :: d_step { (followerToObserver?[SyncAck] && len(committed) < 1) -> followerToObserver?SyncAck; committed!SyncAck }
  :: d_step { (committed?[Commit] && len(observerToClient) < 1) -> committed?Commit; observerToClient!Written }
  :: d_step { (committed?[SyncAck] && len(observerToClient) < 1) -> committed?SyncAck; observerToClient!SyncAck }
  :: d_step { (clientToObserver?[Write] && len(observerToFollower) < 2) -> clientToObserver?Write; touched = true; observerToFollower!Write }
  :: d_step { (clientToObserver?[Sync] && len(observerToFollower) < 2) -> clientToObserver?Sync; touched = true; observerToFollower!Sync }

  /* The client. */
  :: d_step { phase == 0 && pause == 0 && len(clientToObserver) < 1 -> phase = 1; age = 0; clientToObserver!Write }
  :: d_step { (observerToClient?[Written] && len(clientToObserver) < 1) -> observerToClient?Written; clientToObserver!Sync }
  :: d_step { observerToClient?[SyncAck] -> observerToClient?SyncAck; phase = 0; pause = PAUSE;
#ifdef ONE_FURTHER_BACK
              extend(ageBeforeThat); ageBeforeThat = ageBefore;
#else
              extend(ageBefore);
#endif
              ageBefore = age; age = T }
  od
}
