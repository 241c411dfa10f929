/* The waiting line: exclusion, and no waiter that sleeps for ever.
 *
 * Contenders 0 and 1 share a session, contender 2 has its own. Each joins the line with a sequential node, and is granted once
 * no node with a lower number is left that it knows of. It watches its predecessor. If its list showed the predecessor alone, the deletion
 * of that node grants; otherwise it lists again. Right behind a contender of its own session it waits for that one's wake-up, which comes
 * when the deletion is queued, before the servers apply it.
 *
 * A session's server lags behind: a deletion becomes visible to the session at any later time. It has applied the session's own creates,
 * and so everything before them. A create's reply may be lost; then the contender finds its node, or deletes it. A contender may give up,
 * and a session may expire: its holds have ended by then (lease.pml).
 *
 * Violated: two contenders hold, a grant has a lower token than an earlier one, a waiter is not woken, or a node is left at the end.
 *
 *   GIVE_UPS, EXPIRIES   how often these happen
 *   GRANT_ON_EVENT       the deletion of the predecessor grants whatever the list showed
 *   LIST_ANYWHERE        the list may come from a server that has not applied the contender's own create
 *   HAND_OVER_FAR        the wake-up grants the next contender of the session even if another session's node is between
 *   KEEP_SLEEPING        a contender whose local predecessor gives up does not list again
 *   FORGET_ORPHAN        a contender that gives up while its create has no answer does not delete the node
 *
 * Left out: readers and downgrades, the watch of the second predecessor (it only saves a list), a directory whose counter begins again
 * after it was empty, and nodes that an operator deletes.
 */
#ifndef GIVE_UPS
#define GIVE_UPS 1
#endif
#ifndef EXPIRIES
#define EXPIRIES 1
#endif
#define CONTENDERS 3
#define NUMBERS 6
#define SESSION(i) ((i) / 2)
#define SEEN(s, k) seen[(s) * NUMBERS + (k)]

#ifdef HAND_OVER_FAR
#define RIGHT_BEHIND(a, b) ((a) > (b))
#else
#define RIGHT_BEHIND(a, b) ((a) == (b) + 1)
#endif

#define Idle 0
#define Requested 1     /* the create's reply was lost */
#define Joined 2        /* must list */
#define Watching 3
#define BehindLocal 4
#define Holding 5
#define Done 6

byte next;              /* the directory's counter */
byte owner[NUMBERS];    /* contender + 1 */
bool alive[NUMBERS];
bool deleting[NUMBERS]; /* the deletion is queued */
bool seen[2 * NUMBERS]; /* the session has seen that the node is gone */
byte state[CONTENDERS];
byte number[CONTENDERS];
byte predecessor[CONTENDERS];
bool alone[CONTENDERS]; /* the list showed the predecessor alone */
byte holders, highest;
byte giveUps = GIVE_UPS, expiries = EXPIRIES;
byte j, k, first;

inline grant(c) {
  assert(holders == 0); holders++;
  assert(number[c] + 1 > highest); highest = number[c] + 1;   /* a node's token rises with its number */
  state[c] = Holding
}

/* localNext sets j to the contender of c's session right behind c that c must wake, or to CONTENDERS. */
inline localNext(c) {
  j = 0;
  do
  :: j == CONTENDERS -> break
  :: j < CONTENDERS && SESSION(j) == SESSION(c) && state[j] == BehindLocal && RIGHT_BEHIND(number[j], number[c]) -> break
  :: else -> j++
  od
}

inline list(c) {
  first = 0;
#ifdef LIST_ANYWHERE
  if :: true :: number[c] > 0 -> first = 1 fi;                 /* the oldest node is not applied there yet */
#endif
  k = first; predecessor[c] = NUMBERS; alone[c] = true;
  do
  :: k == number[c] -> break
  :: k < number[c] && !SEEN(SESSION(c), k) -> alone[c] = (predecessor[c] == NUMBERS); predecessor[c] = k; k++
  :: k < number[c] && SEEN(SESSION(c), k) -> k++
  od;
  if
  :: predecessor[c] == NUMBERS -> grant(c)
  :: predecessor[c] != NUMBERS ->
     localAhead(c);
     if :: j < CONTENDERS -> state[c] = BehindLocal :: else -> state[c] = Watching fi
  fi;
  k = 0; j = 0; first = 0
}

/* localAhead sets j to the contender of c's session right before c that will wake it, or to CONTENDERS. */
inline localAhead(c) {
  j = 0;
  do
  :: j == CONTENDERS -> break
  :: j < CONTENDERS && SESSION(j) == SESSION(c) && state[j] >= Requested && state[j] <= Holding && RIGHT_BEHIND(number[c], number[j]) -> break
  :: else -> j++
  od
}

/* A contender joins. Its session's server has applied everything before. */
inline join(c) {
  number[c] = next; owner[next] = c + 1; alive[next] = true; next++;
  k = 0;
  do
  :: k == NUMBERS -> break
  :: k < NUMBERS && owner[k] > 0 && !alive[k] -> SEEN(SESSION(c), k) = true; k++
  :: else -> k++
  od;
  k = 0;
  if :: state[c] = Joined :: state[c] = Requested fi
}

/* The predecessor's node is gone. */
inline deleted(c) {
  if
#ifdef GRANT_ON_EVENT
  :: true -> grant(c)
#else
  :: alone[c] -> grant(c)
  :: !alone[c] -> state[c] = Joined
#endif
  fi
}

/* The holder releases, and grants the contender of its session right behind it. */
inline release(c) {
  holders--; state[c] = Done; deleting[number[c]] = true;
  localNext(c);
  if :: j < CONTENDERS -> grant(j) :: else fi;
  j = 0
}

/* A contender gives up. The one right behind it in its session lists. */
inline giveUp(c) {
  giveUps--;
#ifdef FORGET_ORPHAN
  if :: state[c] != Requested -> deleting[number[c]] = true :: else fi;
#else
  deleting[number[c]] = true;
#endif
  state[c] = Done;
#ifndef KEEP_SLEEPING
  localNext(c);
  if :: j < CONTENDERS -> state[j] = Joined :: else fi;
#endif
  j = 0
}

/* A session expires, after its holds have ended. Its contenders join again on the next session. */
inline expire(s) {
  expiries--;
  j = 0;
  do
  :: j == CONTENDERS -> break
  :: j < CONTENDERS && SESSION(j) == s ->
     if
     :: state[j] != Idle && state[j] != Done ->
        if :: state[j] == Holding -> holders-- :: else fi;
        state[j] = Idle
     :: else
     fi;
     j++
  :: else -> j++
  od;
  k = 0;
  do
  :: k == NUMBERS -> break
  :: k < NUMBERS && owner[k] > 0 && SESSION(owner[k] - 1) == s -> alive[k] = false; deleting[k] = false; SEEN(s, k) = true; k++
  :: else -> k++
  od;
  j = 0; k = 0
}

#define CONTEND(c) \
  :: atomic { state[c] == Idle && next < NUMBERS -> join(c) } \
  :: atomic { state[c] == Idle && next == NUMBERS -> state[c] = Done } \
  :: atomic { state[c] == Requested -> state[c] = Joined } \
  :: atomic { state[c] == Joined -> list(c) } \
  :: atomic { state[c] == Watching && SEEN(SESSION(c), predecessor[c]) -> deleted(c) } \
  :: atomic { state[c] == Holding -> release(c) } \
  :: atomic { giveUps > 0 && state[c] >= Requested && state[c] <= BehindLocal -> giveUp(c) }

/* The servers apply a queued deletion; each session sees it later. */
#define DELETE(n) \
  :: atomic { deleting[n] -> deleting[n] = false; alive[n] = false; SEEN(SESSION(owner[n] - 1), n) = true } \
  :: atomic { owner[n] > 0 && !alive[n] && !SEEN(0, n) -> SEEN(0, n) = true } \
  :: atomic { owner[n] > 0 && !alive[n] && !SEEN(1, n) -> SEEN(1, n) = true }

#define ALL_DONE (state[0] == Done && state[1] == Done && state[2] == Done)
#define NONE_DELETING !(deleting[0] || deleting[1] || deleting[2] || deleting[3] || deleting[4] || deleting[5])
#define NONE_LEFT !(alive[0] || alive[1] || alive[2] || alive[3] || alive[4] || alive[5])

active proctype all() {
  do
  :: atomic { ALL_DONE && NONE_DELETING -> assert(NONE_LEFT); break }
  CONTEND(0)
  CONTEND(1)
  CONTEND(2)
  DELETE(0)
  DELETE(1)
  DELETE(2)
  DELETE(3)
  DELETE(4)
  DELETE(5)
  :: atomic { expiries > 0 -> expire(0) }
  :: atomic { expiries > 0 -> expire(1) }
  od
}
