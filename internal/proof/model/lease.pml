/* The lease of a ZooKeeper session: what a client may count as a proof of life, and until when.
 *
 * The model has one client, one follower and the leader. The leader keeps the session's timer. The follower records
 * that the client has sent something ("touched"), and passes that to the leader with its answer to the leader's next
 * PING. Any message and any thread may be delayed for any time, also for ever, which models a link that is cut. The
 * client does not learn of it. Times count down or up to a limit, so the states are finite and the search is complete
 * for runs of any length.
 *
 * Violated: the leader expires the session, so that another client may hold, while the client's lease stands.
 *
 * RULE selects what the client counts:
 *   NEWEST_PING            the send time of an answered packet
 *   NEWEST_WRITE           the send time of an acknowledged write
 *   WRITE_BEFORE           write, then sync; at the sync's answer, the send time of the write before (the rule in use)
 *   WRITE_BEFORE_WITHOUT_PAUSE    the same without T/4 between a sync's answer and the next write
 *   PACKET                 a packet answered T/4 before a write, then that write, then a sync: the packet's send time
 *   PACKET_WITHOUT_SYNC, PACKET_WITHOUT_PAUSE    the same without one of its parts
 *   RESTART                a lapsed lease begins anew: a packet, T/4, a write, a second write of the same session
 *   RESTART_WITH_SYNC      the same with a sync in place of the second write
 *   RESTART_ONE_WRITE      the same without the second write
 *   RESTART_WITHOUT_PAUSE  the same without T/4 between the packet's answer and the first write
 *   DORMANT                the rule in use for sessions that fall asleep: RESTART begins a lease, and its second write is the first beat's.
 *                          WRITE_BEFORE and PACKET extend it. The client may fall asleep between two beats, and a lapsed lease is a sleep, too.
 *                          A connect request is a packet that needs one write, at any time after it was answered
 * and these options change the model:
 *   LATE_COMMIT   drops the assumption: when the leader queues a commit to a follower, its last PING to that follower
 *                 is younger than tick/2, whatever has stalled the leader
 *   LOSES_TOUCH   the follower may lose the record of one packet (its table is swapped meanwhile), not of two in a row
 *   TWO_PACKETS   the client sends its packet twice, without waiting for the first answer, and counts the first
 *   REVIVE        a lapsed lease may be extended
 *   DRIFT         the client's clock may be slow by one unit in each T
 *   MARGIN        the units by which the client shortens its lease
 *   MOVES         how often the connection may break; the client connects again, maybe to a server that still follows
 *                 a deposed leader. It counts the connect request once a write is acknowledged
 *   TRUST_CONNECT counts the connect request when it is answered
 *   PHASES        the client has two series of heartbeats at once, each by the rule WRITE_BEFORE, as while it moves to a phase of its own
 *   ONE_SERIES    it also counts the latest heartbeat of one series as the former one of the other
 *   REFUSALS      the leader may refuse a write. It puts the refusal in the order of its commits, and the client counts a refused write like an
 *                 accepted one
 *   COUNT_EXPIRED the client also counts the refusal of a write whose session has expired
 *   COUNT_LOCAL   the client also counts a refusal that the follower gives by itself, as to a client with too many requests
 */
#define NEWEST_PING 0
#define NEWEST_WRITE 1
#define WRITE_BEFORE 2
#define PACKET 3
#define PACKET_WITHOUT_SYNC 4
#define PACKET_WITHOUT_PAUSE 5
#define RESTART 6
#define RESTART_WITH_SYNC 7
#define RESTART_ONE_WRITE 8
#define RESTART_WITHOUT_PAUSE 9
#define DORMANT 10
#define WRITE_BEFORE_WITHOUT_PAUSE 11
#ifndef RULE
#define RULE WRITE_BEFORE
#endif
#ifndef MARGIN
#define MARGIN 0
#endif
#ifndef MOVES
#define MOVES 0
#endif

#define T 8              /* the session timeout: four ticks */
#define PING_INTERVAL 1  /* tick/2: how often the leader pings the follower */
#define PAUSE 2          /* T/4 */
#define RESTARTS (RULE >= RESTART && RULE <= DORMANT)
#if RESTARTS || defined(REVIVE)
#define REVIVES 1
#else
#define REVIVES 0
#endif

mtype = { Ping, Commit, Refusal, SyncAck, Touch, Write, Sync, Packet, Answer, Written, Connect, Connected };

/* A message carries the number of the connection that its request came by. */
chan leaderToFollower = [3] of { mtype, byte };
chan followerToLeader = [3] of { mtype, byte };
chan committed        = [2] of { mtype, byte };  /* from the follower's main thread to its commit thread */
chan clientToFollower = [2] of { mtype, byte };
chan followerToClient = [3] of { mtype, byte };

byte left = T;                       /* leader: time until it may expire the session */
byte pingAge = PING_INTERVAL + 1;    /* leader: counts down to 0 as its last PING becomes older than tick/2 */
#if RESTARTS
byte lease = 0;
#else
byte lease = T - MARGIN;             /* client: time until its lease ends; connecting proved it */
#endif
byte pause;                          /* client: rest of its pause */
byte age = T, ageBefore = T;         /* client: time since its latest and the former counted send; T: of no use */
byte phase;                          /* client: position in its rule */
#ifdef PHASES
byte pauseB, ageB = T, ageBeforeB = T;    /* of the second series */
#define SECOND_TICK countDown(pauseB); countUp(ageB); countUp(ageBeforeB)
#else
#define SECOND_TICK skip
#endif
byte connection;                     /* number of the connection */
bool deposed;                        /* its server follows a deposed leader: no write gets through */
bool expired, touched;
#ifdef LOSES_TOUCH
bool lost;
#define TOUCH if :: touched = true; lost = false :: !lost -> lost = true fi
#else
#define TOUCH touched = true
#endif
#ifdef DRIFT
byte steady = T;                     /* ticks since the client's clock has lost a unit */
#endif
byte n;

inline countUp(t) { if :: t < T -> t++ :: else fi }
inline countDown(t) { if :: t > 0 -> t-- :: else fi }
inline clientTick() { countDown(lease); countDown(pause); countUp(age); countUp(ageBefore); SECOND_TICK }

/* extend counts a send of that age. The leader must not have expired the session if that gives the client any time. */
inline extend(a) {
  if
  :: lease == 0 && !REVIVES
  :: a + MARGIN >= T
  :: else -> assert(!expired); if :: T - MARGIN - a > lease -> lease = T - MARGIN - a :: else fi
  fi
}

/* extendStanding extends a lease that stands. */
inline extendStanding(a) {
#ifdef REVIVE
  extend(a)
#else
  if :: lease > 0 -> extend(a) :: else fi
#endif
}

active proctype all() {
  do
  :: atomic { lease == 0 && !REVIVES -> break }
  :: atomic { expired && lease == 0 && !REVIVES -> break }

  /* Time passes. */
  :: d_step { true -> countDown(left); countDown(pingAge); clientTick()
#ifdef DRIFT
              ; countUp(steady)
#endif
     }
#ifdef DRIFT
  :: d_step { steady == T -> countDown(left); countDown(pingAge); steady = 0 }
#endif

  /* The leader. */
  :: d_step { pingAge <= PING_INTERVAL && len(leaderToFollower) < 3 -> pingAge = PING_INTERVAL + 1; leaderToFollower!Ping(0) }
  :: d_step { !expired && left == 0 -> expired = true; assert(lease == 0) }
  :: d_step { followerToLeader?[Touch,_] -> followerToLeader?Touch(_); if :: !expired -> left = T :: else fi }
  :: d_step { (followerToLeader?[Write,_] && len(leaderToFollower) < 3
#ifndef LATE_COMMIT
              && pingAge > 0
#endif
              ) -> followerToLeader?Write(n); if :: !expired -> leaderToFollower!Commit(n) :: else fi; n = 0 }
#ifdef REFUSALS
  :: d_step { (followerToLeader?[Write,_] && len(leaderToFollower) < 3
#ifndef LATE_COMMIT
              && pingAge > 0
#endif
#ifndef COUNT_EXPIRED
              && !expired
#endif
              ) -> followerToLeader?Write(n); leaderToFollower!Refusal(n); n = 0 }
#endif
  :: d_step { (followerToLeader?[Sync,_] && len(leaderToFollower) < 3) -> followerToLeader?Sync(n); leaderToFollower!SyncAck(n); n = 0 }
#if MOVES > 0
  :: d_step { (followerToLeader?[Connect,_] && len(leaderToFollower) < 3) -> followerToLeader?Connect(n);
              if :: !expired -> left = T; leaderToFollower!Connected(n) :: else fi; n = 0 }
#endif

  /* The follower: its main thread, its commit thread, its clients' requests. */
  :: d_step { (leaderToFollower?[Ping,_] && len(followerToLeader) < 3) -> leaderToFollower?Ping(_);
              if :: touched -> followerToLeader!Touch(0) :: else fi; touched = false }
  :: d_step { (leaderToFollower?[Commit,_] && len(committed) < 2) -> leaderToFollower?Commit(n); committed!Commit(n); n = 0 }
  :: d_step { (leaderToFollower?[Refusal,_] && len(committed) < 2) -> leaderToFollower?Refusal(n); committed!Refusal(n); n = 0 }
  :: d_step { (leaderToFollower?[SyncAck,_] && len(committed) < 2) -> leaderToFollower?SyncAck(n); committed!SyncAck(n); n = 0 }
  :: d_step { (committed?[Commit,_] && len(followerToClient) < 3) -> committed?Commit(n);
              if :: n == connection -> followerToClient!Written(n) :: else fi; n = 0 }
  :: d_step { (committed?[Refusal,_] && len(followerToClient) < 3) -> committed?Refusal(n);
              if :: n == connection -> followerToClient!Written(n) :: else fi; n = 0 }      /* the client counts it alike */
  :: d_step { (committed?[SyncAck,_] && len(followerToClient) < 3) -> committed?SyncAck(n);
              if :: n == connection -> followerToClient!SyncAck(n) :: else fi; n = 0 }
  :: atomic { (clientToFollower?[Packet,_] && len(followerToClient) < 3) -> clientToFollower?Packet(_);
              if :: !deposed -> TOUCH :: else fi; followerToClient!Answer(0) }
  :: atomic { (clientToFollower?[Write,_] && len(followerToLeader) < 3) -> clientToFollower?Write(n);
              if :: !deposed -> TOUCH; followerToLeader!Write(n) :: else fi; n = 0 }
#ifdef COUNT_LOCAL
  :: atomic { (clientToFollower?[Write,_] && len(followerToClient) < 3) -> clientToFollower?Write(n); TOUCH; followerToClient!Written(n); n = 0 }
#endif
  :: atomic { (clientToFollower?[Sync,_] && len(followerToLeader) < 3) -> clientToFollower?Sync(n);
              if :: !deposed -> TOUCH; followerToLeader!Sync(n) :: else fi; n = 0 }
#if MOVES > 0
  :: d_step { (leaderToFollower?[Connected,_] && len(followerToClient) < 3) -> leaderToFollower?Connected(n);
              if :: n == connection -> followerToClient!Connected(n) :: else fi; n = 0 }
  :: atomic { (clientToFollower?[Connect,_] && len(followerToLeader) < 3) -> clientToFollower?Connect(n);
              if
              :: deposed = false; followerToLeader!Connect(n)
              :: deposed = true; followerToClient!Connected(n)       /* a deposed leader has confirmed the session */
              fi; n = 0 }

  /* The connection breaks, and the client connects again. Phase 6: connecting, 8: connected, 7: its first write is sent. */
  :: d_step { connection < MOVES && len(clientToFollower) < 1 ->
              do :: len(followerToClient) > 0 -> followerToClient?_,_ :: else -> break od;
              connection++; phase = 6; pause = 0; age = 0; ageBefore = T; clientToFollower!Connect(connection) }
  :: d_step { (followerToClient?[Connected,_] && phase == 6) -> followerToClient?Connected(_);
#ifdef TRUST_CONNECT
              extend(age);
#endif
              phase = 8 }
  :: d_step { phase == 8 && len(clientToFollower) < 1 ->
              phase = 7; ageBefore = age; age = 0; clientToFollower!Write(connection) }
#if RULE == DORMANT
  :: d_step { phase == 8 && len(clientToFollower) < 1 -> phase = 0; age = T }
  :: d_step { (followerToClient?[Written,_] && phase == 7 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              extend(ageBefore); ageBefore = age; age = T; phase = 9; clientToFollower!Sync(connection) }
#else
  :: d_step { (followerToClient?[Written,_] && phase == 7) -> followerToClient?Written(_);
              extend(ageBefore); phase = 0; ageBefore = age; age = T; pause = PAUSE }
#endif
#endif

  /* The client, by its rule. */
#if RULE == NEWEST_PING
  :: d_step { phase == 0 && len(clientToFollower) < 1 -> phase = 1; age = 0; clientToFollower!Packet(connection) }
  :: d_step { followerToClient?[Answer,_] -> followerToClient?Answer(_); phase = 0; extend(age); age = T }
#elif RULE == NEWEST_WRITE
  :: d_step { phase == 0 && pause == 0 && len(clientToFollower) < 1 -> phase = 1; age = 0; clientToFollower!Write(connection) }
  :: d_step { followerToClient?[Written,_] -> followerToClient?Written(_); extend(age); age = T; phase = 0; pause = PAUSE }
#elif RULE == WRITE_BEFORE || RULE == WRITE_BEFORE_WITHOUT_PAUSE
  :: d_step { phase == 0 && pause == 0 && len(clientToFollower) < 1 -> phase = 1; age = 0; clientToFollower!Write(connection) }
  :: d_step { (followerToClient?[Written,_] && phase == 1 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              phase = 2; clientToFollower!Sync(connection) }
  :: d_step { (followerToClient?[SyncAck,_] && phase == 2) -> followerToClient?SyncAck(_);
              phase = 0; extend(ageBefore); ageBefore = age; age = T;
              if :: RULE == WRITE_BEFORE -> pause = PAUSE :: else fi }
#ifdef PHASES
  :: d_step { phase == 0 && pauseB == 0 && len(clientToFollower) < 1 -> phase = 3; ageB = 0; clientToFollower!Write(connection) }
  :: d_step { (followerToClient?[Written,_] && phase == 3 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              phase = 4; clientToFollower!Sync(connection) }
  :: d_step { (followerToClient?[SyncAck,_] && phase == 4) -> followerToClient?SyncAck(_);
#ifdef ONE_SERIES
              extend(ageBefore);
#endif
              phase = 0; extend(ageBeforeB); ageBeforeB = ageB; ageB = T;
              if :: RULE == WRITE_BEFORE -> pauseB = PAUSE :: else fi }
#endif
#else
#ifdef TWO_PACKETS
  :: d_step { phase == 0 && len(clientToFollower) < 1 -> phase = 1; age = 0; clientToFollower!Packet(connection); clientToFollower!Packet(connection) }
  :: d_step { (followerToClient?[Answer,_] && phase == 1) -> followerToClient?Answer(_); phase = 5 }
  :: d_step { (followerToClient?[Answer,_] && phase == 5) -> followerToClient?Answer(_); phase = 2;
              if :: RULE != RESTART_WITHOUT_PAUSE -> pause = PAUSE :: else fi }
#else
  :: d_step { phase == 0 && len(clientToFollower) < 1 -> phase = 1; age = 0; clientToFollower!Packet(connection) }
  :: d_step { followerToClient?[Answer,_] -> followerToClient?Answer(_); phase = 2;
              if :: RULE != PACKET_WITHOUT_PAUSE -> pause = PAUSE :: else fi }
#endif
  :: d_step { phase == 2 && pause == 0 && len(clientToFollower) < 1 -> phase = 3; clientToFollower!Write(connection) }
#if RULE == PACKET_WITHOUT_SYNC || RULE == RESTART_ONE_WRITE
  :: d_step { (followerToClient?[Written,_] && phase == 3) -> followerToClient?Written(_); extend(age); age = T; phase = 0 }
#elif RULE == DORMANT
  :: d_step { (followerToClient?[Written,_] && phase == 3 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              phase = 4; ageBefore = 0; clientToFollower!Write(connection) }
  :: d_step { (followerToClient?[Written,_] && phase == 4 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              extend(age); age = T; phase = 9; clientToFollower!Sync(connection) }
  :: d_step { (followerToClient?[SyncAck,_] && phase == 9) -> followerToClient?SyncAck(_); phase = 10; pause = PAUSE }
  /* Awake. Phase 10: between beats, 11: its beat's write is sent, 12: its sync is sent. */
  :: d_step { phase == 10 && pause == 0 && len(clientToFollower) < 1 -> phase = 11; age = 0; clientToFollower!Write(connection) }
  :: d_step { (followerToClient?[Written,_] && phase == 11 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              phase = 12; clientToFollower!Sync(connection) }
  :: d_step { (followerToClient?[SyncAck,_] && phase == 12) -> followerToClient?SyncAck(_);
              phase = 10; pause = PAUSE; extendStanding(ageBefore); ageBefore = age; age = T }
  /* A pair of packets counts like a former beat. Phases 13 to 15: it is sent, half answered, answered; 16, 17: its beat. */
  :: d_step { phase == 10 && len(clientToFollower) < 1 -> phase = 13; age = 0; ageBefore = T; pause = 0;
              clientToFollower!Packet(connection); clientToFollower!Packet(connection) }
  :: d_step { (followerToClient?[Answer,_] && phase == 13) -> followerToClient?Answer(_); phase = 14 }
  :: d_step { (followerToClient?[Answer,_] && phase == 14) -> followerToClient?Answer(_); phase = 15; pause = PAUSE }
  :: d_step { phase == 15 && pause == 0 && len(clientToFollower) < 1 -> phase = 16; ageBefore = 0; clientToFollower!Write(connection) }
  :: d_step { (followerToClient?[Written,_] && phase == 16 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              phase = 17; clientToFollower!Sync(connection) }
  :: d_step { (followerToClient?[SyncAck,_] && phase == 17) -> followerToClient?SyncAck(_);
              phase = 10; pause = PAUSE; extendStanding(age); age = T }
  :: d_step { phase == 10 -> lease = 0; phase = 0; pause = 0; age = T; ageBefore = T }
#elif RULE == RESTART || RULE == RESTART_WITHOUT_PAUSE
  :: d_step { (followerToClient?[Written,_] && phase == 3 && len(clientToFollower) < 1) -> followerToClient?Written(_);
              phase = 4; clientToFollower!Write(connection) }
  :: d_step { (followerToClient?[Written,_] && phase == 4) -> followerToClient?Written(_); extend(age); age = T; phase = 0 }
#else
  :: d_step { (followerToClient?[Written,_] && len(clientToFollower) < 1) -> followerToClient?Written(_); clientToFollower!Sync(connection) }
  :: d_step { followerToClient?[SyncAck,_] -> followerToClient?SyncAck(_); extend(age); age = T; phase = 0 }
#endif
#endif
  od
}
