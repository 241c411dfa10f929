package interop

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// StartCuratorQueue compiles QueuePeer.java into dir and runs it. It takes the commands "open" with the servers, and of
// the queue at a node: "put" with the items in nodes, "take" with their number in rounds, and "peek"; the items that
// were taken are the answer's participants.
func StartCuratorQueue(dir string) (*Peer, error) {
	classpath, err := findJars()
	if err != nil {
		return nil, err
	}
	compiler, err := find("default-jdk-headless or the smaller ecj", "javac", "ecj")
	if err != nil {
		return nil, err
	}
	java, err := find("default-jre-headless", "java")
	if err != nil {
		return nil, err
	}
	compile := exec.Command(compiler, "-proc:none", "-nowarn", "-source", "11", "-target", "11", "-cp", classpath, "-d", dir, "QueuePeer.java")
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("interop: %s: %w\n%s", compile, err, out)
	}
	return start("Curator's queue", exec.Command(java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath+string(filepath.ListSeparator)+dir, "QueuePeer"))
}
