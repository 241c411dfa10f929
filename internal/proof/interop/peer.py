"""Uses kazoo's locks as commands say: see doc.go."""
import base64
import json
import logging
import sys
import threading
import time
import traceback

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout
from kazoo.recipe import lock as recipe

logging.basicConfig(level=logging.WARNING, stream=sys.stderr)


class CuratorLock(recipe.Lock):
    """kazoo's lock with the names of Curator's InterProcessMutex."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorWriteLock(recipe.Lock):
    """kazoo's write lock with the names of Curator's InterProcessReadWriteLock."""

    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = ["-__WRIT__", "-__READ__"]


class CuratorReadLock(recipe.Lock):
    """kazoo's read lock with the names of Curator's InterProcessReadWriteLock."""

    _NODE_NAME = "-__READ__"
    _EXCLUDE_NAMES = ["-__WRIT__"]


def names(kind):
    """Makes locks of a class that take patterns, the names of others to wait for."""
    return lambda client, c: kind(client, c["paths"][0], c["lock"], extra_lock_patterns=c.get("patterns", ()))


KINDS = {
    "lock": names(recipe.Lock),
    "read": names(recipe.ReadLock),
    "write": names(recipe.WriteLock),
    "curator-lock": names(CuratorLock),
    "curator-read": names(CuratorReadLock),
    "curator-write": names(CuratorWriteLock),
}

clients, locks = {}, {}


def open_client(c):
    client = KazooClient(c["servers"], timeout=c["timeout"] / 1000)
    client.start(30)
    clients[c["client"]] = client
    session, password = client.client_id
    return {"session": session, "password": base64.b64encode(password).decode()}


def close(c):
    client = clients.pop(c["client"])
    client.stop()
    client.close()


def new(c):
    locks[c["lock"]] = KINDS[c["kind"]](clients[c["client"]], c)


def acquire(c):
    wait = c.get("wait")
    try:
        granted = locks[c["lock"]].acquire(blocking=wait != 0, timeout=wait / 1000 if wait else None)
    except LockTimeout:
        granted = False
    return {"granted": granted}


def release(c):
    if not locks[c["lock"]].release():
        raise RuntimeError("it is not held")


def participants(c):
    """What the contenders have written into their nodes; kazoo does not tell the nodes."""
    lock = locks[c["lock"]]
    return {"participants": lock.lease_holders() if isinstance(lock, recipe.Semaphore) else lock.contenders()}


def work(c):
    lock, client = locks[c["lock"]], clients[c["client"]]
    for _ in range(c["rounds"]):
        with lock:
            SECTIONS[c["section"]](client, c)


def number(client, node):
    return int(client.get(node)[0])


def add(client, c):
    for node in c["nodes"]:
        client.set(node, str(number(client, node) + 1).encode())


def compare(client, c):
    first, last = number(client, c["nodes"][0]), number(client, c["nodes"][-1])
    if first != last:
        raise RuntimeError("a reader beside a writer: %d, then %d" % (first, last))


def crowd(client, c):
    me = client.create(c["nodes"][0] + "/in-", ephemeral=True, sequence=True)
    inside = len(client.get_children(c["nodes"][0]))
    client.delete(me)
    if inside > c["permits"]:
        raise RuntimeError("%d are in" % inside)


values = {}


def set_value(c):
    client = clients[c["client"]]
    client.ensure_path(c["node"])
    client.set(c["node"], c["part"].encode())


def get_value(c):
    return {"participants": [clients[c["client"]].get(c["node"])[0].decode()]}


def watch_value(c):
    def changed(data, stat):
        values[c["node"]] = data

    clients[c["client"]].DataWatch(c["node"], changed)


def await_value(c):
    until = time.monotonic() + c["wait"] / 1000
    while values.get(c["node"]) != c["part"].encode() and time.monotonic() < until:
        time.sleep(0.01)
    return {"participants": [(values.get(c["node"]) or b"").decode()]}


def count(c):
    """Adds 1 to a Counter; part says whether it has the bytes of Curator's SharedCount."""
    counter = clients[c["client"]].Counter(c["node"], support_curator=c.get("part") == "curator")
    sums = []
    for _ in range(c["rounds"]):
        counter += 1
        sums.append(str(counter.post_value))
    return {"participants": sums}


SECTIONS = {f.__name__: f for f in (add, compare, crowd)}
COMMANDS = {f.__name__: f for f in (close, new, acquire, release, participants, work)}
COMMANDS["open"] = open_client
COMMANDS.update({"set-value": set_value, "get-value": get_value, "watch-value": watch_value, "await-value": await_value, "count": count})
speaking = threading.Lock()


def answer(c):
    try:
        result = COMMANDS[c["do"]](c) or {}
    except BaseException:
        result = {"error": traceback.format_exc()}
    with speaking:
        print(json.dumps(dict(result, id=c["id"])), flush=True)


for line in sys.stdin:
    threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
