package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNotInstalled is returned when a peer's library or runtime is missing on this machine. The
// wrapping error says what to install.
var ErrNotInstalled = errors.New("not installed")

// debianJars is the directory of Debian's jars.
const debianJars = "/usr/share/java"

// jars are what the Java programs need, without the ".jar".
var jars = strings.Fields(`curator-recipes curator-x-discovery curator-framework curator-client guava zookeeper zookeeper-jute
	jackson-databind jackson-core jackson-annotations slf4j-api slf4j-simple`)

// The Java programs that use Curator, each a peer.
const (
	CuratorLocks     = "Locks"
	CuratorBarriers  = "Barriers"
	CuratorQueue     = "Queue"
	CuratorCounters  = "Counters"
	CuratorDiscovery = "Discovery"
	CuratorConfig    = "Config"
)

// StartCurator compiles one of the Java programs into dir and runs it.
func StartCurator(dir, program string) (*Peer, error) {
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
	compile := exec.Command(compiler, "-proc:none", "-nowarn", "-source", "11", "-target", "11", "-cp", classpath, "-d",
		dir, "Peer.java", program+".java")
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("interop: %s: %w\n%s", compile, err, out)
	}
	return start("Curator's "+strings.ToLower(program),
		exec.Command(java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath+string(filepath.ListSeparator)+dir,
			program))
}

// StartKazoo runs peer.py.
func StartKazoo() (*Peer, error) {
	for _, name := range [...]string{"python3", "/usr/bin/python3"} { // the latter is who Debian installs for
		if python, err := exec.LookPath(name); err == nil && exec.Command(python, "-c", "import kazoo").Run() == nil {
			return start("kazoo", exec.Command(python, "peer.py"))
		}
	}
	return nil, fmt.Errorf("interop: kazoo is %w: no python3 imports it (Debian, Ubuntu: apt-get install python3-kazoo)", ErrNotInstalled)
}

func findJars() (string, error) {
	var paths []string
	for _, name := range jars {
		jar := filepath.Join(debianJars, name+".jar")
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("interop: Curator is %w: no %s (Debian, Ubuntu: apt-get install "+
				"libcurator-recipes-java libcurator-discovery-java)", ErrNotInstalled, jar)
		}
		paths = append(paths, jar)
	}
	return strings.Join(paths, string(filepath.ListSeparator)), nil
}

// find returns the first of the programs that exists in JAVA_HOME or in PATH.
func find(packages string, programs ...string) (string, error) {
	home := os.Getenv("JAVA_HOME")
	for _, name := range programs {
		if path, err := exec.LookPath(filepath.Join(home, "bin", name)); home != "" && err == nil {
			return path, nil
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("interop: Java is %w: no %s (Debian, Ubuntu: apt-get install %s)", ErrNotInstalled,
		strings.Join(programs, " or "), packages)
}
