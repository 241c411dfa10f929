package ensemble

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// debianJars is the directory of the jars of Debian's zookeeper package and its dependencies.
const debianJars = "/usr/share/java"

// debianNames are the jars a server needs, without the ".jar".
var debianNames = strings.Fields(`zookeeper zookeeper-jute slf4j-api slf4j-simple
	netty-handler netty-common netty-buffer netty-transport netty-codec netty-resolver
	netty-transport-native-epoll netty-transport-native-unix-common
	snappy-java metrics-core commons-io commons-cli`)

// install has the Java runtime and the jars that a server is started with.
type install struct {
	java      string
	classpath string
}

// Installed returns nil if servers can be started on this machine. Otherwise it
// returns an error that wraps [ErrNotInstalled] and names what to install.
func Installed() error {
	_, err := findInstall()
	return err
}

func findInstall() (install, error) {
	java, jerr := findJava()
	classpath, zerr := findClasspath()
	if err := errors.Join(jerr, zerr); err != nil {
		return install{}, fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return install{java: java, classpath: classpath}, nil
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if p, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return p, nil
		}
	}
	if p, err := exec.LookPath("java"); err == nil {
		return p, nil
	}
	return "", errors.New(`no java in JAVA_HOME or PATH (Debian, Ubuntu: apt-get install default-jre-headless)`)
}

func findClasspath() (string, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		if jars, _ := filepath.Glob(filepath.Join(home, "lib", "zookeeper-*.jar")); len(jars) == 0 {
			return "", fmt.Errorf("no lib/zookeeper-*.jar in ZOOKEEPER_HOME=%s", home)
		}
		return filepath.Join(home, "lib", "*"), nil
	}
	jars := make([]string, 0, len(debianNames))
	for _, name := range debianNames {
		jar := filepath.Join(debianJars, name+".jar")
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("no %s (Debian, Ubuntu: apt-get install zookeeper; elsewhere: set ZOOKEEPER_HOME "+
				"to an unpacked release)", jar)
		}
		jars = append(jars, jar)
	}
	return strings.Join(jars, string(filepath.ListSeparator)), nil
}
