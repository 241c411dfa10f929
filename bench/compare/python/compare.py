"""Makes one measurement of kazoo, as measure.go and more.go do. Arguments are -name value."""

import json
import os
import queue as queues
import re
import statistics
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState

args = dict(zip((a[1:] for a in sys.argv[1::2]), sys.argv[2::2]))


def seconds(key):
    units = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}
    return sum(float(n) * units[u] for n, u in re.findall(r"([\d.]+)(ms|[hms])", args[key]))


def connect():
    client = KazooClient(args["servers"], timeout=seconds("session"))
    client.start(15)
    return client


def report(**figure):
    print(json.dumps(figure), flush=True)


def repeat(f):
    end = time.perf_counter() + seconds("warmup")
    while time.perf_counter() < end:
        f()
    n, begun = 0, time.perf_counter()
    while time.perf_counter() < begun + seconds("t"):
        f()
        n += 1
    report(per_s=n / (time.perf_counter() - begun))


def spawn(n, f):
    threads = [threading.Thread(target=f, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    return threads


def count(n, f):
    calls, stop = [0] * n, threading.Event()

    def loop(i):
        while not stop.is_set():
            f(i)
            calls[i] += 1

    threads = spawn(n, loop)
    time.sleep(seconds("warmup"))
    before, begun = sum(calls), time.perf_counter()
    time.sleep(seconds("t"))
    report(per_s=(sum(calls) - before) / (time.perf_counter() - begun))
    stop.set()
    for t in threads:
        t.join()


inside = 0


def once(lock):
    global inside
    lock.acquire()
    inside += 1
    if inside != 1:
        os.write(2, b"mutual exclusion violated\n")
        os._exit(1)
    inside -= 1
    lock.release()


def uncontended():
    lock = connect().Lock("/kazoo-uncontended")
    repeat(lambda: once(lock))


def contended():
    locks = [connect().Lock("/kazoo-contended") for _ in range(32)]
    count(32, lambda i: once(locks[i]))


def handover():
    client = connect()
    holder = client.Lock("/kazoo-handover")
    holder.acquire()
    threads = spawn(1000, lambda i: once(client.Lock("/kazoo-handover")))
    while client.exists("/kazoo-handover").numChildren < 1001:
        time.sleep(0.02)
    time.sleep(3)
    begun = time.perf_counter()
    holder.release()
    for t in threads:
        t.join()
    report(per_s=1000 / (time.perf_counter() - begun))


def next_holder():
    """See nextHolder in more.go."""
    clients, holds, end = [connect() for _ in range(20)], queues.Queue(), threading.Semaphore(0)
    released = 0

    def hold(i):
        nonlocal released
        lock = clients[i % 20].Lock("/kazoo-next")
        lock.acquire()
        holds.put(time.perf_counter())
        end.acquire()
        released = time.perf_counter()
        lock.release()

    spawn(1, hold)
    holds.get()
    threads = spawn(1000, hold)
    while clients[0].exists("/kazoo-next").numChildren < 1001:
        time.sleep(0.02)
    time.sleep(3)
    took = []
    for n in range(1000):  # what is not measured only empties the line
        if n < 55:
            time.sleep(0.02)
        end.release()
        took.append((holds.get() - released) * 1000)
    end.release()
    for t in threads:
        t.join()
    report(ms=statistics.median(took[5:55]))


def idle():
    """See idle in more.go."""

    def ticks():
        total = 0
        for pid in args["pids"].split(","):
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rpartition(") ")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total

    clients = [connect() for _ in range(1000)]
    time.sleep(seconds("session"))
    before, begun = ticks(), time.perf_counter()
    time.sleep(max(10, seconds("t")))
    report(ms=(ticks() - before) * 10 / (time.perf_counter() - begun))
    del clients


def queue():
    q, n = connect().LockingQueue("/kazoo-queue-%d" % time.time_ns()), 600

    def once(n):
        for _ in range(n):
            q.put(b"x" * 100)
        for _ in range(n):
            q.get()
            q.consume()

    once(n // 3)
    begun = time.perf_counter()
    once(n)
    report(per_s=n / (time.perf_counter() - begun))


def counter():
    counters = [connect().Counter("/kazoo-counter") for _ in range(32)]

    def add(i):
        counters[i] += 1

    count(32, add)


def watchers():
    clients, path, n = [connect() for _ in range(20)], "/kazoo-setting", 1000
    clients[0].ensure_path(path)
    lock, done = threading.Lock(), threading.Event()
    wanted, seen = None, 0

    def changed(data, stat):
        nonlocal seen
        with lock:
            if data == wanted:
                seen += 1
                if seen == n:
                    done.set()

    for c in clients:
        for _ in range(50):
            c.DataWatch(path, lambda data, stat: changed(data, stat))
    time.sleep(seconds("warmup"))
    took = []
    for i in range(25):
        with lock:
            wanted, seen = b"v%d" % i, 0
            done.clear()
        begun = time.perf_counter()
        clients[0].set(path, b"v%d" % i)
        if not done.wait(10):
            sys.exit("%d of %d watchers have seen the change" % (seen, n))
        took.append((time.perf_counter() - begun) * 1000)
        time.sleep(0.02)
    report(ms=statistics.median(took[5:]))


def member():
    """See member in more.go. A connection that is suspended is the first that kazoo tells a holder."""

    def say(what):
        print(what, flush=True)

    client = connect()
    client.add_listener(lambda state: say("OVER") if state != KazooState.CONNECTED else None)

    def hold():
        say("HELD")
        sys.stdin.readline()
        say("RELEASED")

    say("UP")
    if args["measure"] == "election":
        client.Election("/" + args["name"], "member").run(hold)
    else:
        with client.Lock("/" + args["name"]):
            hold()


work = {f.__name__: f for f in (uncontended, contended, handover, queue, counter, watchers, idle)}
work["next"] = next_holder
work.get(args["measure"], member)()
sys.stdout.flush()
os._exit(0)  # the sessions end with the process
