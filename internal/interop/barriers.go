package interop

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// StartCuratorBarriers compiles Barriers.java into dir and runs it. It takes the commands open, close, new (kinds
// gate, and double with permits members), raise, lower and wait of a gate, enter and leave of a double
// barrier; the last three take wait (ms), and answer granted.
func StartCuratorBarriers(dir string) (*Peer, error) {
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
	compile := exec.Command(compiler, "-proc:none", "-nowarn", "-source", "11", "-target", "11", "-cp", classpath, "-d", dir, "Barriers.java")
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("interop: %s: %w\n%s", compile, err, out)
	}
	return start("Curator's barriers", exec.Command(java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath+string(filepath.ListSeparator)+dir, "Barriers"))
}
